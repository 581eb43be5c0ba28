//! A sweep: what is asked for, and what came of it.

use super::factor::{Factor, Setting};
use super::figure::Metering;
use super::levels::Levels;
use crate::error::LabError;
use crate::request::{Request, ServerRequest, Warmup};
use crate::running::Session;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use tare_model::instances::{Fairness, Instance};
use tare_model::scaling::{OrderedCpu, ScaleLevel};
use tare_model::warning::Warning;

/// The record of the launch that showed how long a run takes.
pub(super) const FIRST_RUN: &str = "first-run.tare";
/// Load before a trial.
pub(super) const WARMUP: Duration = Duration::from_millis(300);
/// A server whose runtime compiles is loaded for no longer than this before it counts.
const WARMUP_MAX: Duration = Duration::from_secs(20);

/// What to measure.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// What is measured, but for the factor.
    pub request: Request,
    /// What is varied.
    pub factor: Factor,
    /// Over which values.
    pub levels: Levels,
    /// What has one value.
    pub fixed: Vec<Setting>,
    /// How the figure of a program is made.
    pub metering: Metering,
    /// How long all of it may take.
    pub budget: Duration,
    /// How many blocks; `None`: as many as the budget has room for.
    pub blocks: Option<u32>,
    /// Length of a trial of a server; `None`: as the budget has room.
    pub trial: Option<Duration>,
    /// Seed of the order; `None`: another one each time.
    pub seed: Option<u64>,
    /// How instances are made, where their number is varied.
    pub instances: InstancesAsked,
}

/// How the instances of a service are made.
#[derive(Debug, Clone, Default)]
pub struct InstancesAsked {
    /// CPUs for each; 0 is 1.
    pub cpus_each: usize,
    /// This very program, which measures an instance in a process of its own.
    pub program: PathBuf,
    /// What it was called with, in front of the option that says which instance it measures …
    pub before: Vec<OsString>,
    /// … and behind it.
    pub after: Vec<OsString>,
}

/// What a sweep needs beside itself.
#[derive(Debug)]
pub struct Setup {
    /// Where launches keep their things; its record is not used.
    pub session: Session,
    /// A folder for the record of each launch; `None`: as records that no file was named for.
    pub records: Option<PathBuf>,
}

/// What came of it.
#[derive(Debug)]
pub struct Swept {
    /// Every level that was measured, ascending.
    pub levels: Vec<ScaleLevel>,
    /// CPUs in the order in which they were added, where CPUs were varied.
    pub cpu_order: Vec<OrderedCpu>,
    /// Each instance alone and together, where their number was varied.
    pub instances: Vec<Instance>,
    /// How evenly they lose.
    pub fairness: Vec<Fairness>,
    /// Whole blocks that were measured.
    pub blocks: u32,
    /// Seed of the order.
    pub seed: u64,
    /// What a reader must know.
    pub warnings: Vec<Warning>,
    /// Whether it went to its end.
    pub end: Result<(), LabError>,
}

impl Setup {
    /// Makes the folder of the records.
    pub(super) fn make_folder(&self) -> Result<(), LabError> {
        let Some(folder) = &self.records else { return Ok(()) };
        std::fs::create_dir_all(folder).map_err(|error| {
            LabError::usage(
                format!("cannot use {}: {error}", folder.display()),
                "name another folder with -o",
            )
        })
    }
}

impl Sweep {
    /// The request with what has one value, and a launch that is one trial of it.
    ///
    /// # Errors
    /// One of the values cannot be set.
    pub(super) fn prepared(&self, cpus: &[OrderedCpu]) -> Result<Request, LabError> {
        let mut request = self.request.clone();
        for setting in &self.fixed {
            setting.factor.check(&[setting.value], &request, cpus)?;
            request = setting.of(&request, cpus);
        }
        if let Request::Server(server) = &mut request {
            short(server);
        }
        Ok(request)
    }
}

/// A launch is one trial of what is asked for, without what `tare run` measures beside it.
fn short(server: &mut ServerRequest) {
    server.trials.count = 1;
    server.trials.stopping = None;
    if let Warmup::UntilSteady { .. } = server.trials.warmup {
        server.trials.warmup = Warmup::UntilCompiled { at_least: WARMUP, at_most: WARMUP_MAX };
    }
    server.beside.no_levels = true;
    server.beside.no_reference = true;
}
