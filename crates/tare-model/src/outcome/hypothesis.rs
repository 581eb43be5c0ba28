//! Explanations that compete where a server has CPUs of its own and yet is slower than they are, and how each stands
//! against the numbers.

use crate::Reading;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What may hold back a server that shares nothing but the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hypothesis {
    /// Its threads contend for the locks of sockets.
    SocketLock,
    /// Packets are handled on CPUs that are busy with the program already.
    SoftirqOnBusyCpus,
    /// Server and generator wake each other across CPUs.
    CrossCpuWakeups,
}

/// How an explanation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// The figure is as large as it would have to be.
    Supported,
    /// The figure is far too small.
    Refuted,
    /// There is no figure, or it is between the two.
    NotVisibleHere,
}

/// An explanation, and the figure that it stands or falls with.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Judged {
    /// Which.
    pub hypothesis: Hypothesis,
    /// How it stands.
    pub standing: Standing,
    /// What the figure is of.
    pub of: String,
    /// `share`, or `count` for each request.
    pub unit: String,
    /// What was found, or why nothing could be.
    pub figure: Reading<f64>,
    /// From here on it is supported.
    pub supported_from: f64,
    /// Below this it is refuted.
    pub refuted_below: f64,
}
