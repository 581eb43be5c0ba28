//! [sysbench](https://github.com/akopytov/sysbench): what its summary says, and the lines of `--report-interval`.

use super::common::{HIGHER, LOWER, kind};
use crate::load_metrics;
use crate::loads::sysbench;
use crate::metrics::{Metrics, Sample};
use crate::reader::{Input, Reader};
use crate::units::in_base;
use std::collections::BTreeSet;

pub(crate) const READER: Reader = Reader {
    name: sysbench::FORMAT.name,
    gets_wrong: sysbench::FORMAT.gets_wrong,
    detect: |input| sysbench::FORMAT.detects(input.text) || input.head().any(|line| report(line).is_some()),
    read,
};

const MIB: f64 = 1024.0 * 1024.0;

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let runs = runs(input.text);
    let tests: BTreeSet<String> =
        runs.iter().filter(|(line, _)| *line > 0).map(|(_, text)| test(text)).collect();
    let mut heads = 0..;
    for (line, text) in runs {
        // Tests of one kind need no name.
        let benchmark = if tests.len() > 1 { test(text) } else { String::new() };
        let launch = if line == 0 { 0 } else { heads.next().unwrap_or_default() };
        let mut run = Run { line, launch, benchmark, rate: None };
        for (of_run, number) in text.lines().zip(line.max(1)..) {
            run.line(of_run.trim(), number, metrics);
        }
        run.finish(text, metrics);
    }
}

/// The text of each run with the line that it begins in; of what stands before the first that is 0.
fn runs(text: &str) -> Vec<(u64, &str)> {
    let mut heads = vec![(0, 0)];
    let mut at = 0;
    for (line, number) in text.split_inclusive('\n').zip(1_u64..) {
        if is_head(line) {
            heads.push((number, at));
        }
        at += line.len();
    }
    let ends = heads.iter().skip(1).map(|(_, at)| *at).chain([text.len()]);
    heads.iter().zip(ends).filter_map(|((line, from), to)| Some((*line, text.get(*from..to)?))).collect()
}

/// Which test it is, by lines that only that prints: sysbench does not name it. Empty where none is known (`mutex` and `threads`).
fn test(run: &str) -> String {
    const TESTS: [(&str, &str); 4] = [
        ("Prime numbers limit:", "cpu"),
        ("Running memory speed test", "memory"),
        ("Extra file open flags:", "fileio"),
        ("SQL statistics:", "sql"),
    ];
    let lines = || run.lines().map(str::trim);
    let found = |line: &str| TESTS.iter().find(|(begins, _)| line.starts_with(begins));
    let test = lines().find_map(found).map_or("", |(_, test)| *test);
    // Of the tests of memory and files there are several.
    let kind = lines().find_map(|line| match test {
        "memory" => line.strip_prefix("operation: "),
        "fileio" => line.strip_prefix("Doing ")?.strip_suffix(" test"),
        _ => None,
    });
    [test, kind.unwrap_or_default()].join(" ").trim().to_owned()
}

fn is_head(line: &str) -> bool {
    line.starts_with("sysbench ") && line.contains("(using ")
}

/// `[ 12s ] …`; what follows.
fn report(line: &str) -> Option<(f64, &str)> {
    let (seconds, rest) = line.strip_prefix('[')?.split_once("s ]")?;
    let rest = rest.trim();
    let is_report = rest.starts_with("thds: ")
        || rest.starts_with("queue length: ")
        || rest.starts_with("reads: ") && rest.contains("fsyncs: ")
        || rest.ends_with(" MiB/sec");
    Some((seconds.trim().parse().ok()?, rest)).filter(|_| is_report)
}

/// One run of the program.
#[derive(Default)]
struct Run {
    /// Where it began; 0 where nothing has.
    line: u64,
    launch: u32,
    /// The test, where others are in the file too.
    benchmark: String,
    rate: Option<String>,
}

impl Run {
    fn line(&mut self, line: &str, number: u64, metrics: &mut Metrics) {
        if let Some((at_s, rest)) = report(line) {
            return self.report(at_s, rest, number, metrics);
        }
        if let Some(rate) = line.strip_prefix("Target transaction rate: ") {
            self.rate = Some(rate.to_owned());
        }
        if line.starts_with('[') && line.contains("s ]") {
            return metrics.skip(number, line, "the line is cut off, or of a test that is not known");
        }
        for setting in ["Number of threads", "block size", "operation", "Block size", "Prime numbers limit"] {
            if let Some(value) = line
                .strip_prefix(setting)
                .and_then(|rest| rest.strip_prefix(':').or_else(|| rest.strip_prefix(' ')))
            {
                metrics.set(setting, value.trim());
            }
        }
        self.summary(line, number, metrics);
    }

