//! The buffer pool of a thread: connections hold a buffer only while a request or an answer is cut in two.

/// Size of a fresh buffer.
const NEW_BYTES: usize = 4 * 1024;
/// A buffer that has grown beyond this is freed, not kept.
pub(crate) const KEEP_BYTES_MAX: usize = 256 * 1024;
/// Free buffers kept at most, and their bytes.
const FREE_MAX: usize = 1024;
const FREE_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Buffers that were used before, ready to be used again.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    free: Vec<Vec<u8>>,
    free_bytes: usize,
}

impl Pool {
    /// An empty buffer.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        match self.free.pop() {
            Some(buffer) => {
                self.free_bytes -= buffer.capacity();
                buffer
            }
            None => Vec::with_capacity(NEW_BYTES),
        }
    }

    /// A buffer with a copy of `bytes`.
    pub(crate) fn copy_of(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut buffer = self.take();
        buffer.extend_from_slice(bytes);
        buffer
    }

    /// Takes a buffer back. One that was never allocated is no loss.
    pub(crate) fn give(&mut self, mut buffer: Vec<u8>) {
        let bytes = buffer.capacity();
        let has_room = self.free.len() < FREE_MAX && self.free_bytes + bytes <= FREE_BYTES_MAX;
        if (1..=KEEP_BYTES_MAX).contains(&bytes) && has_room {
            buffer.clear();
            self.free_bytes += bytes;
            self.free.push(buffer);
        }
    }
}
