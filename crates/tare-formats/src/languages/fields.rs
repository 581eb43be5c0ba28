//! What several readers of this folder have in common: JSON documents among other lines, and their fields as settings.

use crate::json;
use crate::metrics::{Kind, Metrics};
use crate::reader::Input;
use serde_json::Value;
use std::collections::HashMap;

/// A detection looks at so many bytes of a document.
const DETECT_BYTES: usize = 256 << 10;

/// Whether all of the words stand at the beginning of the text.
pub(super) fn begins_with_all(text: &str, words: &[&str]) -> bool {
    let head = beginning(text);
    words.iter().all(|word| head.contains(word))
}

/// What a detection looks at.
pub(super) fn beginning(text: &str) -> &str {
    let mut end = text.len().min(DETECT_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A document, and the line in which it begins.
pub(super) struct Document {
    pub line: u64,
    pub value: Value,
}

/// Gives `each` the JSON documents, one after another: each that begins at the beginning of a line or behind another; one with one of `keys` in it that is broken
/// is skipped.
pub(super) fn documents(
    text: &str,
    keys: &[&str],
    metrics: &mut Metrics,
    mut each: impl FnMut(Document, &mut Metrics),
) {
    let (mut rest, mut line, mut is_first_failure) = (text, 1, true);
    while !rest.is_empty() {
        let mut taken = line_end(rest, 0);
        if rest.starts_with(['{', '[']) {
            let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
            match stream.next() {
                Some(Ok(value)) => {
                    each(Document { line, value }, metrics);
                    let behind = rest.get(stream.byte_offset()..).unwrap_or_default();
                    let next = behind.trim_start();
                    let is_next = next.starts_with(['{', '[']);
                    taken =
                        if is_next { rest.len() - next.len() } else { line_end(rest, stream.byte_offset()) };
                }
                Some(Err(error)) => {
                    let broken = Broken::of(rest, &error);
                    let is_ours = keys.iter().any(|key| broken.looked_at.contains(key));
                    let is_whole = line == 1 && Input::of_text(rest).is_json();
                    // Python writes NaN, which is no JSON. Looked at once: it reads all that follows.
                    let looks = (is_ours || is_whole) && std::mem::take(&mut is_first_failure);
                    match looks.then(|| json::parse(rest)) {
                        Some(Ok(value)) => {
                            each(Document { line, value }, metrics);
                            break;
                        }
                        Some(Err((at, why))) if is_ours => skip(line, at, rest, &why, metrics),
                        None if is_ours => skip(line, error.line() as u64, rest, &broken.why, metrics),
                        _ => {}
                    }
                    taken = broken.goes_on.max(taken);
                }
                None => {}
            }
        }
        line += rest.bytes().take(taken).filter(|byte| *byte == b'\n').count() as u64;
        rest = rest.get(taken..).unwrap_or_default();
    }
}

/// Where the line that `from` is in ends.
fn line_end(text: &str, from: usize) -> usize {
    text.get(from..).and_then(|rest| rest.find('\n')).map_or(text.len(), |end| from + end + 1)
}

fn skip(begins: u64, at: u64, document: &str, why: &str, metrics: &mut Metrics) {
    metrics.skip(begins + at.saturating_sub(1), document.lines().next().unwrap_or_default(), why);
}

/// What begins as JSON and is none.
struct Broken<'a> {
    /// Up to where it is none.
    looked_at: &'a str,
    why: String,
    /// Another may begin in the line in which this one broke.
    goes_on: usize,
}

impl Broken<'_> {
    fn of<'a>(rest: &'a str, error: &serde_json::Error) -> Broken<'a> {
        if error.is_eof() {
            let why = "it ends in the middle: the file is cut off".to_owned();
            return Broken { looked_at: rest, why, goes_on: rest.len() };
        }
        let goes_on: usize =
            rest.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
        let looked_at = rest.get(..line_end(rest, goes_on)).unwrap_or_default();
        Broken { looked_at, why: format!("it is no JSON: {error}"), goes_on }
    }
}

/// Sets each field that is text, a number or a truth; those of objects below under `name.field`.
pub(super) fn set_all(metrics: &mut Metrics, prefix: &str, value: &Value) {
    for (name, value) in value.as_object().into_iter().flatten().take(200) {
        let name = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        if is_plain(value) {
            metrics.set(&name, &json::text(value));
        }
    }
}

/// The same of one metric.
pub(super) fn set_all_of(metrics: &mut Metrics, kind: Kind<'_>, value: &Value) {
    for (name, value) in value.as_object().into_iter().flatten().take(200) {
        if is_plain(value) {
            metrics.set_of(kind, name, &json::text(value));
        }
    }
}

/// Whether a value is said in one word; an empty one says nothing.
pub(super) fn is_plain(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.is_empty(),
        Value::Number(_) | Value::Bool(_) => true,
        _ => false,
    }
}

/// Counts launches of benchmarks whose results are printed again and again.
#[derive(Default)]
pub(super) struct Launches(HashMap<String, u32>);

impl Launches {
    /// Which launch the next result of this name is, from 0 on; it takes `count` of them.
    pub fn next(&mut self, name: &str, count: u32) -> u32 {
        let next = self.0.entry(name.to_owned()).or_default();
        let launch = *next;
        *next = next.saturating_add(count);
        launch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type At<T> = Vec<(u64, T)>;

    fn found(text: &str) -> (At<Value>, At<String>) {
        let mut metrics = Metrics::new("x");
        let mut found = Vec::new();
        documents(text, &["\"key\""], &mut metrics, |document, _| {
            found.push((document.line, document.value))
        });
        let skipped =
            metrics.finish(&[]).skipped.into_iter().map(|skipped| (skipped.line, skipped.why)).collect();
        (found, skipped)
    }

    #[test]
    fn documents_stand_among_other_lines() {
        let (all, skipped) = found("log\n{\"a\":\n1} rest\n[2]\n[INFO] x\n{\"b\":2}\n{\"key\": [\n1,");
        let lines: Vec<u64> = all.iter().map(|one| one.0).collect();
        assert_eq!(lines, [2, 4, 6]);
        assert_eq!(all[2].1["b"], 2);
        assert_eq!(skipped, [(8, "it ends in the middle: the file is cut off".to_owned())]);
    }

    #[test]
    fn what_follows_a_broken_document_is_read() {
        let (all, skipped) = found("{\"key\": 1\nWARNING\n[3]\n");
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].0, skipped.len(), skipped[0].0), (3, 1, 2));
    }

    #[test]
    fn words_that_are_no_json_are_read_where_the_document_is_all() {
        let (all, skipped) = found("{\"key\": NaN}");
        assert_eq!((all.len(), skipped.len()), (1, 0));
    }

    #[test]
    fn launches_go_on_for_each_name() {
        let mut launches = Launches::default();
        assert_eq!([launches.next("a", 2), launches.next("b", 1), launches.next("a", 1)], [0, 0, 2]);
    }
}
