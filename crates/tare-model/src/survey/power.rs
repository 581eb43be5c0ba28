use crate::Reading;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where the current comes from.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Power {
    /// Mains and batteries; empty on machines that tell of none.
    pub supplies: Reading<Vec<Supply>>,
    /// `low-power`, `balanced`, `performance`: the firmware's own setting.
    pub platform_profile: Reading<String>,
}

/// One source of current.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Supply {
    /// `AC`, `BAT0` …
    pub name: String,
    /// `Mains`, `Battery`, `USB`, `UPS`.
    pub kind: Reading<String>,
    /// Mains: whether it is plugged in.
    pub online: Reading<bool>,
    /// Battery: `Charging`, `Discharging`, `Full` …
    pub status: Reading<String>,
    /// `System`, or `Device` for what serves a mouse, a keyboard or a tablet alone; not applicable where the driver
    /// states none, which is the machine's.
    #[serde(default)]
    pub scope: Reading<String>,
}

impl Supply {
    /// Whether it serves the machine, and not a device that is connected to it.
    pub fn serves_machine(&self) -> bool {
        match &self.scope {
            Reading::Measured(scope) => scope != "Device",
            Reading::NotApplicable { .. } => true,
            Reading::Missing(_) => false,
        }
    }
}
