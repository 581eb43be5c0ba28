//! What holds throughput where it is, or takes from it: by name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What holds throughput where it is, or what was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)] // the names are the design's; each rule documents its cause
pub enum Cause {
    LoadGeneratorBound,
    OfferedLoad,
    ServerCpuBound,
    OneThreadBound,
    /// The program lets no more of its threads run at once, and there are more CPUs.
    ParallelismLimited,
    /// Every worker sleeps in a call, a timer or on a disk while requests wait for one.
    WorkersExhausted,
    CpuQuotaThrottled,
    CpuContended,
    Oversubscribed,
    PlacementConflict,
    Steal,
    ClockDropped,
    ColdCaches,
    SoftirqSaturated,
    CrossCpuWakeups,
    ListenOverflow,
    MemoryPressure,
    BlockedOnDisk,
    BlockedOnDownstream,
    GcPauses,
    LockContended,
    KernelLockContended,
    TooLittleConcurrency,
    NetworkCeiling,
    /// On the way so many packets or bytes a second come through, and no more.
    NetworkQuota,
    DelayedAck,
    PortsExhausted,
    OpenFilesExhausted,
    NotSteady,
    Errors,
    TooNoisy,
    /// A command that was on a CPU the whole time: the program itself.
    ProgramCpuBound,
    /// A command that mostly slept: the program's own waits.
    ProgramIdle,
    Unknown,
}

impl Cause {
    /// Its id, as it stands in data.
    pub fn id(self) -> String {
        // Kebab-case of the variant's name, as it is serialised.
        let mut id = String::new();
        for letter in format!("{self:?}").chars() {
            if letter.is_ascii_uppercase() && !id.is_empty() {
                id.push('-');
            }
            id.push(letter.to_ascii_lowercase());
        }
        id
    }
}
