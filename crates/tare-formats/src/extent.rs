//! How far a JSON document goes, found without its values: in one pass, to where it ends or is no JSON any more.

/// Deeper than this no tool's results are.
const DEPTH_MAX: usize = 200;
/// Values without brackets or marks, beside numbers: JSON's, and those that tools write though JSON has none of them.
const WORDS: [&[u8]; 7] = [b"true", b"false", b"null", b"NaN", b"nan", b"Infinity", b"inf"];

/// How a document ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// With its last bracket.
    Whole,
    /// The text ends in its middle, or another one begins there.
    Missing,
    /// In a line from which on it is no JSON.
    Broken,
}

/// What may stand next in a document, beside blanks.
#[derive(Clone, Copy)]
enum Next {
    /// Or the end of an array.
    Value,
    /// Or the end of an object.
    Key,
    Colon,
    /// Or the end of what is open.
    Comma,
}

/// How far a document goes, found without its value.
pub(crate) struct Extent {
    pub end: End,
    /// Behind its last bracket, or where it breaks.
    pub at: usize,
    /// How many lines end before that.
    pub lines: u64,
    /// Whether there is a key in it.
    pub has_key: bool,
    /// The first line that begins with the same bracket as the document, and its number.
    pub again: Option<(usize, u64)>,
    /// The brackets that are open.
    pub open: Vec<u8>,
    /// Where the last bracket was closed, and how many were open behind it.
    pub complete: (usize, usize),
}

impl Extent {
    /// Of the document that begins the text.
    pub fn of(text: &str) -> Extent {
        let bytes = text.as_bytes();
        let (end, complete) = (End::Missing, (0, 0));
        let mut extent =
            Extent { end, at: 0, lines: 0, has_key: false, again: None, open: Vec::new(), complete };
        let mut next = Next::Value;
        while let Some(&byte) = bytes.get(extent.at) {
            let from = extent.at;
            extent.at += 1;
            let then = match (byte, next) {
                (b' ' | b'\t' | b'\r', _) => Ok(next),
                (b'\n', _) => {
                    extent.lines += 1;
                    if extent.again.is_none() && bytes.get(extent.at) == bytes.first() {
                        extent.again = Some((extent.at, extent.lines));
                    }
                    Ok(next)
                }
                (b'"', Next::Key) => string_end(bytes, &mut extent.at).map(|()| Next::Colon),
                (b'"', Next::Value) => string_end(bytes, &mut extent.at).map(|()| Next::Comma),
                (b'{' | b'[', Next::Value) if extent.open.len() < DEPTH_MAX => {
                    extent.open.push(byte);
                    Ok(if byte == b'{' { Next::Key } else { Next::Value })
                }
                // In ASCII a bracket stands two before the one that closes it.
                (b'}', Next::Key | Next::Comma) | (b']', Next::Value | Next::Comma)
                    if extent.open.last() == Some(&(byte - 2)) =>
                {
                    extent.open.pop();
                    extent.complete = (extent.at, extent.open.len());
                    if extent.open.is_empty() {
                        extent.end = End::Whole;
                        return extent;
                    }
                    Ok(Next::Comma)
                }
                (b':', Next::Colon) => {
                    extent.has_key = true;
                    Ok(Next::Value)
                }
                (b',', Next::Comma) => {
                    Ok(if extent.open.last() == Some(&b'{') { Next::Key } else { Next::Value })
                }
                (_, Next::Value) => word_end(bytes, from, &mut extent.at).map(|()| Next::Comma),
                _ => Err(End::Broken),
            };
            match then {
                Ok(then) => next = then,
                Err(end) => {
                    extent.end = end;
                    extent.at = if end == End::Missing { bytes.len() } else { from };
                    return extent;
                }
            }
        }
        extent
    }
}

/// Goes behind the closing mark of a string. None goes on in the next line.
fn string_end(bytes: &[u8], at: &mut usize) -> Result<(), End> {
    loop {
        let rest = bytes.get(*at..).unwrap_or_default();
        let found = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | b'\n'));
        let length = found.ok_or(End::Missing)?;
        *at += length + 1;
        match rest[length] {
            b'"' => return Ok(()),
            b'\\' if rest.get(length + 1) != Some(&b'\n') => *at += 1,
            _ => return Err(End::Broken),
        }
    }
}

/// Goes behind a number or a word, which the text may end in. Whether it is a number is not looked at.
fn word_end(bytes: &[u8], from: usize, at: &mut usize) -> Result<(), End> {
    let rest = &bytes[from..];
    let is_of_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'+');
    let length = rest.iter().position(|byte| !is_of_word(byte)).unwrap_or(rest.len());
    *at = from + length;
    let is_known = match rest[0] {
        b'-' | b'0'..=b'9' => true,
        _ if length == rest.len() => WORDS.iter().any(|known| known.starts_with(rest)),
        _ => WORDS.contains(&&rest[..length]),
    };
    if is_known { Ok(()) } else { Err(End::Broken) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_goes_to_its_bracket_or_to_what_is_no_json() {
        for (text, end, at) in [
            ("{\"a\\\"}\": [1.5e-3, -Infinity, nan, {}]} {", End::Whole, 38),
            ("[true\n, null, [],] x", End::Whole, 18),
            ("{\"a\": tr", End::Missing, 8),
            ("{\"a\": \"\\", End::Missing, 8),
            ("{\"a\": \"x\n\"}", End::Broken, 6),
            ("{\"a\": \"x\\\n\"}", End::Broken, 6),
            ("{\"a\": true1}", End::Broken, 6),
            ("{\"a\" 1}", End::Broken, 5),
            ("{\"a\": 1]", End::Broken, 7),
            ("[1 2]", End::Broken, 3),
            ("[\"a\": 1]", End::Broken, 4),
        ] {
            let extent = Extent::of(text);
            assert_eq!((extent.end, extent.at), (end, at), "{text}");
        }
        assert_eq!(Extent::of(&"[".repeat(1000)).at, DEPTH_MAX);
    }

    #[test]
    fn what_is_complete_and_where_another_begins_is_known() {
        let extent = Extent::of("{\"a\": [\n[1], {},\n{\"b\": [2");
        assert_eq!((extent.complete, extent.again, extent.lines), ((15, 2), Some((17, 2)), 2));
        assert_eq!((extent.open.as_slice(), extent.has_key), (&b"{[{["[..], true));
    }
}
