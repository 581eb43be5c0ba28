//! What an idle period costs, from all the stretches in which that was measured.
//!
//! One stretch of a quarter of a second says little: events of milliseconds, which no counter has, hit some of them and not
//! others. So a trial takes what all idle periods together cost in those stretches that are nearest to it in time. The mean of the
//! stretches' own costs would be too high, as where there are few idle periods each costs more; and the wildest are not left
//! out, since trials have such events too. None of them is a part of any trial: what they explain there can fail.
//!
//! The cost is the host's, and moves: from one trial of two seconds to the next as much as between stretches (a standard deviation of
//! 0.45 µs of 5 µs each, in 24 trials with 23,000 to 29,000 idle periods a second on a virtual machine). So what is known of a
//! trial is the pooled cost and its error: how far the stretches lie apart.

use crate::accounting::raw::readings::Readings;
use std::collections::BTreeMap;
use tare_model::Record;
use tare_model::metric::Subject;
use tare_model::metrics::cpus;
use tare_model::observation::Sample;
use tare_model::trial::Trial;
use tare_stats::median;

/// How many stretches speak for a trial: four seconds of samples, in a session with trials of two seconds all. Fewer follow
/// a host's interference more closely, and single events move them more.
const NEAREST: usize = 16;
/// Fewer do not tell how far they lie apart.
const SPREAD_FROM: usize = 4;
/// Half of the range, in the stretches' median deviations from their median: two standard deviations, where these are as normal errors.
const DEVIATIONS: f64 = 2.0 * 1.4826;
/// A cost outside of this, nanoseconds either way, is a broken record.
const BELIEVABLE_NS: f64 = 1e9;
/// And so is a stretch with more idle periods.
const COUNTED_MAX: f64 = 1e12;

/// What an idle period costs a CPU in a trial, nanoseconds: so much, give or take the error.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct IdlePeriodCost {
    pub each_ns: f64,
    pub error_ns: f64,
}

/// What one stretch showed of a CPU.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    at_ns: u64,
    each_ns: f64,
    idle_exits: f64,
}

/// The stretches of a record, by the level of load that ran and by CPU.
pub(crate) struct IdlePeriods {
    stretches: BTreeMap<(u32, u32), Vec<Stretch>>,
}

impl IdlePeriods {
    pub fn new(record: &Record) -> Self {
        let mut stretches: BTreeMap<(u32, u32), Vec<Stretch>> = BTreeMap::new();
        for trial in &record.trials {
            let readings = Readings::new(&trial.observation);
            for column in &trial.observation.columns {
                if let (true, Subject::Cpu(cpu)) =
                    (column.metric == cpus::IDLE_EXIT_COST_NS.id, &column.subject)
                {
                    let counts = readings.samples(&cpus::IDLE_EXITS_SAMPLED, &column.subject);
                    stretches.entry((trial.level, *cpu)).or_default().extend(read(&column.samples, &counts));
                }
            }
        }
        IdlePeriods { stretches }
    }

    /// What one costs on each CPU in a trial: by the stretches of its own level, or, on a CPU where that has
    /// none, of any other.
    pub fn costs_ns(&self, trial: &Trial) -> BTreeMap<u32, IdlePeriodCost> {
        let middle_ns = trial.observation.begin_ns / 2 + trial.observation.end_ns / 2;
        let of_level = |own: bool| {
            let mut found: BTreeMap<u32, Vec<Stretch>> = BTreeMap::new();
            for ((level, cpu), stretches) in &self.stretches {
                if (*level == trial.level) == own {
                    found.entry(*cpu).or_default().extend(stretches);
                }
            }
            // How far several levels lie apart is no error of one.
            let error_of = move |error_ns: f64| if own { error_ns } else { 0.0 };
            found.into_iter().filter_map(move |(cpu, stretches)| {
                let cost = pooled(stretches, middle_ns)?;
                Some((cpu, IdlePeriodCost { error_ns: error_of(cost.error_ns), ..cost }))
            })
        };
        let mut costs: BTreeMap<u32, IdlePeriodCost> = of_level(false).collect();
        costs.extend(of_level(true));
        costs
    }
}

