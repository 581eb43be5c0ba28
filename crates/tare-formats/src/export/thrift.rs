//! Structures in Thrift's compact protocol, as Parquet's headers have them.
//! <https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>

const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;
/// Longer lists have their length apart.
const SHORT_LIST_MAX: usize = 14;

/// A structure that is written field by field, with rising numbers.
#[derive(Debug, Default)]
pub(super) struct Struct {
    bytes: Vec<u8>,
    last: u8,
}

impl Struct {
    /// A 32-bit integer, or an enumeration.
    pub fn i32(mut self, field: u8, value: i32) -> Struct {
        self.head(field, I32);
        varint(&mut self.bytes, zigzag(value.into()));
        self
    }

    /// A 64-bit integer.
    pub fn i64(mut self, field: u8, value: i64) -> Struct {
        self.head(field, I64);
        varint(&mut self.bytes, zigzag(value));
        self
    }

    /// A text.
    pub fn text(mut self, field: u8, text: &str) -> Struct {
        self.head(field, BINARY);
        binary(&mut self.bytes, text.as_bytes());
        self
    }

    /// A structure within.
    pub fn inner(mut self, field: u8, inner: Struct) -> Struct {
        self.head(field, STRUCT);
        self.bytes.extend(inner.end());
        self
    }

    /// A list of structures.
    pub fn structs(mut self, field: u8, all: Vec<Struct>) -> Struct {
        self.list(field, STRUCT, all.len());
        all.into_iter().for_each(|one| self.bytes.extend(one.end()));
        self
    }

    /// A list of enumerations.
    pub fn i32s(mut self, field: u8, all: &[i32]) -> Struct {
        self.list(field, I32, all.len());
        all.iter().for_each(|value| varint(&mut self.bytes, zigzag((*value).into())));
        self
    }

    /// A list of texts.
    pub fn texts(mut self, field: u8, all: &[&str]) -> Struct {
        self.list(field, BINARY, all.len());
        all.iter().for_each(|text| binary(&mut self.bytes, text.as_bytes()));
        self
    }

    /// All of it.
    pub fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }

    /// Numbers are less than 16 apart here.
    fn head(&mut self, field: u8, kind: u8) {
        self.bytes.push((field.saturating_sub(self.last) << 4) | kind);
        self.last = field;
    }

    fn list(&mut self, field: u8, kind: u8, length: usize) {
        self.head(field, LIST);
        if length <= SHORT_LIST_MAX {
            self.bytes.push(((length as u8) << 4) | kind);
        } else {
            self.bytes.push(0xf0 | kind);
            varint(&mut self.bytes, length as u64);
        }
    }
}

fn binary(bytes: &mut Vec<u8>, content: &[u8]) {
    varint(bytes, content.len() as u64);
    bytes.extend(content);
}

/// Small numbers of either sign take few bytes.
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Seven bits a byte, the lowest first.
pub(super) fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_as_the_protocol_has_them() {
        let inner = Struct::default().i64(1, 300);
        let all = Struct::default().i32(1, -1).text(2, "ab").inner(5, inner).i32s(6, &[0, 3]);
        let expected = [0x15, 1, 0x18, 2, b'a', b'b', 0x3c, 0x16, 0xd8, 4, 0, 0x19, 0x25, 0, 6, 0];
        assert_eq!(all.end(), expected);
        let long = Struct::default().texts(3, &["x"; 15]).end();
        assert_eq!(long[..4], [0x39, 0xf8, 15, 1]);
    }
}
