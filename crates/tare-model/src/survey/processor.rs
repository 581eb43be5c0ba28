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
    /// Parts of caches that groups of programs are held to (resctrl); missing where it is not mounted.
    #[serde(default)]
    pub cache_parts: Reading<Vec<CachePart>>,
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

/// What a group of programs may fill of one cache.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct CachePart {
    /// The group's name below the mount; empty for all that are in no group.
    pub group: String,
    /// `L3`, `L2`, `L3CODE` …
    pub cache: String,
    /// The kernel's number of the cache.
    pub id: u32,
    /// Part of its ways, 0–1.
    pub ratio: f64,
}
