//! What somebody else's generator reports, beside what the kernel counted on its connections.

use crate::Reading;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the generator reports of all trials, and what its connections received from when they were opened until they were last read. An
/// answer is one segment where each is small and waits for its own request; not so with pipelining, TLS, HTTP/2 or large answers.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct OwnCount {
    /// Answers, as the generator reports them; `null` where it reports none that could be read.
    pub reported_answers: Option<u64>,
    /// Bytes, as it reports them.
    pub reported_bytes: Option<u64>,
    /// Segments with data that its connections received.
    pub segments: Reading<u64>,
    /// Bytes that they received.
    pub bytes: Reading<u64>,
    /// For how long before the windows ended nothing was read any more, seconds in all; `null` where nothing was counted.
    pub unread_s: Option<f64>,
}
