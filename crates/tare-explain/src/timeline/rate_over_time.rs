//! How the rate came to its level, and kept it: the warm-up by its change points, the trials by the quantiles of their slices.

use crate::accounting::Closed;
use crate::capacity::levels::Accounting;
use crate::capacity::stopping::warm_up;
use tare_model::outcome::{Compiled, LatencyFall, Stage, Timeline, WarmUpTimeline};
use tare_model::trial::{Measure, Trial, WarmUp};

/// Fewer slices have no quantiles to speak of.
const SLICES_MIN: usize = 20;
/// The share of all slices about a quantile whose trials say how the machine was.
const ABOUT: f64 = 0.1;

/// A slice's rate, with what its trial knows of the machine.
struct Slice {
    answers: u64,
    rate_hz: f64,
    clock_hz: Option<f64>,
    interference: Option<f64>,
}

/// The timeline of the asked level.
pub(crate) fn timeline(accounting: &Accounting) -> Option<Timeline> {
    let mut slices: Vec<Slice> = accounting
        .asked_trials()
        .zip(&accounting.asked.trials)
        .flat_map(|(trial, window)| of(trial, window))
        .collect();
    if slices.len() < SLICES_MIN {
        return None;
    }
    let answers: Vec<u64> = slices.iter().map(|slice| slice.answers).collect();
    slices.sort_by(|a, b| a.rate_hz.total_cmp(&b.rate_hz));
    let first = accounting.asked_trials().next();
    Some(Timeline {
        warm_up: first.and_then(warm_up).map(warmed_up),
        slices: u32::try_from(slices.len()).unwrap_or(u32::MAX),
        state: tare_stats::steadiness_of_counts(&answers).map(|found| found.state.into()),
        floor: stage(&slices, 0.05)?,
        typical: stage(&slices, 0.5)?,
        burst: stage(&slices, 0.95)?,
    })
}

fn of(trial: &Trial, window: &Closed) -> Vec<Slice> {
    let Measure::Http(sample) = &trial.sample else { return Vec::new() };
    let interference =
        window.corrected_run_s.zip(window.sut.as_ref()).map(|(corrected_s, sut)| sut.run_s / corrected_s);
    let mut begin_ns = trial.observation.begin_ns;
    let mut slices = Vec::new();
    for &(end_ns, answers) in &sample.slices {
        let length_s = end_ns.saturating_sub(begin_ns) as f64 / 1e9;
        begin_ns = begin_ns.max(end_ns);
        // The first and the last are cut by the window's edges, and short.
        if length_s > 0.0 {
            let rate_hz = answers as f64 / length_s;
            let interference = interference.filter(|w| w.is_finite());
            slices.push((length_s, Slice { answers, rate_hz, clock_hz: window.clock_hz(), interference }));
        }
    }
    let lengths: Vec<f64> = slices.iter().map(|(length_s, _)| *length_s).collect();
    let usual_s = tare_stats::median(&lengths).unwrap_or(0.0);
    slices.into_iter().filter(|(length_s, _)| *length_s > usual_s / 2.0).map(|(_, slice)| slice).collect()
}

/// The quantile of sorted slices, and the machine about there.
fn stage(sorted: &[Slice], quantile: f64) -> Option<Stage> {
    let rates: Vec<f64> = sorted.iter().map(|slice| slice.rate_hz).collect();
    let rate_hz = tare_stats::quantile(&rates, quantile)?;
    let last = sorted.len() - 1;
    let place = |share: f64| (share.clamp(0.0, 1.0) * last as f64).round() as usize;
    let about = &sorted[place(quantile - ABOUT / 2.0)..=place(quantile + ABOUT / 2.0)];
    let mean = |pick: fn(&Slice) -> Option<f64>| {
        let known: Vec<f64> = about.iter().filter_map(pick).collect();
        tare_stats::mean(&known)
    };
    Some(Stage {
        rate_hz,
        clock_hz: mean(|slice| slice.clock_hz),
        interference: mean(|slice| slice.interference),
    })
}

fn warmed_up(warm_up: &WarmUp) -> WarmUpTimeline {
    let slice_s = warm_up.slice_ns as f64 / 1e9;
    WarmUpTimeline {
        length_s: slice_s * warm_up.answers.len() as f64,
        steady_from_s: warm_up.steady_from().map(|from| slice_s * from as f64),
        growth: warm_up.growth(),
        compiled: warm_up.runtime.as_ref().map(|_| Compiled {
            cost_fall: warm_up.cost_fall(),
            compiling_share: warm_up.compiling_share(),
            is_warm: warm_up.is_over(),
        }),
        latency_fall: warm_up
            .latency_fall()
            .map(|(from, times)| LatencyFall { from_s: slice_s * from as f64, times }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_comes_with_the_machine_about_it() {
        let slice = |at: u32| Slice {
            answers: u64::from(at),
            rate_hz: f64::from(at),
            clock_hz: (at >= 50).then_some(3e9),
            interference: Some(if at < 10 { 1.3 } else { 1.0 }),
        };
        let slices: Vec<Slice> = (0..=100).map(slice).collect();
        let floor = stage(&slices, 0.05).unwrap();
        assert_eq!((floor.rate_hz, floor.clock_hz), (5.0, None));
        assert!(floor.interference.unwrap() > 1.2);
        let burst = stage(&slices, 0.95).unwrap();
        assert_eq!((burst.rate_hz, burst.clock_hz, burst.interference), (95.0, Some(3e9), Some(1.0)));
    }
}
