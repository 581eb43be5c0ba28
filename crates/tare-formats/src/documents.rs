//! JSON documents among the other lines of a log: the one way in which readers find them, and recognise those of their tool.

use crate::extent::{End, Extent};
use crate::json::{self, CUT_OFF, DOCUMENT_MAX, TOO_LONG};
use crate::metrics::Metrics;
use crate::reader::{DETECT_BYTES, Input};
use crate::result::RESULTS_MAX;
use serde_json::Value;

/// So many documents without an end may end where another begins: each makes lines be read again.
const AGAIN_MAX: usize = 16;

/// An object or array that begins a line, or follows another one in its line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Document<'a> {
    /// All of it; of a broken one, with the line in which it breaks.
    pub text: &'a str,
    /// The line that it begins in, from 1 on.
    pub line: u64,
    /// How it ends.
    pub end: End,
}

impl Document<'_> {
    /// Its value, with words such as `NaN` as strings.
    ///
    /// # Errors
    /// The line of the text in which it ends too early or is no JSON, and why.
    pub fn parse(&self) -> Result<Value, (u64, String)> {
        if self.end == End::Missing {
            let lines = self.text.matches('\n').count() as u64;
            return Err((self.line + lines, CUT_OFF.to_owned()));
        }
        json::parse(self.text).map_err(|(line, why)| (self.line + line.saturating_sub(1), why))
    }

    /// What is complete of one that is not whole.
    fn complete(&self) -> Option<Value> {
        let extent = (self.end != End::Whole).then(|| Extent::of(self.text))?;
        let (length, depth) = extent.complete;
        if length > DOCUMENT_MAX {
            return None;
        }
        // Since the last bracket was closed others were only opened: those below are as they were.
        let open = extent.open.iter().take(depth).rev();
        let mut text = self.text.get(..length)?.to_owned();
        text.extend(open.map(|bracket| if *bracket == b'{' { '}' } else { ']' }));
        json::parse(&text).ok()
    }

    fn first_line(&self) -> &str {
        self.text.lines().next().unwrap_or_default()
    }
}

/// Whether the text has a document with all keys of one of `sets` near its beginning.
pub(crate) fn has(input: &Input<'_>, sets: &[&[&str]]) -> bool {
    let most = DETECT_BYTES.min(input.text.len());
    let end = (0..=most).rev().find(|end| input.text.is_char_boundary(*end)).unwrap_or_default();
    let head = &input.text[..end];
    // Most texts have not even the keys, and are not looked through for documents.
    has_all(head, sets) && with_keys(head, sets).next().is_some()
}

/// Whether all keys of one of `sets` stand in the text.
fn has_all(text: &str, sets: &[&[&str]]) -> bool {
    sets.iter().any(|keys| keys.iter().all(|key| text.contains(key)))
}

/// Every document that has all keys of one of `sets`: others are not parsed.
pub(crate) fn with_keys<'a>(text: &'a str, sets: &[&[&str]]) -> impl Iterator<Item = Document<'a>> {
    Documents { rest: text, line: 1, again_left: AGAIN_MAX }.filter(move |one| has_all(one.text, sets))
}

/// The value and the line of each document that has all keys of one of `sets`. What is cut off or no JSON is noted as skipped.
pub(crate) fn each_whole_document(
    text: &str,
    sets: &[&[&str]],
    metrics: &mut Metrics,
    mut then: impl FnMut(&mut Metrics, u64, Value),
) {
    for one in with_keys(text, sets) {
        match one.parse() {
            Ok(value) => then(metrics, one.line, value),
            Err((line, why)) => metrics.skip(line, one.first_line(), &why),
        }
    }
}

