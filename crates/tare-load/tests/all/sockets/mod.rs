//! What is tested on real sockets, with either engine.

mod answers;
mod content;
mod no_heap;
pub mod support;
