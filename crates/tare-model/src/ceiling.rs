//! What a machine can do at most, and what of that a run used.

use crate::better::Better;
use crate::outcome::Estimate;
use crate::warning::Warning;
use crate::{Missing, Reading};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The result of `tare ceiling`.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Ceilings {
    /// [`crate::format::SCHEMA`].
    pub schema: u32,
    /// Every ceiling that was asked for, in the order of the list.
    pub ceilings: Vec<Ceiling>,
    /// Rounds that were measured: each ceiling once in each, in an order drawn at random.
    pub rounds: u32,
    /// Seed of the order.
    pub seed: u64,
    /// How long it took, seconds.
    pub took_s: f64,
    /// The directory that `fsync` and `random-read` are of.
    pub directory: String,
    /// CPUs that were used: those that this process may use.
    pub cpus: Vec<u32>,
    /// Whether it is kept for later runs of this boot.
    pub kept: bool,
    /// What a reader must know before quoting a figure of it.
    pub warnings: Vec<Warning>,
}

/// One ceiling.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Ceiling {
    /// Its name: `system-call`, `loopback-flows-64`, `memory-copy-2`, …
    pub name: String,
    /// What is measured, in words.
    pub about: String,
    /// Which way is better.
    pub better: Better,
    /// The median of the rounds, with a 95 % interval of that median; or why it was not measured.
    pub estimate: Reading<Estimate>,
    /// What each round gave, in the estimate's unit, in order.
    pub samples: Vec<f64>,
    /// What is special about how it was measured here; empty: nothing.
    #[serde(default)]
    pub note: String,
}

/// An entry of `tare ceiling --list`.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct ListedCeiling {
    /// Its name.
    pub name: String,
    /// What is measured, in words.
    pub about: String,
    /// Its unit.
    pub unit: String,
    /// Which way is better.
    pub better: Better,
}

/// What a run knew, as it began, of what bounds its figure: with it an old record is explained as it was at first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnownBounds {
    /// The ceilings that were kept for this boot.
    pub ceilings: Reading<KnownCeilings>,
    /// The network card that leads to a server on another host.
    pub link: Reading<Link>,
}

impl Default for KnownBounds {
    /// What older records know.
    fn default() -> Self {
        KnownBounds {
            ceilings: Reading::missing("no ceilings were recorded yet when this was measured"),
            link: Reading::missing("the network card was not recorded yet when this was measured"),
        }
    }
}

impl KnownBounds {
    /// Where none are kept.
    pub fn no_ceilings() -> Missing {
        Missing::with_remedy("no ceilings are kept for this boot", "run tare ceiling")
    }
}

/// The ceilings of a machine since it was started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnownCeilings {
    /// When the last of them was measured, seconds since 1970.
    pub measured_unix_s: u64,
    /// Those that could be measured.
    pub ceilings: Vec<KnownCeiling>,
}

impl KnownCeilings {
    /// The one of this name.
    pub fn find(&self, name: &str) -> Option<&Estimate> {
        self.ceilings.iter().find(|ceiling| ceiling.name == name).map(|ceiling| &ceiling.estimate)
    }
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnownCeiling {
    /// Its name.
    pub name: String,
    /// What it is.
    pub estimate: Estimate,
}

/// All that is kept of one machine, boot and build.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CeilingHistory {
    /// What the ceilings hold for: boot, machine, build, CPUs.
    pub key: String,
    /// The ceilings.
    pub known: KnownCeilings,
}

/// A network card and its speed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// `eth0` …
    pub interface: String,
    /// Bits per second, in each direction.
    pub bits_per_s: u64,
}

/// What a run used of what the machine can do at most: `ceiling` in the JSON of every run.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct CeilingShare {
    /// The ceiling that the run came nearest to.
    pub tightest: String,
    /// The run's figure over that ceiling: 1 is all that the machine was seen to do.
    pub share: f64,
    /// Lower and upper end of its 95 % interval, of the ceiling and of the run's figure together; `null` where one of them has none.
    pub ci95: Option<[f64; 2]>,
    /// The run's figure, in the ceiling's unit.
    pub figure: f64,
    /// The ceiling.
    pub ceiling: Estimate,
    /// How the ceiling follows from those that were measured, in words.
    pub of: String,
    /// All ceilings that bound such a run, the nearest first.
    pub bounds: Vec<BoundShare>,
}

/// The share of one ceiling.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct BoundShare {
    /// Its name.
    pub name: String,
    /// The run's figure over it.
    pub share: f64,
}
