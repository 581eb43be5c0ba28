//! All that is tested on real sockets, once more with io_uring.

// Each file brings the helpers with it.
#![allow(clippy::duplicate_mod)]

#[path = "answers.rs"]
mod answers;
#[path = "content.rs"]
mod content;
