//! The table that google-benchmark prints on a console, as its JSON would have it.

use super::google_run::Run;
use crate::metrics::Metrics;
use serde_json::{Value, json};

/// The titles of the columns; those of counters may follow.
pub(super) fn is_header(line: &str) -> bool {
    line.starts_with("Benchmark ")
        && line.split_whitespace().take(4).eq(["Benchmark", "Time", "CPU", "Iterations"])
}

/// What stands above the tables, and their rows, each with its line.
pub(super) fn read(text: &str, metrics: &mut Metrics) -> (Value, Vec<(u64, Run)>) {
    let mut context = json!({});
    let mut rows = Vec::new();
    // Titles of counters, where they have columns of their own.
    let mut columns: Option<Vec<&str>> = None;
    for (line, number) in text.lines().zip(1..) {
        if is_header(line) {
            let titles = line.split_whitespace().skip(4).filter(|title| *title != "UserCounters...");
            columns = Some(titles.collect());
        } else if let Some(columns) = &columns {
            row(number, line, columns, &mut rows, metrics);
        } else {
            above(line, &mut context);
        }
    }
    (context, rows)
}

/// Lines that are printed before the first table.
fn above(line: &str, context: &mut Value) {
    if let Some(machine) = line.strip_prefix("Run on (") {
        let words: Vec<&str> = machine.split_whitespace().collect();
        if let [cpus, "X", mhz, ..] = words.as_slice() {
            context["num_cpus"] = Value::from(*cpus);
            context["mhz_per_cpu"] = Value::from(*mhz);
        }
    } else if let Some(loads) = line.strip_prefix("Load Average: ") {
        context["load_avg"] = loads.split(',').filter_map(|load| load.trim().parse::<f64>().ok()).collect();
    } else if line.starts_with("***WARNING*** Library was built as DEBUG") {
        context["library_build_type"] = Value::from("debug");
    } else if line.starts_with("***WARNING*** CPU scaling is enabled") {
        context["cpu_scaling_enabled"] = Value::from(true);
    } else if let Some(program) = line.strip_prefix("Running ") {
        context["executable"] = Value::from(program);
    }
}

fn row(number: u64, line: &str, columns: &[&str], rows: &mut Vec<(u64, Run)>, metrics: &mut Metrics) {
    for (failure, why) in [(" ERROR OCCURRED: ", "failed"), (" SKIPPED: ", "was skipped")] {
        if let Some((name, message)) = line.split_once(failure) {
            return metrics.skip(number, name.trim(), &format!("the benchmark {why}: {}", message.trim()));
        }
    }
    let words: Vec<&str> = line.split_whitespace().take(500).collect();
    let is_number = |at: usize| words.get(at).is_some_and(|word| word.parse::<f64>().is_ok());
    let is_unit = |at: usize| words.get(at).is_some_and(|unit| ["ns", "us", "ms", "s", "%"].contains(unit));
    // The name may be of several words: the first time with its unit ends it.
    let Some(at) = (1..words.len()).find(|at| is_number(*at) && (is_unit(at + 1) || is_fit(&words))) else {
        if words.len() > 1 && !line.starts_with("---") && line.contains('/') {
            metrics.skip(number, line, "there is no time: the line is cut off, or no result");
        }
        return;
    };
    let &[real, unit, cpu, cpu_unit, ref rest @ ..] = words.get(at..).unwrap_or_default() else {
        return metrics.skip(number, line, "there is no CPU time: the line is cut off");
    };
    let (Ok(real), Ok(cpu)) = (real.parse::<f64>(), cpu.parse::<f64>()) else {
        return metrics.skip(number, line, "a time is no number");
    };
    let name = words.get(..at).unwrap_or_default().join(" ");
    let mut run = Run::new();
    let (base, end) = name.rsplit_once('_').unwrap_or((&name, ""));
    let divisor = if unit == "%" { 100.0 } else { 1.0 };
    if unit == "%" {
        run.insert("run_type".to_owned(), Value::from("aggregate"));
        run.insert("run_name".to_owned(), Value::from(base));
        run.insert("aggregate_name".to_owned(), Value::from(end));
        run.insert("aggregate_unit".to_owned(), Value::from("percentage"));
    } else if is_fit(&words) {
        run.insert("big_o".to_owned(), Value::from(unit));
    } else if unit == cpu_unit {
        run.insert("time_unit".to_owned(), Value::from(unit));
    } else {
        return metrics.skip(number, line, "its two times have different units");
    }
    for (key, value) in [("real_time", real), ("cpu_time", cpu)] {
        // 0.000 ms is less than is printed, and not nothing.
        if value == 0.0 && run.contains_key("time_unit") {
            metrics.skip(
                number,
                &format!("{name} {key}"),
                "it is printed as 0: it is less than half of its last digit",
            );
        } else {
            run.insert(key.to_owned(), Value::from(value / divisor));
        }
    }
    counters(rest.get(1..).unwrap_or_default(), columns, &mut run);
    run.insert("name".to_owned(), Value::from(name));
    rows.push((number, run));
}

