//! How far the server's CPUs are from the generator's, and whether a hypervisor moved them: what passes between the two sides costs
//! both of them more the farther it is.

use tare_model::Record;
use tare_model::metrics::core_latency::TRANSFER_NS;
use tare_model::observation::Observation;
use tare_stats::median;

/// Slower than a second, nothing was handed over.
const TRANSFER_NS_MAX: f64 = 1e9;
/// So many times as far is another place: between two samples of the same cores it varies by half, on busy ones more than on idle ones.
pub(crate) const ELSEWHERE: f64 = 2.0;

/// What a cache line took from the server's CPUs to the generator's, nanoseconds: the median of the samples before and after a window.
pub(crate) fn transfer_ns(observation: &Observation) -> Option<f64> {
    let columns = observation.columns.iter().filter(|column| column.metric == TRANSFER_NS.id);
    let samples = columns.flat_map(|column| &column.samples).map(|sample| sample.value);
    median(&samples.filter(|ns| (0.1..TRANSFER_NS_MAX).contains(ns)).collect::<Vec<_>>())
}

/// The CPUs were not always equally far apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Moved {
    /// In the nearest trial, nanoseconds.
    pub near_ns: f64,
    /// In the farthest.
    pub far_ns: f64,
    /// Trials in which they were farther than in the nearest by [`ELSEWHERE`].
    pub far: usize,
    /// Trials in which it is known.
    pub of: usize,
}

/// Whether they were moved from one trial to another.
pub(crate) fn moved(record: &Record) -> Option<Moved> {
    let all: Vec<f64> = record.trials.iter().filter_map(|trial| transfer_ns(&trial.observation)).collect();
    let near_ns = all.iter().copied().fold(f64::INFINITY, f64::min);
    let far_ns = all.iter().copied().fold(0.0, f64::max);
    let far = all.iter().filter(|ns| **ns >= ELSEWHERE * near_ns).count();
    (far > 0).then_some(Moved { near_ns, far_ns, far, of: all.len() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::metric::Subject;
    use tare_model::observation::{Column, Sample};

    fn sampled(samples_ns: &[f64]) -> Observation {
        let samples = samples_ns.iter().map(|&value| Sample { at_ns: 1, value }).collect();
        let column = Column { metric: TRANSFER_NS.id.to_owned(), subject: Subject::Cpu(0), samples };
        Observation { columns: vec![column], ..Observation::default() }
    }

    #[test]
    fn a_trial_has_the_median_of_its_samples() {
        assert_eq!(transfer_ns(&sampled(&[22.0, 24.0])), Some(23.0));
        assert_eq!(transfer_ns(&sampled(&[22.0, f64::NAN, -1.0, 1e12])), Some(22.0));
        assert_eq!(transfer_ns(&sampled(&[])), None);
        assert_eq!(transfer_ns(&Observation::default()), None);
    }
}
