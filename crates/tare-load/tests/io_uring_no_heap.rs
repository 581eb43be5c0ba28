//! The same with io_uring: a binary of its own, because all allocations of the process are counted.

#[path = "no_heap.rs"]
mod no_heap;
