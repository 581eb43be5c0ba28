//! What [JMH](https://github.com/openjdk/jmh) prints: the values of iterations in its log, and the table at its end.

use super::fields;
use crate::metrics::Metrics;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The modes by their names in a log, and in results.
const MODES: [(&str, &str); 4] =
    [("Throughput", "thrpt"), ("Average time", "avgt"), ("Sampling time", "sample"), ("Single shot", "ss")];
/// Most metrics of a benchmark, and results of a text, that are read.
const METRICS_MAX: usize = 200;
const RESULTS_MAX: usize = 10_000;
/// What stands for a value, in warming up, too.
const FAILED: &str = "<failure>";
const FAILURE: &str = "the benchmark failed";
/// Most words of a line that are looked at.
const WORDS_MAX: usize = 100;

/// Whether the line begins a log of JMH's, or its table.
pub(super) fn begins(line: &str) -> bool {
    let line = plain(line);
    line.starts_with("# JMH version: ") || parameters(line).is_some()
}

/// The results that a text has, each with its line: iterations, or the rows of tables where there are none.
pub(super) fn results(text: &str, metrics: &mut Metrics) -> Vec<(u64, Value)> {
    let mut log = Log::default();
    for (line, number) in text.lines().map(plain).zip(1..) {
        log.read(number, line, metrics);
    }
    log.end(metrics);
    if log.results.is_empty() { rows(text, metrics) } else { log.results }
}

/// A line without what sbt puts before it.
fn plain(line: &str) -> &str {
    line.strip_prefix("[info] ").unwrap_or(line).trim_end()
}

/// A metric of a benchmark whose log is read.
#[derive(Default)]
struct Values {
    unit: String,
    /// Each with its fork.
    of_forks: Vec<(usize, f64)>,
}

#[derive(Default)]
struct Log {
    results: Vec<(u64, Value)>,
    /// Where the benchmark is named.
    line: u64,
    /// As the JSON names them.
    settings: Map<String, Value>,
    /// By name; the primary one has none.
    values: BTreeMap<String, Values>,
    forks: usize,
    /// Whether iterations count: those of forks for warming up are printed alike.
    fork_counts: bool,
    /// Iterations that do not count.
    warm_ups: usize,
    /// Whether the line before was of an iteration that counts: further metrics of it follow.
    in_iteration: bool,
}

impl Log {
    fn read(&mut self, number: u64, line: &str, metrics: &mut Metrics) {
        if let Some(setting) = line.strip_prefix("# ") {
            self.in_iteration = false;
            return self.set(number, setting, metrics);
        }
        let named = match line.strip_prefix("Iteration ").and_then(|rest| rest.split_once(':')) {
            Some((_, value)) => Some(("", value)),
            None if self.in_iteration && line.starts_with(' ') => line.split_once(": "),
            None => None,
        };
        self.warm_ups += usize::from(named.is_some() && !self.fork_counts);
        self.in_iteration = named.is_some() && self.fork_counts;
        if let Some((name, value)) = named.filter(|_| self.fork_counts) {
            self.value(number, name.trim(), value.trim(), metrics);
        }
    }

