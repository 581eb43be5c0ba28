//! What an idle period costs, from all the stretches in which that was looked at.
//!
//! One stretch of a quarter of a second says little: events of milliseconds, which are in no book, hit some of them and not
//! others. So a trial takes the mean of those nearest to it in time, the wildest left out. None of them is a part
//! of any trial: what they explain there can fail.

use std::collections::BTreeMap;
use tare_record::Record;
use tare_record::metric::Subject;
use tare_record::metrics::cpus;
use tare_record::observation::Sample;
use tare_record::trial::Trial;

/// How many stretches speak for a trial: four seconds of looks, of a sitting with trials of two seconds all. Fewer follow
/// a host's weather more closely, and are moved more by single events.
const NEAREST: usize = 16;
/// The share of them that is left out at either end.
const WILD: f64 = 0.2;
/// A cost outside of this, nanoseconds either way, is a broken record.
const BELIEVABLE_NS: f64 = 1e9;

/// The stretches of a record, by the level of load that ran and by CPU.
pub(crate) struct IdlePeriods {
    stretches: BTreeMap<(u32, u32), Vec<Sample>>,
}

impl IdlePeriods {
    pub fn new(record: &Record) -> Self {
        let mut stretches: BTreeMap<(u32, u32), Vec<Sample>> = BTreeMap::new();
        for trial in &record.trials {
            for column in &trial.observation.columns {
                if let (true, Subject::Cpu(cpu)) =
                    (column.metric == cpus::IDLE_EXIT_COST_NS.id, &column.subject)
                {
                    let believable =
                        column.samples.iter().filter(|sample| sample.value.abs() <= BELIEVABLE_NS);
                    stretches.entry((trial.level, *cpu)).or_default().extend(believable);
                }
            }
        }
        IdlePeriods { stretches }
    }

    /// What one costs on each CPU in a trial, nanoseconds: by the stretches of its own level, or, on a CPU where that has
    /// none, of any other.
    pub fn costs_ns(&self, trial: &Trial) -> BTreeMap<u32, f64> {
        let middle_ns = trial.observation.begin_ns / 2 + trial.observation.end_ns / 2;
        let of_level = |own: bool| {
            let mut found: BTreeMap<u32, Vec<Sample>> = BTreeMap::new();
            for ((level, cpu), samples) in &self.stretches {
                if (*level == trial.level) == own {
                    found.entry(*cpu).or_default().extend(samples);
                }
            }
            found.into_iter().filter_map(move |(cpu, samples)| Some((cpu, nearest_mean(samples, middle_ns)?)))
        };
        let mut costs: BTreeMap<u32, f64> = of_level(false).collect();
        costs.extend(of_level(true));
        costs
    }
}

fn nearest_mean(mut samples: Vec<Sample>, at_ns: u64) -> Option<f64> {
    samples.sort_by_key(|sample| sample.at_ns.abs_diff(at_ns));
    let nearest: Vec<f64> = samples.iter().take(NEAREST).map(|sample| sample.value).collect();
    tare_stats::trimmed_mean(&nearest, WILD)
}
