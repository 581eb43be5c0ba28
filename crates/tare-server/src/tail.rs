//! The part of an answer that is sent past the output buffer.

use std::fs::File;
use std::sync::Arc;

/// The part of an answer that does not go through the output buffer.
#[derive(Debug, Default)]
pub(crate) enum Tail {
    /// Nothing.
    #[default]
    None,
    /// A part of a file.
    File {
        /// The file.
        file: Arc<File>,
        /// Where the rest begins.
        offset: u64,
        /// Bytes still to send.
        left: u64,
    },
    /// So many bytes of filling.
    Fill {
        /// Bytes still to send.
        left: u64,
    },
}

impl Tail {
    /// Bytes still to send.
    #[inline]
    pub(crate) fn left(&self) -> u64 {
        match self {
            Tail::None => 0,
            Tail::File { left, .. } | Tail::Fill { left } => *left,
        }
    }

    /// So many bytes were sent.
    pub(crate) fn advance(&mut self, bytes: u64) {
        match self {
            Tail::None => {}
            Tail::File { offset, left, .. } => {
                *offset += bytes;
                *left = left.saturating_sub(bytes);
            }
            Tail::Fill { left } => *left = left.saturating_sub(bytes),
        }
        if self.left() == 0 {
            *self = Tail::None;
        }
    }
}
