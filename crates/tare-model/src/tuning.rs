//! The settings of a machine as `tare tune` tells them: how they stand, what would be changed, what tare has applied. Its JSON form is a
//! contract that scripts use: keys may be added, none renamed.

use crate::{Missing, Reading};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What `tare tune --json` prints.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct TuneReport {
    /// Every setting, or those that a plan is about.
    pub settings: Vec<Setting>,
    /// What tare has applied and not put back yet, the newest first; not in a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<Vec<Tuning>>,
}

/// One setting.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Setting {
    /// Its name, as options have it.
    pub name: String,
    /// What it does.
    pub about: String,
    /// What stands there, or why this machine does not have it.
    pub now: Reading<String>,
    /// What would be written, of a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<Step>>,
    /// What is to be known of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<Vec<String>>,
    /// Why it cannot be changed, of a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_here: Option<Missing>,
}

/// A file that would be written.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Step {
    /// Its path.
    pub path: PathBuf,
    /// What stands there; `null`: writing it does something once, and there is nothing to put back.
    pub before: Option<String>,
    /// What shall stand there.
    pub wanted: String,
}

/// Settings that one call of tare has applied.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Tuning {
    /// Who did it.
    pub by: Holder,
    /// Who holds it now.
    pub state: State,
    /// The settings, with what stood there and what tare made of it.
    pub settings: Vec<Changed>,
}

/// Who holds the settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Holder {
    /// Its process.
    pub pid: u32,
    /// How it was called.
    pub command: String,
    /// Since when, seconds since 1970.
    pub since_unix_s: u64,
}

/// Who holds what is applied now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// A process, which puts it back when it ends.
    Held,
    /// Nobody: it stays until it is asked back.
    Standing,
    /// A process that was killed: the next start puts it back.
    Left,
}

/// A setting that was changed.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Changed {
    /// Its setting.
    pub setting: String,
    /// Its file.
    pub path: PathBuf,
    /// What stood there before tare changed it.
    pub before: String,
    /// What tare made of it.
    pub applied: String,
    /// What stands there now.
    pub now: String,
}
