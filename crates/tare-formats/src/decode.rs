//! Text as it was meant: from whatever a terminal or another system made of it.

use crate::refused::Refused;
use flate2::read::MultiGzDecoder;
use std::borrow::Cow;
use std::io::Read;

/// What a file begins with that gzip packed.
const GZIP: [u8; 3] = [0x1f, 0x8b, 8];
/// Most bytes of a packed file that are unpacked.
const UNPACKED_MAX: u64 = 512 << 20;

/// The bytes of a file, unpacked where gzip packed them.
///
/// # Errors
/// It is cut off, damaged, or too large.
pub fn unpacked(bytes: Vec<u8>) -> Result<Vec<u8>, Refused> {
    unpacked_to(bytes, UNPACKED_MAX)
}

fn unpacked_to(bytes: Vec<u8>, most: u64) -> Result<Vec<u8>, Refused> {
    if !bytes.starts_with(&GZIP) {
        return Ok(bytes);
    }
    let mut out = Vec::new();
    let read = MultiGzDecoder::new(&bytes[..]).take(most + 1).read_to_end(&mut out);
    match read {
        _ if out.len() as u64 > most => Err(Refused::TooLarge { mib_max: most >> 20 }),
        Ok(_) => Ok(out),
        Err(_) => Err(Refused::Damaged),
    }
}

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
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    fn packed(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn what_gzip_packed_is_unpacked() {
        let text = "BenchmarkX-2 100 12.5 ns/op\n";
        assert_eq!(unpacked(packed(text)), Ok(text.as_bytes().to_vec()));
        assert_eq!(unpacked([packed(text), packed("more")].concat()), Ok(format!("{text}more").into_bytes()));
        for plain in [text.as_bytes(), b"", b"\x1f\x8b"] {
            assert_eq!(unpacked(plain.to_vec()), Ok(plain.to_vec()));
        }
    }

    #[test]
    fn what_is_damaged_or_too_large_is_refused() {
        let bytes = packed(&"x".repeat(1000));
        assert_eq!(unpacked(bytes[..bytes.len() - 4].to_vec()), Err(Refused::Damaged));
        assert_eq!(unpacked([&bytes[..], b"rest"].concat()), Err(Refused::Damaged));
        assert_eq!(unpacked_to(bytes.clone(), 1000).map(|out| out.len()), Ok(1000));
        assert_eq!(unpacked_to(bytes, 999), Err(Refused::TooLarge { mib_max: 0 }));
    }

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
