//! Backends: how a loop watches its sockets and moves their bytes. Each is a file here; what a connection is
//! about is decided in [`crate::event_loop`], the same for all of them.

mod chosen;
mod driver;
pub(crate) mod epoll;
pub(crate) mod io_uring;

pub use chosen::Chosen;
pub(crate) use driver::{Backend, Happening};
