//! What the user asked for, parsed but not judged. Defaults are applied here, once: whoever makes a request says what differs from them.

use std::path::PathBuf;
use std::time::Duration;
use tare_formats::Choice;
use tare_load::LoadSpec;
use tare_model::placement::Policy;
use tare_model::plan::Stopping;

pub use tare_observe::{Names, StackWatch, Unwind};

/// Trials of a level unless others are asked for.
const TRIALS: u32 = 8;
/// Trials with somebody else's generator, whose own length is unknown.
const TRIALS_FOREIGN: u32 = 3;
/// The rate must be seen for so long before it can be called steady, and is given up after so long.
const WARMUP_MIN: Duration = Duration::from_millis(1500);
const WARMUP_MAX: Duration = Duration::from_secs(20);

/// A request to measure something.
#[derive(Debug, Clone)]
pub enum Request {
    /// A server, under a load.
    Server(Box<ServerRequest>),
    /// A program that ends.
    Program(Box<CommandRequest>),
}

/// A request to measure a server.
#[derive(Debug, Clone)]
pub struct ServerRequest {
    /// The command line, for the record.
    pub argv: Vec<String>,
    /// Where the load goes; `None`: to the embedded server, or where somebody else's generator is connected to.
    pub url: Option<String>,
    /// Where the SUT comes from.
    pub sut: SutRequest,
    /// Who makes the load.
    pub load: LoadRequest,
    /// The load to make, but for where it goes and what a level changes; used by tare's own generator.
    pub traffic: LoadSpec,
    /// How many trials, how long, after which warm-up.
    pub trials: TrialsRequest,
    /// Who runs where.
    pub place: PlaceRequest,
    /// What is done beside the trials of the asked level.
    pub beside: BesideRequest,
    /// What is watched beyond the usual.
    pub watch: WatchRequest,
    /// Clock that net is stated at.
    pub ref_clock_hz: Option<f64>,
    /// How to start the embedded server: the program and its leading arguments.
    pub embedded_program: PathBuf,
}

impl ServerRequest {
    /// Everything as it is unless others are asked for.
    pub fn new(sut: SutRequest, load: LoadRequest, traffic: LoadSpec, embedded_program: PathBuf) -> Self {
        let trials = TrialsRequest {
            length: None,
            count: if matches!(load, LoadRequest::Start(_)) { TRIALS_FOREIGN } else { TRIALS },
            stopping: None,
            warmup: Warmup::UntilSteady { at_least: WARMUP_MIN, at_most: WARMUP_MAX },
        };
        ServerRequest {
            argv: Vec::new(),
            url: None,
            sut,
            load,
            traffic,
            trials,
            place: PlaceRequest::default(),
            beside: BesideRequest::default(),
            watch: WatchRequest::default(),
            ref_clock_hz: None,
            embedded_program,
        }
    }
}

/// How many trials, how long, after which warm-up.
#[derive(Debug, Clone)]
pub struct TrialsRequest {
    /// Length of a trial; `None`: a timeline's own, or a second.
    pub length: Option<Duration>,
    /// How many trials, where `stopping` does not end them.
    pub count: u32,
    /// Trials go on until gross is known well enough, or time is up.
    pub stopping: Option<Stopping>,
    /// Load before the first trial.
    pub warmup: Warmup,
}

/// Who runs where.
#[derive(Debug, Clone, Default)]
pub struct PlaceRequest {
    /// CPUs to hold the SUT on.
    pub sut_cpus: Option<Vec<u32>>,
    /// CPUs to hold the generator on.
    pub load_cpus: Option<Vec<u32>>,
    /// How to choose the CPUs of a SUT that tare starts; `None`: tare's own server has one, another program all.
    pub policy: Option<Policy>,
    /// Start the SUT with variables that fit its runtime to the CPUs and the memory that it may use.
    pub fit_runtime: bool,
    /// How long a SUT that tare starts may take until it answers or listens; `None`: 30 s.
    pub start_timeout: Option<Duration>,
}

/// What is done beside the trials of the asked level.
#[derive(Debug, Clone, Copy, Default)]
pub struct BesideRequest {
    /// Drive only the level that was asked for.
    pub no_levels: bool,
    /// Do not measure the reference server beside the SUT.
    pub no_reference: bool,
    /// Try afterwards whether the bottleneck is what it is said to be.
    pub confirm: bool,
    /// Whether layouts of the generator are tried first, and the one with the most headroom taken.
    pub find_layout: bool,
}

