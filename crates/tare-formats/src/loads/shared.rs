//! What several of these readers need.

use crate::format::Format;
use crate::load_metrics;
use crate::metrics::{Kind, Metrics, Sample};
use crate::result::ToolResult;
use serde_json::Value;
use std::collections::BTreeSet;
use tare_model::outcome::Better;

pub(crate) const MORE: Option<Better> = Some(Better::Higher);
pub(crate) const LESS: Option<Better> = Some(Better::Lower);

/// A metric of the benchmark `benchmark`.
pub(crate) fn kind<'a>(benchmark: &'a str, name: &'a str, unit: &'a str, better: Option<Better>) -> Kind<'a> {
    Kind { benchmark, name, unit, better }
}

/// Adds what the format of a tool's summary reads, beside the samples of its reader. An operation that is a byte has its unit.
pub(crate) fn add_summary(format: &Format, text: &str, metrics: &mut Metrics) {
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
            metrics.sample(1, kind, Sample { value: *value, launch: *launch, ..Sample::default() });
        }
    }
    for (setting, value) in &read.configuration {
        metrics.set(setting, value);
    }
    for warning in &read.warnings {
        metrics.warn(&warning.id, &warning.text, &warning.hint);
    }
}

/// Hands over JSON documents that stand one behind the other, each from the beginning of a line on, with other lines between them;
/// and the line that each begins in. Nothing is read behind one that is no JSON.
pub(crate) fn documents(text: &str, mut then: impl FnMut(Result<(u64, Value), (u64, String)>)) {
    let (mut at, mut line) = (0, 1);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let first = rest.lines().next().unwrap_or_default();
        // A document may follow another in its line.
        if !first.trim_start().starts_with('{') {
            at += rest.find('\n').map_or(rest.len(), |end| end + 1);
            line += 1;
            continue;
        }
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        match stream.next() {
            Some(Ok(value)) => then(Ok((line, value))),
            Some(Err(why)) => {
                // Its words may be those that tools write though JSON has none of them.
                let last = crate::json::parse(rest).map(|value| (line, value));
                return then(last.map_err(|(inside, text)| {
                    let text = if why.is_eof() { CUT_OFF.to_owned() } else { text };
                    (line + inside.saturating_sub(1), text)
                }));
            }
            None => return,
        }
        let taken = stream.byte_offset().max(1);
        line += rest.get(..taken).unwrap_or_default().matches('\n').count() as u64;
        at += taken;
    }
}

const CUT_OFF: &str = "it ends in the middle: the file is cut off";

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
    fn documents_stand_among_other_lines() {
        let mut found = Vec::new();
        documents("log\n{\"a\":\n1} {\"b\": 2}\nlog {\n{\"c\": 3}\n{\"d\":\n", |one| found.push(one));
        let lines: Vec<_> =
            found.iter().map(|one| one.as_ref().map(|(line, _)| *line).map_err(|(line, _)| *line)).collect();
        assert_eq!(lines, [Ok(2), Ok(3), Ok(5), Err(7)]);
        assert!(found[3].as_ref().is_err_and(|(_, why)| why.contains("cut off")));
    }

    #[test]
    fn whole_numbers_are_nothing_else() {
        let mut room = [0; 3];
        assert_eq!(integers(b"1 -20\t3", &mut room), Some(&[1, -20, 3][..]));
        for line in [&b"1 2 3 4"[..], b"1  2", b"1.5", b"", b"-", b"1234567890123456789"] {
            assert_eq!(integers(line, &mut room), None, "{line:?}");
        }
    }
}
