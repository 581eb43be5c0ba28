//! The logs of `pgbench`: of each transaction (`-l`), of intervals (`--aggregate-interval`), and its progress (`-P`).

use super::shared::{LESS, MORE, add_summary, integer, integers, is_epoch, kind, lines};
use crate::metrics::{Metrics, Sample};
use crate::reader::{Input, Reader};
use crate::units::in_base;

/// All three; the summary behind the progress as well.
pub(crate) const READER: Reader = Reader {
    name: "pgbench",
    gets_wrong: &[
        "a log has no column names: with seven columns the last is the lag with --rate, or the number of retries with --max-tries",
        "each thread (-j) has a log of its own: one file is a part of the load",
        "without --rate a transaction begins when the one before it has ended: latencies leave out how long it would have waited",
        "a log of intervals has means and no percentiles, and the means of unequal intervals cannot be averaged",
    ],
    detect,
    read,
};

/// Detection and the meaning of columns are from so many lines.
const HEAD_LINES: usize = 2000;
/// Most columns of any of its logs.
const COLUMNS: usize = 15;
/// More clients than this, or scripts, there are not.
const CLIENTS_MAX: i64 = 100_000;

/// Which log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Log {
    Transactions,
    Intervals,
    Progress,
}

fn detect(input: &Input<'_>) -> bool {
    log(input).is_some()
}

fn log(input: &Input<'_>) -> Option<Log> {
    let is_progress = |line: &str| line.starts_with("progress: ") && line.contains(" tps, lat ");
    // Wherever it stands: the summary behind it is read without it otherwise.
    if input.text.contains(" tps, lat ") && input.text.lines().any(is_progress) {
        return Some(Log::Progress);
    }
    let head = || lines(input.bytes).map(|(_, line)| line).filter(|line| !line.is_empty()).take(20);
    // The last line may be cut off.
    let complete = |kind: fn(&[u8]) -> bool| {
        let (good, all) = head().fold((0, 0), |(good, all), line| (good + usize::from(kind(line)), all + 1));
        good > 0 && (good == all || good + 1 == all && all < 20)
    };
    if complete(|line| Transaction::parse(line).is_some()) {
        Some(Log::Transactions)
    } else {
        complete(|line| interval(line, &mut [0; COLUMNS]).is_some()).then_some(Log::Intervals)
    }
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    match log(input) {
        Some(Log::Progress) => {
            let mut last_s = 0.0;
            for (line, number) in input.text.lines().zip(1..) {
                if line.starts_with("transaction type: ") {
                    // The summary of a run: what follows is another one, which may count from its own beginning or by the clock.
                    metrics.next_launch();
                    last_s = 0.0;
                }
                progress(number, line.trim_end(), &mut last_s, metrics);
            }
            add_summary(&super::pgbench::FORMAT, input.text, metrics);
        }
        Some(Log::Intervals) => intervals(input, metrics),
        _ => transactions(input, metrics),
    }
}

/// `client transaction time script second microsecond [lag] [retries]`.
struct Transaction {
    client: u32,
    transaction: i64,
    /// `None`: no time but a word stands there.
    us: Option<i64>,
    script: i64,
    at_s: f64,
    /// What stands behind.
    more: [Option<i64>; 2],
}

impl Transaction {
    fn parse(line: &[u8]) -> Option<Transaction> {
        let mut words = line.split(|byte| *byte == b' ');
        let mut next = || words.next().and_then(integer);
        let (client, transaction) = (next()?, next()?);
        let time = words.next()?;
        let us = match time {
            b"skipped" | b"failed" | b"serialization" | b"deadlock" => None,
            digits => Some(integer(digits)?),
        };
        let mut next = || words.next().and_then(integer);
        let (script, second, microsecond) = (next()?, next()?, next()?);
        let mut more = [None; 2];
        for place in &mut more {
            let Some(word) = words.next() else { break };
            *place = Some(integer(word)?);
        }
        let fits = (0..CLIENTS_MAX).contains(&client)
            && (0..CLIENTS_MAX).contains(&script)
            && transaction >= 0
            && us.is_none_or(|us| us >= 0)
            && is_epoch(second)
            && (0..1_000_000).contains(&microsecond)
            && words.next().is_none();
        let at_s = second as f64 + microsecond as f64 / 1e6;
        fits.then_some(Transaction {
            client: u32::try_from(client).ok()?,
            transaction,
            us,
            script,
            at_s,
            more,
        })
    }
}

