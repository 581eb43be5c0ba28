//! What is known about a cause beside any run: its page.

use crate::outcome::Cause;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The page of a cause, as `tare explain CAUSE --json` prints it. Commands and ids of other causes stand between backticks.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct CausePage {
    /// Its id.
    pub cause: Cause,
    /// In a sentence, as reports begin with it.
    pub title: String,
    /// What it means, in one line.
    pub brief: String,
    /// What it means.
    pub what_it_means: Vec<String>,
    /// What it is known by.
    pub evidence: Vec<String>,
    /// What looks the same but is not, and how to tell it apart.
    pub looks_the_same_but_is_not: Vec<String>,
    /// What to do.
    pub what_to_do: Vec<String>,
    /// How to confirm or refute it.
    pub how_to_confirm: Vec<String>,
    /// Where the data and the reasoning come from.
    pub source: Vec<String>,
    /// The intervention that `tare run --confirm` tries; `None` where it has none.
    pub intervention: Option<String>,
    /// The injections of `tare calibrate` that cause it, or that leave it in place.
    pub injections: Vec<String>,
}
