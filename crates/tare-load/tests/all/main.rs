//! The generator on real sockets, against servers whose answers are scripted.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::duplicate_mod, reason = "the same tests run with either engine")]

#[path = "sockets/mod.rs"]
mod epoll;
#[cfg(feature = "http2")]
mod http2;
#[cfg(feature = "http2")]
mod http2_server;
#[path = "sockets/mod.rs"]
mod io_uring;
#[path = "../../../tare-server/tests/all/own_process.rs"]
mod own_process;
mod tls;

use tare_sys::heap::CountingHeap;

#[global_allocator]
static HEAP: CountingHeap = CountingHeap::new();
