//! The accounting: of a role, of its threads, of each CPU.

use super::Execution;
use crate::role::Role;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The accounting, pooled over the trials of the asked level.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct TimeAccounting {
    /// The largest of the design's residuals; `None` when nothing could be checked.
    pub residual_ratio: Option<f64>,
    /// Each residual that could be computed, by name (`cpu 0`, `nginx/4711`, `cgroup`).
    pub residuals: BTreeMap<String, f64>,
    /// The kernel's accounting regime.
    pub regime: crate::machine::Regime,
    /// The SUT's threads together; `None` when it cannot be seen.
    pub sut: Option<RoleAccounting>,
    /// The generator's threads together; `None` for commands.
    pub load: Option<RoleAccounting>,
    /// Tare's own threads other than the generator's.
    pub tare: Option<RoleAccounting>,
    /// The threads of these roles: role by role, busiest first.
    pub threads: Vec<ThreadRow>,
    /// Every CPU that the SUT or the generator used.
    pub cpus: Vec<CpuAccounting>,
    /// Sleeps and waits in detail; `None` where the SUT cannot be seen.
    #[serde(default)]
    pub switches: Option<crate::schedule::SwitchAccounting>,
    /// Local programs that the SUT called, and those that they called in turn; callers first.
    #[serde(default)]
    pub downstream: Vec<crate::downstream::DownstreamAccounting>,
}

/// Accounting of one role.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct RoleAccounting {
    /// Threads × window.
    pub wall_s: f64,
    /// On a CPU.
    pub run_s: f64,
    /// Runnable without one, by why.
    pub wait_s: WaitSplit,
    /// Asleep, by reason; keys `event`, `lock`, `disk`,
    /// `downstream`, `timer`, `fault`, `other`, or `unsplit` where no reason is known.
    pub blocked_s: BTreeMap<String, f64>,
    /// Threads beside those that are listed: they were there and did not run, the most in any window.
    #[serde(default)]
    pub idle_threads: u64,
    /// Sleep of its serving threads alone, from which causes are derived.
    #[serde(default)]
    pub serving: ServingAccounting,
    /// Busy CPUs on average (run / window).
    pub busy_cpus: f64,
    /// Wake-ups of one of its threads by another, per second; `None` where they were not counted.
    #[serde(default)]
    pub sut_wakeups_hz: Option<f64>,
    /// CPU entitlement A: CPUs it may use, at most its serving threads.
    pub entitled_cpus: f64,
    /// By cause, CPUs lost out of the CPU entitlement: A = busy + sum of these (http SUT only).
    #[serde(default)]
    pub losses_cpus: BTreeMap<String, f64>,
    /// What it executed; `None` for tare's own threads, for commands and in older results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<Execution>,
}

/// The threads of a role that do the work: those that ran for more than a thousandth of the window. The others (a main
/// thread that waits for its workers) sleep for reasons that hold nothing back.
#[derive(Debug, Clone, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ServingAccounting {
    /// How many.
    pub threads: usize,
    /// Threads × window.
    pub wall_s: f64,
    /// Asleep, by reason; keys as in [`RoleAccounting`].
    pub blocked_s: BTreeMap<String, f64>,
}

/// Waiting by cause, seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct WaitSplit {
    /// Held back by a quota.
    pub throttled: f64,
    /// Somebody else ran (the generator included).
    pub preempted: f64,
    /// Another thread of the same role ran.
    pub self_contention: f64,
    /// The CPU was free: the scheduler's delay.
    pub scheduler: f64,
}

impl TimeAccounting {
    /// The threads of a role, busiest first.
    pub fn threads_of(&self, role: Role) -> Vec<&ThreadRow> {
        self.threads.iter().filter(|thread| thread.role == role).collect()
    }
}

fn whole() -> f64 {
    1.0
}

/// One thread, as pidstat shows it.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ThreadRow {
    /// Who it works for.
    pub role: Role,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Name.
    pub name: String,
    /// Share of the window that it lived, 0..1; many that came and went count as the whole of it. The other shares and rates are of this part.
    #[serde(default = "whole")]
    pub lived: f64,
    /// Share of one CPU in user mode, 0..1.
    pub user: f64,
    /// Share of one CPU in the kernel, 0..1.
    pub system: f64,
    /// Share of its life on a CPU, 0..1.
    pub run: f64,
    /// Share of its life runnable without a CPU.
    pub wait: f64,
    /// Voluntary switches per second.
    pub voluntary_hz: f64,
    /// Involuntary switches per second.
    pub involuntary_hz: f64,
    /// CPUs it was seen on.
    pub cpus: Vec<u32>,
}

/// One CPU over the window; the parts are shares of it and sum to 1 up to its residual and `irq_error`.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct CpuAccounting {
    /// Number.
    pub cpu: u32,
    /// The SUT ran.
    pub sut: f64,
    /// Programs that the SUT calls ran.
    #[serde(default)]
    pub downstream: f64,
    /// The generator ran.
    pub load: f64,
    /// Tare's observers ran.
    pub tare: f64,
    /// Anybody else ran.
    pub others: f64,
    /// Held back by a quota though the SUT was ready.
    pub throttled: f64,
    /// Stolen by the hypervisor.
    pub steal: f64,
    /// Interrupts and idle-loop work that are in nobody's run.
    pub irq: f64,
    /// How well `irq` is predicted, either way (two standard deviations), where it could not be measured: what an idle period costs differs
    /// between samples. Where it was measured: what may be lacking of `irq` and `idle`, since the kernel hid when a task gave the CPU away.
    /// A difference of the accounting within it, up to 0.03, is no residual. `None` where it was measured without that, where too few
    /// samples tell, or interrupts are accounted apart.
    #[serde(default)]
    pub irq_error: Option<f64>,
    /// Idle, throttled time excluded.
    pub idle: f64,
    /// Busy time by mode, from tick samples.
    pub share: ModeShare,
}

/// Busy time by mode, shares of the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ModeShare {
    /// User.
    pub user: f64,
    /// Kernel, soft interrupts excluded.
    pub system: f64,
    /// Soft interrupts.
    pub softirq: f64,
}
