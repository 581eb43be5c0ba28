//! Runs of nothing but redirects: they measured how fast a server sends elsewhere.

use tare_model::trial::HttpDetail;

/// Where so many of the answers are redirects, they are what was measured.
const REDIRECTS_SHARE: f64 = 0.99;

/// A load of nothing but redirects.
pub(super) struct OnlyRedirects {
    share: f64,
    /// Where the first one led to.
    to: Option<String>,
}

impl OnlyRedirects {
    /// `None` where other answers came as well, or where it is not known.
    pub(super) fn of<'a>(details: impl Iterator<Item = Option<&'a HttpDetail>>) -> Option<OnlyRedirects> {
        let (mut all, mut redirects, mut to) = (0, 0, None);
        for detail in details {
            let detail = detail?;
            all += detail.status_classes.iter().sum::<u64>();
            redirects += redirects_in(detail);
            to = to.or(detail.said.redirected_to.as_deref());
        }
        let share = redirects as f64 / all as f64;
        (all > 0 && share >= REDIRECTS_SHARE).then(|| OnlyRedirects { share, to: to.map(str::to_owned) })
    }

    pub(super) fn text(&self) -> String {
        let to = self.to.as_ref().map_or_else(String::new, |to| format!(" to {to}"));
        let share = 100.0 * self.share;
        format!("{share:.0} % of the answers are redirects (3xx){to}: what they lead to was not asked for")
    }

    pub(super) fn hint(&self) -> &'static str {
        match self.to {
            Some(_) => "ask for that address",
            None => "give the address that the redirect leads to (curl -sI URL shows it)",
        }
    }
}

/// A 304 leads nowhere: the client has what it asked for. Records from before statuses were counted have their classes alone.
fn redirects_in(detail: &HttpDetail) -> u64 {
    let [_, _, of_class, ..] = detail.status_classes;
    of_class.saturating_sub(detail.status_codes.get(&304).copied().unwrap_or(0))
}
