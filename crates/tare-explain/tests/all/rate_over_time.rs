//! What the rate of a session's slices does.

use crate::support::{Scene, asked};
use tare_explain::explain;
use tare_model::outcome::State;
use tare_model::trial::Measure;

const SLICES: u64 = 100;
const SLICE_NS: u64 = 100_000_000;
const BEGIN_NS: u64 = 1_000_000_000;

/// Of three trials of ten seconds with so many answers in each slice.
fn state(answers: impl Fn(u64) -> u64) -> Option<State> {
    let mut record = asked(&Scene { seconds: 10.0, ..Scene::default() });
    for (seq, trial) in (0u64..).zip(&mut record.trials) {
        let Measure::Http(sample) = &mut trial.sample else { continue };
        let slice = |at: u64| {
            let place = seq * SLICES + at;
            let noise = place * 7_919 % 101;
            (BEGIN_NS + (at + 1) * SLICE_NS, answers(place) + if answers(place) > 0 { noise } else { 0 })
        };
        sample.slices = (0..SLICES).map(slice).collect();
    }
    explain(&record).over_time.timeline.unwrap().state
}

#[test]
fn what_the_slices_do_is_a_result() {
    assert_eq!(state(|_| 10_000), Some(State::Steady));
    assert_eq!(state(|at| 10_000 + 20 * at), Some(State::Drifting));
    assert_eq!(state(|at| if at * 31 % 10 < 4 { 7_000 } else { 10_000 }), Some(State::Bimodal));
    assert_eq!(state(|at| if at < 270 { 10_000 } else { 20_000 }), Some(State::NeverSteady));
    // An answer in a hundred slices tells of no level.
    assert_eq!(state(|at| u64::from(at % 100 == 0)), None);
}