/// `BM_x_BigO  0.02 N  0.01 N`.
fn is_fit(words: &[&str]) -> bool {
    words.first().is_some_and(|name| name.ends_with("_BigO"))
}

/// What stands behind the iterations: `name=value`, or values under titles, and a label.
fn counters(words: &[&str], columns: &[&str], run: &mut Run) {
    let mut label = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let pair = word.split_once('=').or(columns.get(at).map(|title| (*title, *word)));
        match pair.and_then(|(name, text)| Some((name, counter(name, text)?))) {
            Some((name, value)) => {
                let value = serde_json::Number::from_f64(value)
                    .map_or_else(|| Value::from(value.to_string()), Value::Number);
                run.insert(name.to_owned(), value);
            }
            None => label.push(*word),
        }
    }
    if !label.is_empty() {
        run.insert("label".to_owned(), Value::from(label.join(" ")));
    }
}

/// `86.3292M/s`: thousands; of bytes (and `Mi`) 1024s.
fn counter(name: &str, text: &str) -> Option<f64> {
    if let Some(percent) = text.strip_suffix('%') {
        return percent.parse::<f64>().ok().map(|percent| percent / 100.0);
    }
    let text = text.strip_suffix("/s").unwrap_or(text);
    let (text, binary) =
        text.strip_suffix('i').map_or((text, name == "bytes_per_second"), |text| (text, true));
    if let Ok(value) = text.parse() {
        return Some(value);
    }
    let step: f64 = if binary { 1024.0 } else { 1000.0 };
    let last = text.chars().next_back()?;
    let digits: f64 = text.get(..text.len() - last.len_utf8())?.parse().ok()?;
    let small = ['m', 'u', 'n', 'p'].iter().position(|prefix| *prefix == last);
    let large = ['k', 'M', 'G', 'T', 'P'].iter().position(|prefix| *prefix == last);
    let large = large.or((last == 'K').then_some(0));
    match (small, large) {
        (Some(power), _) => Some(digits / step.powi(power as i32 + 1)),
        (_, Some(power)) => Some(digits * step.powi(power as i32 + 1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_have_prefixes() {
        assert_eq!(counter("items_per_second", "86.5M/s"), Some(86.5e6));
        assert_eq!(counter("bytes_per_second", "2G/s"), Some(2_147_483_648.0));
        assert_eq!(counter("bytes_per_second", "2Gi/s"), Some(2_147_483_648.0));
        assert_eq!(counter("Foo", "500m"), Some(0.5));
        assert_eq!(counter("Foo", "x"), None);
    }

    #[test]
    fn counters_may_have_columns_of_their_own() {
        let mut metrics = Metrics::new("test");
        let text = "Benchmark   Time   CPU   Iterations  Bar  Foo\n---\nBM a/1   10 ns   9 ns   100   1k   2\nBM/2   10 ns\n";
        let (_, rows) = read(text, &mut metrics);
        assert_eq!((rows[0].1["name"].as_str(), rows[0].1["Bar"].as_f64()), (Some("BM a/1"), Some(1000.0)));
        assert_eq!((rows[0].1["Foo"].as_f64(), rows.len()), (Some(2.0), 1));
        assert_eq!(metrics.finish(&[]).skipped[0].line, 4);
    }
}
