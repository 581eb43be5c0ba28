//! What the user asked for, parsed but not judged.

use std::path::PathBuf;
use std::time::Duration;
use tare_load::LoadSpec;
use tare_model::placement::Policy;
use tare_model::plan::Stopping;

pub use tare_observe::{StackWatch, Unwind};

/// A request to measure a server.
#[derive(Debug, Clone)]
pub struct HttpRequest {
    /// Where the load goes; `None` only with the embedded server.
    pub url: Option<String>,
    /// The command line, for the record.
    pub argv: Vec<String>,
    /// Where the SUT comes from.
    pub sut: SutRequest,
    /// Who makes the load.
    pub load: LoadRequest,
    /// The load to make, but for where it goes and what a level changes; used by tare's own generator.
    pub traffic: LoadSpec,
    /// Length of a trial; `None`: a course's own, or two seconds, or one where `stopping` ends them.
    pub trial: Option<Duration>,
    /// How many trials, where `stopping` does not end them.
    pub trials: u32,
    /// Trials go on until gross is known well enough, or time is up.
    pub stopping: Option<Stopping>,
    /// Load before the first trial.
    pub warmup: Warmup,
    /// CPUs to hold the SUT on.
    pub sut_cpus: Option<Vec<u32>>,
    /// CPUs to hold the generator on.
    pub load_cpus: Option<Vec<u32>>,
    /// How to choose the CPUs of a SUT that tare starts; `None`: tare's own server has one, another program all.
    pub placement: Option<Policy>,
    /// Start the SUT with variables that fit its runtime to the CPUs and the memory that it may use.
    pub fit_runtime: bool,
    /// Trace switches and wake-ups of the SUT's threads.
    pub trace: bool,
    /// Drive only the level that was asked for.
    pub no_levels: bool,
    /// Do not measure the reference server beside the SUT.
    pub no_reference: bool,
    /// Try afterwards whether the bottleneck is what it is said to be.
    pub confirm: bool,
    /// Whether layouts of the generator are tried first, and the one with the most headroom taken.
    pub find_layout: bool,
    /// Which call stacks to sample in every trial.
    pub stacks: Option<StackWatch>,
    /// Clock that net is stated at.
    pub ref_clock_hz: Option<f64>,
    /// How to start the embedded server: the program and its leading arguments.
    pub embedded_program: PathBuf,
}

/// Where the SUT comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SutRequest {
    /// Tare's own server, as a child.
    Embedded,
    /// Whoever answers at the URL.
    Find,
    /// This process and its descendants.
    Pid(u32),
    /// Start this and stop it afterwards.
    Start(String),
}

/// Who makes the load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadRequest {
    /// Tare's generator with so many threads (`None`: as many as its CPUs).
    Own {
        /// Threads.
        threads: Option<u32>,
    },
    /// Start this for every trial.
    Start(String),
    /// This process, already running.
    Pid(u32),
}

/// A request to measure a program.
#[derive(Debug, Clone)]
pub struct CommandRequest {
    /// The command line, for the record.
    pub argv: Vec<String>,
    /// Trace switches and wake-ups of the program's threads.
    pub trace: bool,
    /// What to run: one string for a shell, or a program with its arguments.
    pub command: Vec<String>,
    /// The shell; `None`: the program itself is run.
    pub shell: Option<String>,
    /// Counted runs; `None`: at least 10 and at least 3 s, or what `stopping` says.
    pub runs: Option<u32>,
    /// Runs go on until their time is known well enough, or time is up.
    pub stopping: Option<Stopping>,
    /// Runs before those.
    pub warmup: u32,
    /// Once before the first run of each command.
    pub setup: Option<String>,
    /// Before each run, not timed.
    pub prepare: Option<String>,
    /// Once after the last run of each command.
    pub cleanup: Option<String>,
    /// A non-zero exit is not an error.
    pub ignore_failure: bool,
    /// Let the command write to this terminal.
    pub show_output: bool,
    /// `{name}` in the command is replaced by each value in turn.
    pub parameters: Vec<Parameter>,
    /// Start the program with variables that fit its runtime to the CPUs and the memory that it may use.
    pub fit_runtime: bool,
    /// CPUs to hold the program on.
    pub sut_cpus: Option<Vec<u32>>,
    /// `cgroup.procs` of the control groups that it is in from its first instruction; empty: ours.
    pub groups: Vec<PathBuf>,
    /// Clock that net is stated at.
    pub ref_clock_hz: Option<f64>,
}

/// A parameter and the values it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The name between braces.
    pub name: String,
    /// Its values, in order.
    pub values: Vec<String>,
}

/// How long to load a server before its first trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Warmup {
    /// So long.
    Fixed(Duration),
    /// Until its rate is at one level, within bounds.
    UntilSteady {
        /// At least so long.
        at_least: Duration,
        /// And no longer than that.
        at_most: Duration,
    },
}

impl Warmup {
    /// The shortest that it may be.
    pub fn at_least(&self) -> Duration {
        match *self {
            Warmup::Fixed(length) => length,
            Warmup::UntilSteady { at_least, .. } => at_least,
        }
    }

    /// No longer than this, where it may be shorter.
    pub fn within(self, longest: Duration) -> Warmup {
        match self {
            Warmup::UntilSteady { at_least, at_most } => {
                Warmup::UntilSteady { at_least, at_most: at_most.min(longest) }
            }
            fixed => fixed,
        }
    }

    /// The longest that it may be.
    pub fn at_most(&self) -> Duration {
        match *self {
            Warmup::Fixed(length) => length,
            Warmup::UntilSteady { at_most, .. } => at_most,
        }
    }
}
