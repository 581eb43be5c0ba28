//! Patterns in the times of a program's runs that a mean hides: a slow first run, two modes, a bad period.

use crate::capacity::runs::{runs_of, timed_runs_of};
use tare_model::Record;
use tare_model::outcome::Warning;
use tare_model::plan::CommandWorkload;
use tare_model::trial::CommandSample;

/// Fewer runs show no pattern.
const RUNS_MIN: usize = 5;
/// Fewer are not split into modes.
const SPLIT_MIN: usize = 8;
/// The first run is slow if it took so many times the median of the others …
const FIRST_MIN: f64 = 1.2;
/// … and lies so many times as far above it as nine in ten of the others.
const FIRST_APART: f64 = 5.0;
/// Two levels are so many times apart …
const APART_MIN: f64 = 1.15;
/// … and that is so much more than what either of them spreads.
const APART_OF_SPREAD: f64 = 2.0;
/// Each level has this share of the runs, and so many of them.
const SHARE_MIN: f64 = 0.08;
const COUNT_MIN: usize = 3;

/// What stands out.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Pattern {
    SlowFirst { first_s: f64, others_s: f64 },
    TwoModes { fast_s: f64, slow_s: f64, slow_share: f64 },
    BadPeriod { from: usize, to: usize, fast_s: f64, slow_s: f64 },
    Changed { at: usize, before_s: f64, after_s: f64 },
}

/// A warning for each pattern of each command.
pub(crate) fn warnings(record: &Record, commands: &CommandWorkload) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for (index, command) in (0u32..).zip(&commands.commands) {
        let wall_s = |run: &CommandSample| run.wall_ns as f64 / 1e9;
        let all: Vec<f64> = runs_of(record, index).map(wall_s).collect();
        let timed: Vec<f64> = timed_runs_of(record, index).map(wall_s).collect();
        let name = if commands.commands.len() > 1 { format!("`{command}`: ") } else { String::new() };
        for pattern in patterns(&all, &timed) {
            warnings.push(Warning {
                id: pattern.id().to_owned(),
                text: format!("{name}{}", pattern.text(timed.len())),
                hint: pattern.hint(commands.warmup).to_owned(),
            });
        }
    }
    warnings
}

/// In all runs, and in those of them that were timed: the first may only be observed.
fn patterns(all: &[f64], timed: &[f64]) -> Vec<Pattern> {
    let first = slow_first(all);
    let skipped = usize::from(first.is_some() && timed.len() == all.len());
    first.into_iter().chain(levels(&timed[skipped..], skipped)).collect()
}

fn slow_first(times: &[f64]) -> Option<Pattern> {
    let (&first_s, others) = times.split_first().filter(|_| times.len() >= RUNS_MIN)?;
    let others_s = tare_stats::median(others).filter(|median| *median > 0.0)?;
    let high_s = tare_stats::quantile(others, 0.9)?;
    let slowest_s = others.iter().copied().fold(0.0, f64::max);
    let stands_out = first_s - others_s > FIRST_APART * (high_s - others_s);
    (first_s > slowest_s && first_s >= FIRST_MIN * others_s && stands_out)
        .then_some(Pattern::SlowFirst { first_s, others_s })
}

/// Two levels of the runs, and how they follow each other.
fn levels(times: &[f64], skipped: usize) -> Option<Pattern> {
    let between = split(times)?;
    let is_slow: Vec<bool> = times.iter().map(|time| *time > between).collect();
    let median = |slow: bool| {
        let of: Vec<f64> = times.iter().copied().filter(|time| (*time > between) == slow).collect();
        tare_stats::median(&of)
    };
    let (fast_s, slow_s) = (median(false)?, median(true)?);
    let changes: Vec<usize> = (1..is_slow.len()).filter(|at| is_slow[*at] != is_slow[at - 1]).collect();
    let slow = is_slow.iter().filter(|slow| **slow).count();
    Some(match (changes.as_slice(), is_slow[0]) {
        ([at], was_slow) => {
            let (before_s, after_s) = if was_slow { (slow_s, fast_s) } else { (fast_s, slow_s) };
            Pattern::Changed { at: at + skipped, before_s, after_s }
        }
        ([from, to], false) => Pattern::BadPeriod { from: from + skipped, to: to + skipped, fast_s, slow_s },
        _ => Pattern::TwoModes { fast_s, slow_s, slow_share: slow as f64 / times.len() as f64 },
    })
}

/// A time between two levels: in the widest gap, on the log, that leaves enough runs on either side and is wide beside what either side
/// spreads.
fn split(times: &[f64]) -> Option<f64> {
    if times.len() < SPLIT_MIN || times.iter().any(|time| *time <= 0.0 || !time.is_finite()) {
        return None;
    }
    let mut ln: Vec<f64> = times.iter().map(|time| time.ln()).collect();
    ln.sort_by(f64::total_cmp);
    let least = COUNT_MIN.max((SHARE_MIN * ln.len() as f64).ceil() as usize);
    let places = least..=ln.len().checked_sub(least)?;
    let widest = places.max_by(|a, b| (ln[*a] - ln[a - 1]).total_cmp(&(ln[*b] - ln[b - 1])))?;
    let (low, high) = ln.split_at(widest);
    let gap = high[0] - low[low.len() - 1];
    // Of the inner four fifths: one wild run does not hide two levels.
    let spread = |side: &[f64]| Some(tare_stats::quantile(side, 0.9)? - tare_stats::quantile(side, 0.1)?);
    let spread = spread(low)?.max(spread(high)?);
    (gap >= APART_MIN.ln() && gap >= APART_OF_SPREAD * spread)
        .then(|| (0.5 * (high[0] + low[low.len() - 1])).exp())
}

