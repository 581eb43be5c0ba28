//! The server on real sockets, and its state machine without.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::duplicate_mod, reason = "the same tests run with either backend")]

#[path = "../../../tare-http/tests/all/breaking.rs"]
mod breaking;
mod conformance;
#[path = "sockets/mod.rs"]
mod epoll;
mod fuzz;
#[path = "sockets/mod.rs"]
mod io_uring;
mod own_process;
mod own_tables;
#[cfg(feature = "tls")]
mod tls;

use tare_sys::heap::CountingHeap;

#[global_allocator]
static HEAP: CountingHeap = CountingHeap::new();
