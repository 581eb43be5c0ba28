//! Where a member of a struct of the kernel lies: the kernel's own type information (`Documentation/bpf/btf.rst`).

use std::collections::BTreeMap;

const MAGIC: u16 = 0xeb9f;
const HEADER_BYTES: usize = 24;
/// A type's name, its kind with its count, and its size.
const TYPE_BYTES: usize = 12;
/// A member's name, its type and its place.
const MEMBER_BYTES: usize = 12;
const INT: u32 = 1;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
const TYPEDEF: u32 = 8;
const FUNC_PROTO: u32 = 13;
const VAR: u32 = 14;
const DATASEC: u32 = 15;
const DECL_TAG: u32 = 17;
const ENUM64: u32 = 19;

/// Types by name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Types {
    /// Bytes from the start of a struct to a member.
    members: BTreeMap<(String, String), u32>,
    /// The numbers of typedefs.
    typedefs: BTreeMap<String, u32>,
}

impl Types {
    /// Reads the `wanted` structs and typedefs; as far as the bytes go and make sense.
    pub(super) fn read(bytes: &[u8], wanted: &[&str]) -> Types {
        let mut types = Types::default();
        let _ = types.read_all(bytes, wanted);
        types
    }

    /// Where a member is, bytes from the start of its struct.
    pub(super) fn member(&self, of: &str, name: &str) -> Option<u32> {
        self.members.get(&(of.to_owned(), name.to_owned())).copied()
    }

    pub(super) fn typedef(&self, name: &str) -> Option<u32> {
        self.typedefs.get(name).copied()
    }

    fn read_all(&mut self, bytes: &[u8], wanted: &[&str]) -> Option<()> {
        let header = bytes.get(..HEADER_BYTES)?;
        if u16::from_le_bytes([header[0], header[1]]) != MAGIC {
            return None;
        }
        let word = |at: usize| number(header, at).and_then(|word| usize::try_from(word).ok());
        let body = bytes.get(word(4)?..)?;
        let types = body.get(word(8)?..)?.get(..word(12)?)?;
        let names = body.get(word(16)?..)?.get(..word(20)?)?;
        // Number 0 is `void`, which is not listed.
        let (mut at, mut id) = (0, 1u32);
        while at < types.len() {
            let (name, info) = (number(types, at)?, number(types, at + 4)?);
            let (kind, count) = ((info >> 24) & 0x1f, (info & 0xffff) as usize);
            let name = text(names, name)?;
            at += TYPE_BYTES;
            let behind = bytes_behind(kind, count);
            let of_type = types.get(at..at.checked_add(behind)?)?;
            if wanted.contains(&name) {
                match kind {
                    STRUCT => self.put_members(name, of_type, info >> 31 == 1, names)?,
                    TYPEDEF => {
                        self.typedefs.entry(name.to_owned()).or_insert(id);
                    }
                    _ => {}
                }
            }
            at += behind;
            id = id.checked_add(1)?;
        }
        Some(())
    }

    fn put_members(&mut self, of: &str, members: &[u8], has_sizes: bool, names: &[u8]) -> Option<()> {
        for member in members.chunks_exact(MEMBER_BYTES) {
            let (name, place) = (text(names, number(member, 0)?)?, number(member, 8)?);
            // Where a struct has bit fields, a member's size in bits is in its upper byte.
            let bits = if has_sizes { place & 0x00ff_ffff } else { place };
            if bits.is_multiple_of(8) {
                self.members.entry((of.to_owned(), name.to_owned())).or_insert(bits / 8);
            }
        }
        Some(())
    }
}

/// What follows a type of this kind.
fn bytes_behind(kind: u32, count: usize) -> usize {
    match kind {
        INT | VAR | DECL_TAG => 4,
        ARRAY => 12,
        STRUCT | UNION => count * MEMBER_BYTES,
        ENUM | FUNC_PROTO => count * 8,
        DATASEC | ENUM64 => count * 12,
        _ => 0,
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn text(names: &[u8], at: u32) -> Option<&str> {
    let from = names.get(usize::try_from(at).ok()?..)?;
    std::str::from_utf8(&from[..from.iter().position(|byte| *byte == 0)?]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `int`, `struct s { int a; int b; }`, `enum { x }` and `typedef struct s t`.
    fn example() -> Vec<u8> {
        let names = b"\0int\0s\0a\0b\0t\0";
        let types: Vec<u32> = [
            &[1, INT << 24, 4, 32][..],
            &[5, STRUCT << 24 | 2, 8, 7, 1, 0, 9, 1, 32],
            &[0, ENUM << 24 | 1, 4, 7, 0],
            &[11, TYPEDEF << 24, 2],
        ]
        .concat();
        let header =
            [HEADER_BYTES as u32, 0, 4 * types.len() as u32, 4 * types.len() as u32, names.len() as u32];
        let words = header.iter().chain(&types).flat_map(|word| word.to_le_bytes());
        [0x9f, 0xeb, 1, 0].into_iter().chain(words).chain(names.iter().copied()).collect()
    }

    #[test]
    fn members_and_typedefs_are_found() {
        let types = Types::read(&example(), &["s", "t"]);
        assert_eq!(types.member("s", "a"), Some(0));
        assert_eq!(types.member("s", "b"), Some(4));
        assert_eq!(types.member("s", "c"), None);
        assert_eq!(types.typedef("t"), Some(4));
        assert_eq!(Types::read(&example(), &[]), Types::default());
    }

    #[test]
    fn bit_fields_are_no_members_that_can_be_read() {
        let mut bytes = example();
        let members = HEADER_BYTES + 16 + TYPE_BYTES;
        // The second is three bits long and begins at the 33rd.
        bytes[members - 5] |= 0x80;
        bytes[members + MEMBER_BYTES + 8..][..4].copy_from_slice(&(3u32 << 24 | 33).to_le_bytes());
        let types = Types::read(&bytes, &["s"]);
        assert_eq!((types.member("s", "a"), types.member("s", "b")), (Some(0), None));
    }

    proptest! {
        #[test]
        fn bytes_cut_anywhere_or_changed_are_read_as_far_as_they_go(cut in 0usize..150, at in 0usize..150, byte: u8) {
            let mut bytes = example();
            if let Some(one) = bytes.get_mut(at) {
                *one = byte;
            }
            bytes.truncate(cut);
            Types::read(&bytes, &["s", "t"]);
        }
    }
}
