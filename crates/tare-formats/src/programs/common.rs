//! What several readers of this folder need.

use crate::metrics::Kind;
use crate::reader::Input;
use std::collections::HashMap;
use tare_model::outcome::Better;

/// Fewer is better.
pub(super) const LOWER: Option<Better> = Some(Better::Lower);
/// More is better.
pub(super) const HIGHER: Option<Better> = Some(Better::Higher);

/// In what the keys of a JSON document are looked for.
const BEGINNING_BYTES: usize = 64 << 10;

/// A kind of sample, in one line.
pub(super) fn kind<'a>(benchmark: &'a str, name: &'a str, unit: &'a str, better: Option<Better>) -> Kind<'a> {
    Kind { benchmark, name, unit, better }
}

/// The first part of the text, enough to know whose it is.
pub(super) fn beginning<'a>(input: &Input<'a>) -> &'a str {
    up_to(input.text, BEGINNING_BYTES)
}

/// No more than so many bytes of a text, whole characters.
pub(super) fn up_to(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// A JSON object that stands among other lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Document<'a> {
    /// From its first brace to its last, or to where it was cut off.
    pub text: &'a str,
    /// The line that it begins in, from 1 on.
    pub line: u64,
    /// Whether it has no end.
    pub is_cut: bool,
}

/// Every JSON object that begins a line, whatever stands between them. One that has no end ends where the next begins.
pub(super) fn documents(text: &str) -> Vec<Document<'_>> {
    let mut found = Vec::new();
    let mut begun: Option<(usize, u64)> = None;
    let (mut at, mut depth) = (0, 0_i64);
    for (line, number) in text.split_inclusive('\n').zip(1..) {
        if line.starts_with('{') {
            if let Some((from, begun_at)) = begun.take() {
                let text = text.get(from..at).unwrap_or_default();
                found.push(Document { text, line: begun_at, is_cut: true });
            }
            (begun, depth) = (Some((at, number)), 0);
        }
        if let Some((from, begun_at)) = begun
            && let Some(end) = closes(line, &mut depth)
        {
            let text = text.get(from..at + end).unwrap_or_default();
            found.push(Document { text, line: begun_at, is_cut: false });
            begun = None;
        }
        at += line.len();
    }
    if let Some((from, line)) = begun {
        found.push(Document { text: text.get(from..).unwrap_or_default(), line, is_cut: true });
    }
    found
}

/// Where in the line the object ends, if it does. A string of JSON never goes on in the next line.
fn closes(line: &str, depth: &mut i64) -> Option<usize> {
    let (mut in_string, mut is_escaped) = (false, false);
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            b'{' if !in_string => *depth += 1,
            b'}' if !in_string => {
                *depth -= 1;
                if *depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// Gives names that come again a number: `sleep 1`, `sleep 1 #2`.
#[derive(Debug, Default)]
pub(super) struct Names(HashMap<String, u32>);

impl Names {
    /// The name by which this one is kept.
    pub fn unique(&mut self, name: String) -> String {
        let count = self.0.entry(name.clone()).or_default();
        *count += 1;
        match *count {
            1 => name,
            count => format!("{name} #{count}"),
        }
    }
}

/// How often each name has come so far; it counts launches.
#[derive(Debug, Default)]
pub(super) struct Counts(HashMap<String, u32>);

impl Counts {
    /// How often it had come before this time.
    pub fn next(&mut self, name: &str) -> u32 {
        // Looked up first: most names have come before, and need no copy.
        match self.0.get_mut(name) {
            Some(count) => {
                *count += 1;
                *count - 1
            }
            None => {
                self.0.insert(name.to_owned(), 1);
                0
            }
        }
    }

    /// How often it has come.
    pub fn of(&self, name: &str) -> u32 {
        self.0.get(name).copied().unwrap_or_default()
    }
}

/// `99.000000` is `p99`.
pub(super) fn percentile(percent: &str) -> String {
    let short = percent.trim();
    let short = if short.contains('.') { short.trim_end_matches('0').trim_end_matches('.') } else { short };
    format!("p{short}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_stand_among_other_lines() {
        let text =
            "log {\n{\n \"a\": \"}\\\"{\"\n}\ntext\n{\"b\": {}}\n{\n \"cut\": 1\n{\"c\": 1} x\n{ \"end\"";
        let found: Vec<(u64, bool, &str)> =
            documents(text).iter().map(|one| (one.line, one.is_cut, one.text)).collect();
        assert_eq!(
            found,
            [
                (2, false, "{\n \"a\": \"}\\\"{\"\n}"),
                (6, false, "{\"b\": {}}"),
                (7, true, "{\n \"cut\": 1\n"),
                (9, false, "{\"c\": 1}"),
                (10, true, "{ \"end\""),
            ]
        );
    }

    #[test]
    fn fields_keep_what_is_in_quotation_marks() {}

    #[test]
    fn percentiles_are_named_without_zeros_that_say_nothing() {
        assert_eq!(
            [percentile("99.000000"), percentile("99.950"), percentile("50")],
            ["p99", "p99.95", "p50"]
        );
    }
}
