//! What somebody else's generator says of a trial, held against the window in which it was watched.

use crate::capacity::levels::Accounting;
use tare_model::trial::Trial;

/// A report may leave out its set-up and what it does at its end: this much of the window, and so long.
const WATCHED_MORE_RATIO: f64 = 1.2;
const WATCHED_MORE_S: f64 = 0.3;
/// The window begins when connections are open and the observers are ready, so it may be shorter than the report.
const SAID_MORE_RATIO: f64 = 1.5;
const SAID_MORE_S: f64 = 1.0;

/// A report whose counts are of another time than the window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct OtherTime {
    pub said_s: f64,
    pub watched_s: f64,
}

/// The first trial of which the generator reports a time that cannot be the window's.
pub(super) fn other_time(accounting: &Accounting) -> Option<OtherTime> {
    accounting.asked_trials().find_map(|trial| {
        let said_s = trial.report.as_ref()?.window_ns? as f64 / 1e9;
        let watched_s = trial.observation.wall_ns() as f64 / 1e9;
        let differs = watched_s > WATCHED_MORE_RATIO * said_s + WATCHED_MORE_S
            || said_s > SAID_MORE_RATIO * watched_s + SAID_MORE_S;
        differs.then_some(OtherTime { said_s, watched_s })
    })
}

/// What the generator wrote to standard error, in the first trial in which it did.
pub(super) fn complaint<'a>(accounting: &'a Accounting) -> Option<&'a str> {
    let of = |trial: &'a Trial| trial.report.as_ref().map(|report| report.stderr.as_str());
    accounting.asked_trials().filter_map(of).find(|text| !text.is_empty())
}
