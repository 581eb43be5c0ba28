//! When the servers of a launch are warm.
//!
//! A server that was compiled ahead is warm after a fraction of a second. One whose runtime compiles costs two to fifteen times as
//! much at first: it is loaded until the CPU time of its requests has stopped falling and its compilers, where they can be seen, are
//! done. All arms are loaded alike, until the last of them is warm.

use super::length::Count;
use tare_machine::Root;
use tare_machine::runtime::{self, Runtime};
use tare_model::comparison::{ArmWarmUp, Comparison, LaunchWarmUp};
use tare_model::outcome::Warning;
use tare_stats::median;

/// A cost that fell by less from one quarter of the load to the next, or from the first counted window to the last, has not fallen.
const FALL: f64 = 0.95;
/// Compilers that took a larger share of the CPU time lately are still at work.
const COMPILING_MAX: f64 = 0.05;
/// Fewer slices have no quarters.
const SLICES_MIN: usize = 8;
/// More launches than this that were not warm are worth a warning: one may have met a slow moment of the host.
const COLD_MAX: f64 = 0.2;

/// What is known of an arm.
struct Seen {
    runtime: Option<Runtime>,
    pids: Vec<u32>,
    /// At the end of each slice of the load.
    counts: Vec<(Count, Option<u64>)>,
}

/// The load before the counted windows of a launch.
pub(super) struct Warmth {
    arms: Vec<Seen>,
    /// Time that each arm is loaded in a slice.
    own_slice_s: f64,
}

impl Warmth {
    /// Of servers with these processes.
    pub fn new(pids: impl Iterator<Item = Vec<u32>>, own_slice_s: f64) -> Warmth {
        let root = Root::live();
        let seen = |pids: Vec<u32>| Seen { runtime: Runtime::of_any(&root, &pids), pids, counts: Vec::new() };
        Warmth { arms: pids.map(seen).collect(), own_slice_s }
    }

    /// Whether any of them compiles while it runs.
    pub fn compiles(&self) -> bool {
        self.arms.iter().any(|arm| arm.runtime.is_some())
    }

    /// Another slice is over.
    pub fn add(&mut self, counts: Vec<Count>) {
        for (arm, count) in self.arms.iter_mut().zip(counts) {
            let shows = arm.runtime.is_some_and(Runtime::shows_compiling);
            let compiling_ns = shows.then(|| runtime::compiling_ns(&Root::live(), &arm.pids));
            arm.counts.push((count, compiling_ns));
        }
    }

    /// Whether all of them are warm.
    pub fn is_over(&self) -> bool {
        self.arms.iter().all(|arm| arm.is_warm(self.own_slice_s))
    }

    /// What the result keeps, once the windows have been counted, with the CPU time of a request in each of them.
    pub fn kept(&self, length_s: f64, windows: &[Vec<f64>]) -> LaunchWarmUp {
        let later = self.arms.iter().zip(windows).any(|(arm, costs)| arm.fell_on(costs));
        let arm = |arm: &Seen| ArmWarmUp {
            runtime: arm.runtime.map(|runtime| runtime.name().to_owned()),
            cost_fall: arm.runtime.and_then(|_| arm.fall()),
            compiling_share: arm.compiling_share(),
        };
        LaunchWarmUp {
            length_s,
            is_steady: self.is_over() && !later,
            arms: self.arms.iter().map(arm).collect(),
        }
    }
}

impl Seen {
    fn is_warm(&self, own_slice_s: f64) -> bool {
        let Some(runtime) = self.runtime else { return true };
        let slices = self.counts.len().saturating_sub(1);
        let loaded_s = slices as f64 * own_slice_s;
        if slices < SLICES_MIN || loaded_s < runtime.least_load().as_secs_f64() {
            return false;
        }
        // Compilers that are seen to be done need no other sign; where none are seen, what fell lately may fall again.
        let tail = self.tail();
        let [from, middle] = match runtime.shows_compiling() {
            true => [slices - tail, slices - tail / 2],
            false => [slices - 2 * tail, slices - tail],
        };
        let (last, before) = (self.cost(middle, slices), self.cost(from, middle));
        // A cost that is not known tells nothing against it.
        let fell = last.zip(before).is_some_and(|(last, before)| last < FALL * before);
        !fell && self.compiling_share().is_none_or(|share| share <= COMPILING_MAX)
    }

    /// Whether it came to cost less from window to window: a slow moment of the host is in one or two of them. Compilers that
    /// were seen to be done change nothing any more.
    fn fell_on(&self, windows: &[f64]) -> bool {
        if self.runtime.is_none_or(Runtime::shows_compiling) {
            return false;
        }
        let falls = windows.windows(2).all(|pair| pair[1] <= pair[0]);
        let ends = windows.first().zip(windows.last()).filter(|_| windows.len() > 2);
        falls && ends.is_some_and(|(first, last)| *last < FALL * first)
    }

    /// CPU time of a request between the ends of two slices.
    fn cost(&self, from: usize, to: usize) -> Option<f64> {
        let ((from, _), (to, _)) = (self.counts.get(from)?, self.counts.get(to)?);
        let cpu_ns = to.cpu_ns?.checked_sub(from.cpu_ns?)?;
        let answers = to.answers.checked_sub(from.answers).filter(|answers| *answers > 0)?;
        Some(cpu_ns as f64 / answers as f64).filter(|cost| *cost > 0.0)
    }

    /// Slices at the end that tell how warm it is: a quarter; where compilers are seen, an eighth.
    fn tail(&self) -> usize {
        let slices = self.counts.len().saturating_sub(1);
        match self.runtime.is_some_and(Runtime::shows_compiling) {
            true => (slices / 8).max(SLICES_MIN).min(slices),
            false => (slices / 4).max(1).min(slices),
        }
    }

