//! The first hundred bytes of a file: whether it is ours, before SQLite is let near it.
//!
//! Offsets are those of <https://www.sqlite.org/fileformat.html#the_database_header>.

use crate::error::{READ, StoreError};
use crate::layout::{APPLICATION_ID, LAYOUT_OLD_WORDS, LAYOUT_VERSION};
use std::fs::File;
use std::io::Read;
use std::path::Path;

const MAGIC: &[u8; 16] = b"SQLite format 3\0";
const LENGTH: usize = 100;

/// What a database header says.
pub(super) struct Header([u8; LENGTH]);

impl Header {
    /// Reads the header of a regular file that tare wrote.
    ///
    /// # Errors
    /// Absent, not a regular file, unreadable, not ours, or of a later layout.
    pub(super) fn read(path: &Path) -> Result<Header, StoreError> {
        let io = |error: std::io::Error| StoreError::io(path, READ, &error);
        if !std::fs::metadata(path).map_err(io)?.is_file() {
            return Err(StoreError::NotAFile { path: path.into() });
        }
        let mut bytes = Vec::with_capacity(LENGTH);
        File::open(path).map_err(io)?.take(LENGTH as u64).read_to_end(&mut bytes).map_err(io)?;
        let not_ours = |what| StoreError::NotARecord { path: path.into(), what };
        if bytes.is_empty() {
            return Err(not_ours("it is empty"));
        }
        if !bytes.starts_with(&MAGIC[..bytes.len().min(MAGIC.len())]) {
            return Err(not_ours("its first bytes are not those of one"));
        }
        let header = Header(bytes.try_into().map_err(|_| not_ours("it ends within its first 100 bytes"))?);
        if header.word(68).cast_signed() != APPLICATION_ID {
            return Err(not_ours("it is another program's SQLite database"));
        }
        let found = header.word(60).cast_signed();
        if found > LAYOUT_VERSION {
            return Err(StoreError::Newer { path: path.into(), found, known: LAYOUT_VERSION });
        }
        if found < 1 || header.0[18..20] != [1, 1] {
            // A write-ahead log is never ours: it would make readers write beside the file.
            return Err(StoreError::damaged(path, "its header is not one that tare writes"));
        }
        Ok(header)
    }

    /// Whether the rows have the words of 0.1.0.
    pub(super) fn has_old_words(&self) -> bool {
        self.word(60).cast_signed() <= LAYOUT_OLD_WORDS
    }

    /// The length that the header promises, bytes.
    pub(super) fn promised_bytes(&self) -> u64 {
        let page = match u16::from_be_bytes([self.0[16], self.0[17]]) {
            1 => 65_536,
            bytes => u64::from(bytes),
        };
        page * u64::from(self.word(28))
    }

    fn word(&self, at: usize) -> u32 {
        let mut word = [0; 4];
        word.copy_from_slice(&self.0[at..at + 4]);
        u32::from_be_bytes(word)
    }
}
