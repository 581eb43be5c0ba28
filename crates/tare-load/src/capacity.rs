//! The highest rate that holds a latency objective: which rate to try next, as a pure decision over finished runs.
//!
//! The rate is doubled from where the search begins until the objective is missed, or halved until it holds; then the
//! gap between the highest rate that held and the lowest that did not is bisected (on the logarithm), until it is narrow.
//! One bad moment of a machine is no proof: a rate counts as missed only when a second run misses it too.

use tare_model::trial::HttpSample;

/// Most runs of one search.
const RUNS_MAX: u32 = 60;

/// What a rate must hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Objective {
    /// The quantile of latency that is looked at, 0 to 1.
    pub quantile: f64,
    /// The most that it may be, nanoseconds.
    pub latency_ns_max: u64,
    /// The least share of the scheduled requests that must have been answered, 0 to 1; also of the answers that must be
    /// without an error.
    pub share_min: f64,
}

/// Why a run did not hold its objective.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum Missed {
    /// Latency.
    #[error("latency was {latency_ns} ns")]
    Latency {
        /// At the objective's quantile.
        latency_ns: u64,
    },
    /// Requests were left unsent or unanswered.
    #[error("only {:.2} % of the scheduled requests were answered", 100.0 * share)]
    Schedule {
        /// Answered of scheduled.
        share: f64,
    },
    /// Errors.
    #[error("{:.2} % of the requests failed", 100.0 * share)]
    Errors {
        /// Errors of requests.
        share: f64,
    },
    /// The run has no figures to decide by.
    #[error("the run counted no requests")]
    Nothing,
}

impl Objective {
    /// Whether an open loop's run held it.
    ///
    /// # Errors
    /// The first thing that it [`Missed`].
    pub fn held_by(&self, sample: &HttpSample) -> Result<(), Missed> {
        let (Some(&requests), Some(latency)) = (sample.requests.value(), sample.latency.value()) else {
            return Err(Missed::Nothing);
        };
        let latency_ns = latency.quantile_ns(self.quantile).ok_or(Missed::Nothing)?;
        let errors: u64 = sample.errors.values().sum();
        let failed = errors as f64 / (requests + errors).max(1) as f64;
        if 1.0 - failed < self.share_min {
            return Err(Missed::Errors { share: failed });
        }
        // What was in flight at the end is not missing: by Little's law it is the rate times the latency.
        let in_time = requests + sample.in_flight.value().copied().unwrap_or(0).min(requests / 100 + 1);
        if let Some(scheduled) = sample.scheduled
            && (in_time as f64) < self.share_min * scheduled as f64
        {
            return Err(Missed::Schedule { share: requests as f64 / scheduled.max(1) as f64 });
        }
        if latency_ns > self.latency_ns_max { Err(Missed::Latency { latency_ns }) } else { Ok(()) }
    }
}

/// A search for the highest rate that holds.
#[derive(Debug, Clone, PartialEq)]
pub struct CapacitySearch {
    low_hz: f64,
    high_hz: f64,
    precision: f64,
    begin_hz: f64,
    held_hz: Option<f64>,
    missed_hz: Option<f64>,
    /// A rate that was missed once.
    doubted_hz: Option<f64>,
    runs: u32,
}

impl CapacitySearch {
    /// Between `low_hz` and `high_hz` (both above 0), beginning at `begin_hz`, until the capacity is known to a factor of
    /// 1 + `precision` (at least 0.1 %).
    pub fn new(low_hz: f64, high_hz: f64, begin_hz: f64, precision: f64) -> Self {
        let low_hz = low_hz.max(f64::MIN_POSITIVE);
        let high_hz = high_hz.max(low_hz);
        let begin_hz = begin_hz.clamp(low_hz, high_hz);
        let precision = precision.max(0.001);
        CapacitySearch {
            low_hz,
            high_hz,
            precision,
            begin_hz,
            held_hz: None,
            missed_hz: None,
            doubted_hz: None,
            runs: 0,
        }
    }

    /// The rate to try next; `None`: the search is over.
    pub fn next_hz(&self) -> Option<f64> {
        if self.runs >= RUNS_MAX {
            return None;
        }
        if self.doubted_hz.is_some() {
            return self.doubted_hz;
        }
        match (self.held_hz, self.missed_hz) {
            (None, None) => Some(self.begin_hz),
            (Some(held), None) => (held < self.high_hz).then(|| (held * 2.0).min(self.high_hz)),
            (None, Some(missed)) => (missed > self.low_hz).then(|| (missed / 2.0).max(self.low_hz)),
            (Some(held), Some(missed)) => {
                (missed / held > 1.0 + self.precision).then(|| (held * missed).sqrt())
            }
        }
    }

