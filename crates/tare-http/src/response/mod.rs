//! Reading answers as a client: heads, framing and limits, without I/O and without keeping bodies.
//!
//! [`Heads`] parses heads and remembers the last good one: an answer that begins with exactly the same bytes
//! has exactly the same meaning, so comparing them *is* parsing them. Anything else, a `Date` that moved on
//! included, takes the full parser. [`AnswerReader`] follows one connection through heads, bodies and chunks
//! in pieces of any size; bodies are counted and dropped, so memory does not grow with what a server sends.

mod head;
mod reader;
#[cfg(test)]
mod tests;

pub use head::{
    Answer, Framing, HEAD_BYTES_MAX, HEADERS_MAX, Head, Heads, Malformed, Repeated, header, is_redirect,
};
pub use reader::{AnswerReader, End, Listener, Step};
