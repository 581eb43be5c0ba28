//! Runs of nothing but redirects, or of nothing but "not modified": they measured how fast a server sends elsewhere, or nothing.

use tare_model::trial::HttpDetail;

/// Where so many of the answers are redirects, they are what was measured.
const REDIRECTS_SHARE: f64 = 0.99;

/// A load of nothing but one of the two.
pub(super) enum OnlyRedirects {
    Redirects {
        share: f64,
        /// Where the first one led to.
        to: Option<String>,
    },
    NotModified {
        share: f64,
    },
}

impl OnlyRedirects {
    /// `None` where other answers came as well, or where it is not known.
    pub(super) fn of<'a>(details: impl Iterator<Item = Option<&'a HttpDetail>>) -> Option<OnlyRedirects> {
        let (mut all, mut redirects, mut unmodified, mut to) = (0, 0, 0, None);
        for detail in details {
            let detail = detail?;
            all += detail.status_classes.iter().sum::<u64>();
            redirects += redirects_in(detail);
            unmodified += unmodified_in(detail);
            to = to.or(detail.said.redirected_to.as_deref());
        }
        let share = |count: u64| Some(count as f64 / all as f64).filter(|share| *share >= REDIRECTS_SHARE);
        let redirects =
            share(redirects).map(|share| OnlyRedirects::Redirects { share, to: to.map(str::to_owned) });
        redirects.or_else(|| share(unmodified).map(|share| OnlyRedirects::NotModified { share }))
    }

    pub(super) fn id(&self) -> &'static str {
        match self {
            OnlyRedirects::Redirects { .. } => "only-redirects",
            OnlyRedirects::NotModified { .. } => "only-not-modified",
        }
    }

    pub(super) fn text(&self) -> String {
        match self {
            OnlyRedirects::Redirects { share, to } => {
                let to = to.as_ref().map_or_else(String::new, |to| format!(" to {to}"));
                let share = 100.0 * share;
                format!(
                    "{share:.0} % of the answers are redirects (3xx){to}: what they lead to was not asked for"
                )
            }
            OnlyRedirects::NotModified { share } => {
                format!("{:.0} % of the answers are 304 (not modified): no content was sent", 100.0 * share)
            }
        }
    }

    pub(super) fn hint(&self) -> &'static str {
        match self {
            OnlyRedirects::Redirects { to: Some(_), .. } => "ask for that address",
            OnlyRedirects::Redirects { to: None, .. } => {
                "give the address that the redirect leads to (curl -sI URL shows it)"
            }
            OnlyRedirects::NotModified { .. } => {
                "leave If-None-Match and If-Modified-Since out where the content is to be measured"
            }
        }
    }
}

/// A 304 leads nowhere: the client has what it asked for. Records from before statuses were counted have their classes alone.
fn redirects_in(detail: &HttpDetail) -> u64 {
    let [_, _, of_class, ..] = detail.status_classes;
    of_class.saturating_sub(unmodified_in(detail))
}

fn unmodified_in(detail: &HttpDetail) -> u64 {
    detail.status_codes.get(&304).copied().unwrap_or(0)
}
