//! JSON as tools write it: with bare `NaN` and `Infinity`, which the standard does not have, or cut off.

use serde_json::Value;

/// Why what follows is missing.
pub(crate) const CUT_OFF: &str = "it ends in the middle: the file is cut off";
/// Longest document that is read as a whole. Its values take up to twelve times as much memory (objects of two numbers each, as in a histogram: a node of
/// a map has room for eleven), so that all of it stays within 1 GiB.
pub(crate) const DOCUMENT_MAX: usize = 64 << 20;
/// Why one is not read.
pub(crate) const TOO_LONG: &str = "JSON of more than 64 MiB that is read as a whole takes up to 1 GiB of memory: give it in parts, or have the tool write a line for each sample (k6 --out json, iperf3 --json-stream)";

/// One document. Bare `NaN`, `Infinity` and `-Infinity` become strings of these words.
///
/// # Errors
/// The line in which it is no JSON (from 1 on), and why; or it is longer than [`DOCUMENT_MAX`].
pub(crate) fn parse(text: &str) -> Result<Value, (u64, String)> {
    if text.len() > DOCUMENT_MAX {
        return Err((1, TOO_LONG.to_owned()));
    }
    serde_json::from_str(text).or_else(|_| serde_json::from_str(&quoted(text))).map_err(|error| {
        let why = match error.is_eof() {
            true => CUT_OFF.to_owned(),
            false => format!("it is no JSON: {error}"),
        };
        (error.line() as u64, why)
    })
}

/// The words that are no JSON in quotation marks.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    let (mut rest, mut in_string) = (text, false);
    while let Some(first) = rest.chars().next() {
        let word = ["-Infinity", "Infinity", "NaN", "-NaN", "nan", "-nan", "inf", "-inf"]
            .into_iter()
            .find(|word| !in_string && rest.starts_with(word));
        let taken = match word {
            Some(word) => {
                out.extend(["\"", word, "\""]);
                word.len()
            }
            None if in_string && first == '\\' => {
                let length = rest.char_indices().nth(2).map_or(rest.len(), |(at, _)| at);
                out.push_str(&rest[..length]);
                length
            }
            None => {
                in_string ^= first == '"';
                out.push(first);
                first.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    out
}

/// A number, also where it is written as a string (JMH: `"NaN"`).
pub(crate) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// A value as a person would write it: text without quotation marks.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_no_json_are_read_outside_of_strings_alone() {
        let read =
            parse(r#"{"a": NaN, "b": -Infinity, "NaN": "\"Infinity, é", "c": [1, Infinity]}"#).unwrap();
        assert!(number(&read["a"]).is_some_and(f64::is_nan));
        assert_eq!(number(&read["b"]), Some(f64::NEG_INFINITY));
        assert_eq!(read["NaN"], "\"Infinity, é");
        assert_eq!(number(&read["c"][1]), Some(f64::INFINITY));
    }

    #[test]
    fn what_is_cut_off_says_so() {
        let (line, why) = parse("{\n\"a\": [1,").unwrap_err();
        assert_eq!((line, why.contains("cut off")), (2, true));
        assert!(parse("{\"a\": nonsense}").unwrap_err().1.starts_with("it is no JSON"));
        assert!(parse("\"\\").is_err());
    }

    #[test]
    fn one_that_would_take_too_much_memory_is_not_read() {
        assert!(TOO_LONG.contains(&format!("{} MiB", DOCUMENT_MAX >> 20)));
        assert_eq!(parse(&" ".repeat(DOCUMENT_MAX + 1)).unwrap_err(), (1, TOO_LONG.to_owned()));
        assert_eq!(parse(" 1").unwrap(), 1);
    }
}
