//! The result of a comparison of servers or commands: every launch, and what follows from all of them. Its JSON form is a contract that
//! scripts use: keys may be added, none renamed.

use crate::better::Better;
pub use crate::figure::Figure;
pub use crate::format::SCHEMA;
use crate::{Missing, Reading};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The warning that some metrics are not printed by every run of every command.
pub const NOT_IN_ALL: &str = "not-in-all";
/// Differences up to this share do not matter, where nobody says otherwise.
pub const MARGIN: f64 = 0.02;

/// What came of a comparison.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Comparison {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The command line.
    pub argv: Vec<String>,
    /// What was compared; the first is what the others are held against.
    pub programs: Vec<Program>,
    /// Seed of all orders.
    pub seed: u64,
    /// How long it was to take, seconds.
    pub budget_s: f64,
    /// How narrow the intervals of rate and cost were to be, as a share: ± this.
    pub precision: f64,
    /// Differences up to this share do not matter.
    pub margin: f64,
    /// Launches that the budget has room for, found out by the first ones; intervals are for so many interim analyses.
    pub planned: Option<usize>,
    /// Length of a turn, nanoseconds.
    pub turn_ns: u64,
    /// CPUs of the servers.
    pub sut_cpus: Vec<u32>,
    /// CPUs of the generator.
    pub load_cpus: Vec<u32>,
    /// Why it ended; `null` while it goes on, or where it was cut short.
    pub ended: Option<Ended>,
    /// Seconds from the first launch to the end of the last.
    pub elapsed_s: f64,
    /// All launches that were measured to their end, in the order of their time.
    pub launches: Vec<Launch>,
    /// What each program and figure came to.
    pub effects: Vec<Effect>,
    /// What the metrics came to that commands print as the results of a benchmark.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub benchmarks: Vec<BenchmarkEffect>,
    /// Why the rates differ: what sums to the logarithm of each program's rate over the first one's, and
    /// within some of it what that sums up from ([`Part::within`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// Figures that were compared and came to nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_known: Vec<NotKnown>,
    /// Whether interleaving changed what a request costs, of programs for which that was measured in some launches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interleaving: Vec<Interleaved>,
    /// Settings that programs were run with (`--set-a`, `--set-b`), whether they are in use, and what they did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub treatments: Vec<crate::treatment::Treatment>,
    /// What to know before quoting it.
    pub warnings: Vec<crate::warning::Warning>,
}

/// A server or a command that was compared.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Program {
    /// `A`, `B`, …
    pub name: String,
    /// What starts it; `{port}` stands for its port.
    pub command: String,
    /// What it was asked for; a command is asked for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// Why a comparison ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// The intervals are as narrow as was asked.
    Precise,
    /// The budget is used up.
    Budget,
}

/// A launch: every program started afresh, the first one twice, and all loaded interleaved within the same window. Of commands: runs of
/// all, of the first as of two, interleaved.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Launch {
    /// Seconds from the beginning of the comparison to that of the launch.
    pub begin_s: f64,
    /// Seconds that it took, from starting the servers until they were gone.
    pub took_s: f64,
    /// Length of its turns, nanoseconds; 0 for commands, and in older results.
    #[serde(default)]
    pub turn_ns: u64,
    /// What each arm did: the first program, the first program once more (the A/A control), then the others.
    pub arms: Vec<Arm>,
    /// What the host and the control groups took meanwhile.
    pub interference: Interference,
    /// What disturbed it. It counts all the same: leaving out what looks odd makes intervals too narrow.
    pub disturbed: Vec<Disturbance>,
    /// The load before it was counted; none of commands, of starts that are measured on purpose, and in older results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<LaunchWarmUp>,
}

/// The load of a launch before its windows are counted.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct LaunchWarmUp {
    /// How long it was, seconds, all servers together.
    pub length_s: f64,
    /// Whether all servers were warm at its end, and came to cost no less in the windows that were counted.
    pub is_steady: bool,
    /// How warm each arm became.
    pub arms: Vec<ArmWarmUp>,
}

/// How warm a server became before it was counted.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ArmWarmUp {
    /// Its runtime, where that compiles while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    /// How many times as much CPU time a request took at the beginning of the load as at its end; of a runtime that compiles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_fall: Option<f64>,
    /// Share of its CPU time that its compilers took at the end; where they can be distinguished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compiling_share: Option<f64>,
}

/// What a request of a program costs interleaved with the others, against the same server loaded alone.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Interleaved {
    /// Which program.
    pub program: String,
    /// Median CPU time of a request alone, seconds.
    pub alone_s: f64,
    /// Relative change of the interleaved against that, from launch to launch, with its 95 % interval.
    pub change: Change,
    /// Launches in which it was measured.
    pub measured: usize,
}