/// What the columns behind the sixth are.
fn columns(input: &Input<'_>) -> [&'static str; 2] {
    let head = lines(input.bytes).take(HEAD_LINES).filter_map(|(_, line)| Transaction::parse(line));
    let (mut all, mut zeros, mut greatest, mut both) = (0, 0, 0, false);
    for transaction in head {
        if let Some(value) = transaction.more[0] {
            all += 1;
            zeros += u32::from(value == 0);
            greatest = value.max(greatest);
        }
        both |= transaction.more[1].is_some();
    }
    // A lag is microseconds and hardly ever none; most transactions need no second try.
    let retries = !both && greatest < 10_000 && zeros * 2 >= all;
    if retries { ["retries", ""] } else { ["schedule lag", "retries"] }
}

/// In this second more transactions began than could: the tool lagged behind its schedule for so long.
const LAG_S: f64 = 0.1;

fn transactions(input: &Input<'_>, metrics: &mut Metrics) {
    let columns = columns(input);
    let (mut unread, mut lag_s, mut skipped) = (0_u64, 0_f64, 0_u64);
    // Names are made for each script once, not for each line.
    let (mut script, mut benchmark) = (-1, String::new());
    for (number, line) in lines(input.bytes).filter(|(_, line)| !line.is_empty()) {
        let Some(transaction) = Transaction::parse(line) else {
            unread += 1;
            metrics.skip(
                number,
                &String::from_utf8_lossy(line.get(..100).unwrap_or(line)),
                "it is no line of this log, or was cut off",
            );
            continue;
        };
        if transaction.script != script {
            script = transaction.script;
            benchmark = format!("script {script}");
        }
        let sample = |value| Sample {
            value,
            launch: 0,
            worker: Some(transaction.client),
            at_s: Some(transaction.at_s),
        };
        match transaction.us {
            Some(us) => {
                metrics.sample(number, kind(&benchmark, "latency", "s", LESS), sample(us as f64 / 1e6))
            }
            None => {
                skipped += 1;
                let word =
                    String::from_utf8_lossy(line.split(|byte| *byte == b' ').nth(2).unwrap_or_default());
                let why = match &*word {
                    "skipped" => {
                        "it was due so late that pgbench did not run it (--latency-limit)".to_owned()
                    }
                    word => format!("the transaction failed: {word}"),
                };
                metrics.skip(
                    number,
                    &format!("transaction {} of client {}", transaction.transaction, transaction.client),
                    &why,
                );
            }
        }
        for (name, value) in columns.into_iter().zip(transaction.more) {
            match value {
                Some(us) if name == "schedule lag" => {
                    lag_s = lag_s.max(us as f64 / 1e6);
                    metrics.sample(number, kind(&benchmark, name, "s", LESS), sample(us as f64 / 1e6));
                }
                Some(count) if name == "retries" => {
                    metrics.sample(number, kind(&benchmark, name, "retries", LESS), sample(count as f64));
                }
                _ => {}
            }
        }
    }
    if lag_s >= LAG_S {
        let text = format!(
            "a transaction began {lag_s:.3} s after its time: pgbench or the server could not keep the rate"
        );
        metrics.warn(
            "tool-lags-behind-schedule",
            &text,
            "see whether pgbench's threads are busy all the time (-j), or lower --rate",
        );
    }
    if skipped > 0 {
        let text = format!("{skipped} transactions have no latency: they failed or were not run at all");
        metrics.warn("tool-drops-samples", &text, "quote the latencies together with the share of those");
    }
    if unread > 0 {
        metrics.warn(
            "tool-log-is-cut-off",
            &format!("{unread} lines could not be read"),
            "wait for pgbench to end before the log is copied",
        );
    }
}

/// The numbers of one interval: 6 columns, 10 with --rate, 11 with --latency-limit too; since version 15 always 15.
fn interval<'a>(line: &[u8], room: &'a mut [i64; COLUMNS]) -> Option<&'a [i64]> {
    let numbers = integers(line, room)?;
    let fits = matches!(numbers.len(), 6 | 10 | 11 | 15)
        && is_epoch(*numbers.first()?)
        && numbers.iter().all(|number| *number >= 0)
        && numbers.get(4)? <= numbers.get(5)?
        && is_sum(numbers)?;
    fits.then_some(numbers)
}

