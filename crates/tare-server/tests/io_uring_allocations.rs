//! The same with io_uring: a binary of its own, because all allocations of the process are counted.

#[path = "allocations.rs"]
mod allocations;
