//! What is tested on real sockets, with either engine.

mod answers;
mod content;
mod endings;
mod no_heap;
mod route;
pub mod support;
mod uploads;
