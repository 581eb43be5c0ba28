//! [Benchmark.js](https://benchmarkjs.com): `name x 1,234 ops/sec ±0.50% (90 runs sampled)`, and what prints like it.

use super::shared::{Runs, at, grouped};
use crate::metrics::{Kind, Metrics};
use crate::reader::{Input, Reader};
use tare_model::outcome::Better;

pub(crate) const READER: Reader = Reader {
    name: "benchmark-js",
    gets_wrong: &[
        "a rate is of a mean over cycles: one slow call is not seen",
        "its margin is of cycles in one process, without those that the optimiser made faster in between: two runs differ by more",
        "it compiles a test's source anew: what a test closes over is slower or faster than in the program",
    ],
    detect: |input| input.head().any(|line| result(line).is_some()),
    read,
};

/// Name, operations per second, margin and runs.
fn result(line: &str) -> Option<(&str, f64, f64, &str)> {
    let (before, after) = line.split_once(" ops/sec ±")?;
    let (name, rate) = before.rsplit_once(" x ")?;
    let (margin, runs) = after.split_once('%')?;
    let runs = runs.trim_start().strip_prefix('(')?.split_once(" sampled)")?.0;
    let runs = runs.split_once(" run")?.0;
    Some((name.trim(), grouped(rate.trim())?, margin.parse().ok()?, runs))
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let mut runs_of = Runs::default();
    for (line, number) in input.text.lines().zip(1..) {
        if let Some((benchmark, rate, margin, runs)) = result(line) {
            let kind = Kind { benchmark, name: "ops/sec", unit: "op/s", better: Some(Better::Higher) };
            metrics.sample(number, kind, at(rate, runs_of.of(benchmark)));
            metrics.summary(kind, "rme %", margin);
            metrics.set_of(kind, "runs sampled", runs);
        } else if line.contains(" ops/sec") {
            metrics.skip(number, line, "the line is cut off, or its number has another locale's form");
        } else if let Some(name) = line.strip_suffix(": ") {
            // Its text of a test that threw is the name and nothing.
            metrics.skip(number, name, "there is no figure: the benchmark failed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_have_an_x() {
        assert_eq!(
            result("a x b x 1,234 ops/sec ±0.50% (90 runs sampled)"),
            Some(("a x b", 1234.0, 0.5, "90"))
        );
        assert_eq!(result("a x 75.27 ops/sec ±126.57% (1 run sampled)"), Some(("a", 75.27, 126.57, "1")));
        assert_eq!(result("a x 1,23 ops/sec ±0.50% (90 runs sampled)"), None);
    }
}
