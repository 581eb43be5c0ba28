//! The memory that the kernel reads and writes while nobody waits for it: buffers that it fills, bytes that it sends.

use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::BufRingEntry;

/// Pages of our own, zeroed, at a fixed place.
struct Pages {
    at: NonNull<u8>,
    bytes: usize,
    /// The kernel may still refer to them when they are dropped.
    leaked: bool,
}

impl Pages {
    fn new(bytes: usize) -> io::Result<Pages> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new anonymous mapping touches no memory that exists.
        let at = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let at = NonNull::new(at.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Pages { at, bytes, leaked: false })
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        if !self.leaked {
            // SAFETY: the mapping was made in `new` with this size, and its owner says that nothing refers to it.
            unsafe { libc::munmap(self.at.as_ptr().cast(), self.bytes) };
        }
    }
}

/// Buffers that the kernel takes from a ring, one after the other, to receive into.
pub(super) struct Buffers {
    /// The ring, then the buffers.
    pages: Pages,
    count: u16,
    bytes_each: u32,
    tail: u16,
}

impl Buffers {
    /// `count` buffers (a power of two, up to 2^15) of `bytes_each`, all on the ring.
    pub(super) fn new(count: u16, bytes_each: u32) -> io::Result<Buffers> {
        let whole = usize::from(count) * (size_of::<BufRingEntry>() + bytes_each as usize);
        let mut buffers = Buffers { pages: Pages::new(whole)?, count, bytes_each, tail: 0 };
        for id in 0..count {
            buffers.put(id);
        }
        buffers.publish();
        Ok(buffers)
    }

    pub(super) fn ring_address(&self) -> u64 {
        self.pages.at.as_ptr() as u64
    }

    pub(super) fn count(&self) -> u16 {
        self.count
    }

    pub(super) fn leak(&mut self) {
        self.pages.leaked = true;
    }

    fn entry(&self, slot: u16) -> *mut BufRingEntry {
        let slot = usize::from(slot & (self.count - 1));
        // SAFETY: the pages begin with `count` entries, and the slot is one of them.
        unsafe { self.pages.at.as_ptr().cast::<BufRingEntry>().add(slot) }
    }

    fn address(&self, id: u16) -> *mut u8 {
        let id = usize::from(id & (self.count - 1));
        let entries = usize::from(self.count) * size_of::<BufRingEntry>();
        // SAFETY: behind the entries stand `count` buffers, and the id is the number of one.
        unsafe { self.pages.at.as_ptr().add(entries + id * self.bytes_each as usize) }
    }

    /// Puts a buffer that the kernel does not have back on the ring; it sees it once published.
    #[inline]
    pub(super) fn put(&mut self, id: u16) {
        let (address, bytes) = (self.address(id) as u64, self.bytes_each);
        // SAFETY: a valid entry (all zeroes at first) that the kernel does not read before the tail is past it.
        let entry = unsafe { &mut *self.entry(self.tail) };
        entry.set_addr(address);
        entry.set_len(bytes);
        entry.set_bid(id & (self.count - 1));
        self.tail = self.tail.wrapping_add(1);
    }

    #[inline]
    pub(super) fn publish(&self) {
        // SAFETY: the address of the ring's first entry, in which the ring's tail stands, aligned as a page is.
        let tail = unsafe { AtomicU16::from_ptr(BufRingEntry::tail(self.entry(0)).cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }

    /// What the kernel has put into a buffer that it gave back and that is not on the ring again.
    #[inline]
    pub(super) fn filled(&self, id: u16, bytes: usize) -> &[u8] {
        // SAFETY: initialised memory (zeroed pages) within the buffer; the kernel does not write to a buffer that
        // is not on its ring, and `put` takes `self` exclusively.
        unsafe { std::slice::from_raw_parts(self.address(id), bytes.min(self.bytes_each as usize)) }
    }
}

/// Bytes on their way out, one after the other. All of the place is free again when none is on its way.
pub(super) struct Outgoing {
    pages: Pages,
    used: usize,
    on_the_way: usize,
    parts: Vec<Part>,
}

/// One send.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub(super) token: u64,
    at: usize,
    bytes: usize,
}

impl Outgoing {
    pub(super) fn new(bytes: usize) -> io::Result<Outgoing> {
        Ok(Outgoing { pages: Pages::new(bytes)?, used: 0, on_the_way: 0, parts: Vec::with_capacity(1024) })
    }

    pub(super) fn leak(&mut self) {
        self.pages.leaked = true;
    }

    /// Sends that the kernel is not known to be done with.
    #[inline]
    pub(super) fn on_the_way(&self) -> usize {
        self.on_the_way
    }

    /// Whether so many bytes have room.
    #[inline]
    pub(super) fn has_room(&mut self, bytes: usize) -> bool {
        if self.on_the_way == 0 {
            self.used = 0;
            self.parts.clear();
        }
        bytes <= self.pages.bytes - self.used && self.parts.len() < self.parts.capacity()
    }

    /// Copies `bytes`, which have room: the number of the part, and where the kernel finds it.
    #[inline]
    pub(super) fn put(&mut self, bytes: &[u8], token: u64) -> (usize, *const u8) {
        assert!(bytes.len() <= self.pages.bytes - self.used, "asked for room before");
        // SAFETY: `used + bytes.len()` lies within the pages, and the kernel reads only what lies before `used`.
        let to = unsafe {
            let to = self.pages.at.as_ptr().add(self.used);
            ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
            to
        };
        self.parts.push(Part { token, at: self.used, bytes: bytes.len() });
        self.used += bytes.len();
        self.on_the_way += 1;
        (self.parts.len() - 1, to)
    }

    /// The kernel is done with a part.
    #[inline]
    pub(super) fn arrived(&mut self, number: usize) -> Option<Part> {
        let part = self.parts.get(number).copied()?;
        self.on_the_way -= 1;
        Some(part)
    }

    /// What stands behind the first `sent` bytes of a part.
    pub(super) fn unsent(&self, part: Part, sent: usize) -> &[u8] {
        let sent = sent.min(part.bytes);
        // SAFETY: initialised memory within the pages; `put` takes `self` exclusively, and the kernel only reads.
        unsafe { std::slice::from_raw_parts(self.pages.at.as_ptr().add(part.at + sent), part.bytes - sent) }
    }
}