/// What one server of a launch did in its own turns, or the runs of a command.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Arm {
    /// Time of its own turns, or of its runs, nanoseconds.
    pub own_ns: u64,
    /// Answers, errors of status included; or runs.
    pub answers: u64,
    /// Errors of all kinds.
    pub errors: u64,
    /// CPU time of its processes; `null`: a process of it went away meanwhile.
    pub cpu_ns: Option<u64>,
    /// Its threads waited for a CPU for so long together; absent where that is not known, where more of them ran than there are CPUs (they
    /// waited for each other then), and of commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_ns: Option<u64>,
    /// A quota of its group, or of one above it, held it back for so long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled_ns: Option<u64>,
    /// The tightest CPU quota of its group and of those above it, CPUs; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_cpus: Option<f64>,
    /// What of its CPU time was where; absent where a process of it went away, and of commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modes: Option<Modes>,
    /// Its figures, in base units; one that could not be had is not there.
    pub figures: BTreeMap<Figure, f64>,
    /// CPU time of a request in each of the windows that the launch was counted in, seconds; of runtimes that compile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows_s: Vec<f64>,
    /// CPU time of a request of the same server loaded alone, after the windows, seconds; of some launches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone_s: Option<f64>,
    /// What its runs printed as the results of a benchmark; of commands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub benchmarks: Vec<BenchmarkValue>,
}

/// A metric of a benchmark in the runs of an arm.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct BenchmarkValue {
    /// The benchmark; empty where the tool has only one.
    pub benchmark: String,
    /// What was measured, in the tool's own word.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Which way is better; `null` where that is not known.
    pub better: Option<Better>,
    /// The median over the runs of the median of each run's samples, in `unit`.
    pub value: f64,
}

/// What a metric of a benchmark came to in a program, against the first program.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct BenchmarkEffect {
    /// Which program.
    pub program: String,
    /// The benchmark; empty where the tool has only one.
    pub benchmark: String,
    /// What was measured, in the tool's own word.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Which way is better; `null` where that is not known.
    pub better: Option<Better>,
    /// Its median over the launches in the first program.
    pub baseline: f64,
    /// The same of the program.
    pub value: f64,
    /// Relative change with its interval, which holds together with those of all other metrics in 95 of 100 comparisons, whenever one stops,
    /// and is widened by what the A/A control proves to be none of the program's; or why there is none.
    pub change: Reading<Change>,
    /// The change of the A/A control, not widened.
    pub aa_control: Option<Change>,
    /// What the interval says. Of a metric without a better side: `cannot-tell`, or `no-difference`.
    pub verdict: Verdict,
}

/// Where CPU time was spent, by the kernel's ticks: of a launch it is coarse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Modes {
    /// In the program's own code, nanoseconds.
    pub user_ns: u64,
    /// In the kernel, nanoseconds.
    pub kernel_ns: u64,
}

/// What was taken from the servers' CPUs in a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Interference {
    /// Share of the servers' CPU time that the hypervisor gave to others; `null` where it does not tell.
    pub steal_share: Option<f64>,
    /// Time for which a quota of tare's own group or of one above it held CPUs back, over the window; `null` where there is no such figure.
    pub throttled_share: Option<f64>,
    /// Time of a step of arithmetic on a CPU of the servers, seconds: the clock's interference, and that of who else computes on the core. Median of
    /// samples between the slices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_s: Option<f64>,
    /// Time of a load from memory there, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_s: Option<f64>,
}

/// What disturbed a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Disturbance {
    /// The hypervisor gave more than 1 % of the servers' CPU time to others.
    Steal,
    /// A quota held tare's group back for more than 1 % of the window.
    Throttled,
    /// All servers together were slower by more than 15 % than in the median launch.
    Slow,
}

/// What a figure of a program came to, against the first program.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Effect {
    /// Which program.
    pub program: String,
    /// Which figure.
    pub figure: Figure,
    /// Its median over the launches in the first program, base units.
    pub baseline: f64,
    /// The same of the program.
    pub value: f64,
    /// Launches that have it.
    pub launches: usize,
    /// Relative change with its interval, which holds together with all others in 95 of 100 comparisons whenever one stops, and
    /// is widened by what the A/A control proves to be none of the program's. `null`: too few launches for an interval.
    pub change: Option<Change>,
    /// The same at the median of the launches' interference ([`Interference::compute_s`], [`Interference::load_s`]): what of it went with that interference is
    /// taken out. `null`: interference that was not seen in all launches, that did not change, or of too few of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adjusted: Option<Change>,
    /// The change of the A/A control, not widened.
    pub aa_control: Option<Change>,
    /// What the interval says.
    pub verdict: Verdict,
    /// The smallest true change that this budget shows in nine of ten comparisons.
    pub detectable: Option<f64>,
    /// Seconds that a comparison as this one needs for an interval of ±1 %.
    pub one_percent_s: Option<f64>,
}

