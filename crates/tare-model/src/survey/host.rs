use crate::Reading;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What stands between this kernel and the hardware. The kind of virtual machine stands in the machine's facts.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Host {
    /// Whether this is a container: `docker`, `podman`, `lxc`, `kubernetes`, `container`; not applicable outside of one.
    pub container: Reading<String>,
    /// Share of CPU time since boot that the hypervisor gave to somebody else.
    pub steal_share: Reading<f64>,
    /// Time since boot, nanoseconds.
    pub uptime_ns: Reading<u64>,
    /// What Windows tells of its side, under WSL2 with interop.
    pub windows: Reading<WindowsHost>,
}

/// A Windows host, asked through `powershell.exe`.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct WindowsHost {
    /// Name of the active power plan.
    pub power_plan: Reading<String>,
    /// The clock that Windows states now, hertz.
    pub clock_hz: Reading<u64>,
    /// The processor's rated clock, hertz.
    pub rated_hz: Reading<u64>,
    /// Degrees Celsius of the hottest zone that ACPI shows.
    pub celsius: Reading<f64>,
    /// Logical processors of the host.
    pub processors: Reading<u32>,
    /// Memory of the host, bytes.
    pub memory_bytes: Reading<u64>,
    /// The user's `.wslconfig`; empty where there is none.
    pub wslconfig: Reading<String>,
}
