//! HTTP/1.1 without I/O: parse and write requests and responses, with limits.
//!
//! Everything works on byte slices of the caller and allocates nothing on the way of a good request. The server
//! side reads requests ([`request`], [`chunked`]) and writes answers
//! ([`write`]), the client side reads answers ([`response`]); rules are cited by section of
//! RFC 9110 (semantics) and RFC 9112 (HTTP/1.1).

pub mod chunked;
pub mod date;
pub mod framing;
pub mod limits;
pub mod memo;
pub mod method;
pub mod refusal;
pub mod request;
pub mod response;
pub mod status;
pub mod target;
pub mod write;
