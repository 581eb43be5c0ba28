//! What came of known injections: every run with what was injected and what was found. Its JSON form is a contract that
//! scripts use: keys may be added, none renamed.

use crate::comparison::{Change, Disturbance, Figure};
pub use crate::format::SCHEMA;
use crate::outcome::Cause;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An instrument that is right less often is none.
pub const RIGHT_SHARE_MIN: f64 = 0.95;
/// Fewer values have no quartiles worth the name.
pub const NET_RUNS_MIN: usize = 4;
/// So many findings of a run are kept: the first ones, which cost most.
pub const FINDINGS_MAX: usize = 8;

/// The calibration report of a machine.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Calibration {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The command line.
    pub argv: Vec<String>,
    /// When it was begun, seconds since 1970.
    pub started_unix_s: u64,
    /// How long it took, seconds.
    pub took_s: f64,
    /// Seed of the order of the runs.
    pub seed: u64,
    /// How often each injection was to be measured.
    pub repeats: u32,
    /// Whether every injection that can be made here was measured that often.
    pub complete: bool,
    /// Where it holds.
    pub machine: Place,
    /// What there is to inject, and whether it can be here.
    pub injections: Vec<Injection>,
    /// All runs, in the order of their time.
    pub runs: Vec<Run>,
    /// What they come to.
    pub summary: Summary,
    /// Comparisons of the built-in server with itself, in the order of their time.
    #[serde(default)]
    pub comparisons: Vec<SelfComparison>,
    /// What these come to; `null` where there was none.
    #[serde(default)]
    pub aa_control: Option<AaControl>,
    /// How much net moved over the runs that leave it alone; `null` where there was none.
    #[serde(default)]
    pub net_spread: Option<NetSpread>,
    /// A finding that costs something, and less than this, is a note; `null`: of before this was kept.
    #[serde(default)]
    pub note_ln: Option<f64>,
}

/// What a calibration report is of.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Place {
    /// `uname -r`.
    pub kernel: String,
    /// The processor's own name; `null` where it is not known.
    pub cpu_model: Option<String>,
    /// Online CPUs.
    pub cpus: usize,
}

impl Place {
    /// Of a machine as it was read.
    pub fn of(machine: &crate::machine::MachineFacts) -> Place {
        let cpu_model = machine.cpu_model.value().cloned();
        Place { kernel: machine.kernel.clone(), cpu_model, cpus: machine.cpus.len() }
    }
}

/// A known injection.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Injection {
    /// Its name.
    pub name: String,
    /// What is done.
    pub about: String,
    /// What it is right to find: any of these.
    pub expected: Vec<Cause>,
    /// Whether nothing is disturbed: then nothing else may be found.
    pub undisturbed: bool,
    /// Whether net is to be what it is undisturbed: the same program on its CPU, and the same requests.
    #[serde(default)]
    pub leaves_net: bool,
    /// Why it cannot be made here; `null` where it can.
    pub not_here: Option<String>,
}

/// One session with something injected.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Run {
    /// Which [`Injection`].
    pub injection: String,
    /// Seconds from the beginning of the calibration.
    pub begin_s: f64,
    /// How long it took, seconds.
    pub took_s: f64,
    /// What the host or a quota took of a run in which nothing was to be disturbed: it is none then, and was made again where there was room for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disturbed: Vec<Disturbance>,
    /// What came of it.
    #[serde(flatten)]
    pub result: RunResult,
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "result")]
pub enum RunResult {
    /// It was measured.
    Measured(Found),
    /// It could not be, and counts as not right.
    Failed {
        /// Why.
        why: String,
    },
}

/// What a verdict said of an injection.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Found {
    /// The bottleneck.
    pub bottleneck: Cause,
    /// The first finding beside the bottleneck's own that is no note ([`Calibration::note_ln`]), nor what the host took where that limits nothing.
    pub first_finding: Option<Cause>,
    /// Which of the two was expected; where neither was, the bottleneck.
    pub found: Cause,
    /// Whether it is one that was expected, and nothing was reported that is not there.
    pub right: bool,
    /// What was reported of an undisturbed run and is more than a note.
    pub alarms: Vec<Cause>,
    /// The measured figure, where there is one: req/s, or seconds for a command.
    pub gross: Option<f64>,
    /// The net figure, where there is one, in the same unit.
    #[serde(default)]
    pub net: Option<f64>,
    /// The first [`FINDINGS_MAX`] findings in the verdict's own order, so that they can be judged by another rule; none: of before they
    /// were kept.
    #[serde(default)]
    pub findings: Vec<Listed>,
    /// Whether it would be right were nothing passed over: the bottleneck or the very first finding of the list, be it the bottleneck's own, and
    /// of an undisturbed run no other finding at all; `null`: of before this was kept.
    #[serde(default)]
    pub right_as_listed: Option<bool>,
}