impl Pattern {
    fn id(self) -> &'static str {
        match self {
            Pattern::SlowFirst { .. } => "slow-first-run",
            Pattern::TwoModes { .. } => "two-modes",
            Pattern::BadPeriod { .. } => "bad-period",
            Pattern::Changed { .. } => "level-changed",
        }
    }

    fn text(self, runs: usize) -> String {
        match self {
            Pattern::SlowFirst { first_s, others_s } => format!(
                "the first run took {}, {:.1} times the median of the others ({}): caches were cold",
                time(first_s),
                first_s / others_s,
                time(others_s)
            ),
            Pattern::TwoModes { fast_s, slow_s, slow_share } => format!(
                "the runs have two modes: {:.0} % took about {}, {:.0} % about {}",
                100.0 * (1.0 - slow_share),
                time(fast_s),
                100.0 * slow_share,
                time(slow_s)
            ),
            Pattern::BadPeriod { from, to, fast_s, slow_s } => format!(
                "runs {} to {to} of {runs} were a bad period: they took about {}, the others {}",
                from + 1,
                time(slow_s),
                time(fast_s)
            ),
            Pattern::Changed { at, before_s, after_s } => format!(
                "from run {} of {runs} on a run took about {}, before it {}",
                at + 1,
                time(after_s),
                time(before_s)
            ),
        }
    }

    fn hint(self, warmup: u32) -> &'static str {
        match self {
            Pattern::SlowFirst { .. } if warmup > 0 => {
                "run more before the first that counts (--warmup), or --prepare 'COMMAND' to make all runs alike"
            }
            Pattern::SlowFirst { .. } => {
                "--warmup 1 leaves it out; for cold runs on purpose, have --prepare 'COMMAND' empty the caches before each"
            }
            Pattern::TwoModes { .. } => {
                "the mean is of neither: look at each mode alone (tare report draws every run); --prepare 'COMMAND' gives each run the same start"
            }
            Pattern::BadPeriod { .. } => {
                "something else ran on the machine: run again, or compare interleaved (tare compare)"
            }
            Pattern::Changed { .. } => {
                "something changed meanwhile: run again, or compare interleaved (tare compare)"
            }
        }
    }
}

fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.1} ms", 1e3 * s),
        s => format!("{:.0} µs", 1e6 * s),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_stats::SplitMix64;

    fn ids(times: &[f64]) -> Vec<&'static str> {
        patterns(times, times).into_iter().map(Pattern::id).collect()
    }

    /// Evenly between 0 and 1.
    fn uniform(random: &mut SplitMix64) -> f64 {
        random.next_u64() as f64 / u64::MAX as f64
    }

    #[test]
    fn a_slow_first_run_is_said() {
        let times = [1.7, 0.1, 0.101, 0.102, 0.099, 0.1];
        assert_eq!(ids(&times), ["slow-first-run"]);
        let Pattern::SlowFirst { first_s, others_s } = patterns(&times, &times)[0] else { panic!("another") };
        assert!((first_s / others_s - 17.0).abs() < 0.01);
    }

    #[test]
    fn a_slow_first_run_is_said_where_it_was_only_observed() {
        let timed = [0.1, 0.101, 0.102, 0.099, 0.1];
        let all: Vec<f64> = [1.7].into_iter().chain(timed).collect();
        assert!(matches!(patterns(&all, &timed)[..], [Pattern::SlowFirst { .. }]));
        assert!(patterns(&timed, &timed).is_empty());
    }

    #[test]
    fn two_modes_have_their_levels_and_shares() {
        let times: Vec<f64> = (0..20).map(|run| if run % 4 == 1 { 0.206 } else { 0.004 }).collect();
        let [Pattern::TwoModes { fast_s, slow_s, slow_share }] = patterns(&times, &times)[..] else {
            panic!("{:?}", patterns(&times, &times))
        };
        assert_eq!((fast_s, slow_s, slow_share), (0.004, 0.206, 0.25));
    }

    #[test]
    fn a_bad_period_and_a_change_are_no_modes() {
        let times = |slow: std::ops::Range<usize>| -> Vec<f64> {
            (0..30).map(|run| if slow.contains(&run) { 0.2 } else { 0.1 + 1e-4 * run as f64 }).collect()
        };
        let bad = patterns(&times(12..16), &times(12..16));
        assert!(matches!(bad[..], [Pattern::BadPeriod { from: 12, to: 16, .. }]), "{bad:?}");
        let changed = patterns(&times(20..30), &times(20..30));
        assert!(matches!(changed[..], [Pattern::Changed { at: 20, .. }]), "{changed:?}");
    }

    #[test]
    fn healthy_times_have_no_pattern() {
        let mut random = SplitMix64::new(7);
        let mut said = 0;
        for runs in [5, 10, 40, 400] {
            for _ in 0..200 {
                // Evenly spread, and with a tail of slow runs.
                let even: Vec<f64> = (0..runs).map(|_| 0.1 + 0.4 * uniform(&mut random)).collect();
                let tailed: Vec<f64> =
                    (0..runs).map(|_| 0.1 - 0.02 * uniform(&mut random).max(1e-9).ln()).collect();
                said += usize::from(!ids(&even).is_empty()) + usize::from(!ids(&tailed).is_empty());
            }
        }
        assert!(said <= 32, "{said} of 1600");
    }
}
