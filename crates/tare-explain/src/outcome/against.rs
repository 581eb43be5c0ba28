//! Several commands held against the fastest: by how much the others are slower, as far as their runs can show it.

use crate::capacity::runs::timed_runs_of;
use tare_model::Record;
use tare_model::outcome::{AgainstFastest, CommandSummary, Contrast};
use tare_model::plan::CommandWorkload;
use tare_model::trial::CommandSample;
use tare_stats::{Interval, t_quantile, trimmed_mean_interval};

/// Coverage of the intervals: of a hundred pairs of equal programs one or two are called different.
const LEVEL: f64 = 0.99;

/// Fills in what each command is against the one with the smallest median.
pub(crate) fn fill_in(record: &Record, commands: &CommandWorkload, summaries: &mut [CommandSummary]) {
    let timed = summaries.iter().enumerate().filter(|(_, summary)| summary.median_s > 0.0);
    let fastest = timed.min_by(|(_, a), (_, b)| a.median_s.total_cmp(&b.median_s)).map(|(at, _)| at);
    let Some(fastest) = fastest.filter(|_| summaries.len() > 1) else { return };
    let others = summaries.len() - 1;
    let index = |summary: &CommandSummary| {
        commands.commands.iter().position(|command| *command == summary.command).map(|at| at as u32)
    };
    let Some(base) = index(&summaries[fastest]) else { return };
    let of = |command: u32, value: fn(&CommandSample) -> f64| -> Vec<f64> {
        timed_runs_of(record, command).map(value).collect()
    };
    let wall = |run: &CommandSample| run.wall_ns as f64;
    let cpu = |run: &CommandSample| run.user_ns as f64 + run.system_ns as f64;
    for (_, summary) in summaries.iter_mut().enumerate().filter(|(at, _)| *at != fastest) {
        let Some(command) = index(summary) else { continue };
        let against = |value: fn(&CommandSample) -> f64| {
            contrast(&of(base, value), &of(command, value), commands.interleaved, others)
        };
        let slower =
            |wall: Contrast| Contrast { distinguishable: wall.distinguishable && wall.ratio > 1.0, ..wall };
        summary.against_fastest =
            against(wall).map(|wall| AgainstFastest { wall_time: slower(wall), cpu_time: against(cpu) });
    }
}

/// The ratio of typical values; `None` where one of them is not positive.
fn contrast(base: &[f64], other: &[f64], paired: bool, others: usize) -> Option<Contrast> {
    let ln = |values: &[f64]| -> Option<Vec<f64>> {
        let usable = !values.is_empty() && values.iter().all(|value| *value > 0.0);
        usable.then(|| values.iter().map(|value| value.ln()).collect())
    };
    let (base, other) = (ln(base)?, ln(other)?);
    let (value, half) = if paired {
        // Of one block each: what the machine did to both is not in their difference.
        let differences: Vec<f64> = other.iter().zip(&base).map(|(other, base)| other - base).collect();
        half_width(&differences, others)?
    } else {
        let (first, second) = (half_width(&base, others)?, half_width(&other, others)?);
        (second.0 - first.0, first.1.zip(second.1).map(|(a, b)| a.hypot(b)))
    };
    let interval = half.and_then(|half| Interval::new((value - half).exp(), (value + half).exp()));
    Some(Contrast {
        ratio: value.exp(),
        interval: interval.map(|interval| [interval.lo, interval.hi]),
        distinguishable: interval.is_some_and(|interval| interval.lo > 1.0 || interval.hi < 1.0),
        smallest_detectable: half.map(f64::exp_m1).filter(|share| share.is_finite()),
    })
}

/// The trimmed mean, and half of an interval that holds for all comparisons together; none of too few values.
fn half_width(values: &[f64], comparisons: usize) -> Option<(f64, Option<f64>)> {
    let estimate = trimmed_mean_interval(values)?;
    // What the interval at 95 % was made with, to what one at the level takes (Bonferroni).
    let degrees = (values.len() - 2 * (values.len() / 5)).saturating_sub(1) as f64;
    let wider = t_quantile(1.0 - (1.0 - LEVEL) / (2.0 * comparisons.max(1) as f64), degrees)
        .zip(t_quantile(0.975, degrees))
        .map(|(wide, usual)| wide / usual);
    let half = estimate.ci95.zip(wider).map(|(ci95, wider)| 0.5 * (ci95.hi - ci95.lo) * wider);
    Some((estimate.value, half))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_stats::SplitMix64;

    fn exponential(random: &mut SplitMix64) -> f64 {
        -(random.next_u64() as f64 / u64::MAX as f64).max(1e-12).ln()
    }

    #[test]
    fn equal_programs_are_rarely_called_different() {
        let mut random = SplitMix64::new(11);
        for (runs, paired) in [(5, true), (5, false), (10, true), (100, true), (100, false)] {
            let mut different = 0;
            for _ in 0..400 {
                let mut times =
                    || -> Vec<f64> { (0..runs).map(|_| 1.0 + exponential(&mut random)).collect() };
                let (a, b) = (times(), times());
                different += u32::from(contrast(&a, &b, paired, 1).unwrap().distinguishable);
            }
            assert!(different <= 14, "{runs} runs, paired {paired}: {different} of 400");
        }
    }

    #[test]
    fn a_difference_is_shown_with_its_size_and_what_could_not_be_is_said() {
        let base: Vec<f64> = (0..50).map(|run| 1.0 + 0.01 * f64::from(run % 7)).collect();
        let slower: Vec<f64> = base.iter().map(|time| 1.06 * time).collect();
        let shown = contrast(&base, &slower, true, 1).unwrap();
        assert!(shown.distinguishable && (shown.ratio - 1.06).abs() < 1e-6);
        let few = contrast(&[0.1, 0.5, 0.3, 0.2, 0.6], &[0.4, 0.2, 0.7, 0.1, 0.5], false, 1).unwrap();
        assert!(!few.distinguishable && few.smallest_detectable.unwrap() > 0.5);
        let one = contrast(&[1.0], &[2.0], true, 1).unwrap();
        assert!(!one.distinguishable && one.interval.is_none() && one.smallest_detectable.is_none());
        assert!(contrast(&[0.0], &[1.0], true, 1).is_none());
    }
}
