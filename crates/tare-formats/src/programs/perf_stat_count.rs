//! One count of `perf stat`, in whichever shape it was printed.

use std::borrow::Cow;

/// Any shape of a count.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Count<'a> {
    /// End of the interval.
    pub at_s: Option<f64>,
    /// The total of all intervals (`--summary`).
    pub is_total: bool,
    /// What was run, in the text for people.
    pub command: Option<&'a str>,
    /// `CPU0`, `S0-D0-C0`, `bash-1234`.
    pub place: Option<Cow<'a, str>>,
    pub cgroup: Option<&'a str>,
    pub value: Cow<'a, str>,
    pub unit: Cow<'a, str>,
    pub event: Cow<'a, str>,
    /// Of the mean of the runs, in per cent of it.
    pub variance: Option<f64>,
    /// Share of the time in which the event was counted, in per cent.
    pub running: Option<f64>,
    /// What perf makes of it: 0.5 `CPUs utilized`.
    pub derived: Option<(f64, Cow<'a, str>)>,
}
