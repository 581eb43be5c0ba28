//! What the machine is, as far as it bears on a measurement.

use crate::Reading;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Facts read once at the start of a session.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct MachineFacts {
    /// `uname -r`.
    pub kernel: String,
    /// The processor's own name.
    pub cpu_model: Reading<String>,
    /// Every online CPU, ascending.
    pub cpus: Vec<CpuFacts>,
    /// Bytes of memory.
    pub memory_bytes: Reading<u64>,
    /// Ticks per second of the scheduler (`CONFIG_HZ`).
    pub tick_hz: Reading<u32>,
    /// The scheduler's base slice in nanoseconds (debugfs `sched/base_slice_ns`).
    pub base_slice_ns: Reading<u64>,
    /// What the kernel counts where: without it no cost can be compared with another machine's.
    pub regime: Regime,
    /// `bare-metal`, `kvm`, `firecracker`, `wsl2`, `hyper-v`, `container` …
    pub virtualization: Reading<String>,
    /// The kernel's current clocksource.
    pub clocksource: Reading<String>,
    /// The cpufreq governor of the first CPU.
    pub governor: Reading<String>,
    /// Whether hardware counters can be read.
    pub pmu: Reading<bool>,
    /// Identity of this boot: pids mean nothing across it.
    pub boot_id: Reading<String>,
}

/// One CPU and its place in the machine.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct CpuFacts {
    /// The kernel's number.
    pub cpu: u32,
    /// Physical package (socket).
    pub package: Reading<u32>,
    /// Physical core: equal for SMT siblings, unique in the machine together with `package`.
    pub core: Reading<u32>,
    /// NUMA node.
    pub node: Reading<u32>,
    /// All CPUs on the same physical core, this one included.
    pub siblings: Reading<Vec<u32>>,
}

/// Which time the kernel puts into a task's run, and which it keeps apart.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Regime {
    /// `CONFIG_IRQ_TIME_ACCOUNTING`: hard and soft interrupts are taken out of run.
    pub irq_time_accounting: Reading<bool>,
    /// `CONFIG_PARAVIRT_TIME_ACCOUNTING` with a steal clock: stolen time is taken out of run.
    pub paravirt_time_accounting: Reading<bool>,
    /// `tick` (user and system shares are sampled) or `full` (measured at each switch).
    pub cpu_accounting: Reading<String>,
    /// `v1`, `v2` or `hybrid`: which cgroup tree carries the `cpu` controller.
    pub cgroup: Reading<String>,
}
