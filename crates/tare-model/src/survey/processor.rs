use crate::Reading;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The processor beyond its name, which stands in the machine's facts.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Processor {
    /// `GenuineIntel`, `AuthenticAMD`, `HygonGenuine`, `ARM 0x48` …
    pub vendor: Reading<String>,
    /// Microcode revision as the kernel prints it (`0x3c`).
    pub microcode: Reading<String>,
    /// Flags of the first CPU.
    pub features: Reading<Vec<String>>,
    /// Whether SMT is on; not applicable where the kernel says that the machine has none.
    pub smt: Reading<bool>,
    /// What the kernel says of each hardware weakness.
    pub mitigations: Reading<Vec<Mitigation>>,
}

/// One weakness and what is done about it.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Mitigation {
    /// `spectre_v2`, `meltdown` …
    pub name: String,
    /// The kernel's words: `Not affected`, `Mitigation: PTI`, `Vulnerable` …
    pub state: Reading<String>,
}
