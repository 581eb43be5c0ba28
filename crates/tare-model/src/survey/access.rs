use crate::Reading;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What may be observed here.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Access {
    /// Whether root reads it; only of a running system.
    pub root: Reading<bool>,
    /// `kernel.perf_event_paranoid`.
    pub perf_event_paranoid: Reading<i32>,
    /// `kernel.kptr_restrict`.
    pub kptr_restrict: Reading<u32>,
    /// `kernel.yama.ptrace_scope`.
    pub ptrace_scope: Reading<u32>,
    /// Whether the NMI watchdog holds a hardware counter.
    pub nmi_watchdog: Reading<bool>,
    /// Where tracefs is mounted.
    pub tracefs: Reading<String>,
    /// Where debugfs is mounted.
    pub debugfs: Reading<String>,
}
