//! An allocator that counts: proof, in the tests of hot loops, that a warm loop allocates nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

/// The system's allocator, counting. A test makes it its `#[global_allocator]`.
#[derive(Debug, Default)]
pub struct Counting {
    allocations: AtomicU64,
}

impl Counting {
    /// A counter at zero.
    pub const fn new() -> Counting {
        Counting { allocations: AtomicU64::new(0) }
    }

    /// Allocations so far, by all threads of the process: new blocks and blocks that were grown or shrunk.
    pub fn allocations(&self) -> u64 {
        self.allocations.load(Ordering::SeqCst)
    }
}

// SAFETY: every call is passed on unchanged to the system's allocator, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.allocations.fetch_add(1, Ordering::SeqCst);
        // SAFETY: the caller keeps the contract of `alloc`, which is that of the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block came from the system's allocator with this layout.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        self.allocations.fetch_add(1, Ordering::SeqCst);
        // SAFETY: the block came from the system's allocator with this layout.
        unsafe { System.realloc(block, layout, bytes) }
    }
}