/// What is watched beyond the usual.
#[derive(Debug, Clone, Copy, Default)]
pub struct WatchRequest {
    /// Trace switches and wake-ups of the SUT's threads.
    pub trace: bool,
    /// Which call stacks to sample in every trial.
    pub stacks: Option<StackWatch>,
    /// Whether some are sampled after the trials, where they are not sampled in them.
    pub profile: bool,
}

/// Where the SUT comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SutRequest {
    /// Tare's own server, as a child.
    Embedded,
    /// Whoever answers at the URL; without one, whom the generator is connected to.
    Find,
    /// This process and its descendants.
    Pid(u32),
    /// The processes of this control group and their descendants.
    Group(String),
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

impl LoadRequest {
    /// Whether it is tare's own generator.
    pub fn is_own(&self) -> bool {
        matches!(self, LoadRequest::Own { .. })
    }

    /// The threads of tare's own generator that were asked for.
    pub fn own_threads(&self) -> Option<u32> {
        match self {
            LoadRequest::Own { threads } => *threads,
            LoadRequest::Start(_) | LoadRequest::Pid(_) => None,
        }
    }
}

/// A request to measure a program.
#[derive(Debug, Clone, Default)]
pub struct CommandRequest {
    /// The command line, for the record.
    pub argv: Vec<String>,
    /// Trace switches and wake-ups of the program's threads.
    pub trace: bool,
    /// What to run: one string for a shell, or a program with its arguments.
    pub command: Vec<String>,
    /// The shell; `None`: the program itself is run.
    pub shell: Option<String>,
    /// `{name}` in the command is replaced by each value in turn.
    pub parameters: Vec<Parameter>,
    /// How often.
    pub runs: RunsRequest,
    /// What runs around it.
    pub around: AroundRequest,
    /// A non-zero exit is not an error.
    pub ignore_failure: bool,
    /// Let the command write to this terminal.
    pub show_output: bool,
    /// What it reads: a file's name, or the text itself.
    pub input: Option<String>,
    /// Run it in a terminal of its own.
    pub pty: bool,
    /// Who runs where; the program is the SUT.
    pub place: PlaceRequest,
    /// `cgroup.procs` of the control groups that it is in from its first instruction; empty: ours.
    pub groups: Vec<PathBuf>,
    /// Clock that net is stated at.
    pub ref_clock_hz: Option<f64>,
    /// Which results of a benchmark runs are to make known.
    pub chosen: Choice,
}

/// How often a program is run.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunsRequest {
    /// Counted runs; `None`: at least 10 and at least 3 s, or what `stopping` says.
    pub count: Option<u32>,
    /// Runs go on until their time is known well enough, or time is up.
    pub stopping: Option<Stopping>,
    /// Runs before those.
    pub warmup: u32,
    /// A run is ended after so long.
    pub time_limit: Option<Duration>,
}

/// What runs around a program's runs.
#[derive(Debug, Clone, Default)]
pub struct AroundRequest {
    /// Once before the first run of each command.
    pub setup: Option<String>,
    /// Before each run, not timed.
    pub prepare: Option<String>,
    /// Once after the last run of each command.
    pub cleanup: Option<String>,
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
    /// At least so long, as where launches are many; of a server whose runtime compiles until it is warm, within the bound.
    UntilCompiled {
        /// What a server that was compiled ahead gets.
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
            Warmup::UntilSteady { at_least, .. } | Warmup::UntilCompiled { at_least, .. } => at_least,
        }
    }

    /// No longer than this, where it may be shorter.
    pub fn within(self, longest: Duration) -> Warmup {
        match self {
            Warmup::UntilSteady { at_least, at_most } => {
                Warmup::UntilSteady { at_least, at_most: at_most.min(longest) }
            }
            Warmup::UntilCompiled { at_least, at_most } => {
                Warmup::UntilCompiled { at_least, at_most: at_most.min(longest) }
            }
            fixed @ Warmup::Fixed(_) => fixed,
        }
    }

    /// The longest that it may be.
    pub fn at_most(&self) -> Duration {
        match *self {
            Warmup::Fixed(length) => length,
            Warmup::UntilSteady { at_most, .. } | Warmup::UntilCompiled { at_most, .. } => at_most,
        }
    }
}
