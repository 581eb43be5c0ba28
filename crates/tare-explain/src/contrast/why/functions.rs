//! Functions of the program that take another part of its CPU time, and another time of a request.
//!
//! A share alone says little: where one function takes more, the shares of all others fall. So a share is multiplied by the CPU time of a
//! request: with s the shares, c the CPU time of a request in A and r its ratio by the parts of the split, the difference is
//! c · (r · s_B − s_A). Its interval adds those of the difference of the shares, scaled by r · c or c, and of r as independent errors.

use super::split::Split;
use crate::capacity::levels::Accounting;
use crate::contrast::frames::{self, FrameChanges, Share};
use tare_model::observation::Role;
use tare_model::why::{FrameChange, PerRequest};
use tare_model::{Missing, Reading};
use tare_stats::Interval;

/// Functions that are listed, at most.
const LISTED_MAX: usize = 20;
/// Of fewer samples of the program in a run, no change of a function says anything.
const SAMPLES_MIN: u64 = 100;
/// A function below which this part of the samples lies is the program.
const THE_PROGRAM: f64 = 0.97;
/// The parts of the split that are the program's own CPU time of a request.
const OF_REQUEST: &[&str] = &["cost", "underload", "instructions", "ipc"];

/// What a request takes of a CPU.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Demand {
    /// In A, nanoseconds.
    from_ns: f64,
    /// ln of B's over A's.
    ratio_ln: f64,
    /// Half of the 95 % interval of that.
    half_ln: f64,
}

/// The functions of two runs.
pub(super) fn changed(split: Option<&Split>, a: &Accounting, b: &Accounting) -> Reading<Vec<FrameChange>> {
    let found = frames::changed(&a.sampled(), &b.sampled(), Role::Sut);
    let demand = split.and_then(|split| demand(split, from_ns(a)?));
    match found {
        Reading::Measured(found) if found.samples.iter().any(|samples| *samples < SAMPLES_MIN) => {
            few(found.samples)
        }
        found => found.map(|found| named(found, demand)),
    }
}

fn few([a, b]: [u64; 2]) -> Reading<Vec<FrameChange>> {
    Reading::Missing(Missing::with_remedy(
        format!("the program has {a} and {b} samples of call stacks, too few to compare its functions by"),
        "keep others off its CPUs, or sample in every trial (--stacks)",
    ))
}

/// Those that changed. Where the CPU time of a request is known to have, a function need not have another share of it; where it is not, a
/// function whose share is larger while others' are smaller is one.
fn named(found: FrameChanges, demand: Option<Demand>) -> Vec<FrameChange> {
    let Some(demand) = demand else {
        return found.changes.into_iter().map(|change| reported(change, None)).take(LISTED_MAX).collect();
    };
    let all = found.changes.into_iter().chain(found.others);
    let timed = all.map(|change| (demand.in_function(&change), change)).filter(|(time, change)| {
        let is_shown = change.is_clear() || demand.is_clear() && !is_the_program(change);
        let side = if time.after_ns > time.before_ns { 1.0 } else { -1.0 };
        let is_same_side = !change.is_clear() || change.difference() * side > 0.0;
        let [low, high] = time.difference_ci95_ns;
        is_shown && is_same_side && (low > 0.0 || high < 0.0)
    });
    let mut changes: Vec<FrameChange> = timed.map(|(time, change)| reported(change, Some(time))).collect();
    let size_ns =
        |change: &FrameChange| change.per_request.map_or(0.0, |time| (time.after_ns - time.before_ns).abs());
    changes.sort_by(|one, other| size_ns(other).total_cmp(&size_ns(one)));
    changes.truncate(LISTED_MAX);
    changes
}

/// Whether all that runs, runs below it: its time is that of the whole request.
fn is_the_program(change: &frames::FrameChange) -> bool {
    change.before.min(change.after) >= THE_PROGRAM
}

fn reported(change: frames::FrameChange, per_request: Option<PerRequest>) -> FrameChange {
    FrameChange {
        own: change.share == Share::Own,
        before: change.before,
        after: change.after,
        ci95: change.difference_ci95,
        function: change.symbol,
        per_request,
    }
}

/// CPU time of a request in A's trials of the asked load.
fn from_ns(a: &Accounting) -> Option<f64> {
    let pool = &a.asked.pool;
    let (run_s, requests) = (pool.sut.as_ref()?.run_s, pool.answered.requests?);
    Some(1e9 * run_s / requests).filter(|ns| ns.is_finite() && *ns > 0.0)
}

/// `None` where a part has no interval.
fn demand(split: &Split, from_ns: f64) -> Option<Demand> {
    let parts = split.parts.iter().filter(|part| OF_REQUEST.contains(&part.id));
    let of = parts.map(|part| Some((part.ln, part.ci95?))).collect::<Option<Vec<(f64, Interval)>>>()?;
    if of.is_empty() {
        return None;
    }
    let square: f64 = of.iter().map(|(_, interval)| (0.5 * (interval.hi - interval.lo)).powi(2)).sum();
    let ratio_ln = -of.iter().map(|(ln, _)| ln).sum::<f64>();
    Some(Demand { from_ns, ratio_ln, half_ln: square.sqrt() })
}

