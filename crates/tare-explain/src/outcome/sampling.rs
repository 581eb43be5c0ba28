//! Whether the clock that samples call stacks fired as often as it was to.
//!
//! A clock that is held up takes its samples where interrupts are let on again, such as the end of a switch: shares of functions are
//! then those of such places.

use crate::capacity::levels::Accounting;
use tare_model::observation::Role;

/// Below this share of the samples, what is missing may be as large as what is there.
const TAKEN_MIN: f64 = 0.5;
/// Of fewer expected samples nobody reads shares.
const EXPECTED_MIN: f64 = 500.0;

/// Samples of the server or program, and how many its CPU time gives at the rate that was asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FewSamples {
    pub taken: f64,
    pub expected: f64,
    pub rate_hz: f64,
}

/// Too few of them, over the measured trials that have stacks; `None` where there are enough, or too few to judge.
pub(crate) fn few_samples(accounting: &Accounting) -> Option<FewSamples> {
    let of_trials = accounting.measured_trials().filter_map(|(window, trial)| {
        let profile = trial.observation.stacks.as_ref()?.on_cpu.value()?;
        let rate_hz = profile.rate_hz?;
        // What there was no room for was taken as well. Which samples are of processes that ended between two readings is not known.
        let taken = profile.total(Role::Sut).saturating_add(profile.lost) as f64;
        let run_s = window.sum_of(Role::Sut, |thread| thread.is_one().then_some(thread.run_s))?;
        Some(FewSamples { taken, expected: rate_hz * run_s, rate_hz })
    });
    let sum = of_trials.reduce(|sum, more| FewSamples {
        taken: sum.taken + more.taken,
        expected: sum.expected + more.expected,
        rate_hz: more.rate_hz,
    })?;
    (sum.expected >= EXPECTED_MIN && sum.taken < TAKEN_MIN * sum.expected).then_some(sum)
}