/// Whether the sum of the latencies can be one of so many from the least to the greatest: other integers behind a time are no latencies.
fn is_sum(numbers: &[i64]) -> Option<bool> {
    let column = |at: usize| numbers.get(at).copied().map(i128::from);
    let (count, sum, least, most) = (column(1)?, column(2)?, column(4)?, column(5)?);
    // Before version 15 those that were skipped are counted, and have no latency.
    let timed = (count - column(10).unwrap_or(0)).max(0);
    Some((timed * least..=count * most).contains(&sum))
}

fn intervals(input: &Input<'_>, metrics: &mut Metrics) {
    let (mut before, mut steps) = (None, Vec::new());
    for (number, line) in lines(input.bytes).filter(|(_, line)| !line.is_empty()) {
        let mut room = [0; COLUMNS];
        let Some(numbers) = interval(line, &mut room) else {
            metrics.skip(
                number,
                &String::from_utf8_lossy(line.get(..100).unwrap_or(line)),
                "it is no line of this log, or was cut off",
            );
            continue;
        };
        let column = |at: usize| numbers.get(at).map(|value| *value as f64);
        let (Some(at), Some(count)) = (column(0), column(1)) else { continue };
        steps.extend(
            before.replace(at).map(|before| at - before).filter(|step| *step > 0.0 && steps.len() < 1000),
        );
        let mut note = |name: &str, unit: &str, better, value: f64| {
            metrics.sample(
                number,
                kind("", name, unit, better),
                Sample { value, at_s: Some(at), ..Sample::default() },
            );
        };
        note("transactions", "op", MORE, count);
        // Of none there is no latency.
        for (name, first) in [("latency", 2), ("schedule lag", 6)] {
            let sum = column(first).filter(|sum| count > 0.0 && (first == 2 || *sum > 0.0));
            if let (Some(sum), Some(least), Some(most)) = (sum, column(first + 2), column(first + 3)) {
                note(&format!("{name} mean"), "s", LESS, sum / count / 1e6);
                note(&format!("{name} min"), "s", LESS, least / 1e6);
                note(&format!("{name} max"), "s", LESS, most / 1e6);
            }
        }
        let names = ["skipped", "retried", "retries", "serialization failures", "deadlock failures"];
        for (name, at) in names.iter().zip(10..) {
            column(at).into_iter().for_each(|value| note(name, "op", LESS, value));
        }
    }
    if let Some(step) = steps.iter().copied().reduce(f64::min) {
        metrics.set("interval in s", &step.to_string());
    }
}

