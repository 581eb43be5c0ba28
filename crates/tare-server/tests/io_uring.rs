//! All that is tested on real sockets, once more with io_uring.

// Each file brings the helpers with it.
#![allow(clippy::duplicate_mod)]

#[path = "attacks.rs"]
mod attacks;
#[path = "descriptors.rs"]
mod descriptors;
#[path = "files.rs"]
mod files;
#[path = "server.rs"]
mod server;