    /// What the summary of a load does not hold: queries, bytes, operations on files.
    fn summary(&self, line: &str, number: u64, metrics: &mut Metrics) {
        let words: Vec<&str> = line.split_whitespace().take(8).collect();
        let found = match *words.as_slice() {
            ["queries:", _, rate, "per", "sec.)"] => {
                Some(("queries", "op/s", rate.trim_start_matches('('), 1.0))
            }
            [_, "MiB", "transferred", rate, "MiB/sec)"] => {
                Some(("transferred", "B/s", rate.trim_start_matches('('), MIB))
            }
            ["reads/s:", rate] => Some(("reads/s", "op/s", rate, 1.0)),
            ["writes/s:", rate] => Some(("writes/s", "op/s", rate, 1.0)),
            ["fsyncs/s:", rate] => Some(("fsyncs/s", "op/s", rate, 1.0)),
            ["read,", "MiB/s:", rate] => Some(("read", "B/s", rate, MIB)),
            ["written,", "MiB/s:", rate] => Some(("written", "B/s", rate, MIB)),
            _ => None,
        };
        if let Some((name, unit, value, scale)) = found {
            self.note(name, unit, value, scale, None, number, metrics);
        }
    }

    /// `thds: 4 tps: 372.78 qps: 7476.52 (r/w/o: 5233.86/1495.10/747.55) lat (ms,99%): 44.17 err/s: 0.00 reconn/s: 0.00` and its like.
    fn report(&self, at_s: f64, text: &str, number: u64, metrics: &mut Metrics) {
        let words: Vec<&str> = text.split_whitespace().collect();
        if let [value, "MiB/sec"] = *words.as_slice() {
            return self.note("interval transferred", "B/s", value, MIB, Some(at_s), number, metrics);
        }
        let mut note = |name: &str, unit: &str, value: &str, scale: f64| {
            self.note(name, unit, value, scale, Some(at_s), number, metrics);
        };
        for pair in words.windows(2) {
            let &[name, value] = pair else { continue };
            match name {
                "tps:" | "eps:" | "qps:" => {
                    note(&format!("interval {}", name.trim_end_matches(':')), "op/s", value, 1.0)
                }
                "err/s:" | "reconn/s:" => {
                    note(&format!("interval {}", name.trim_end_matches(':')), "1/s", value, 1.0)
                }
                "reads:" | "writes:" => {
                    note(&format!("interval {}", name.trim_end_matches(':')), "B/s", value, MIB)
                }
                "fsyncs:" => {
                    note("interval fsyncs", "op/s", value.split('/').next().unwrap_or_default(), 1.0)
                }
                "concurrency:" => note("interval concurrency", "1", value, 1.0),
                "(r/w/o:" => {
                    let mut parts = value.trim_end_matches(')').split('/');
                    for part in ["reads", "writes", "other"] {
                        note(
                            &format!("interval {part} per second"),
                            "op/s",
                            parts.next().unwrap_or_default(),
                            1.0,
                        );
                    }
                }
                "length:" => note("interval queue length", "1", value.trim_end_matches(','), 1.0),
                _ => {}
            }
        }
        // `lat (ms,95%): 0.17`
        if let Some((percent, value)) = text.split_once("(ms,").and_then(|(_, rest)| rest.split_once("%): "))
        {
            let value = value.split_whitespace().next().unwrap_or_default();
            let seconds = in_base(value.parse().unwrap_or(f64::NAN), "ms").0;
            let sample = Sample { value: seconds, launch: self.launch, worker: None, at_s: Some(at_s) };
            metrics.sample(
                number,
                kind(&self.benchmark, &format!("interval latency p{percent}"), "s", LOWER),
                sample,
            );
        }
    }

    #[expect(clippy::too_many_arguments, reason = "a figure, and where it is from")]
    fn note(
        &self,
        name: &str,
        unit: &str,
        value: &str,
        scale: f64,
        at_s: Option<f64>,
        line: u64,
        metrics: &mut Metrics,
    ) {
        let better = match name {
            "interval err/s" | "interval reconn/s" | "interval queue length" => LOWER,
            "interval concurrency" => None,
            _ => HIGHER,
        };
        let value = value.parse().map_or(f64::NAN, |value: f64| value * scale);
        metrics.sample(
            line,
            kind(&self.benchmark, name, unit, better),
            Sample { value, launch: self.launch, worker: None, at_s },
        );
    }