    fn set(&mut self, number: u64, setting: &str, metrics: &mut Metrics) {
        let Some((name, value)) = setting.split_once(": ") else { return };
        match name {
            "JMH version" => {
                self.end(metrics);
                self.note("jmhVersion", value);
            }
            "VM version" => {
                let parts = value.trim_start_matches("JDK ").split(", ");
                for (name, part) in ["jdkVersion", "vmName", "vmVersion"].into_iter().zip(parts) {
                    self.note(name, part);
                }
            }
            "VM invoker" => self.note("jvm", value),
            "VM options" if value != "<none>" => {
                self.note("jvmArgs", value.split_whitespace().take(WORDS_MAX).collect::<Value>());
            }
            "Warmup" => self.iterations("warmup", value),
            "Measurement" => self.iterations("measurement", value),
            "Threads" => {
                let count = value.split(' ').next().and_then(|count| count.parse::<u64>().ok());
                self.note("threads", count);
            }
            "Benchmark mode" => {
                let mode = MODES.iter().find(|(long, _)| value.starts_with(long));
                self.note("mode", mode.map_or(value, |(_, short)| *short));
            }
            "Benchmark" => {
                self.note("benchmark", value);
                self.line = number;
            }
            "Parameters" => self.note("params", given(value)),
            "Warmup Fork" => self.fork_counts = false,
            "Fork" => {
                // `1 of 5`, or `N/A, test runs in the host VM`.
                let count = value.split(" of ").nth(1).and_then(|count| count.parse::<u64>().ok());
                if let Some(count) = count.or(value.starts_with("N/A").then_some(0)) {
                    self.note("forks", count);
                }
                self.forks += 1;
                self.fork_counts = true;
            }
            _ if value == FAILED => self.skip(number, FAILURE, metrics),
            _ if name.starts_with("Warmup Iteration ") => self.warm_ups += 1,
            _ => {}
        }
    }

    fn skip(&self, number: u64, why: &str, metrics: &mut Metrics) {
        let benchmark = self.settings.get("benchmark").and_then(Value::as_str).unwrap_or_default();
        metrics.skip(number, benchmark, why);
    }

    fn note(&mut self, name: &str, value: impl Into<Value>) {
        self.settings.insert(name.to_owned(), value.into());
    }

    /// `5 iterations, 10 s each`.
    fn iterations(&mut self, of: &str, text: &str) {
        let (count, rest) = text.split_once(' ').unwrap_or((text, ""));
        let Ok(count) = count.parse::<u64>() else { return };
        self.note(&format!("{of}Iterations"), count);
        let time = rest.split_once(", ").and_then(|(_, time)| time.split(" each").next());
        if let Some(time) = time {
            self.note(&format!("{of}Time"), time);
        }
    }

    fn value(&mut self, number: u64, name: &str, text: &str, metrics: &mut Metrics) {
        // A profiler that says all at the end.
        if text.starts_with("<delayed") {
            return;
        }
        let known = self.values.get(name);
        let found = value_and_unit(text).and_then(|(value, unit)| match known {
            Some(known) if known.unit != unit => Err("its unit is another one than before"),
            None if self.values.len() >= METRICS_MAX => Err("more metrics than are kept"),
            _ if name.is_empty() && !unit.ends_with("/op") && !unit.starts_with("ops/") => {
                Err("it is no value of an iteration")
            }
            _ => Ok((value, unit)),
        });
        match found {
            Ok((value, unit)) => {
                let values = self.values.entry(name.to_owned()).or_default();
                unit.clone_into(&mut values.unit);
                values.of_forks.push((self.forks.saturating_sub(1), value));
            }
            Err(why) => {
                let benchmark = self.settings.get("benchmark").and_then(Value::as_str).unwrap_or_default();
                metrics.skip(number, format!("{benchmark} {name}").trim(), why);
            }
        }
    }

    /// What was read of the benchmark so far is all of it.
    fn end(&mut self, metrics: &mut Metrics) {
        let mut result = std::mem::take(&mut self.settings);
        let mut values = std::mem::take(&mut self.values);
        let left_out = fields::left_out(std::mem::take(&mut self.warm_ups));
        (self.forks, self.fork_counts) = (0, false);
        let Some(primary) = values.remove("") else { return };
        if self.results.len() >= RESULTS_MAX {
            return metrics.skip(self.line, "benchmark", "more results than are kept");
        }
        let secondary: Map<String, Value> = values.into_iter().map(|(name, of)| (name, raw(&of))).collect();
        result.insert("primaryMetric".to_owned(), raw(&primary));
        result.insert("secondaryMetrics".to_owned(), Value::Object(secondary));
        if let Some(left_out) = left_out {
            result.insert(fields::LEFT_OUT.to_owned(), Value::from(left_out));
        }
        // JSON has the times of single calls by this name.
        if result.get("mode").is_some_and(|mode| mode == "sample") {
            result.insert("mode".to_owned(), Value::from("sample mean"));
        }
        self.results.push((self.line, Value::Object(result)));
    }
}

