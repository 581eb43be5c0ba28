//! A heap that counts, for tests that hold hot loops to "nothing allocated after warm-up".

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

/// The system's allocator with a count of what it was asked for, all threads together.
///
/// A test binary makes it its own: `#[global_allocator] static HEAP: CountingHeap = CountingHeap::new();`
#[derive(Debug, Default)]
pub struct CountingHeap {
    allocations: AtomicU64,
}

impl CountingHeap {
    /// A heap that has counted nothing.
    pub const fn new() -> Self {
        CountingHeap { allocations: AtomicU64::new(0) }
    }

    /// Allocations and growths so far.
    pub fn allocations(&self) -> u64 {
        self.allocations.load(Ordering::Relaxed)
    }
}

// SAFETY: every call is passed on unchanged to the system's allocator, which keeps the trait's promises;
// counting does not allocate.
unsafe impl GlobalAlloc for CountingHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.allocations.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the promises of `GlobalAlloc::alloc`, which are the same here.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above; the pointer came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.allocations.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        self.allocations.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as above; the pointer came from `System`.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}
