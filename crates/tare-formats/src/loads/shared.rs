//! What several of these readers need.

use crate::format::Format;
use crate::load_metrics;
use crate::metrics::{Kind, Metrics, Sample};
use crate::result::ToolResult;
use std::collections::BTreeSet;
use tare_model::outcome::Better;

pub(crate) const MORE: Option<Better> = Some(Better::Higher);
pub(crate) const LESS: Option<Better> = Some(Better::Lower);

/// A metric of the benchmark `benchmark`.
pub(crate) fn kind<'a>(benchmark: &'a str, name: &'a str, unit: &'a str, better: Option<Better>) -> Kind<'a> {
    Kind { benchmark, name, unit, better }
}

/// Adds what the format of a tool's summary reads, and what it does not understand, beside the samples of its reader. An operation that is a byte has its unit.
pub(crate) fn add_summary(format: &Format, text: &str, metrics: &mut Metrics) {
    metrics.first_launch();
    let is_of_bytes = |result: &&ToolResult| {
        result.settings.iter().any(|(setting, value)| setting == "operation" && value.starts_with("a byte"))
    };
    let output = format.read(text);
    let of_bytes: BTreeSet<&str> = output
        .results
        .iter()
        .filter(is_of_bytes)
        .map(|result| result.name.as_deref().unwrap_or_default())
        .collect();
    let read = load_metrics::of(format, text);
    for metric in &read.metrics {
        for (value, launch) in metric.samples.iter().zip(&metric.launches) {
            let unit = match metric.unit.as_str() {
                "op/s" if of_bytes.contains(metric.benchmark.as_str()) => "B/s",
                "op" if metric.name == "operations" && of_bytes.contains(metric.benchmark.as_str()) => "B",
                unit => unit,
            };
            let kind = kind(&metric.benchmark, &metric.name, unit, metric.better);
            metrics.sample(0, kind, Sample { value: *value, launch: *launch, ..Sample::default() });
        }
    }
    for (setting, value) in &read.configuration {
        metrics.set(setting, value);
    }
    for warning in &read.warnings {
        metrics.warn(&warning.id, &warning.text, &warning.hint);
    }
    format.shapes.note_unread(text, 1, metrics);
}

/// Whole numbers with a blank or tab between them; `None` where something else stands there. At most as many as there is room for.
pub(crate) fn integers<'a>(line: &[u8], room: &'a mut [i64]) -> Option<&'a [i64]> {
    let mut count = 0;
    for word in line.split(|byte| matches!(byte, b' ' | b'\t')) {
        *room.get_mut(count)? = integer(word)?;
        count += 1;
    }
    room.get(..count)
}

/// A whole number, read by hand: logs have millions of them.
pub(crate) fn integer(word: &[u8]) -> Option<i64> {
    let (digits, sign) = match word {
        [b'-', digits @ ..] => (digits, -1),
        digits => (digits, 1),
    };
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut value = 0_i64;
    for digit in digits {
        value = value * 10 + i64::from(digit.is_ascii_digit().then(|| digit - b'0')?);
    }
    Some(value * sign)
}

/// Lines of bytes, and their numbers from 1 on, without the ends of lines.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let lines = bytes.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    (1..).zip(lines)
}

/// Seconds since 1970 that a clock shows while such tools exist: of the years 2001 to 2106.
pub(crate) fn is_epoch(seconds: i64) -> bool {
    (1_000_000_000..4_294_967_296).contains(&seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_nothing_else() {
        let mut room = [0; 3];
        assert_eq!(integers(b"1 -20\t3", &mut room), Some(&[1, -20, 3][..]));
        for line in [&b"1 2 3 4"[..], b"1  2", b"1.5", b"", b"-", b"1234567890123456789"] {
            assert_eq!(integers(line, &mut room), None, "{line:?}");
        }
    }
}