/// `progress: 1.0 s, 100.0 tps, lat 4.827 ms stddev 5.217, 0 failed, lag 0.485 ms, 2 retried, 2 retries`.
fn progress(number: u64, line: &str, last_s: &mut f64, metrics: &mut Metrics) {
    let Some(rest) = line.strip_prefix("progress: ") else { return };
    let parts: Vec<Vec<&str>> =
        rest.split(", ").take(12).map(|part| part.split(' ').take(6).collect()).collect();
    let [at, tps, more @ ..] = parts.as_slice() else {
        return metrics.skip(number, line, "the line is cut off");
    };
    let value = |word: &str| word.parse::<f64>().ok();
    let (Some(at_s), Some(tps)) =
        (at.first().and_then(|at| value(at)), tps.first().and_then(|tps| value(tps)))
    else {
        return metrics.skip(number, line, "there are no numbers");
    };
    // Another run counts from its own beginning.
    if at_s < std::mem::replace(last_s, at_s) {
        metrics.next_launch();
    }
    let mut note = |name: &str, unit: &str, better, value: Option<f64>| {
        if let Some(value) = value {
            metrics.sample(
                number,
                kind("", name, unit, better),
                Sample { value, at_s: Some(at_s), ..Sample::default() },
            );
        }
    };
    note("tps", "op/s", MORE, Some(tps));
    for part in more {
        let s = |word: &str| value(word).map(|ms| in_base(ms, "ms").0);
        match part.as_slice() {
            // Of no transaction it prints zeros.
            ["lat", mean, "ms", "stddev", spread] if tps > 0.0 => {
                note("latency average", "s", LESS, s(mean));
                note("latency stddev", "s", LESS, s(spread));
            }
            ["lag", mean, "ms"] => note("schedule lag", "s", LESS, s(mean)),
            [count, name @ ("failed" | "skipped" | "retried" | "retries")] => {
                note(name, "op", LESS, value(count))
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> tare_model::tool::ToolMetrics {
        READER.read(&Input::of_text(text))
    }

    #[test]
    fn columns_tell_which_log_it_is() {
        let is = |text: &str| log(&Input::of_text(text));
        assert_eq!(is("0 1 1525 0 1795834351 797192\n0 2 1525 0 1795834351 797"), Some(Log::Transactions));
        assert_eq!(is("1795834357 19 97989 1565984523 324 21716\n"), Some(Log::Intervals));
        for other in [
            "1 2 3 4 5 6\n",
            "0 1 1525 0 1795834351 1797192\n",
            "1795834357 19 97989 1565984523 324 216\n",
            "0 1 2 0 1795834351 1 2 3 4\n",
            "1795834351 2\n",
            "1795834351 1 2 3 4 5\n",
            "1795834357 19 97989 1565984523 324 5000\n",
            "1795834357 19 97989 1565984523 6000 21716\n",
            "1795834357 0 5 25 0 0\n",
        ] {
            assert_eq!(is(other), None, "{other}");
        }
    }

    #[test]
    fn transactions_that_were_skipped_may_be_counted() {
        assert_eq!(is_sum(&[1, 3, 2000, 0, 900, 1100, 0, 0, 0, 0, 1]), Some(true));
        assert_eq!(is_sum(&[1, 3, 2000, 0, 900, 1100, 0, 0, 0, 0]), Some(false));
        assert_eq!(is_sum(&[1, i64::MAX, i64::MAX, 0, 0, i64::MAX]), Some(true));
        assert_eq!(is_sum(&[1, 3]), None);
    }

    #[test]
    fn the_seventh_column_is_known_by_its_values() {
        let lag = of("0 1 1525 0 1795834351 797192 114\n0 2 1525 0 1795834351 797193 98\n");
        assert_eq!(lag.metrics[1].name, "schedule lag");
        assert_eq!(lag.metrics[1].samples, [114e-6, 98e-6]);
        let retries = of("0 1 1525 0 1795834351 797192 0\n0 2 1525 0 1795834351 797193 1\n");
        assert_eq!(
            (retries.metrics[1].name.as_str(), retries.metrics[1].samples.as_slice()),
            ("retries", &[0.0, 1.0][..])
        );
        let both = of("0 1 1525 0 1795834351 797192 0 0\n");
        assert_eq!(
            both.metrics.iter().map(|metric| metric.name.as_str()).collect::<Vec<_>>(),
            ["latency", "schedule lag", "retries"]
        );
    }

    #[test]
    fn what_was_not_run_is_no_latency() {
        let read = of(
            "0 1 skipped 0 1795834351 797192 114000\n3 2 1500 1 1795834351 900000 98\n0 3 deadlock 0 1795834352 1 5\n",
        );
        assert_eq!((read.metrics.len(), read.skipped_count), (3, 2));
        let latency = &read.metrics.iter().find(|metric| metric.name == "latency").unwrap();
        assert_eq!(
            (latency.benchmark.as_str(), latency.workers.as_slice(), latency.at_s.as_slice()),
            ("script 1", &[3][..], &[1795834351.9][..])
        );
        let ids: Vec<_> = read.warnings.iter().map(|warning| warning.id.as_str()).collect();
        assert_eq!(ids, ["tool-lags-behind-schedule", "tool-drops-samples"]);
    }

    #[test]
    fn an_interval_without_transactions_has_no_latency() {
        let read = of(
            "1795834357 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n1795834359 2 4000 9000000 1000 3000 0 0 0 0 0 0 0 0 0\n",
        );
        let of = |name: &str| {
            read.metrics.iter().find(|metric| metric.name == name).map(|metric| metric.samples.clone())
        };
        assert_eq!(
            (of("transactions"), of("latency mean"), of("schedule lag mean")),
            (Some(vec![0.0, 2.0]), Some(vec![0.002]), None)
        );
        assert_eq!(read.configuration["interval in s"], "2");
    }
}
