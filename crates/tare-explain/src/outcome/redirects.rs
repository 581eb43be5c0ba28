//! Runs of nothing but redirects: they measured how fast a server sends elsewhere.

/// Where so many of the answers are redirects, they are what was measured.
pub(super) const REDIRECTS_SHARE: f64 = 0.99;

pub(super) const ONLY_REDIRECTS_HINT: &str =
    "give the address that the redirect leads to (curl -sI URL shows it)";

pub(super) fn only_redirects_text(share: f64) -> String {
    format!("{:.0} % of the answers are redirects (3xx): what they lead to was not asked for", 100.0 * share)
}
