//! Texts with places that differ from request to request, compiled before the run.

use crate::message::MessageError;
use crate::random::Random;
use crate::table::Table;
use std::io::Write;
use std::sync::Arc;

/// Most digits of a `{{hex:…}}`.
const HEX_DIGITS_MAX: u32 = 1024;

/// Where in a request a text stands, and so how values are made safe for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Values are percent-encoded.
    Path,
    /// Control characters in values become spaces.
    Header,
    /// Values stay as they are.
    Body,
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Bytes(Vec<u8>),
    /// `{{counter}}`: this plus the request's number.
    Counter(u64),
    /// `{{random:FROM-TO}}`: from, and how many values there are.
    Random(u64, u64),
    /// `{{hex:DIGITS}}`.
    Hex(u32),
    /// `{{csv:COLUMN}}`.
    Csv(usize, Place),
    /// `{{capture:NAME}}`.
    Capture(usize, Place),
}

/// What names in templates mean.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// Whether `{{…}}` means anything at all.
    pub(crate) templates: bool,
    pub(crate) table: Option<Arc<Table>>,
    pub(crate) captures: Vec<String>,
}

/// What a request's values are made from.
pub(crate) struct Values<'a> {
    /// The request's number over all threads, from 0.
    pub(crate) number: u64,
    pub(crate) random: &'a mut Random,
    pub(crate) table: Option<&'a Table>,
    pub(crate) captured: &'a [Vec<u8>],
}

/// Takes `text` apart and adds its pieces to `pieces`.
pub(crate) fn parse(
    text: &[u8],
    place: Place,
    names: &Names,
    pieces: &mut Vec<Piece>,
) -> Result<(), MessageError> {
    let mut rest = text;
    while names.templates
        && let Some(at) = find(rest, b"{{")
    {
        push_bytes(pieces, &rest[..at]);
        let inside = &rest[at + 2..];
        let end = find(inside, b"}}").ok_or_else(|| fault(inside, "it has no `}}`"))?;
        pieces.push(piece(&inside[..end], place, names)?);
        rest = &inside[end + 2..];
    }
    push_bytes(pieces, rest);
    Ok(())
}

/// Adds constant bytes, to the last piece if that is constant too.
pub(crate) fn push_bytes(pieces: &mut Vec<Piece>, bytes: &[u8]) {
    match pieces.last_mut() {
        _ if bytes.is_empty() => {}
        Some(Piece::Bytes(last)) => last.extend_from_slice(bytes),
        _ => pieces.push(Piece::Bytes(bytes.to_vec())),
    }
}

fn piece(inside: &[u8], place: Place, names: &Names) -> Result<Piece, MessageError> {
    let text = std::str::from_utf8(inside).map_err(|_| fault(inside, "it is not UTF-8"))?.trim();
    let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
    let number =
        |text: &str| text.trim().parse::<u64>().map_err(|_| fault(inside, "its number cannot be read"));
    match kind.trim() {
        "counter" if rest.is_empty() => Ok(Piece::Counter(0)),
        "counter" => Ok(Piece::Counter(number(rest)?)),
        "random" => {
            let (from, to) = rest.split_once('-').ok_or_else(|| fault(inside, "write {{random:FROM-TO}}"))?;
            let (from, to) = (number(from)?, number(to)?);
            let count = to.checked_sub(from).and_then(|count| count.checked_add(1));
            count
                .map(|count| Piece::Random(from, count))
                .ok_or_else(|| fault(inside, "its range is empty or too wide"))
        }
        "hex" => match number(rest)? {
            digits if (1..=u64::from(HEX_DIGITS_MAX)).contains(&digits) => Ok(Piece::Hex(digits as u32)),
            _ => Err(fault(inside, "1 to 1024 digits are possible")),
        },
        "csv" => {
            let table = names.table.as_ref().ok_or_else(|| fault(inside, "no CSV file was given"))?;
            let column =
                table.column(rest.trim()).ok_or_else(|| fault(inside, "the CSV file has no such column"))?;
            Ok(Piece::Csv(column, place))
        }
        "capture" => {
            let index = names.captures.iter().position(|name| name == rest.trim());
            index
                .map(|index| Piece::Capture(index, place))
                .ok_or_else(|| fault(inside, "nothing of that name is captured"))
        }
        _ => Err(fault(inside, "known are counter, random, hex, csv and capture")),
    }
}

fn fault(inside: &[u8], why: &'static str) -> MessageError {
    let text: String = String::from_utf8_lossy(inside).chars().take(60).collect();
    MessageError::Template { text, why }
}

/// Where `needle` first stands in `hay`.
pub(crate) fn find(hay: &[u8], needle: &[u8]) -> Option<usize> {
    if needle.is_empty() { Some(0) } else { hay.windows(needle.len()).position(|window| window == needle) }
}

/// Writes the text of `pieces` with these values to the end of `out`.
pub(crate) fn render(pieces: &[Piece], values: &mut Values<'_>, out: &mut Vec<u8>) {
    for piece in pieces {
        match piece {
            Piece::Bytes(bytes) => out.extend_from_slice(bytes),
            Piece::Counter(from) => write_number(out, from.wrapping_add(values.number)),
            Piece::Random(from, count) => write_number(out, from + values.random.next() % count),
            Piece::Hex(digits) => write_hex(out, *digits, values.random),
            Piece::Csv(column, place) => {
                let value = values.table.map_or(&[][..], |table| table.value(values.number, *column));
                write_safely(out, value, *place);
            }
            Piece::Capture(index, place) => {
                write_safely(out, values.captured.get(*index).map_or(&[][..], Vec::as_slice), *place)
            }
        }
    }
}

