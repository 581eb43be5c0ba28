//! A server alone, beside the same server interleaved: whether taking turns changes what a request costs.
//!
//! It may: by requests that are left in one server's queue while the other's turn runs, by caches, or by the helper threads of two
//! runtimes on one CPU.

use super::cost::cpu_ns;
use crate::error::LabError;
use crate::generate::load_failed;
use crate::loads::drive::{live_rate, start};
use crate::running::Running;
use crate::subjects::sut::Sut;
use std::time::Duration;
use tare_load::LoadSpec;
use tare_model::comparison::{Change, Comparison, Figure, Interleaved};
use tare_model::outcome::Warning;
use tare_stats::mean_interval;

/// Until connections are open and the server is the only one with something to do.
const SETTLED: Duration = Duration::from_millis(30);
/// How long is counted, and for which part of the time at most.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    pub length: Duration,
    part: f64,
}

/// Of short launches, and of those whose servers take long to get warm: there each arm has its turn in each launch.
pub(super) const SHORT: Share = Share { length: Duration::from_millis(100), part: 0.04 };
pub(super) const LONG: Share = Share { length: Duration::from_millis(400), part: 0.07 };
/// Fewer have no interval.
const MEASURED_MIN: usize = 3;
/// Turns whose lengths are within this factor are as long as each other.
const ALIKE: f64 = 1.5;
/// A difference beyond this is worth a warning.
const WORTH: f64 = 0.03;

/// What is left of the time for it.
#[derive(Debug, Default)]
pub(super) struct Allowance {
    spent_s: f64,
    /// The arm whose turn it is.
    next: usize,
}

impl Allowance {
    /// The arm to measure in a launch that ends so many seconds after the first began; none where there is no time for it. The A/A control is
    /// the first program.
    pub fn arm(&mut self, elapsed_s: f64, share: Share, arms: usize) -> Option<usize> {
        let takes_s = (SETTLED + share.length).as_secs_f64();
        // All of them once at first: turns may have to be longer.
        if self.next + 1 >= arms && self.spent_s + takes_s > share.part * elapsed_s {
            return None;
        }
        self.spent_s += takes_s;
        let at = self.next % arms.saturating_sub(1).max(1);
        self.next += 1;
        Some(if at == 0 { 0 } else { at + 1 })
    }
}

/// CPU time of a request of a server that is loaded alone, seconds.
pub(super) fn cost_s(
    sut: &mut Sut,
    spec: &LoadSpec,
    length: Duration,
    phase: &str,
    running: &mut Running<'_>,
) -> Result<Option<f64>, LabError> {
    let generator = start(spec, sut, running.interrupt)?;
    running.wait(SETTLED, phase, |_| None)?;
    let read = || (cpu_ns(&sut.pids), generator.live().answers);
    let (cpu_before, before) = read();
    let mut shown = before;
    running.wait(length, phase, |seconds| Some(live_rate(&generator, seconds, &mut shown)))?;
    let (cpu_after, after) = read();
    generator.stop().map_err(load_failed)?;
    let answers = after.saturating_sub(before);
    let cpu = cpu_before.zip(cpu_after).and_then(|(before, after)| after.checked_sub(before));
    Ok(cpu.filter(|ns| answers > 0 && *ns > 0).map(|ns| ns as f64 / 1e9 / answers as f64))
}

/// What interleaving changed, program by program.
pub(super) fn interleaved(comparison: &Comparison) -> Vec<Interleaved> {
    let of = |(at, program): (usize, &tare_model::comparison::Program)| {
        let arm = if at == 0 { 0 } else { at + 1 };
        let pair = |launch: &tare_model::comparison::Launch| {
            let arm = launch.arms.get(arm)?;
            Some((arm.alone_s?, *arm.figures.get(&Figure::CpuPerRequest)?))
        };
        // Of turns as long as they are by now; where those are few, of all.
        let as_now = |launch: &&tare_model::comparison::Launch| {
            let ratio = launch.turn_ns as f64 / comparison.turn_ns.max(1) as f64;
            (1.0 / ALIKE..=ALIKE).contains(&ratio)
        };
        let mut pairs: Vec<(f64, f64)> = comparison.launches.iter().filter(as_now).filter_map(pair).collect();
        if pairs.len() < MEASURED_MIN {
            pairs = comparison.launches.iter().filter_map(pair).collect();
        }
        if pairs.len() < MEASURED_MIN {
            return None;
        }
        let alone: Vec<f64> = pairs.iter().map(|(alone, _)| *alone).collect();
        let ratios: Vec<f64> = pairs.iter().map(|(alone, interleaved)| (interleaved / alone).ln()).collect();
        let found = mean_interval(&ratios)?;
        let interval = found.ci95?.map(f64::exp_m1)?;
        Some(Interleaved {
            program: program.name.clone(),
            alone_s: tare_stats::median(&alone)?,
            change: Change { value: found.value.exp_m1(), interval: [interval.lo, interval.hi] },
            measured: pairs.len(),
        })
    };
    comparison.programs.iter().enumerate().filter_map(of).collect()
}

/// Programs that cost something else interleaved than alone.
pub(super) fn warnings(comparison: &Comparison) -> Option<Warning> {
    let differs = |one: &&Interleaved| one.change.interval[0] > WORTH || one.change.interval[1] < -WORTH;
    let each: Vec<String> = comparison
        .interleaving
        .iter()
        .filter(differs)
        .map(|one| {
            let [low, high] = one.change.interval.map(|share| share * 100.0);
            format!("{} {:+.1} % ({low:+.1} to {high:+.1})", one.program, one.change.value * 100.0)
        })
        .collect();
    (!each.is_empty()).then(|| Warning {
        id: "interleaving-changes-cost".into(),
        text: format!(
            "a request costs something else interleaved than where its server is loaded alone: {}",
            each.join(", ")
        ),
        hint: "what the programs differ by is of servers that share a CPU; 'tare run' measures each alone"
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_little_of_the_time_and_never_the_control() {
        let mut allowance = Allowance::default();
        let first: Vec<Option<usize>> = (0..4).map(|_| allowance.arm(1.0, SHORT, 4)).collect();
        assert_eq!(first, [Some(0), Some(2), Some(3), None], "all once, whatever it takes");
        let later = [12.0, 20.0, 20.0, 20.0, 20.0];
        let found: Vec<Option<usize>> = later.into_iter().map(|at| allowance.arm(at, SHORT, 4)).collect();
        assert_eq!(found, [None, Some(0), Some(2), Some(3), None]);
    }
}
