//! What came of real programs of which it is known what limits them: each run with its truth and what was found. Its JSON form is a
//! contract that scripts use: keys may be added, none renamed.

use crate::calibration::{Listed, Place};
use crate::outcome::Cause;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An instrument that is right less often is none.
pub const RIGHT_SHARE_MIN: f64 = 0.95;
/// So many findings of a run are kept: the first ones, which cost most.
pub const FINDINGS_MAX: usize = 8;

/// The zoo on a machine.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Zoo {
    /// [`crate::format::SCHEMA`].
    pub schema: u32,
    /// The command line.
    pub argv: Vec<String>,
    /// When it was begun, seconds since 1970.
    pub started_unix_s: u64,
    /// How long it took, seconds.
    pub took_s: f64,
    /// How often each pair was to be measured.
    pub repeats: u32,
    /// Whether every pair that was asked for and can be measured here was, that often.
    pub complete: bool,
    /// Where it holds.
    pub machine: Place,
    /// What can be true.
    pub truths: Vec<Truth>,
    /// Who is measured.
    pub subjects: Vec<Subject>,
    /// All runs, by subject, truth and number.
    pub runs: Vec<Run>,
    /// What they come to.
    pub summary: Summary,
}

/// Something that is true of a program by how it was set up.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Truth {
    /// Its name.
    pub name: String,
    /// How it is set up.
    pub about: String,
    /// The causes that it is right to name.
    pub accepts: Vec<String>,
    /// Why these.
    pub because: String,
    /// Whether nothing is disturbed: then no other finding may be more than a note.
    pub undisturbed: bool,
}

/// A real program.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Subject {
    /// Its name.
    pub name: String,
    /// What it is.
    pub about: String,
    /// Its truths.
    pub truths: Vec<String>,
    /// What is not installed of it, with how to install it; `null` where all is there.
    pub missing: Option<String>,
}

/// One session of a subject with a truth.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Run {
    /// Which [`Subject`].
    pub subject: String,
    /// Which [`Truth`].
    pub truth: String,
    /// Which repeat, from 1.
    pub repeat: u32,
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

/// How a verdict compares with the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judgement {
    /// It names what is true.
    Right,
    /// It says that the bottleneck is not known.
    NotKnown,
    /// It names something else.
    Wrong,
}

/// What a verdict said.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Found {
    /// The bottleneck that it names.
    pub bottleneck: Cause,
    /// How sure it says that it is; `null` where it has no finding of its own.
    pub confidence: Option<f64>,
    /// How it compares with the truth.
    pub judgement: Judgement,
    /// Whether the result is valid.
    pub valid: bool,
    /// Findings of an undisturbed run that are more than a note, beside the bottleneck.
    pub alarms: Vec<Cause>,
    /// Share of time that the accounting leaves open; `null`: not known.
    pub residual_ratio: Option<f64>,
    /// The measured figure, where there is one.
    pub gross: Option<f64>,
    /// The net figure, where there is one, in the same unit.
    pub net: Option<f64>,
    /// Its 95 % interval; `null`: none.
    #[serde(default)]
    pub net_ci95: Option<[f64; 2]>,
    /// Net of a CPU over the reference server's of one, measured in the same minute; `null`: not measured.
    #[serde(default)]
    pub net_over_reference: Option<f64>,
    /// The first [`FINDINGS_MAX`] findings, in the verdict's own order.
    pub findings: Vec<Listed>,
}

/// What the runs come to.
#[derive(Debug, Clone, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Summary {
    /// Pairs of subject and truth that were measured.
    pub pairs: usize,
    /// Runs, those that failed included.
    pub runs: usize,
    /// Runs that could not be measured.
    pub failed: usize,
    /// Runs that name what is true.
    pub right: usize,
    /// Runs that say that the bottleneck is not known.
    pub not_known: usize,
    /// Runs that name something else.
    pub wrong: usize,
    /// Undisturbed runs.
    pub undisturbed: usize,
    /// Undisturbed runs with a finding above a note beside the bottleneck.
    pub alarmed: usize,
    /// The largest share of time that the accounting of a run left open; `null`: of none known.
    pub residual_max: Option<f64>,
    /// Runs whose accounting left less than 1 % open.
    pub closed: usize,
    /// Pairs with at least two nets.
    pub nets: usize,
    /// Of these, pairs whose largest net is at most 5 % above the smallest.
    pub nets_repeat: usize,
    /// Intervals of nets of these pairs.
    #[serde(default)]
    pub intervals: usize,
    /// Of these, intervals that hold the median of the pair's other nets. That has an error too: of three nets with exact 95 % intervals 89 %
    /// do.
    #[serde(default)]
    pub intervals_hold: usize,
    /// For each truth: how often each cause was named.
    pub confusion: BTreeMap<String, BTreeMap<Cause, usize>>,
}

impl Summary {
    /// Whether the verdicts of this zoo can be trusted: right often enough, and never wrong with confidence.
    pub fn is_good(&self) -> bool {
        self.right as f64 >= RIGHT_SHARE_MIN * self.runs as f64 && self.wrong == 0 && self.alarmed == 0
    }
}