/// The same of documents that are a run each: a launch of its own. `what`: of which a whole one is expected.
pub(crate) fn each_run(
    text: &str,
    sets: &[&[&str]],
    what: &str,
    metrics: &mut Metrics,
    mut then: impl FnMut(&mut Metrics, Value),
) {
    for one in with_keys(text, sets) {
        match one.parse() {
            Ok(value) => {
                metrics.begin_run(one.line);
                then(metrics, value);
                metrics.end_run();
            }
            Err((line, why)) => metrics.skip(line, what, &why),
        }
    }
}

/// The same, with what is complete of a document that is cut off or breaks.
pub(crate) fn each_document(
    text: &str,
    sets: &[&[&str]],
    metrics: &mut Metrics,
    mut then: impl FnMut(&mut Metrics, u64, Value),
) {
    for one in with_keys(text, sets) {
        let (line, why) = match one.parse() {
            Ok(value) => {
                then(metrics, one.line, value);
                continue;
            }
            Err(error) => error,
        };
        let complete = one.complete();
        let what = if complete.is_some() { "the end" } else { one.first_line() };
        complete.into_iter().for_each(|value| then(metrics, one.line, value));
        metrics.skip(line, what, &why);
    }
}

/// The value and the line of each, all at once: together no longer than one may be.
pub(crate) fn whole_documents(text: &str, sets: &[&[&str]], metrics: &mut Metrics) -> Vec<(u64, Value)> {
    whole_documents_of(text, sets, DOCUMENT_MAX, metrics)
}

fn whole_documents_of(
    text: &str,
    sets: &[&[&str]],
    bytes_max: usize,
    metrics: &mut Metrics,
) -> Vec<(u64, Value)> {
    let (mut found, mut left) = (Vec::new(), bytes_max);
    for one in with_keys(text, sets) {
        let Some(rest) = left.checked_sub(one.text.len()) else {
            metrics.skip(one.line, one.first_line(), TOO_LONG);
            continue;
        };
        match one.parse() {
            Ok(value) => {
                found.push((one.line, value));
                left = rest;
            }
            Err((line, why)) => metrics.skip(line, one.first_line(), &why),
        }
    }
    found
}

/// Every object that is whole and has all keys of one of `sets`, alone or in an array, of documents that are together no longer than one may be.
pub(crate) fn objects(text: &str, sets: &[&[&str]]) -> Vec<Value> {
    let mut left = DOCUMENT_MAX;
    let values = with_keys(text, sets).filter_map(|one| {
        left = left.checked_sub(one.text.len())?;
        one.parse().ok()
    });
    let all = values.flat_map(|value| match value {
        Value::Array(all) => all,
        one => vec![one],
    });
    all.filter(Value::is_object).take(RESULTS_MAX).collect()
}

/// Finds one document after the other.
struct Documents<'a> {
    rest: &'a str,
    line: u64,
    again_left: usize,
}

impl<'a> Iterator for Documents<'a> {
    type Item = Document<'a>;

    fn next(&mut self) -> Option<Document<'a>> {
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t', '\r']);
            if !matches!(self.rest.as_bytes().first()?, b'{' | b'[') {
                self.go_on(line_end(self.rest, 0) + 1, 1);
            } else if let Some(document) = self.document() {
                return Some(document);
            }
        }
    }
}

impl<'a> Documents<'a> {
    fn go_on(&mut self, bytes: usize, lines: u64) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
        self.line += lines;
    }

    /// The document that begins the rest; `None` where that only begins like one.
    fn document(&mut self) -> Option<Document<'a>> {
        let (rest, line) = (self.rest, self.line);
        let extent = Extent::of(rest);
        let again = extent.again.filter(|_| extent.end != End::Whole && self.again_left > 0);
        let (end, length) = if let Some((at, lines)) = again {
            self.again_left -= 1;
            self.go_on(at, lines);
            (End::Missing, at)
        } else if extent.end == End::Broken {
            let length = line_end(rest, extent.at);
            // The line in which it breaks may begin another one.
            match rest[..extent.at].rfind('\n') {
                Some(before) => self.go_on(before + 1, extent.lines),
                None => self.go_on(length + 1, 1),
            }
            (End::Broken, length)
        } else {
            self.go_on(extent.at, extent.lines);
            (extent.end, extent.at)
        };
        // `[INFO]` and `{level=` break before a key.
        (extent.has_key || end != End::Broken).then(|| Document { text: &rest[..length], line, end })
    }
}

