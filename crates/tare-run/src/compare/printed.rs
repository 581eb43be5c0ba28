//! The results of a benchmark that the runs of an arm print.

use std::collections::HashMap;
use tare_model::comparison::BenchmarkValue;
use tare_model::outcome::Better;
use tare_model::tool::ToolMetrics;
use tare_stats::median;

/// More metrics of a command are not kept: one more is thousands of values over all launches.
const METRICS_MAX: usize = 1000;

/// A metric's benchmark, name and unit.
type Key = (String, String, String);

/// The median of each metric's samples, run by run.
#[derive(Debug, Default)]
pub(super) struct Printed {
    /// In the order in which they were printed first.
    metrics: Vec<(Key, Option<Better>, Vec<f64>)>,
    at: HashMap<Key, usize>,
}

impl Printed {
    /// Adds what a run printed.
    pub fn add(&mut self, results: Option<ToolMetrics>) {
        for metric in results.into_iter().flat_map(|results| results.metrics) {
            let Some(value) = median(&metric.samples) else { continue };
            let key = (metric.benchmark, metric.name, metric.unit);
            match self.at.get(&key) {
                Some(at) => self.metrics[*at].2.push(value),
                None if self.metrics.len() < METRICS_MAX => {
                    self.at.insert(key.clone(), self.metrics.len());
                    self.metrics.push((key, metric.better, vec![value]));
                }
                None => {}
            }
        }
    }

    /// The median over so many runs of each metric that all of them printed.
    pub fn values(self, runs: u64) -> Vec<BenchmarkValue> {
        let of_all = self.metrics.into_iter().filter(|(_, _, values)| values.len() as u64 == runs);
        of_all
            .filter_map(|((benchmark, name, unit), better, values)| {
                Some(BenchmarkValue { benchmark, name, unit, better, value: median(&values)? })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(texts: &[&str]) -> Vec<(String, f64)> {
        let mut printed = Printed::default();
        texts.iter().for_each(|text| printed.add(tare_formats::read_printed(text)));
        let values = printed.values(texts.len() as u64);
        values.into_iter().map(|value| (format!("{} {}", value.benchmark, value.name), value.value)).collect()
    }

    #[test]
    fn a_run_is_its_median_and_runs_are_theirs() {
        let found = printed(&[
            "BenchmarkSort 1 10 ns/op\nBenchmarkSort 1 12 ns/op\nBenchmarkSort 1 90 ns/op\n",
            "BenchmarkSort 1 14 ns/op\nBenchmarkOnce 1 5 ns/op\n",
            "BenchmarkSort 1 13 ns/op\n",
        ]);
        assert_eq!(found, [("BenchmarkSort ns/op".to_owned(), 13e-9)]);
    }

    #[test]
    fn a_run_without_results_leaves_none() {
        assert!(printed(&["BenchmarkSort 1 10 ns/op\n", "no results\n"]).is_empty());
        assert!(printed(&[]).is_empty());
    }
}
