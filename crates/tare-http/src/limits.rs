//! How much of a request a server is willing to take.

/// Most header fields that a request can ever carry; [`Limits::fields`] is cut to this.
pub const FIELDS_MAX: usize = 128;

/// Bounds on one request. Each one has the status that says it was passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest request-target, in bytes (414).
    pub target_bytes: usize,
    /// Longest head, from the first byte of the request line to the empty line, in bytes (431; 414 where not
    /// even the request line ended).
    pub head_bytes: usize,
    /// Most header fields, at most [`FIELDS_MAX`] (431).
    pub fields: usize,
    /// Longest body, decoded, in bytes (413).
    pub body_bytes: u64,
    /// Most bytes of chunk extensions, and of trailer fields, of one body (400, 431).
    pub chunk_overhead_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            target_bytes: 8 * 1024,
            head_bytes: 16 * 1024,
            fields: 100,
            body_bytes: 1024 * 1024,
            chunk_overhead_bytes: 8 * 1024,
        }
    }
}