/// Where the line that `from` is in ends.
fn line_end(text: &str, from: usize) -> usize {
    text[from..].find('\n').map_or(text.len(), |end| from + end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every document is wanted.
    const ALL: &[&[&str]] = &[&[]];
    const K: &[&[&str]] = &[&["\"k\""]];

    /// The documents, and what was skipped, each with its line.
    type Found = (Vec<(u64, Value)>, Vec<(u64, String)>);

    fn found(read: impl FnOnce(&mut Metrics, &mut dyn FnMut(&mut Metrics, u64, Value))) -> Found {
        let (mut metrics, mut found) = (Metrics::new("test"), Vec::new());
        read(&mut metrics, &mut |_, line, value| found.push((line, value)));
        let skipped = metrics.finish(&[]).skipped;
        (found, skipped.into_iter().map(|skipped| (skipped.line, skipped.why)).collect())
    }

    fn whole(text: &str, sets: &[&[&str]]) -> Found {
        found(|metrics, then| each_whole_document(text, sets, metrics, then))
    }

    fn complete(text: &str) -> Found {
        found(|metrics, then| each_document(text, K, metrics, then))
    }

    fn lines<T>(found: &[(u64, T)]) -> Vec<u64> {
        found.iter().map(|(line, _)| *line).collect()
    }

    #[test]
    fn documents_stand_between_other_lines() {
        let (found, skipped) = complete(
            "log\n[12:00] {x}\n{\"k\": \"}\\\"\"}\n{\"other\": 1}\n\nlog\n[\n {\"k\": 2}\n] end\n{\"k\": NaN}",
        );
        assert_eq!((lines(&found), skipped), (vec![3, 7, 10], vec![]));
        assert_eq!(found[1].1[0]["k"], 2);
        let (found, skipped) = whole("log\n{\"a\":\n1} rest\n[2]\n[INFO] x\n{\"b\":2}\n{\"key\": [\n1,", ALL);
        assert_eq!((lines(&found), skipped), (vec![2, 4, 6], vec![(8, CUT_OFF.to_owned())]));
        assert_eq!(found[2].1["b"], 2);
    }

    #[test]
    fn another_document_may_follow_in_the_line() {
        let (found, skipped) =
            whole("log\n{\"a\":\n1} {\"b\": 2}\nlog {\n{\"c\": 3}[4]x{\"no\": 1}\n{\"d\":\n", ALL);
        assert_eq!((lines(&found), skipped), (vec![2, 3, 5, 5], vec![(7, CUT_OFF.to_owned())]));
    }

    #[test]
    fn of_one_that_is_cut_off_what_was_complete_is_read() {
        let (found, skipped) = complete("{\"k\": [{\"a\": 1},\n {\"a\": 2},\n {\"a\": ");
        assert_eq!(found[0].1["k"].as_array().map(Vec::len), Some(2));
        assert_eq!(skipped, [(3, CUT_OFF.to_owned())]);
        let (found, skipped) = complete("{\"k\": ");
        assert_eq!((found.len(), skipped.len()), (0, 1));
        for end in ["{\"k\"", "Segmentation fault\n"] {
            let (found, skipped) = complete(&format!("[\n{{\"k\": 1}},\n{{\"k\": 2}},\n{end}"));
            assert_eq!(found, [(1, serde_json::json!([{"k": 1}, {"k": 2}]))]);
            assert_eq!(lines(&skipped), [4]);
        }
    }

    #[test]
    fn one_without_an_end_ends_where_the_next_begins() {
        let text = "log {\n{\n \"a\": \"}\\\"{\"\n}\ntext\n{\"b\": {}}\n{\n \"cut\": 1\n{\"c\": 1} x\n{\"cut\": [\n{\"d\": 1}\n{ \"end\"";
        let found = with_keys(text, ALL).map(|one| (one.line, one.end, one.text));
        let expected = [
            (2, End::Whole, "{\n \"a\": \"}\\\"{\"\n}"),
            (6, End::Whole, "{\"b\": {}}"),
            (7, End::Missing, "{\n \"cut\": 1\n"),
            (9, End::Whole, "{\"c\": 1}"),
            (10, End::Missing, "{\"cut\": [\n"),
            (11, End::Whole, "{\"d\": 1}"),
            (12, End::Missing, "{ \"end\""),
        ];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_follows_a_broken_document_is_read() {
        let (found, skipped) = whole("{\"key\": 1\nWARNING\n[3]\n{\"key\": x}\n{\"a\": \"\n{\"b\": 1}", ALL);
        assert_eq!((lines(&found), lines(&skipped)), (vec![3, 6], vec![2, 4, 5]));
        assert_eq!((&*skipped[2].1, skipped[0].1.starts_with("it is no JSON")), (CUT_OFF, true));
    }

    #[test]
    fn lines_that_only_begin_like_one_are_none() {
        for log in ["[INFO] x", "{level=info}", "[12:00", "[12:00:01 x", "{", "{{", "[{", "[\u{e9}", "{cut"] {
            let (found, skipped) = whole(&format!("{log}\n{{\"k\": 1}}\n"), K);
            assert_eq!((lines(&found), skipped), (vec![2], vec![]), "{log}");
        }
    }

    #[test]
    fn all_at_once_are_no_longer_than_one_may_be() {
        let mut metrics = Metrics::new("test");
        let text = "{\"k\": 1}\nlog\n{\"k\": 22222222222}\n{\"k\": 3}\n{\"k\":";
        let found = whole_documents_of(text, K, 21, &mut metrics);
        assert_eq!(lines(&found), [1, 4]);
        let skipped: Vec<(u64, String)> =
            metrics.finish(&[]).skipped.into_iter().map(|skipped| (skipped.line, skipped.why)).collect();
        assert_eq!(skipped, [(3, TOO_LONG.to_owned()), (5, CUT_OFF.to_owned())]);
    }

    #[test]
    fn objects_are_whole_alone_or_in_an_array() {
        let found = objects("log {\n {\"a\": {\"b\":\n 1}}\nnot\n{cut\n{\"c\": 2}{\"d\"", ALL);
        assert_eq!(found, [serde_json::json!({"a": {"b": 1}}), serde_json::json!({"c": 2})]);
        assert_eq!(objects("[{\"k\": 1}, 2, {\"a\": 3}]\n{\"a\": 1}", K).len(), 2);
    }

    #[test]
    fn a_tool_is_recognised_by_keys_of_one_document() {
        let has = |text: &str| has(&Input::of_text(text), &[&["\"a\"", "\"b\""], &["\"c\""]]);
        assert!(has("log\n{\"x\": 1}\n{\"a\": {\"b\": ") && has("[{\"c\": 1}]"));
        assert!(!has("{\"a\": 1}\n{\"b\": 1}") && !has("say {\"c\": 1}"));
        assert!(!has(&format!("{{\"x\": \"{}\", \"c\": 1}}", "é".repeat(DETECT_BYTES))));
    }

    /// With a time that grew as the square of the length this would take hours.
    #[test]
    fn the_time_is_linear_whatever_the_text_is() {
        let odd = ["{", "[", "{\"k\":1}", "{\"k\":x\n", "{\"k\":\"\n"];
        let open = ["{\"k\":[\n", "{\"k\":1,\n", "[1,\n", "[{\"k\":1},\n"];
        for line in odd.into_iter().chain(open) {
            let text = line.repeat(1 << 18);
            with_keys(&text, K).for_each(|one| drop(one.parse()));
            complete(&text);
        }
    }
}
