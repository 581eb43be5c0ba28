//! What is to be compared, and what comes of it.

use crate::error::LabError;
use crate::request::Warmup;
use crate::treatment::Treatment;
use std::path::PathBuf;
use std::time::Duration;
use tare_load::LoadSpec;
use tare_model::comparison::Comparison;

pub use crate::ports::PORT;
/// Stands for the built-in server where a command is wanted.
pub const EMBEDDED: &str = "embedded";
/// Connections for each CPU that servers have, unless another number is asked for: enough to keep it busy, and few enough for short turns, as what is in flight
/// at the end of one is waited for.
pub const CONNECTIONS_EACH_CPU: u32 = 8;

/// Load before a launch is counted, where nothing else is asked for: what is compiled ahead needs no more, and what is not gets as long as it needs,
/// within this and three tenths of the budget.
pub const WARMUP: Warmup =
    Warmup::UntilCompiled { at_least: Duration::from_millis(200), at_most: Duration::from_secs(60) };

/// What is to be compared, parsed but not judged.
#[derive(Debug, Clone)]
pub struct Request {
    /// The command line, for the result.
    pub argv: Vec<String>,
    /// Commands, with `{port}`, or [`EMBEDDED`]; the first is what the others are held against.
    pub programs: Vec<Asked>,
    /// The load to make, but for its connections, where it goes and when.
    pub traffic: LoadSpec,
    /// Connections to each server; `None`: [`CONNECTIONS_EACH_CPU`] for each CPU of the servers.
    pub connections: Option<u32>,
    /// Threads of each generator; `None`: one for each of its CPUs.
    pub threads: Option<u32>,
    /// How long it may take.
    pub budget: Duration,
    /// How narrow the intervals of rate and cost must be to end before that, as a share.
    pub precision: f64,
    /// Differences up to this share do not matter.
    pub margin: f64,
    /// Seed of the orders; `None`: another one each time.
    pub seed: Option<u64>,
    /// Counted load in a launch, all programs together; `None`: as long as the first ones show to be best.
    pub window: Option<Duration>,
    /// Load before that; `None`: starts are what is to be measured.
    pub warmup: Option<Warmup>,
    /// How long a server may take until it answers; `None`: 30 s.
    pub start_timeout: Option<Duration>,
    /// CPUs to hold the servers on.
    pub sut_cpus: Option<Vec<u32>>,
    /// CPUs to hold the generators on.
    pub load_cpus: Option<Vec<u32>>,
    /// The program that is the built-in server.
    pub embedded_program: PathBuf,
    /// What each program is run with; empty: nothing but as it is.
    pub treatments: Vec<Treatment>,
}

/// A program and what it is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// What starts it.
    pub command: String,
    /// `http://127.0.0.1:{port}/path`.
    pub url: String,
}

/// How a comparison ended, and what there is of it.
#[derive(Debug)]
pub struct Compared {
    /// What came of the launches that were measured to their end; `None` where there is none.
    pub comparison: Option<Comparison>,
    /// Whether it went to its end.
    pub end: Result<(), LabError>,
}
