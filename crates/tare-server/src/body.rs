//! Bodies that come in pieces are kept until they are whole: where, and how much memory all of them may take.

use std::mem::take;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tare_http::limits::Limits;

use crate::buffers::{KEEP_BYTES_MAX, Pool};

/// Memory for the bodies of all connections of a server.
#[derive(Debug)]
pub(crate) struct BodyMemory {
    left: AtomicUsize,
}

impl BodyMemory {
    /// So many bytes, and at least one body of the size that `limits` allow.
    pub(crate) fn new(bytes: usize, limits: &Limits) -> BodyMemory {
        let one = usize::try_from(limits.body_bytes).unwrap_or(usize::MAX).max(KEEP_BYTES_MAX);
        BodyMemory { left: AtomicUsize::new(bytes.max(one)) }
    }

    fn take(&self, bytes: usize) -> bool {
        let rest = |left: usize| left.checked_sub(bytes);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest).is_ok()
    }

    fn give(&self, bytes: usize) {
        self.left.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// A body on its way in.
#[derive(Debug, Default)]
pub(crate) struct Body {
    bytes: Vec<u8>,
    /// The buffer's whole size is taken from here.
    share: Option<Share>,
}

/// What a body takes of the memory; given back when it is dropped.
#[derive(Debug)]
struct Share {
    of: Arc<BodyMemory>,
    bytes: usize,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.of.give(self.bytes);
    }
}

impl Body {
    /// An empty body; `None` where no memory is left.
    pub(crate) fn begin(pool: &mut Pool, memory: &Arc<BodyMemory>) -> Option<Body> {
        let buffer = pool.take();
        let bytes = buffer.capacity();
        if !memory.take(bytes) {
            pool.give(buffer);
            return None;
        }
        Some(Body { bytes: buffer, share: Some(Share { of: Arc::clone(memory), bytes }) })
    }

    /// Appends what came; false where no memory is left for it. A buffer that grows doubles, up to `most`.
    pub(crate) fn push(&mut self, data: &[u8], most: u64) -> bool {
        let needed = self.bytes.len() + data.len();
        if needed > self.bytes.capacity() {
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            let wanted = self.bytes.capacity().saturating_mul(2).min(most).max(needed);
            let Some(share) = self.share.as_mut().filter(|share| share.of.take(wanted - share.bytes)) else {
                return false;
            };
            share.bytes = wanted;
            self.bytes.reserve_exact(wanted - self.bytes.len());
        }
        self.bytes.extend_from_slice(data);
        true
    }

    /// What came so far.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Gives the buffer and its memory back.
    pub(crate) fn retire(&mut self, pool: &mut Pool) {
        let Body { bytes, .. } = take(self);
        pool.give(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_take_memory_together_and_give_it_back() {
        let limits = Limits { body_bytes: 1_000_000, ..Limits::default() };
        let (memory, mut pool) = (Arc::new(BodyMemory::new(0, &limits)), Pool::default());
        let left = || memory.left.load(Ordering::Relaxed);
        assert_eq!(left(), 1_000_000, "room for one");
        let mut one = Body::begin(&mut pool, &memory).unwrap();
        let mut other = Body::begin(&mut pool, &memory).unwrap();
        for _ in 0..500 {
            assert!(one.push(&[1; 1000], limits.body_bytes));
        }
        assert_eq!(left(), 1_000_000 - one.bytes.capacity() - other.bytes.capacity());
        assert!(!other.push(&[2; 600_000], limits.body_bytes), "there is no room for two");
        one.retire(&mut pool);
        assert!(other.push(&[2; 600_000], limits.body_bytes) && other.bytes().len() == 600_000);
        drop(other);
        assert_eq!(left(), 1_000_000);
    }

    #[test]
    fn a_body_at_the_limit_takes_no_more_than_the_limit() {
        let limits = Limits { body_bytes: 1_000_000, ..Limits::default() };
        let (memory, mut pool) = (Arc::new(BodyMemory::new(0, &limits)), Pool::default());
        let mut body = Body::begin(&mut pool, &memory).unwrap();
        assert!((0..1_000).all(|_| body.push(&[0; 1000], limits.body_bytes)));
        assert!(!body.push(&[0], limits.body_bytes));
    }
}
