//! What another tool's results come to: every sample of every metric that it printed, and what of it was not understood.

use crate::better::Better;
use crate::warning::Warning;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A file of results, read. `tare show FILE --json` prints it.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ToolMetrics {
    /// Version of this format.
    pub schema: u32,
    /// Whose results they are: `go-bench`, `jmh`, `hyperfine`, …
    pub format: String,
    /// In the order in which they were printed.
    pub metrics: Vec<ToolMetric>,
    /// What holds for all of them, in the tool's own words.
    pub configuration: BTreeMap<String, String>,
    /// What was not understood, the first of it.
    pub skipped: Vec<Skipped>,
    /// How many things were not understood, those of `skipped` included.
    pub skipped_count: u64,
    /// What a reader must know before quoting a figure of it.
    pub warnings: Vec<Warning>,
    /// What this tool is known to get wrong, whatever it prints.
    pub gets_wrong: Vec<String>,
}

/// One metric of one benchmark.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ToolMetric {
    /// The benchmark, command or test; empty where the tool has only one.
    pub benchmark: String,
    /// What was measured, in the tool's own word: `ns/op`, `time`, `requests`.
    pub name: String,
    /// Its unit, of base units where the tool's has one: `s`, `B/s`, `req/s`, `allocs/op`.
    pub unit: String,
    /// Which way is better; `null` where that is not known.
    pub better: Option<Better>,
    /// Every value that the tool gives, in `unit`, in the order of the file.
    pub samples: Vec<f64>,
    /// Which launch (process, fork) each sample is of, from 0 on; as many as samples.
    pub launches: Vec<u32>,
    /// Which thread or worker each sample is of; empty where the tool does not say.
    pub workers: Vec<u32>,
    /// When each sample was taken, in seconds, on the tool's own clock; empty where it does not say.
    pub at_s: Vec<f64>,
    /// In which line of the output each sample stood, from 1 on; 0: not known. Kept only while the output is read.
    #[serde(skip)]
    pub lines: Vec<u32>,
    /// Whether runs go on until this is known well enough (`--precision`, `--budget`): it is chosen, or all are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_target: bool,
    /// What happened while each sample was measured; empty where it is not known when that was: of a file, or where the tool prints all at
    /// its end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<SampleWindow>,
    /// What holds for this metric alone, in the tool's own words.
    pub configuration: BTreeMap<String, String>,
    /// What the tool itself says of the samples, where it says more than they do (quantiles of what it does not print).
    pub summary: BTreeMap<String, f64>,
    /// What the samples come to; `null` where there is none.
    pub estimate: Option<ToolEstimate>,
}

/// The time in which a sample was measured: from the end of the line before it that the program printed until its own line. What the program
/// does before and after its measurement is in it. CPUs are seconds of CPU time in each second of it; `null` where it is too short to say, or
/// was not observed.
#[derive(Debug, Clone, Copy, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct SampleWindow {
    /// Seconds from the start of its run.
    pub begin_s: f64,
    /// The same.
    pub end_s: f64,
    /// CPUs that the program used.
    pub on_cpu: Option<f64>,
    /// CPUs that its threads waited for, ready to run: held by others or by threads of its own. Of windows of 2 s and more.
    pub waiting: Option<f64>,
    /// CPUs of which a quota held back the program's control group.
    pub throttled: Option<f64>,
    /// CPUs that everybody else used, of those that the program may use, without tare.
    pub others: Option<f64>,
    /// CPUs that the host of a virtual machine took from the program: as large a part of all that it took there as the program's part of the CPU
    /// time.
    pub stolen: Option<f64>,
}

/// The value of a metric, and how well it is known.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ToolEstimate {
    /// The median over launches of each launch's median.
    pub value: f64,
    /// That of the metric.
    pub unit: String,
    /// Lower and upper end of its 95 % interval: between launches where there are several, for samples of one process are not
    /// independent; `null` where there are too few.
    pub ci95: Option<[f64; 2]>,
}

/// Something in a file that was not understood.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Skipped {
    /// Its beginning.
    pub what: String,
    /// The line that it begins in, from 1 on.
    pub line: u64,
    /// Why.
    pub why: String,
}