/// A part of ln(rate of a program / rate of the first one).
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Part {
    /// Of which program.
    pub program: String,
    /// `cost`: the CPU time of a request. `throttled`, `waited-for-cpu`, `busy`: how much of its own turns it was busy, by what took most of the
    /// rest: a quota, others that ran while it was ready, or what is not known (no work, its own sleep). Within `cost`: `user`, its own
    /// code, and `kernel`, what the kernel did for it.
    pub id: String,
    /// The part that it is a part of; absent: of the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
    /// Positive where it made the program faster.
    pub ln: f64,
    /// 95 % interval, as good at every interim analysis as those of the figures; `null`: too few launches.
    pub ci95: Option<[f64; 2]>,
    /// The figure behind it in the first program, in `unit`; a median over launches.
    pub from: Option<f64>,
    /// In this one.
    pub to: Option<f64>,
    /// `s`, or `share` of its own turns.
    pub unit: String,
}

/// A figure that some launches lack: of the others alone it would be of the faster ones.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct NotKnown {
    /// Of which program.
    pub program: String,
    /// Which figure.
    pub figure: Figure,
    /// Why it is missing, and what would bring it.
    #[serde(flatten)]
    pub why: Missing,
}

/// A relative change: 0.02 is 2 % more.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Change {
    /// Estimate.
    pub value: f64,
    /// Its interval.
    pub interval: [f64; 2],
}

/// What can be said of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Better, by however little.
    Faster,
    /// Worse, by however little.
    Slower,
    /// None beyond the margin.
    NoDifference,
    /// Both are possible.
    CannotTell,
}

impl Verdict {
    /// What an interval of a figure's ln(after/before) says, where differences up to the margin do not matter.
    pub fn of(figure: Figure, interval: tare_stats::Interval, margin: f64) -> Verdict {
        let better = match figure.higher_is_better() {
            true => tare_stats::Better::Higher,
            false => tare_stats::Better::Lower,
        };
        tare_stats::verdict(interval, margin, better).into()
    }
}

impl Verdict {
    /// The same of a metric of a tool: without a better side none of two that differ is the better one.
    pub fn of_metric(better: Option<Better>, interval: tare_stats::Interval, margin: f64) -> Verdict {
        let side = match better {
            Some(Better::Lower) => tare_stats::Better::Lower,
            Some(Better::Higher) | None => tare_stats::Better::Higher,
        };
        match tare_stats::verdict(interval, margin, side).into() {
            Verdict::Faster | Verdict::Slower if better.is_none() => Verdict::CannotTell,
            verdict => verdict,
        }
    }

    /// Of a metric that was more than 0 and is 0.
    pub fn to_zero(better: Option<Better>) -> Verdict {
        match Verdict::from_zero(better) {
            Verdict::Slower => Verdict::Faster,
            Verdict::Faster => Verdict::Slower,
            verdict => verdict,
        }
    }

    /// Of a metric that was 0 and is more: no ratio says by how much.
    pub fn from_zero(better: Option<Better>) -> Verdict {
        match better {
            Some(Better::Lower) => Verdict::Slower,
            Some(Better::Higher) => Verdict::Faster,
            None => Verdict::CannotTell,
        }
    }
}

impl From<tare_stats::Verdict> for Verdict {
    fn from(verdict: tare_stats::Verdict) -> Verdict {
        match verdict {
            tare_stats::Verdict::Faster => Verdict::Faster,
            tare_stats::Verdict::Slower => Verdict::Slower,
            tare_stats::Verdict::NoDifference => Verdict::NoDifference,
            tare_stats::Verdict::CannotTell => Verdict::CannotTell,
        }
    }
}

impl Comparison {
    /// Whether commands were compared, and no servers.
    pub fn is_of_commands(&self) -> bool {
        !self.programs.is_empty() && self.programs.iter().all(|program| program.url.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_kept_with_its_reason() {
        let why = Missing::with_remedy("too few answers", "give a longer --window");
        let missing = NotKnown { program: "B".into(), figure: Figure::P999, why };
        let value = serde_json::to_value(&missing).unwrap();
        assert_eq!((&value["figure"], &value["missing"]), (&"p99.9".into(), &"too few answers".into()));
        assert_eq!(serde_json::from_value::<NotKnown>(value).unwrap(), missing);
    }
}
