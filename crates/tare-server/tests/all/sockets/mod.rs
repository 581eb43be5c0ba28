//! What is tested on real sockets, with either backend.

mod allocations;
mod attacks;
pub mod common;
mod descriptors;
mod files;
mod server;