/// As the JSON has values: a list for each fork that has some.
fn raw(values: &Values) -> Value {
    let forks = values.of_forks.chunk_by(|one, next| one.0 == next.0);
    let forks: Vec<Vec<f64>> = forks.map(|fork| fork.iter().map(|(_, value)| *value).collect()).collect();
    json!({"scoreUnit": values.unit, "rawData": forks})
}

/// `(n = 10, of = x)`; a value may have a comma in it.
fn given(text: &str) -> Map<String, Value> {
    let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).unwrap_or(text);
    let mut found: Vec<(&str, String)> = Vec::new();
    for part in inner.split(", ") {
        match part.split_once(" = ") {
            Some(_) if found.len() >= WORDS_MAX => break,
            Some((name, value)) => found.push((name, value.to_owned())),
            None => found.last_mut().into_iter().for_each(|(_, value)| *value += &format!(", {part}")),
        }
    }
    found.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect()
}

/// What stands between a score and its error; `±` where the output has no such sign.
const MARKS: [&str; 3] = ["±", "?", "\u{fffd}"];

/// `12.345 ns/op`, `12.345 ±(99.9%) 0.678 ns/op` (of several threads), or `n = 9, mean = 12 ns/op, p{…} = …`.
fn value_and_unit(text: &str) -> Result<(f64, &str), &'static str> {
    const NONE: &str = "no number with a unit: a line that is cut off, or of something else";
    if text == FAILED {
        return Err(FAILURE);
    }
    let mean = text.split_once("mean = ").map(|(_, mean)| mean.split(", p{").next().unwrap_or(mean));
    let words: Vec<&str> = mean.unwrap_or(text).split_whitespace().take(5).collect();
    let (value, unit) = match *words.as_slice() {
        ["≈", "0", unit] => return Ok((0.0, unit)),
        ["≈", _, _] => return Err("only a power of ten is printed: -rf json has the value"),
        [value, unit] => (value, unit),
        [value, mark, _, unit] if MARKS.iter().any(|known| mark.starts_with(known)) => (value, unit),
        _ => return Err(NONE),
    };
    match number(value) {
        Some(value) if value == 0.0 && mean.is_some() => {
            Err("the mean is printed without decimals: -rf json has it")
        }
        found => found.map(|value| (value, unit)).ok_or(NONE),
    }
}

/// The language of the machine decides whether there are decimal commas.
fn number(word: &str) -> Option<f64> {
    word.replace(',', ".").parse().ok().filter(|value: &f64| value.is_finite())
}

/// The names of parameters in the header of a table, `Benchmark  (size)  Mode  Cnt  Score  Error  Units`.
fn parameters(line: &str) -> Option<Vec<&str>> {
    let rest = line.strip_prefix("Benchmark ")?;
    let words: Vec<&str> = rest.split_whitespace().take(WORDS_MAX).collect();
    let (names, columns) = words.split_at(words.len().checked_sub(5)?);
    let is_ours = matches!(columns, ["Mode", "Cnt" | "Samples", "Score", "Error", "Units"]);
    let names = names.iter().map(|word| word.strip_prefix('(')?.strip_suffix(')'));
    names.collect::<Option<Vec<&str>>>().filter(|_| is_ours)
}

