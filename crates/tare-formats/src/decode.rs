//! Text as it was meant: from whatever a terminal or another system made of it.

use std::borrow::Cow;

/// The text of a file: UTF-8 or, with its mark, UTF-16 (as PowerShell's `>` writes it); what is neither is replaced. Without the
/// sequences that colour a terminal.
pub fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    let text = match bytes {
        [0xff, 0xfe, rest @ ..] => Cow::Owned(utf_16(rest, u16::from_le_bytes)),
        [0xfe, 0xff, rest @ ..] => Cow::Owned(utf_16(rest, u16::from_be_bytes)),
        _ => String::from_utf8_lossy(bytes),
    };
    if text.contains('\u{1b}') { Cow::Owned(without_colours(&text)) } else { text }
}

fn utf_16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    char::decode_utf16(units).map(|read| read.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

/// Leaves out what begins with ESC `[` and ends with a letter or one of `@` to `~` (ECMA-48, 5.4).
pub(crate) fn without_colours(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| ('@'..='~').contains(&c)).map_or(part.len(), |at| at + 1);
        out.push_str(&part[end..]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_and_other_encodings_are_read() {
        assert_eq!(text_of(b"\x1b[0;32mBM_a\x1b[m 1\x1b[1mx"), "BM_a 1x");
        assert_eq!(text_of(b"cut \x1b["), "cut ");
        let units: Vec<u8> = "Benchmark µ".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(text_of(&[&[0xff, 0xfe], &units[..]].concat()), "Benchmark µ");
        let units: Vec<u8> = "x\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(text_of(&[&[0xfe, 0xff], &units[..], &[7]].concat()), "x\n");
        assert!(matches!(text_of(b"plain"), Cow::Borrowed("plain")));
    }
}