impl Demand {
    /// Whether a request of B takes another time, for all that is known.
    fn is_clear(&self) -> bool {
        self.ratio_ln.abs() > self.half_ln
    }

    fn in_function(&self, change: &frames::FrameChange) -> PerRequest {
        let to_ns = self.from_ns * self.ratio_ln.exp();
        let (before_ns, after_ns) = (self.from_ns * change.before, to_ns * change.after);
        let [low, high] = change.difference_ci95;
        // Of the shares, as if all of it lay in the longer of the two requests.
        let by_shares_ns = 0.5 * (high - low) * self.from_ns.max(to_ns);
        let by_demand_ns = after_ns * self.half_ln;
        let (difference_ns, half_ns) = (after_ns - before_ns, by_shares_ns.hypot(by_demand_ns));
        PerRequest {
            before_ns,
            after_ns,
            difference_ci95_ns: [difference_ns - half_ns, difference_ns + half_ns],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::stacks::{Folded, Folder, Frame, FrameKind, Stacks};

    /// A window in which `handle` called each of these so often.
    fn window(counts: &[(&str, u64)]) -> Stacks {
        let mut folder = Folder::default();
        let mut folded = Folded::new(Some(999.0));
        let thread = folder.frame(Frame::mark("server"));
        let mut frame =
            |symbol: &str| folder.frame(Frame { symbol: symbol.into(), module: None, kind: FrameKind::User });
        for (symbol, count) in counts {
            folded.add(Role::Sut, thread, vec![frame("main"), frame(symbol)], *count);
        }
        folder.close(Reading::Measured(folded), Reading::missing("not asked for"), Vec::new())
    }

    fn between(before: &[Stacks], after: &[Stacks], demand: Option<Demand>) -> Vec<FrameChange> {
        let (before, after): (Vec<&Stacks>, Vec<&Stacks>) = (before.iter().collect(), after.iter().collect());
        named(frames::changed(&before, &after, Role::Sut).ok().unwrap(), demand)
    }

    /// `spin` takes 2 µs of 5, then 4 of 7; `parse` and `write` take what they took.
    #[test]
    fn the_function_that_takes_more_is_named_and_those_whose_share_fell_are_not() {
        let four = |counts: &[(&str, u64)]| [0; 4].map(|_| window(counts));
        let before = four(&[("spin", 160), ("parse", 120), ("write", 120)]);
        let after = four(&[("spin", 228), ("parse", 86), ("write", 86)]);
        let demand = Demand { from_ns: 5_000.0, ratio_ln: (7.0f64 / 5.0).ln(), half_ln: 0.05 };
        let by_shares = between(&before, &after, None);
        assert_eq!(by_shares.iter().filter(|change| change.function != "spin").count(), 4, "{by_shares:?}");
        let by_time = between(&before, &after, Some(demand));
        assert!(!by_time.is_empty() && by_time.iter().all(|change| change.function == "spin"), "{by_time:?}");
        let spin = by_time[0].per_request.unwrap();
        assert!((spin.before_ns - 2_000.0).abs() < 1.0 && (spin.after_ns - 3_990.0).abs() < 1.0, "{spin:?}");
        let [low, high] = spin.difference_ci95_ns;
        assert!(low > 0.0 && low < 1_990.0 && high > 1_990.0, "{spin:?}");
        // A demand that is hardly known leaves nothing to be said of it.
        assert_eq!(between(&before, &after, Some(Demand { half_ln: 1.0, ..demand })), []);
    }

    /// A lock is held for 220 µs of 250 after 200 of 230: the share of it is hardly another one.
    #[test]
    fn a_function_that_takes_nearly_all_is_named_by_its_time() {
        let four = |counts: &[(&str, u64)]| [0; 4].map(|_| window(counts));
        let before = four(&[("hold", 870), ("parse", 130)]);
        let after = four(&[("hold", 880), ("parse", 120)]);
        let demand = Demand { from_ns: 230_000.0, ratio_ln: (250.0f64 / 230.0).ln(), half_ln: 0.02 };
        assert_eq!(between(&before, &after, None), []);
        let named = between(&before, &after, Some(demand));
        assert!(!named.is_empty() && named.iter().all(|change| change.function == "hold"), "{named:?}");
        // `main` has all samples: that it takes more is what the cost says already.
        assert_eq!(between(&before, &after, Some(Demand { half_ln: 0.2, ..demand })), []);
    }

    #[test]
    fn nothing_is_named_where_both_run_the_same() {
        let drawn = [[401u64, 299, 300], [388, 306, 306], [410, 301, 289], [397, 288, 315]];
        let set = |shift: usize| -> Vec<Stacks> {
            let of = |at: usize| drawn[(at + shift) % drawn.len()];
            let all = (0..4).map(of);
            all.map(|[spin, parse, write]| window(&[("spin", spin), ("parse", parse), ("write", write)]))
                .collect()
        };
        let demand = Demand { from_ns: 5_000.0, ratio_ln: 0.02, half_ln: 0.05 };
        for demand in [None, Some(demand)] {
            assert_eq!(between(&set(0), &set(2), demand), []);
        }
    }
}