/// The rows of all tables.
fn rows(text: &str, metrics: &mut Metrics) -> Vec<(u64, Value)> {
    let (mut names, mut all) = (None, Vec::<(u64, Value)>::new());
    for (line, number) in text.lines().map(plain).zip(1..) {
        if let Some(found) = parameters(line) {
            names = Some(found);
            continue;
        }
        // Whatever has no mode in it stands behind the table.
        let is_row = line.split_whitespace().take(WORDS_MAX).any(is_mode);
        let Some(parameters) = names.as_ref().filter(|_| is_row) else {
            names = None;
            continue;
        };
        match row(parameters, line) {
            Some(_) if all.len() >= RESULTS_MAX => metrics.skip(number, line, "more results than are kept"),
            Some((name, result)) => match name.split_once(':') {
                Some((of, metric)) if !secondary(of, metric, &result, &mut all) => {
                    metrics.skip(number, line, "the row of its benchmark does not stand before it");
                }
                Some(_) => {}
                None => all.push((number, result)),
            },
            None => metrics.skip(
                number,
                line,
                "the row is cut off, a parameter has a blank in it, or the score is no number: -rf json has it",
            ),
        }
    }
    all
}

fn is_mode(word: &str) -> bool {
    MODES.iter().any(|(_, mode)| *mode == word)
}

/// A row as the JSON would have it, and its name.
fn row<'a>(parameters: &[&str], line: &'a str) -> Option<(&'a str, Value)> {
    let words: Vec<&str> = line.split_whitespace().take(WORDS_MAX).collect();
    let (name, rest) = words.split_first()?;
    let (given, rest) = (rest.get(..parameters.len())?, rest.get(parameters.len()..)?);
    let (mode, rest) = rest.split_first().filter(|(mode, _)| is_mode(mode))?;
    let (unit, figures) = rest.split_last()?;
    // A count stands first, but not of one value alone.
    let figures = match figures {
        [count, more @ ..] if !more.is_empty() && count.parse::<u64>().is_ok() => more,
        all => all,
    };
    let (score, error) = match figures {
        ["≈" | "?", "0"] => (0.0, None),
        [score] => (number(score)?, None),
        [score, mark, error] if MARKS.contains(mark) => (number(score)?, Some(number(error)?)),
        _ => return None,
    };
    let given = parameters.iter().zip(given).filter(|(_, value)| **value != "N/A");
    let params: Map<String, Value> =
        given.map(|(name, value)| ((*name).to_owned(), Value::from(*value))).collect();
    let primary = json!({"score": score, "scoreError": error, "scoreUnit": unit});
    let result = json!({"benchmark": name, "mode": mode, "params": params, "primaryMetric": primary});
    Some((*name, result))
}

