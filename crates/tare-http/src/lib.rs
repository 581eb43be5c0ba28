//! HTTP/1.1 without I/O: parse and write requests and responses, with limits.

pub mod response;