/// A finding of a verdict, in short.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Listed {
    /// What was found.
    pub cause: Cause,
    /// What it costs: its share of ln(net/gross), or 0 for what costs nothing by itself.
    pub effect_ln: f64,
}

/// The runs counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Summary {
    /// Runs, without those that were to be undisturbed and were not.
    pub runs: usize,
    /// Of these, right.
    pub right: usize,
    /// Of these, right were nothing passed over ([`Found::right_as_listed`]); `null` where a run does not tell.
    #[serde(default)]
    pub right_as_listed: Option<usize>,
    /// Runs in which nothing was disturbed.
    pub undisturbed: usize,
    /// Of these, those with an alarm.
    pub false_alarms: usize,
    /// Runs that were to be undisturbed and that the host or a quota disturbed: whatever was found in them is no false alarm, and no proof of
    /// the opposite either.
    #[serde(default)]
    pub disturbed: usize,
    /// By injection, what was found how often. Runs that failed are in none.
    pub confusion: BTreeMap<String, BTreeMap<Cause, usize>>,
}

impl Summary {
    /// Whether it is the calibration report of an instrument that can be trusted.
    pub fn is_good(&self) -> bool {
        self.runs > 0 && self.right as f64 >= RIGHT_SHARE_MIN * self.runs as f64 && self.false_alarms == 0
    }
}

/// One comparison of the built-in server with itself.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct SelfComparison {
    /// Seconds from the beginning of the calibration.
    pub begin_s: f64,
    /// How long it took, seconds.
    pub took_s: f64,
    /// What came of it.
    #[serde(flatten)]
    pub result: SelfResult,
}

/// What came of a comparison.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "result")]
pub enum SelfResult {
    /// It could have called something different.
    Compared(Compared),
    /// It could not, and counts in no rate.
    Failed {
        /// Why.
        why: String,
    },
}

/// What a comparison said.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Compared {
    /// Seed of its orders.
    pub seed: u64,
    /// Its launches.
    pub launches: usize,
    /// Figures that were called different, though they are not.
    pub different: Vec<CalledDifferent>,
    /// The smallest true change of throughput that it would have shown in nine of ten; `null` where it does not tell.
    pub detectable: Option<f64>,
}

/// A figure that was called different.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct CalledDifferent {
    /// Which.
    pub figure: Figure,
    /// By how much.
    pub change: Change,
}

/// The comparisons counted.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct AaControl {
    /// How long each might take, seconds.
    pub budget_s: f64,
    /// Comparisons that could have called something different.
    pub comparisons: usize,
    /// Those that could not.
    pub failed: usize,
    /// Comparisons in which any figure was called different.
    pub different: usize,
    /// The exact 95 % interval (Clopper and Pearson) of how often that happens; `null` without comparisons.
    pub rate_ci95: Option<[f64; 2]>,
    /// The largest effect so called; `null` where none was.
    pub largest: Option<CalledDifferent>,
    /// The median over the comparisons of the smallest true change of throughput that each would have shown in nine of ten.
    pub detectable: Option<f64>,
}

/// How much net moved while the program was the same, what the host did to it included.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct NetSpread {
    /// Runs that leave net alone.
    pub runs: usize,
    /// Of these, those that had a net.
    pub with_net: usize,
    /// Their median, req/s; `null` where there was none.
    pub median_hz: Option<f64>,
    /// Upper over lower quartile, less one: 0.03 is 3 %; `null` with fewer than [`NET_RUNS_MIN`].
    pub quartiles_apart: Option<f64>,
}

impl Calibration {
    /// How many of the injections that can be made here were measured at least once, and how many there are.
    pub fn covered(&self) -> (usize, usize) {
        let here: Vec<&Injection> = self.injections.iter().filter(|one| one.not_here.is_none()).collect();
        let measured = |one: &&&Injection| self.runs.iter().any(|run| run.injection == one.name);
        (here.iter().filter(measured).count(), here.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comparisons_said_is_read_as_it_was_kept() {
        let change = Change { value: 0.03, interval: [0.01, 0.05] };
        let different = vec![CalledDifferent { figure: Figure::P99, change }];
        let compared = Compared { seed: 7, launches: 10, different, detectable: Some(0.04) };
        for result in [SelfResult::Compared(compared), SelfResult::Failed { why: "no port".into() }] {
            let whole = SelfComparison { begin_s: 1.0, took_s: 10.0, result };
            let text = serde_json::to_string(&whole).unwrap();
            assert_eq!(serde_json::from_str::<SelfComparison>(&text).unwrap(), whole, "{text}");
        }
    }
}
