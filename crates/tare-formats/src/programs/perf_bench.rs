//! `perf bench`: its text, and `-f simple` where that says of what its numbers are.

use super::common::{Counts, HIGHER, LOWER, kind};
use crate::metrics::{Metrics, Sample};
use crate::reader::{Input, Reader};
use crate::units::in_base;
use tare_model::outcome::Better;

pub(crate) const READER: Reader = Reader {
    name: "perf-bench",
    gets_wrong: &[
        "one measurement for each benchmark: nothing says how much it varies from run to run",
        "the processes are not bound to CPUs: where the scheduler puts them is in the figure, above all of sched and futex",
        "GB and MB are of 1024: GB/sec of mem is more bytes than 10⁹",
    ],
    detect: |input| input.head().any(|line| named(line).is_some() || function(line).is_some()),
    read,
};

/// `# Running 'sched/pipe' benchmark:`; older versions and `-f simple` print `# Running sched/pipe benchmark...`.
fn named(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("# Running ")?;
    let name = rest.strip_suffix(" benchmark:").or_else(|| rest.strip_suffix(" benchmark..."))?;
    let name = name.trim_matches('\'');
    (name.contains('/') && !name.contains(char::is_whitespace)).then_some(name)
}

/// `# function 'default' (Default memcpy() provided by glibc)`.
fn function(line: &str) -> Option<(&str, &str)> {
    let (name, what) = line.strip_prefix("# function '")?.split_once("' (")?;
    ["memcpy", "memset", "movs", "stos"].iter().any(|word| what.contains(word)).then_some((name, what))
}

#[derive(Default)]
struct State {
    /// `mem/memcpy`; empty before the first.
    suite: String,
    /// `mem/memcpy default`.
    benchmark: String,
    launch: u32,
    launches: Counts,
    /// What the tool says of how the benchmark is set.
    settings: String,
    /// Of which part averages are, where a benchmark has several.
    part: String,
    /// Where the benchmark was named, until it has a figure.
    waits: Option<u64>,
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let mut state = State::default();
    for (line, number) in input.text.lines().map(str::trim_end).zip(1..) {
        state.line(line, number, metrics);
    }
    state.end(metrics);
}

impl State {
    fn line(&mut self, line: &str, number: u64, metrics: &mut Metrics) {
        if let Some(name) = named(line) {
            self.end(metrics);
            name.clone_into(&mut self.suite);
            return self.begin(name.to_owned(), number);
        }
        if let Some((name, _)) = function(line) {
            // Of -f simple: nothing but the functions says that it is of memory.
            let suite = if self.suite.is_empty() { "mem" } else { &self.suite };
            return self.begin(format!("{suite} {name}"), number);
        }
        let text = line.trim();
        if let Some(setting) = text.strip_prefix("# ") {
            if !self.settings.is_empty() {
                self.settings += "; ";
            }
            self.settings += setting;
            return metrics.set(&self.benchmark, &self.settings);
        }
        if self.waits.is_some() && (text.starts_with("Failed ") || text.starts_with("Error:")) {
            self.waits = None;
            return metrics.skip(number, &self.benchmark, &format!("the benchmark failed: {text}"));
        }
        if let (true, Some((count, what))) = (!self.suite.is_empty(), text.split_once(" operations ")) {
            // `100000 operations 1 bits set of 64 bits` of mem/find_bit.
            if count.parse::<u64>().is_ok() {
                return self.begin(format!("{} {what}", self.suite), number);
            }
        }
        self.figure(text, number, metrics);
    }

    fn begin(&mut self, benchmark: String, number: u64) {
        self.launch = self.launches.next(&benchmark);
        self.benchmark = benchmark;
        self.settings.clear();
        self.part.clear();
        self.waits = Some(number);
    }

    fn end(&mut self, metrics: &mut Metrics) {
        if let Some(number) = self.waits.take() {
            metrics.skip(
                number,
                &self.benchmark,
                "it was begun and printed no figure: it failed, or was cut off",
            );
        }
    }

