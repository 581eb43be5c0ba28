//! Files of `ab` (`-e`, `-g`) and of `h2load` (`--log-file`); their summaries are read elsewhere.

use super::shared::{LESS, integer, kind, lines};
use crate::metrics::{Metrics, Sample};
use crate::reader::{Input, Reader};

/// Percentiles as CSV (`-e`), and every request (`-g`).
pub(crate) const AB: Reader = Reader {
    name: "ab",
    gets_wrong: &[
        "the times of -g are whole milliseconds, and its requests stand in the order of how long they took, not in that of time",
        "it omits the waiting of requests that a slow answer kept from being sent",
        "times include connecting, for each request has a connection of its own unless -k is given",
    ],
    detect: |input| matches!(input.text.lines().next().map(str::trim_end), Some(PERCENTILES | GNUPLOT)),
    read: read_ab,
};

const PERCENTILES: &str = "Percentage served,Time in ms";
const GNUPLOT: &str = "starttime\tseconds\tctime\tdtime\tttime\twait";

/// Every request: when it began, its status, and how long it took.
pub(crate) const H2LOAD: Reader = Reader {
    name: "h2load",
    gets_wrong: &[
        "it omits the waiting of requests that a slow answer kept from being sent",
        "of a request that failed the log has a time to its failure, which is no latency of an answer",
    ],
    detect: detect_h2load,
    read: read_h2load,
};

fn read_ab(input: &Input<'_>, metrics: &mut Metrics) {
    let is_percentiles = input.text.starts_with(PERCENTILES);
    let (mut zeros, mut all) = (0_u64, 0_u64);
    for (line, number) in input.text.lines().zip(1_u64..).skip(1).filter(|(line, _)| !line.trim().is_empty())
    {
        if is_percentiles {
            percentile(number, line, metrics);
            continue;
        }
        let [_, second, times @ ..] = &line.split('\t').take(8).collect::<Vec<_>>()[..] else {
            metrics.skip(number, line, "the line is cut off");
            continue;
        };
        let second = second.parse::<u32>().ok();
        if times.len() != 4 || second.is_none() {
            metrics.skip(number, line, "the line is cut off");
            continue;
        }
        for (name, time) in ["ctime", "dtime", "ttime", "wait"].iter().zip(times) {
            let Ok(ms) = time.trim().parse::<f64>() else {
                metrics.skip(number, line, &format!("{name} is no number"));
                continue;
            };
            if *name == "ttime" {
                all += 1;
                zeros += u64::from(ms == 0.0);
            }
            let sample = Sample { value: ms / 1e3, at_s: second.map(f64::from), ..Sample::default() };
            metrics.sample(number, kind("", name, "s", LESS), sample);
        }
    }
    if all > 0 {
        let text = format!(
            "all {all} times are whole milliseconds, {zeros} of them 0: what is shorter cannot be distinguished"
        );
        metrics.warn("tool-rounds-to-ms", &text, "take the percentiles of -e, which have microseconds");
    }
}

/// `99,25.694`: of few of them metrics are made, the rest is in the summary.
fn percentile(number: u64, line: &str, metrics: &mut Metrics) {
    let parsed = line
        .split_once(',')
        .and_then(|(percent, ms)| Some((percent.trim().parse::<u8>().ok()?, ms.trim().parse::<f64>().ok()?)));
    let Some((percent, ms)) = parsed.filter(|(percent, _)| *percent <= 100) else {
        return metrics.skip(number, line, "it is no percentage and time, or cut off");
    };
    let name = match percent {
        0 => "min".to_owned(),
        100 => "max".to_owned(),
        percent => format!("p{percent}"),
    };
    if matches!(percent, 0 | 50 | 75 | 90 | 95 | 99 | 100) {
        metrics.sample(number, kind("", &format!("latency {name}"), "s", LESS), ms / 1e3);
    }
    metrics.summary(kind("", "latency", "s", LESS), &name, ms / 1e3);
}

/// `1795834381567673 200 1183`, with tabs: microseconds since 1970, status, microseconds; a status below 0 is none.
fn request(line: &[u8]) -> Option<(i64, i64, i64)> {
    let mut words = line.split(|byte| *byte == b'\t');
    let mut next = || words.next().and_then(integer);
    let (start_us, status, us) = (next()?, next()?, next()?);
    let fits = super::shared::is_epoch(start_us / 1_000_000)
        && (-1..1000).contains(&status)
        && us >= 0
        && words.next().is_none();
    fits.then_some((start_us, status, us))
}

fn detect_h2load(input: &Input<'_>) -> bool {
    let head = lines(input.bytes).map(|(_, line)| line).filter(|line| !line.is_empty()).take(20);
    let (good, all) =
        head.fold((0, 0), |(good, all), line| (good + usize::from(request(line).is_some()), all + 1));
    good > 0 && (good == all || good + 1 == all && all < 20)
}

fn read_h2load(input: &Input<'_>, metrics: &mut Metrics) {
    let (mut last, mut failed) = (-1, 0_u64);
    let mut benchmark = String::new();
    for (number, line) in lines(input.bytes).filter(|(_, line)| !line.is_empty()) {
        let Some((start_us, status, us)) = request(line) else {
            metrics.skip(
                number,
                &String::from_utf8_lossy(line.get(..100).unwrap_or(line)),
                "it is no line of this log, or was cut off",
            );
            continue;
        };
        if status < 0 {
            failed += 1;
            metrics.skip(number, &format!("after {us} us"), "the request failed without an answer");
            continue;
        }
        // Errors are quicker than answers: each status is apart.
        if status != last {
            last = status;
            benchmark = format!("status {status}");
        }
        let sample =
            Sample { value: us as f64 / 1e6, at_s: Some(start_us as f64 / 1e6), ..Sample::default() };
        metrics.sample(number, kind(&benchmark, "latency", "s", LESS), sample);
    }
    if failed > 0 {
        let text = format!("{failed} requests failed: they are in no latency");
        metrics.warn("tool-drops-samples", &text, "quote the latencies together with the share of those");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_failed_and_statuses_are_apart() {
        let read = H2LOAD.read(&Input::of_text(
            "1795834381567673\t200\t1183\n1795834381567674\t-1\t5\n1795834381567675\t503\t80\n17958",
        ));
        let found: Vec<_> =
            read.metrics.iter().map(|metric| (metric.benchmark.as_str(), metric.samples.clone())).collect();
        assert_eq!(found, [("status 200", vec![0.001183]), ("status 503", vec![80e-6])]);
        let lines: Vec<u64> = read.skipped.iter().map(|skipped| skipped.line).collect();
        assert_eq!(lines, [2, 4]);
        assert!(!H2LOAD.detects(&Input::of_text("1\t200\t1183\n")));
    }

    #[test]
    fn a_line_that_is_cut_off_is_said() {
        let read = AB.read(&Input::of_text(&format!("{GNUPLOT}\nSat Nov 28 02:53:01 2026\t1795834381\t0\t1\t1\t1\nSat Nov 28 02:53:01 2026\t17958\t0\n")));
        assert_eq!((read.metrics.len(), read.skipped[0].line), (4, 3));
        let read = AB.read(&Input::of_text(&format!("{PERCENTILES}\n0,0.868\n99,nan\n1")));
        assert_eq!(read.skipped.iter().map(|skipped| skipped.line).collect::<Vec<_>>(), [3, 4]);
    }
}