/// Records that do not say how many idle periods a cost is the mean of have stretches that count alike.
fn read<'s>(costs: &'s [Sample], counts: &'s [Sample]) -> impl Iterator<Item = Stretch> + 's {
    let believable = costs.iter().filter(|sample| sample.value.abs() <= BELIEVABLE_NS);
    believable.filter_map(move |cost| {
        let count = counts.iter().find(|count| count.at_ns == cost.at_ns).map(|count| count.value);
        let idle_exits = if counts.is_empty() { 1.0 } else { count? };
        let is_reported = idle_exits > 0.0 && idle_exits <= COUNTED_MAX;
        is_reported.then_some(Stretch { at_ns: cost.at_ns, each_ns: cost.value, idle_exits })
    })
}

/// What an idle period cost in all of the stretches that are nearest to `at_ns`, and how far they lie apart.
fn pooled(mut stretches: Vec<Stretch>, at_ns: u64) -> Option<IdlePeriodCost> {
    stretches.sort_by_key(|stretch| stretch.at_ns.abs_diff(at_ns));
    stretches.truncate(NEAREST);
    let idle_exits: f64 = stretches.iter().map(|stretch| stretch.idle_exits).sum();
    let beside_ns: f64 = stretches.iter().map(|stretch| stretch.each_ns * stretch.idle_exits).sum();
    let costs_ns: Vec<f64> = stretches.iter().map(|stretch| stretch.each_ns).collect();
    let error_ns = error_ns(&costs_ns);
    (idle_exits > 0.0).then(|| IdlePeriodCost { each_ns: beside_ns / idle_exits, error_ns })
}

/// Half of the range in which most of the costs lie; events of milliseconds, which hit single stretches, do not widen it.
fn error_ns(costs_ns: &[f64]) -> f64 {
    let Some(middle_ns) = median(costs_ns).filter(|_| costs_ns.len() >= SPREAD_FROM) else { return 0.0 };
    let apart_ns: Vec<f64> = costs_ns.iter().map(|cost_ns| (cost_ns - middle_ns).abs()).collect();
    median(&apart_ns).map_or(0.0, |apart_ns| DEVIATIONS * apart_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_with_more_idle_periods_say_more() {
        let sample = |at_ns, value| Sample { at_ns, value };
        let costs = [sample(1, 9000.0), sample(2, 6000.0), sample(3, f64::INFINITY)];
        let pooled = |counts: &[Sample]| pooled(read(&costs, counts).collect(), 2).map(|cost| cost.each_ns);
        assert_eq!(pooled(&[sample(1, 1000.0), sample(2, 3000.0), sample(3, 9.0)]), Some(6750.0));
        assert_eq!(pooled(&[]), Some(7500.0));
        assert_eq!(pooled(&[sample(1, 0.0), sample(2, -1.0)]), None);
    }

    #[test]
    fn only_the_nearest_count() {
        let all = (0..40).map(|at_ns| Stretch { at_ns, each_ns: at_ns as f64, idle_exits: 10.0 });
        let cost = pooled(all.collect(), 100).unwrap();
        assert_eq!(cost.each_ns, (24..40).sum::<u64>() as f64 / 16.0);
        assert_eq!(cost.error_ns, DEVIATIONS * 4.0);
    }

    #[test]
    fn one_wild_stretch_does_not_widen_the_range_and_three_have_none() {
        assert_eq!(error_ns(&[4000.0, 4200.0, 4100.0, 4300.0, 14_000.0]), DEVIATIONS * 100.0);
        assert_eq!(error_ns(&[1.0, 900.0, 7.0]), 0.0);
    }
}