    fn figure(&mut self, text: &str, number: u64, metrics: &mut Metrics) {
        if let Ok(value) = text.parse::<f64>() {
            return self.simple(value, number, metrics);
        }
        let Some(mut figure) = Figure::of(text).filter(|_| !self.benchmark.is_empty()) else { return };
        self.waits = None;
        // `Average data synthesis took` is the head of the averages behind it.
        match figure.name.strip_prefix("Average ").map(|rest| rest.strip_suffix(" took")) {
            Some(Some(part)) => part.clone_into(&mut self.part),
            Some(None) if !self.part.is_empty() => figure.name += &format!(" ({})", self.part),
            _ => {}
        }
        let of = kind(&self.benchmark, &figure.name, figure.unit, figure.better);
        if figure.is_mean {
            metrics.summary(of, "mean", figure.value);
        } else {
            let sample =
                Sample { value: figure.value, launch: self.launch, worker: figure.worker, at_s: None };
            metrics.sample(number, of, sample);
        }
        if let Some((what, spread)) = figure.spread {
            metrics.summary(of, what, spread);
        }
    }

    /// A number alone: bytes a second of memory, seconds of all else.
    fn simple(&mut self, value: f64, number: u64, metrics: &mut Metrics) {
        if self.benchmark.is_empty() {
            let why = "-f simple prints the number alone: of which benchmark it is cannot be known";
            return metrics.skip(number, &value.to_string(), why);
        }
        if self.waits.take().is_none() {
            return;
        }
        let (name, unit, better) = match self.benchmark.starts_with("mem") {
            true => ("throughput", "B/s", HIGHER),
            false => ("total time", "s", LOWER),
        };
        let sample = Sample { value, launch: self.launch, ..Sample::default() };
        metrics.sample(number, kind(&self.benchmark, name, unit, better), sample);
    }
}

/// One figure in the text.
struct Figure {
    name: String,
    unit: &'static str,
    better: Option<Better>,
    value: f64,
    worker: Option<u32>,
    spread: Option<(&'static str, f64)>,
    /// Of runs that were printed before.
    is_mean: bool,
}

impl Figure {
    fn of(text: &str) -> Option<Figure> {
        if let Some(rest) = text.strip_prefix("[thread") {
            // `[thread  0] futexes: 0x… [ 468992 ops/sec ]`
            let (worker, rest) = rest.split_once(']')?;
            let (value, _) = rest.rsplit_once('[')?.1.split_once(" ops/sec")?;
            let mut figure = Figure::plain("ops/sec of a thread", "op/s", HIGHER, value.trim().parse().ok()?);
            figure.worker = worker.trim().parse().ok();
            return Some(figure);
        }
        let words: Vec<&str> = text.split_whitespace().take(20).collect();
        let mut figure = match *words.as_slice() {
            ["Total", "time:", value, "[sec]"] => {
                Figure::plain("total time", "s", LOWER, value.parse().ok()?)
            }
            [value, "usecs/op" | "usec/op"] => {
                Figure::plain("time for one operation", "s/op", LOWER, in_base(value.parse().ok()?, "us").0)
            }
            [value, "ops/sec"] => Figure::plain("ops/sec", "op/s", HIGHER, value.parse().ok()?),
            [value, unit] if bytes(unit).is_some() => {
                let value = value.parse::<f64>().ok()? * bytes(unit)?;
                Figure::plain("throughput", "B/s", HIGHER, value)
            }
            ["Averaged", value, "operations/sec", ..] => {
                Figure::plain("operations/sec", "op/s", HIGHER, value.parse().ok()?)
            }
            [.., "in", value, "ms" | "usec" | "msec"] | [.., "in", value, "ms" | "usec" | "msec", _] => {
                Figure::wake(text, value)?
            }
            ["Average", ..] => Figure::average(text)?,
            _ => return None,
        };
        figure.spread = figure.spread.or_else(|| {
            let (_, spread) = text.split_once("(+-")?;
            let spread = spread.split('%').next()?.trim().parse().ok()?;
            text.contains("%)").then_some(("stddev %", spread))
        });
        Some(figure)
    }

