//! What a metric is: its id, unit, kind and source, declared once beside the observer that fills it.
//!
//! Rules and accounting use the typed constants of [`crate::metrics`], never string literals.

use crate::Missing;
use serde::{Deserialize, Serialize};

/// The unit of a metric's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Nanoseconds.
    Nanosecond,
    /// A plain count.
    Count,
    /// Bytes.
    Byte,
    /// Hertz.
    Hertz,
    /// Degrees Celsius.
    Celsius,
    /// Millionths of a joule.
    Microjoule,
    /// A number that names a thing (a CPU), not an amount.
    Index,
}

/// How values of one column relate to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Only grows; differences carry the meaning.
    Counter,
    /// A level at an instant.
    Gauge,
}

/// The declaration of one metric.
#[derive(Debug)]
pub struct Descriptor {
    /// Stable identity on disk, `observer.name_unit`.
    pub id: &'static str,
    /// Unit of every value.
    pub unit: Unit,
    /// Counter or gauge.
    pub kind: Kind,
    /// One line for a person.
    pub help: &'static str,
    /// Where the number comes from (file and field).
    pub source: &'static str,
}

impl Descriptor {
    /// Why there is no value, where no observer gave a reason: in words, with the name that `--json` and the record have.
    pub fn not_observed(&self) -> Missing {
        Missing::new(format!("“{}” was not observed ({})", self.help.trim_end_matches('.'), self.id))
    }
}

/// What a column of samples is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// The whole machine (or network namespace).
    Machine,
    /// One CPU.
    Cpu(u32),
    /// One thread: index into [`crate::observation::Observation::tasks`].
    Task(u32),
    /// A control group, by its path below the controller's mount.
    Group(String),
    /// A sensor or power domain, by the kernel's name and its own.
    Device(String),
}