    /// How many times as much a request took in the first slice as at the end.
    fn fall(&self) -> Option<f64> {
        let slices = self.counts.len().checked_sub(1).filter(|slices| *slices >= 2)?;
        Some(self.cost(0, 1)? / self.cost(slices - self.tail(), slices)?)
    }

    /// Share of the CPU time at the end that the compilers took.
    fn compiling_share(&self) -> Option<f64> {
        let slices = self.counts.len().checked_sub(1)?;
        let ((from, compiled), (to, compiling)) =
            (self.counts.get(slices - self.tail())?, self.counts.get(slices)?);
        let cpu_ns = to.cpu_ns?.checked_sub(from.cpu_ns?).filter(|ns| *ns > 0)?;
        // A thread that ended took its time with it.
        Some(compiling.as_ref()?.saturating_sub(*compiled.as_ref()?) as f64 / cpu_ns as f64)
    }
}

/// Launches that were counted while they became faster.
pub(super) fn warnings(comparison: &Comparison) -> Option<Warning> {
    let warmed: Vec<&LaunchWarmUp> =
        comparison.launches.iter().filter_map(|launch| launch.warm_up.as_ref()).collect();
    let cold = warmed.iter().filter(|warm_up| !warm_up.is_steady).count();
    if cold as f64 <= COLD_MAX * warmed.len() as f64 {
        return None;
    }
    let length_s = median(&warmed.iter().map(|warm_up| warm_up.length_s).collect::<Vec<_>>())?;
    let text = format!(
        "{cold} of {} launches were not steady: after {length_s:.1} s of load their servers still compiled, or requests still came to cost \
         less; costs are those of servers that are partly cold",
        warmed.len()
    );
    Some(Warning {
        id: "not-warm".into(),
        text,
        hint: "give a longer --budget: three tenths of it may be the load before a launch is counted; or that load itself (-w)".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An arm with this CPU time of a request in each slice, and the share of its compilers.
    fn seen(runtime: Option<Runtime>, slices: &[(usize, f64, f64)]) -> Seen {
        let (mut cpu_ns, mut answers, mut compiling) = (0u64, 0u64, 0u64);
        let mut counts = vec![(Count { cpu_ns: Some(0), answers: 0 }, Some(0))];
        for &(count, cost_us, share) in slices {
            for _ in 0..count {
                cpu_ns += 66_000_000;
                answers += (66_000.0 / cost_us) as u64;
                compiling += (66e6 * share) as u64;
                counts.push((Count { cpu_ns: Some(cpu_ns), answers }, Some(compiling)));
            }
        }
        if !runtime.is_some_and(Runtime::shows_compiling) {
            counts.iter_mut().for_each(|(_, compiling)| *compiling = None);
        }
        Seen { runtime, pids: Vec::new(), counts }
    }

    #[test]
    fn what_is_compiled_ahead_pays_for_no_other() {
        let ahead = Warmth { arms: vec![seen(None, &[(1, 9.0, 0.0)])], own_slice_s: 0.066 };
        assert!(ahead.is_over() && !ahead.compiles());
        let kept = ahead.kept(0.2, &[vec![9.0, 8.0]]);
        assert!(kept.is_steady && kept.arms[0].cost_fall.is_none(), "{kept:?}");
    }

    #[test]
    fn a_jvm_is_warm_when_its_compilers_are_done() {
        let warm = |slices: &[(usize, f64, f64)]| seen(Some(Runtime::Jvm), slices).is_warm(0.066);
        let cold = [(10, 160.0, 0.6), (25, 64.0, 0.4), (27, 52.0, 0.4)];
        assert!(!warm(&cold), "it stands still, and compiles");
        let done = [&cold[..], &[(28, 23.0, 0.01)]].concat();
        assert!(warm(&done));
        let arms = vec![seen(Some(Runtime::Jvm), &done), seen(Some(Runtime::Jvm), &cold)];
        let launch = Warmth { arms, own_slice_s: 0.066 };
        assert!(!launch.is_over(), "all arms alike");
        let kept = launch.kept(13.0, &[vec![], vec![]]);
        assert!((kept.arms[0].cost_fall.unwrap_or(0.0) - 7.0).abs() < 0.2, "{kept:?}");
    }

    #[test]
    fn what_shows_no_compilers_is_warm_when_its_cost_has_stopped_falling() {
        let warm = |slices: &[(usize, f64, f64)]| seen(Some(Runtime::V8), slices).is_warm(0.066);
        assert!(!warm(&[(30, 150.0, 0.0)]), "less than the least");
        assert!(warm(&[(10, 240.0, 0.0), (50, 150.0, 0.0)]));
        assert!(!warm(&[(48, 150.0, 0.0), (16, 138.0, 0.0)]), "it has just fallen");
        assert!(warm(&[(48, 138.0, 0.0), (16, 170.0, 0.0)]), "the host's interference");
    }

    #[test]
    fn what_fell_while_it_was_counted_was_not_warm() {
        let arms = vec![seen(Some(Runtime::V8), &[(10, 240.0, 0.0), (50, 150.0, 0.0)])];
        let launch = Warmth { arms, own_slice_s: 0.066 };
        assert!(launch.kept(10.0, &[vec![150.0, 149.0, 151.0]]).is_steady);
        assert!(!launch.kept(10.0, &[vec![150.0, 145.0, 138.0]]).is_steady);
        assert!(launch.kept(10.0, &[vec![228.0, 184.0, 144.0, 173.0]]).is_steady, "the host's slow moment");
    }
}
