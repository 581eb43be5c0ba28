//! Why two runs differ: what the comparison of two records says. The keys of its JSON form are a contract.

pub use crate::format::SCHEMA;
use crate::gate::Effect;
use crate::outcome::{Cause, Gross, GrossIs, NetOrMissing, TareCause, Warning};
use crate::{Missing, Reading};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An account of the difference between a run A and a run B.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Why {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `http` or `command`.
    pub workload: String,
    /// The run that is compared with.
    pub a: Run,
    /// The run that is compared.
    pub b: Run,
    /// Rate of requests, or of runs of a program (so that more is better in both).
    pub rate: Reading<Change>,
    /// The same without what the machine did to every program (the parts `clock` and `interference`); absent unless both runs were
    /// loaded interleaved with the reference server, and the asked load left neither program time to spare.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interference_corrected: Option<Corrected>,
    /// What the programs would do with nothing in the way. Where both were loaded interleaved with the reference server: in units of
    /// it, as in [`Why::figures`] (by the part `cost` where there is one in this unit); else intervals are out of each run's own.
    pub net: Reading<Change>,
    /// All figures of two servers, as a gate has them; differences up to 2 % do not matter. Where rate, net and the CPU time of a request
    /// are in the same unit as [`Why::rate`], [`Why::net`] and the part `cost`, they are those, with their intervals; intervals of the others hold
    /// together. None of programs, and in older results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Effect>,
    /// The difference of the rates, in parts that sum to [`Change::ln`], largest first.
    pub parts: Reading<Vec<Part>>,
    /// What one busy CPU does in a second, where the two ran on different machines: rate over the CPUs that the program was busy on. Its
    /// parts are those of [`Why::parts`] that [`Part::is_per_core`]; its interval is the sum of theirs, so that it is never too narrow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_core: Option<Change>,
    /// How the intervals of rate and parts were made.
    pub method: String,
    /// How what was taken from the program changed, largest first.
    pub tare: Vec<TareChange>,
    /// Functions that take another time of a request beyond noise, largest change first; where the CPU time of a request is not known of both,
    /// those whose share of the program's CPU time changed. A function that is left alone has a smaller share where another takes more: that
    /// is no change of it. Missing where a run has no stacks.
    pub frames: Reading<Vec<FrameChange>>,
    /// Why B's server waited for work, where that is the largest part of a loss; `None` where it is not.
    pub generator: Option<String>,
    /// What else differed between the two.
    pub differences: Vec<Difference>,
    /// What could not be compared, and why.
    pub uncompared: Vec<Missing>,
    /// What to know before quoting any of it.
    pub warnings: Vec<Warning>,
}

/// One of the two runs.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Run {
    /// What the user calls it.
    pub name: String,
    /// Wall clock at its start, seconds since 1970.
    pub started_unix_s: u64,
    /// Trials of the load that was asked for.
    pub trials: u32,
    /// As measured.
    pub gross: Gross,
    /// What that figure measures.
    #[serde(default = "capacity")]
    pub gross_is: GrossIs,
    /// With nothing in the way.
    pub net: NetOrMissing,
    /// What held it where it was.
    pub bottleneck: Cause,
    /// The same in words; empty in older results.
    #[serde(default)]
    pub bottleneck_title: String,
    /// The function that takes most of the contended locks, where the bottleneck is a lock or may be one, and call stacks show it.
    #[serde(default)]
    pub lock_taken_in: Option<String>,
    /// Whether its figures can be trusted.
    pub valid: bool,
}

fn capacity() -> GrossIs {
    GrossIs::Capacity
}

/// A figure in A and in B.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Change {
    /// In A.
    pub from: f64,
    /// In B.
    pub to: f64,
    /// Of both.
    pub unit: String,
    /// ln(to / from).
    pub ln: f64,
    /// 95 % interval of `ln`.
    pub ci95: Option<[f64; 2]>,
}

/// A difference of rates of which a part is taken out.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Corrected {
    /// ln of the ratio that is left.
    pub ln: f64,
    /// 95 % interval of `ln`, which holds together with those of the rate and of all parts; `null` when a run has one trial.
    pub ci95: Option<[f64; 2]>,
}

/// A part of ln(rate of B / rate of A).
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Part {
    /// `cost`, `interference`, `underload`, `clock`, `instructions`, `ipc`, `entitlement`, `busy`, `unexplained`, or the name of a loss
    /// (`throttled` …).
    pub id: String,
    /// Positive where it made B faster.
    pub ln: f64,
    /// 95 % interval that holds together with those of all other parts and of the rate; `null` when a run has one trial.
    pub ci95: Option<[f64; 2]>,
    /// The figure behind it in A, in `unit`.
    pub from: f64,
    /// In B.
    pub to: f64,
    /// `CPUs`, `Hz`, `cycles`, `s`, `instructions`, `instructions per cycle`; `×`: times what a request of the reference server takes
    /// (`cost`), or times what one takes at saturation (`underload`).
    pub unit: String,
}

impl Part {
    /// Whether it is what the machine did to every program.
    pub fn is_of_machine(&self) -> bool {
        matches!(self.id.as_str(), "clock" | "interference")
    }

    /// Whether it is how much a busy CPU gets done, and not how many CPUs were busy.
    pub fn is_per_core(&self) -> bool {
        let per_core = ["clock", "ipc", "instructions", "cost", "interference", "underload"];
        per_core.contains(&self.id.as_str())
    }
}

/// A function that ran for another part of the time.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct FrameChange {
    /// Its name.
    pub function: String,
    /// Whether it ran itself, or it or what it called did.
    pub own: bool,
    /// Share of the samples in A, 0..=1.
    pub before: f64,
    /// Share in B.
    pub after: f64,
    /// 95 % interval of the difference, which holds together with those of all functions.
    pub ci95: [f64; 2],
    /// CPU time of a request in it; `None` where the CPU time of a request is not known of both runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_request: Option<PerRequest>,
}

/// CPU time of a request in a function: its share of the samples, of the CPU time of a request. Without what the machine did to every program.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct PerRequest {
    /// In A, nanoseconds.
    pub before_ns: f64,
    /// In B, nanoseconds.
    pub after_ns: f64,
    /// 95 % interval of the difference, nanoseconds, by those of the shares and of the part `cost`.
    pub difference_ci95_ns: [f64; 2],
}

/// How one part of the tare changed.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct TareChange {
    /// What took it.
    pub cause: TareCause,
    /// Share of ln(net / gross) in A; 0 where nothing was lost to it.
    pub from_ln: f64,
    /// In B.
    pub to_ln: f64,
}

/// What kind of thing differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)] // the names say it; `Difference::matters` says more
pub enum Kind {
    Binary,
    CommandLine,
    Environment,
    Request,
    Load,
    Transport,
    Quota,
    Placement,
    Threads,
    Machine,
    Processor,
    Microcode,
    Mitigations,
    Frequency,
    Kernel,
    Scheduler,
    Memory,
    Boot,
    Tare,
}

/// Something that is not the same in both runs.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Difference {
    /// What kind of thing.
    pub kind: Kind,
    /// Which one.
    pub name: String,
    /// In A; `null` where A has none.
    pub a: Option<String>,
    /// In B.
    pub b: Option<String>,
    /// What it can do to the figures.
    pub matters: String,
}
