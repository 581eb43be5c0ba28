//! What a reader must know before quoting a number.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A warning with the next thing to try.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Warning {
    /// Stable id, kebab-case.
    pub id: String,
    /// What is wrong.
    pub text: String,
    /// What to do.
    pub hint: String,
}