/// Adds a row of `BENCHMARK:METRIC` to that of its benchmark, which stands before it; whether it does.
fn secondary(of: &str, metric: &str, row: &Value, all: &mut [(u64, Value)]) -> bool {
    let owner = all.last_mut().filter(|(_, result)| {
        result["benchmark"] == of && result["mode"] == row["mode"] && result["params"] == row["params"]
    });
    if let Some((_, result)) = owner {
        result["secondaryMetrics"][metric] = row["primaryMetric"].clone();
        return true;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<Value> {
        let mut metrics = Metrics::new("jmh");
        results(text, &mut metrics).into_iter().map(|(_, result)| result).collect()
    }

    const LOG: &str = "# JMH version: 1.37\n# VM version: JDK 17.0.15, OpenJDK 64-Bit Server VM, 17.0.15+6\n\
        # Warmup: 1 iterations, 1 s each\n# Measurement: 2 iterations, 10 s each\n# Threads: 1 thread, will synchronize iterations\n\
        # Benchmark mode: Average time, time/op\n# Benchmark: a.B.c\n# Parameters: (n = 10, of = x, y)\n\n\
        # Run progress: 0.00% complete, ETA 00:00:06\n# Warmup Fork: 1 of 1\nIteration   1: 99.000 ns/op\n\
        # Fork: 1 of 2\n# Warmup Iteration   1: 50.000 ns/op\nIteration   1: 12.500 ns/op\n                 gc.count: 3.000 counts\n\
        Iteration   2: 12,600 ns/op\n\n# Fork: 2 of 2\nIteration   1: 13.000 ±(99.9%) 0.100 ns/op\nIteration   2: <failure>\n";

    #[test]
    fn values_of_a_log_are_kept_by_fork_and_those_of_warming_up_are_not() {
        let [one] = &of(LOG)[..] else { panic!() };
        assert_eq!(one["primaryMetric"], json!({"scoreUnit": "ns/op", "rawData": [[12.5, 12.6], [13.0]]}));
        assert_eq!(one["secondaryMetrics"]["gc.count"]["rawData"], json!([[3.0]]));
        assert_eq!(one["params"], json!({"n": "10", "of": "x, y"}));
        assert_eq!((&one["mode"], &one["forks"]), (&json!("avgt"), &json!(2)));
        assert_eq!(one["measurementTime"], "10 s");
        assert_eq!(one[fields::LEFT_OUT], "2 warm-up iterations, which are not results");
    }

    #[test]
    fn what_is_no_value_is_said() {
        for (instead, why) in [
            ("≈ 10⁻³ ns/op", "only a power of ten"),
            ("5 items done", "no number with a unit"),
            ("5 done", "its unit"),
            ("", "no number with a unit"),
        ] {
            let mut metrics = Metrics::new("jmh");
            results(&LOG.replace("12,600 ns/op", instead), &mut metrics);
            let skipped = metrics.finish(&[]).skipped;
            let lines: Vec<u64> = skipped.iter().map(|one| one.line).collect();
            assert_eq!(lines, [17, 21], "{instead}");
            assert!(skipped[0].why.starts_with(why), "{instead}: {}", skipped[0].why);
            assert!(skipped[1].what == "a.B.c" && skipped[1].why == "the benchmark failed", "{skipped:?}");
        }
    }

    #[test]
    fn means_of_sampled_times_are_no_times_of_calls() {
        let sampled =
            LOG.replace("Average time", "Sampling time").replace("13.000 ±(99.9%) 0.100", "n = 9, mean = 0");
        let mut metrics = Metrics::new("jmh");
        let found = results(&sampled, &mut metrics);
        assert_eq!(found[0].1["mode"], "sample mean");
        assert!(metrics.finish(&[]).skipped[0].why.contains("without decimals"));
    }

    #[test]
    fn a_table_alone_has_scores() {
        let table = "[info] Benchmark      (n)   Mode  Cnt   Score   Error   Units\n\
            [info] B.c             10   avgt    5  12.500 ± 0.250   ns/op\n\
            [info] B.c:gc.count    10   avgt    5   3.000          counts\n\
            [info] B.d            N/A  thrpt       99.000           ops/s\n[info] B.e  10  avgt\n[success] Total time: 9 s\n";
        assert!(begins(table.lines().next().unwrap()));
        let mut metrics = Metrics::new("jmh");
        let found = results(table, &mut metrics);
        let [(2, first), (4, second)] = &found[..] else { panic!("{found:?}") };
        assert_eq!(first["primaryMetric"], json!({"score": 12.5, "scoreError": 0.25, "scoreUnit": "ns/op"}));
        assert_eq!(first["secondaryMetrics"]["gc.count"]["score"], 3.0);
        assert_eq!((&second["params"], &second["primaryMetric"]["score"]), (&json!({}), &json!(99.0)));
        assert_eq!(metrics.finish(&[]).skipped_count, 1);
        // The sign is another one where the output has no such character, and never is the error the score.
        assert_eq!(of(&table.replace('±', "?"))[0]["primaryMetric"]["score"], 12.5);
        assert_ne!(of(&table.replace("± ", ""))[0]["primaryMetric"]["score"], 0.25);
        assert!(!begins("Benchmark of Mode and Score in Units"));
        assert!(!begins("Benchmark  Mode  Samples  Score  Score error  Units"));
    }
}