    /// Takes the result of the rate that [`CapacitySearch::next_hz`] gave.
    pub fn report(&mut self, rate_hz: f64, held: bool) {
        self.runs += 1;
        if held {
            self.held_hz = Some(self.held_hz.map_or(rate_hz, |best| best.max(rate_hz)));
            self.doubted_hz = None;
        } else if self.doubted_hz == Some(rate_hz) {
            self.missed_hz = Some(self.missed_hz.map_or(rate_hz, |worst| worst.min(rate_hz)));
            self.doubted_hz = None;
        } else {
            self.doubted_hz = Some(rate_hz);
        }
    }

    /// The highest rate that held so far.
    pub fn held_hz(&self) -> Option<f64> {
        self.held_hz
    }

    /// The lowest rate that was missed twice so far; `None` at the end: the capacity is above where the search was to stop.
    pub fn missed_hz(&self) -> Option<f64> {
        self.missed_hz
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use tare_model::Reading;
    use tare_model::latency::Latencies;

    fn sample(requests: u64, scheduled: u64, errors: u64) -> HttpSample {
        let mut latency = Latencies::new();
        latency.record_n(1_000_000, requests * 99 / 100);
        latency.record_n(9_000_000, requests - requests * 99 / 100);
        HttpSample {
            elapsed_ns: 1_000_000_000,
            requests: Reading::Measured(requests),
            errors: BTreeMap::from([(tare_model::trial::ErrorKind::Timeout, errors)]),
            latency: Reading::Measured(latency),
            printed_quantiles_ns: Vec::new(),
            bytes_in: Reading::missing("none"),
            in_flight: Reading::Measured(2),
            connections: Reading::Measured(1),
            scheduled: Some(scheduled),
            lateness: None,
            slices: Vec::new(),
            detail: None,
        }
    }

    #[test]
    fn objectives_name_what_was_missed() {
        let objective = |quantile, latency_ns_max| Objective { quantile, latency_ns_max, share_min: 0.99 };
        assert_eq!(objective(0.9, 1_100_000).held_by(&sample(1000, 1002, 0)), Ok(()));
        assert!(matches!(
            objective(0.999, 1_100_000).held_by(&sample(1000, 1002, 0)),
            Err(Missed::Latency { .. })
        ));
        assert!(matches!(
            objective(0.9, 1_100_000).held_by(&sample(900, 1002, 0)),
            Err(Missed::Schedule { .. })
        ));
        assert!(matches!(
            objective(0.9, 1_100_000).held_by(&sample(900, 950, 50)),
            Err(Missed::Errors { .. })
        ));
        assert_eq!(objective(0.9, 1).held_by(&sample(0, 10, 0)), Err(Missed::Nothing));
    }

    #[test]
    fn one_bad_run_is_no_proof() {
        let mut search = CapacitySearch::new(1.0, 1e6, 1000.0, 0.05);
        search.report(1000.0, false);
        assert_eq!((search.next_hz(), search.missed_hz()), (Some(1000.0), None));
        search.report(1000.0, true);
        assert_eq!((search.next_hz(), search.held_hz()), (Some(2000.0), Some(1000.0)));
    }

    proptest! {
        #[test]
        fn a_sharp_capacity_is_found(capacity_hz in 2f64..900_000.0, begin_hz in 1f64..1e6, precision in 0.002f64..0.3) {
            let mut search = CapacitySearch::new(1.0, 1e6, begin_hz, precision);
            while let Some(rate_hz) = search.next_hz() {
                search.report(rate_hz, rate_hz <= capacity_hz);
            }
            let (held, missed) = (search.held_hz().unwrap(), search.missed_hz().unwrap());
            prop_assert!(held <= capacity_hz && capacity_hz < missed);
            prop_assert!(missed / held <= 1.0 + precision + 1e-9, "{} {}", held, missed);
        }

        /// Whatever happens, it ends, and never goes out of its bounds.
        #[test]
        fn it_always_ends(answers in prop::collection::vec(any::<bool>(), 100), begin_hz in 0f64..1e7) {
            let mut search = CapacitySearch::new(10.0, 1e5, begin_hz, 0.0);
            let mut runs = 0;
            for held in answers {
                let Some(rate_hz) = search.next_hz() else { break };
                prop_assert!((10.0..=1e5).contains(&rate_hz));
                search.report(rate_hz, held);
                runs += 1;
            }
            prop_assert!(runs <= RUNS_MAX);
        }
    }
}
