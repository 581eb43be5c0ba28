//! What linkers note in an ELF file: the build id of GNU's, and Go's own.

use object::elf::{
    ELF_NOTE_GNU, ELF_NOTE_GO, FileHeader32, FileHeader64, NT_GNU_BUILD_ID, NT_GO_BUILD_ID, NoteType,
};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, FileKind};

/// Segments that are looked through, at most.
const SEGMENTS_MAX: usize = 64;
/// No linker writes a longer one.
const ID_BYTES_MAX: usize = 64;

/// The build id out of the beginning of an ELF file; `None` for any other, and where the notes lie farther in.
pub(super) fn build_id(file: &[u8]) -> Option<&[u8]> {
    note(file, ELF_NOTE_GNU, NT_GNU_BUILD_ID).filter(|id| !id.is_empty() && id.len() <= ID_BYTES_MAX)
}

/// Whether Go's linker made it; stripping leaves the note.
pub(super) fn is_go(file: &[u8]) -> bool {
    note(file, ELF_NOTE_GO, NT_GO_BUILD_ID).is_some()
}

fn note<'f>(file: &'f [u8], owner: &[u8], kind: NoteType) -> Option<&'f [u8]> {
    match FileKind::parse(file).ok()? {
        FileKind::Elf32 => note_of::<FileHeader32<Endianness>>(file, owner, kind),
        FileKind::Elf64 => note_of::<FileHeader64<Endianness>>(file, owner, kind),
        _ => None,
    }
}

fn note_of<'f, Header: FileHeader>(file: &'f [u8], owner: &[u8], kind: NoteType) -> Option<&'f [u8]> {
    let header = Header::parse(file).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, file).ok()?;
    segments.iter().take(SEGMENTS_MAX).find_map(|segment| {
        let mut notes = segment.notes(endian, file).ok()??;
        while let Ok(Some(note)) = notes.next() {
            if note.name() == owner && note.n_type(endian) == kind {
                return Some(note.desc());
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A file of one note segment.
    fn file(notes: &[u8]) -> Vec<u8> {
        let mut file = vec![0; 120];
        file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
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
