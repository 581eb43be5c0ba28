//! `dd`: the line that says how many bytes it copied in which time, of GNU, busybox and BSD.

use super::common::{HIGHER, LOWER, kind};
use crate::metrics::{Metrics, Sample};
use crate::reader::{Input, Reader};

pub(crate) const READER: Reader = Reader {
    name: "dd",
    gets_wrong: &[
        "without conv=fsync or oflag=direct the time ends when the page cache has the bytes, not the device",
        "one process with one request at a time: a device that is fast with many is not filled",
        "bytes from /dev/zero cost nothing where a file system compresses or leaves holes",
    ],
    detect: |input| input.head().any(|line| last(line).is_some_and(|line| Copied::of(line).is_some())),
    read,
};

/// With status=progress each report overwrites the one before; the last stands.
fn last(line: &str) -> Option<&str> {
    line.rsplit('\r').next().map(str::trim).filter(|line| line.len() < 300)
}

struct Copied {
    bytes: f64,
    seconds: f64,
}

impl Copied {
    /// `20000000 bytes (20 MB, 19 MiB) copied, 0.0123 s, 1.6 GB/s`; busybox has `seconds`, BSD `bytes transferred in 0.0123 secs (… bytes/sec)`.
    fn of(line: &str) -> Option<Copied> {
        let (bytes, rest) = line.split_once(' ')?;
        let bytes = bytes.parse::<u64>().ok()?;
        let rest = rest.strip_prefix("bytes ").or_else(|| rest.strip_prefix("byte "))?;
        let seconds = if let Some(rest) = rest.strip_prefix("transferred in ") {
            let (seconds, rate) = rest.split_once(" secs (")?;
            rate.contains("/sec").then_some(seconds)?
        } else {
            let rest = match rest.strip_prefix('(') {
                Some(inner) => inner.split_once(") ")?.1,
                None => rest,
            };
            let (seconds, rate) = rest.strip_prefix("copied, ")?.split_once(" s")?;
            rate.contains("B/s").then_some(seconds)?
        };
        // No language parts the seconds by groups: a comma is that of the decimals.
        let seconds = seconds.replace(',', ".").parse::<f64>().ok()?;
        Some(Copied { bytes: bytes as f64, seconds })
    }
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let (mut launch, mut records) = (0, None);
    for (line, number) in input.text.lines().zip(1..) {
        let Some(line) = last(line) else { continue };
        if line.ends_with(" records in") || line.ends_with("+0 records out") {
            records = Some((number, line));
            continue;
        }
        if line.starts_with("dd: ") {
            records = None;
            metrics.skip(number, line, "dd says that this failed");
            continue;
        }
        let Some(copied) = Copied::of(line) else { continue };
        records = None;
        let mut note = |name: &str, unit: &str, better, value: f64| {
            metrics.sample(
                number,
                kind("", name, unit, better),
                Sample { value, launch, ..Sample::default() },
            );
        };
        note("copied", "B", None, copied.bytes);
        note("time", "s", LOWER, copied.seconds);
        note("throughput", "B/s", HIGHER, copied.bytes / copied.seconds);
        launch += 1;
    }
    if let Some((number, line)) = records {
        metrics.skip(number, line, "no line says how long it took: status=noxfer, or cut off");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> tare_model::tool::ToolMetrics {
        assert!(READER.detects(&Input::of_text(text)), "{text}");
        READER.read(&Input::of_text(text))
    }

    #[test]
    fn every_kind_of_dd_is_read() {
        for line in [
            "1000 bytes (1.0 kB, 1000 B) copied, 0.5 s, 2.0 kB/s",
            "1000 bytes (1.0 kB) copied, 0,5 s, 2,0 kB/s",
            "1000 bytes (1000B) copied, 0.500000 seconds, 2.0KB/s",
            "1000 bytes copied, 0.5 s, 2.0 kB/s",
            "1000 bytes transferred in 0.500000 secs (2000 bytes/sec)",
            "500 bytes (500 B) copied, 0.2 s, 2 kB/s\r1000 bytes (1.0 kB) copied, 0.5 s, 2.0 kB/s",
        ] {
            let read = of(line);
            let values: Vec<f64> = read.metrics.iter().map(|metric| metric.samples[0]).collect();
            assert_eq!(values, [1000.0, 0.5, 2000.0], "{line}");
        }
        assert!(!READER.detects(&Input::of_text("1000 bytes (1 kB) copied, later")));
    }

    #[test]
    fn each_copy_is_a_launch_and_no_time_is_said() {
        let read =
            of("1000 bytes copied, 0.5 s, 2.0 kB/s\n1000 bytes copied, 0 s, Infinity B/s\n1+0 records in\n");
        assert_eq!(read.metrics[1].launches, [0, 1]);
        assert_eq!(read.skipped.iter().map(|skipped| skipped.line).collect::<Vec<_>>(), [2, 3]);
    }
}
