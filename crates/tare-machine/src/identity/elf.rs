//! What linkers note in an ELF file (gABI, "Note Section"): the build id (`NT_GNU_BUILD_ID` of binutils), and Go's own.

const MAGIC: &[u8] = b"\x7fELF";
const CLASS_64: u8 = 2;
const LITTLE_ENDIAN: u8 = 1;
const SEGMENT_NOTE: u32 = 4;
const NOTE_BUILD_ID: u32 = 3;
/// `ELF_NOTE_GOBUILDID_TAG` of Go's linker.
const NOTE_GO_BUILD_ID: u32 = 4;
/// Segments that are looked through, at most.
const SEGMENTS_MAX: u16 = 64;
/// No linker writes a longer one.
const ID_BYTES_MAX: usize = 64;

/// The build id out of the beginning of a 64-bit little-endian ELF file; `None` for any other, and where the notes
/// lie farther in.
pub(super) fn build_id(file: &[u8]) -> Option<&[u8]> {
    note(file, b"GNU\0", NOTE_BUILD_ID).filter(|id| !id.is_empty() && id.len() <= ID_BYTES_MAX)
}

/// Whether Go's linker made it; stripping leaves the note.
pub(super) fn is_go(file: &[u8]) -> bool {
    note(file, b"Go\0\0", NOTE_GO_BUILD_ID).is_some()
}

fn note<'f>(file: &'f [u8], owner: &[u8; 4], kind: u32) -> Option<&'f [u8]> {
    if !file.starts_with(MAGIC) || file.get(4..6)? != [CLASS_64, LITTLE_ENDIAN] {
        return None;
    }
    let table = usize::try_from(u64_at(file, 32)?).ok()?;
    let (entry, count) = (u16_at(file, 54)?, u16_at(file, 56)?);
    (0..count.min(SEGMENTS_MAX)).find_map(|index| {
        let segment = file.get(table.checked_add(usize::from(index) * usize::from(entry))?..)?;
        if u32_at(segment, 0)? != SEGMENT_NOTE {
            return None;
        }
        let begin = usize::try_from(u64_at(segment, 8)?).ok()?;
        let length = usize::try_from(u64_at(segment, 32)?).ok()?;
        in_notes(file.get(begin..begin.checked_add(length)?)?, owner, kind)
    })
}

fn in_notes<'f>(mut notes: &'f [u8], owner: &[u8; 4], wanted: u32) -> Option<&'f [u8]> {
    loop {
        let name_bytes = usize::try_from(u32_at(notes, 0)?).ok()?;
        let bytes = usize::try_from(u32_at(notes, 4)?).ok()?;
        let kind = u32_at(notes, 8)?;
        let content = 12usize.checked_add(name_bytes.checked_next_multiple_of(4)?)?;
        let end = content.checked_add(bytes)?;
        if kind == wanted && notes.get(12..16)? == owner {
            return notes.get(content..end);
        }
        notes = notes.get(end.checked_next_multiple_of(4)?..)?;
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A file of one note segment.
    fn file(notes: &[u8]) -> Vec<u8> {
        let mut file = vec![0; 120];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[32] = 64;
        (file[54], file[56]) = (56, 1);
        file[64] = 4;
        (file[64 + 8], file[64 + 32]) = (120, notes.len() as u8);
        file.extend(notes);
        file
    }

    const NOTES: &[u8] =
        b"\x04\0\0\0\x02\0\0\0\x01\0\0\0GNU\0xx\0\0\x04\0\0\0\x03\0\0\0\x03\0\0\0GNU\0\xab\xcd\xef";

    #[test]
    fn the_note_is_found_behind_others() {
        assert_eq!(build_id(&file(NOTES)), Some(&b"\xab\xcd\xef"[..]));
        assert_eq!(build_id(&file(&NOTES[..18])), None);
        assert_eq!(build_id(b"#!/bin/sh\n"), None);
        assert!(!is_go(&file(NOTES)) && is_go(&file(b"\x04\0\0\0\x02\0\0\0\x04\0\0\0Go\0\0xx\0\0")));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            noise in proptest::collection::vec((0usize..200, any::<u8>()), 0..8),
            cut in 0usize..200,
        ) {
            let mut bytes = file(NOTES);
            let length = bytes.len();
            noise.into_iter().for_each(|(at, byte)| bytes[at % length] = byte);
            build_id(&bytes);
            build_id(&bytes[..cut.min(length)]);
            is_go(&bytes);
        }
    }
}
