//! Who a thread works for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who a thread works for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The system under test.
    Sut,
    /// A local program that the SUT, or another of these, has connections to: a backend, a database.
    Downstream,
    /// The load generator.
    Load,
    /// Tare's own threads other than the generator's.
    Tare,
    /// Anybody else.
    Other,
}