pub(crate) fn write_number(out: &mut Vec<u8>, number: u64) {
    // Writing to a Vec does not fail.
    write!(out, "{number}").ok();
}

fn write_hex(out: &mut Vec<u8>, digits: u32, random: &mut Random) {
    let mut left = digits;
    while left > 0 {
        let mut bits = random.next();
        for _ in 0..left.min(16) {
            out.push(b"0123456789abcdef"[(bits & 15) as usize]);
            bits >>= 4;
        }
        left = left.saturating_sub(16);
    }
}

fn write_safely(out: &mut Vec<u8>, value: &[u8], place: Place) {
    match place {
        Place::Body => out.extend_from_slice(value),
        Place::Header => {
            out.extend(value.iter().map(|&byte| if byte < b' ' || byte == 0x7f { b' ' } else { byte }))
        }
        Place::Path => {
            for &byte in value {
                if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                    out.push(byte);
                } else {
                    out.extend_from_slice(&[b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
                }
            }
        }
    }
}

const HEX: &[u8; 16] = b"0123456789ABCDEF";

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names() -> Names {
        let table = Table::parse(b"id,name\n1,a b\n2,\"c,\r\nd\"\n").unwrap();
        Names { templates: true, table: Some(Arc::new(table)), captures: vec!["token".to_owned()] }
    }

    fn text(template: &str, place: Place, number: u64) -> String {
        let (names, mut pieces, mut out) = (names(), Vec::new(), Vec::new());
        parse(template.as_bytes(), place, &names, &mut pieces).unwrap();
        let captured = [b"x\r\ny".to_vec()];
        let mut random = Random::new(1, 0);
        let mut values =
            Values { number, random: &mut random, table: names.table.as_deref(), captured: &captured };
        render(&pieces, &mut values, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn values_are_made_safe_for_their_place() {
        assert_eq!(text("/{{counter}}/{{ counter:7 }}?n={{csv:name}}", Place::Path, 2), "/2/9?n=a%20b");
        assert_eq!(text("{{csv:id}}={{csv:name}}", Place::Header, 1), "2=c,  d");
        assert_eq!(text("{{csv:name}}|{{capture:token}}", Place::Body, 3), "c,\r\nd|x\r\ny");
        assert_eq!(text("{{capture:token}}", Place::Path, 0), "x%0D%0Ay");
        assert_eq!(text("{{random:5-5}}}", Place::Body, 0), "5}");
    }

    #[test]
    fn each_mistake_has_its_own_word() {
        let fault = |text: &str| {
            parse(text.as_bytes(), Place::Body, &names(), &mut Vec::new()).unwrap_err().to_string()
        };
        let bare = parse(
            b"{{csv:id}}",
            Place::Body,
            &Names { templates: true, ..Names::default() },
            &mut Vec::new(),
        );
        insta::assert_snapshot!(
            [
                fault("a{{counter"),
                fault("{{}}"),
                fault("{{counter:x}}"),
                fault("{{random:9}}"),
                fault("{{random:9-1}}"),
                fault("{{random:0-18446744073709551615}}"),
                fault("{{hex:0}}"),
                fault("{{csv:none}}"),
                fault("{{capture:none}}"),
                bare.unwrap_err().to_string(),
            ]
            .join("\n")
        );
    }

    proptest! {
        #[test]
        fn texts_without_templates_stay_as_they_are(text in prop::collection::vec(any::<u8>(), 0..60)) {
            let (mut pieces, mut out) = (Vec::new(), Vec::new());
            parse(&text, Place::Body, &Names::default(), &mut pieces).unwrap();
            let mut random = Random::new(1, 0);
            render(&pieces, &mut Values { number: 0, random: &mut random, table: None, captured: &[] }, &mut out);
            prop_assert_eq!(out, text);
        }

        /// No value can end a line of the head.
        #[test]
        fn no_value_breaks_out_of_its_place(value in prop::collection::vec(any::<u8>(), 0..60)) {
            for place in [Place::Path, Place::Header] {
                let mut out = Vec::new();
                write_safely(&mut out, &value, place);
                prop_assert!(!out.contains(&b'\r') && !out.contains(&b'\n'));
                prop_assert!(place == Place::Header || out.iter().all(|byte| byte.is_ascii_graphic()));
            }
        }

        #[test]
        fn random_values_are_within(from in 0u64..1000, count in 1u64..1000, digits in 1u32..100) {
            let (mut random, mut out) = (Random::new(3, 1), Vec::new());
            let pieces = [Piece::Random(from, count), Piece::Bytes(b" ".to_vec()), Piece::Hex(digits)];
            render(&pieces, &mut Values { number: 0, random: &mut random, table: None, captured: &[] }, &mut out);
            let out = String::from_utf8(out).unwrap();
            let (number, hex) = out.split_once(' ').unwrap();
            prop_assert!((from..from + count).contains(&number.parse::<u64>().unwrap()));
            prop_assert!(hex.len() == digits as usize && hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
        }

        #[test]
        fn arbitrary_templates_never_panic(text in "(\\{\\{|\\}\\}|counter|random|hex|csv|:|-|[0-9]{1,3}|\\PC){0,12}") {
            parse(text.as_bytes(), Place::Path, &names(), &mut Vec::new()).ok();
        }
    }
}