    fn plain(name: &str, unit: &'static str, better: Option<Better>, value: f64) -> Figure {
        Figure { name: name.to_owned(), unit, better, value, worker: None, spread: None, is_mean: false }
    }

    /// `[Run 1]: Wokeup 4 of 4 threads in 0.0210 ms`, and without `[Run 1]` the mean of all runs.
    fn wake(text: &str, value: &str) -> Option<Figure> {
        let unit = if text.contains("usec") { "us" } else { "ms" };
        let (value, _) = in_base(value.parse().ok()?, unit);
        let (is_run, what) = match text.strip_prefix("[Run ") {
            Some(rest) => (true, rest.split_once("]: ")?.1),
            None => (false, text),
        };
        let name = what.split(" in ").next()?.split(" (").next()?;
        let mut figure = Figure::plain(name, "s", LOWER, value);
        figure.is_mean = !is_run;
        Some(figure)
    }

    /// `Average synthesis took: 521.850 usec (+- 259.087 usec)`, `Average num. events: 31.000 (+- 0.000)`, `Average time per event 16.834 usec`.
    fn average(text: &str) -> Option<Figure> {
        let (main, spread) = text.split_once(" (+- ").map_or((text, None), |(main, rest)| (main, Some(rest)));
        let words: Vec<&str> = main.split_whitespace().collect();
        let (at, value) =
            words.iter().enumerate().find_map(|(at, word)| Some((at, word.parse::<f64>().ok()?)))?;
        let is_time = words.get(at + 1) == Some(&"usec");
        let name = words.get(..at)?.join(" ");
        let name = name.trim_end_matches(':');
        let scale = |value: f64| if is_time { in_base(value, "us").0 } else { value };
        let (unit, better) = if is_time { ("s", LOWER) } else { ("1", None) };
        let mut figure = Figure::plain(name, unit, better, scale(value));
        let spread = spread.and_then(|spread| spread.split([' ', ')']).next()?.parse().ok());
        figure.spread = spread.map(|spread| ("stddev", scale(spread)));
        Some(figure)
    }
}

/// perf's are of 1024.
fn bytes(unit: &str) -> Option<f64> {
    Some(match unit {
        "B/sec" => 1.0,
        "KB/sec" => 1024.0,
        "MB/sec" => 1024.0 * 1024.0,
        "GB/sec" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> tare_model::tool::ToolMetrics {
        assert!(READER.detects(&Input::of_text(text)));
        READER.read(&Input::of_text(text))
    }

    #[test]
    fn runs_of_a_wake_up_are_samples_and_their_mean_a_summary() {
        let read = of("# Running 'futex/wake' benchmark:\nRun summary [PID 1]: blocking on 4 threads\n\n\
            [Run 1]: Wokeup 4 of 4 threads in 0.0200 ms\n[Run 2]: Wokeup 4 of 4 threads in 0.0400 ms\n\
            Wokeup 4 of 4 threads in 0.0300 ms (+-33.3%)\n");
        let metric = &read.metrics[0];
        assert_eq!(
            (metric.name.as_str(), metric.samples.clone()),
            ("Wokeup 4 of 4 threads", vec![2e-5, 4e-5])
        );
        assert_eq!((metric.summary["mean"], metric.summary["stddev %"]), (0.03 / 1e3, 33.3));
    }

    #[test]
    fn the_same_benchmark_again_is_a_launch() {
        let one = "# Running 'sched/pipe' benchmark:\n     Total time: 0.031 [sec]\n";
        let read = of(&one.repeat(2));
        assert_eq!((read.metrics[0].samples.len(), read.metrics[0].launches.clone()), (2, vec![0, 1]));
        let read =
            of("# Running 'sched/pipe' benchmark:\n# Running 'mem/memset' benchmark:\n      2.0 MB/sec\n");
        assert_eq!((read.skipped[0].line, read.metrics[0].samples[0]), (1, 2.0 * 1024.0 * 1024.0));
    }
}