    /// The summary, as far as it is one.
    fn finish(&self, text: &str, metrics: &mut Metrics) {
        if self.line == 0 && text.trim().is_empty() {
            return;
        }
        let mut output = sysbench::FORMAT.read(text);
        for result in &mut output.results {
            result.name = (!self.benchmark.is_empty()).then(|| self.benchmark.clone());
            load_metrics::one(result, self.launch, metrics);
            let mean_ns = result.latency.value().and_then(|latency| latency.mean_ns.value().copied());
            if mean_ns == Some(0) {
                metrics.warn(
                    "tool-rounds-times",
                    "the mean latency was printed as 0.00 ms: two decimals do not show what takes less than 5 µs",
                    "divide the threads by the throughput for the mean, or give each event more work",
                );
            }
        }
        sysbench::FORMAT.shapes.note_unread(text, self.line.max(1), metrics);
        match &output.complaint {
            Some(complaint) => metrics.skip(self.line.max(1), "run", &format!("the run failed: {complaint}")),
            None if output.results.is_empty() && text.contains("Threads started!") => {
                metrics.skip(
                    self.line.max(1),
                    "summary",
                    "there is none: the run was stopped, or the file is cut off",
                );
            }
            None => {}
        }
        if let Some(rate) = &self.rate {
            metrics.warn(
                "tool-percentiles-omit-waiting",
                &format!(
                    "--rate was set to {rate}: how long events waited in the queue is not in the latencies"
                ),
                "see the queue length of --report-interval: where it grows, the latencies are too short",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_intervals_have_their_time_and_runs_are_launches() {
        let run = "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\nThreads started!\n\
            [ 1s ] thds: 4 tps: 10.00 qps: 20.00 (r/w/o: 1.00/2.00/3.00) lat (ms,99%): 44.17 err/s: 0.50 reconn/s: 0.00\n";
        let read = READER.read(&Input::of_text(&run.repeat(2)));
        let of = |name: &str| read.metrics.iter().find(|metric| metric.name == name).unwrap();
        assert_eq!(
            (of("interval tps").samples.clone(), of("interval tps").launches.clone()),
            (vec![10.0; 2], vec![0, 1])
        );
        assert_eq!(of("interval latency p99").samples, [0.04417; 2]);
        assert_eq!(
            (of("interval other per second").samples[0], of("interval tps").at_s.clone()),
            (3.0, vec![1.0; 2])
        );
        // Neither has a summary.
        assert_eq!(read.skipped.iter().map(|skipped| skipped.line).collect::<Vec<_>>(), [1, 4]);
    }

    #[test]
    fn tests_of_several_kinds_are_benchmarks_of_their_own() {
        let head = "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n";
        let end =
            "total time: 10.0s\ntotal number of events: 100\nLatency (ms):\n avg: 1.00\nThreads fairness:\n";
        let cpu = format!("{head}Prime numbers limit: 10000\n    events per second:  1750.60\n{end}");
        let memory = format!(
            "{head}Running memory speed test with the following options:\n  operation: write\n[ 1s ] 2328.36 MiB/sec\n{end}"
        );
        let throughput = |text: &str| {
            let read = READER.read(&Input::of_text(text));
            let of = read.metrics.iter().filter(|metric| metric.name == "throughput");
            of.map(|metric| (metric.benchmark.clone(), metric.launches.clone())).collect::<Vec<_>>()
        };
        assert_eq!(throughput(&cpu.repeat(2)), [(String::new(), vec![0, 1])]);
        let both = throughput(&format!("{cpu}{memory}{cpu}"));
        assert_eq!(both, [("cpu".to_owned(), vec![0, 2]), ("memory write".to_owned(), vec![1])]);
    }

    #[test]
    fn lines_of_intervals_alone_are_known() {
        for line in ["[ 1s ] thds: 2 eps: 967.85 lat (ms,95%): 16.41", "[ 12s ] 2328.36 MiB/sec"] {
            assert!(READER.detects(&Input::of_text(line)), "{line}");
            assert!(!READER.read(&Input::of_text(line)).metrics.is_empty());
        }
        assert!(!READER.detects(&Input::of_text("[ 1s ] building")));
    }
}
