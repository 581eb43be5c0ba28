//! What every load can do, and what comes of it.

use crate::blocks::Stint;
use crate::error::LabError;
use crate::running::Running;
use crate::subjects::sut::Sut;
use tare_model::observation::Observation;
use tare_model::stacks::Stacks;
use tare_model::trial::{CommandSample, GeneratorReport, HttpSample, WarmUp};

/// Something that makes a subject work.
pub(crate) trait Load {
    /// Load before the first trial that counts; what it showed, where that is known.
    fn warm_up(&mut self, _sut: &mut Sut, _running: &mut Running<'_>) -> Result<Option<WarmUp>, LabError> {
        Ok(None)
    }

    /// Drives trials, those of one stint at once, while the observers watch.
    fn drive(
        &mut self,
        stint: &Stint,
        sut: &mut Sut,
        running: &mut Running<'_>,
    ) -> Result<Vec<Driven>, LabError>;

    /// Call stacks under the load that was asked for, after the last trial, window by window; none where this load has no such windows.
    fn profile(&mut self, _sut: &mut Sut, _running: &mut Running<'_>) -> Vec<Stacks> {
        Vec::new()
    }

    /// After the last trial.
    fn end(&mut self, _running: &mut Running<'_>) -> Result<(), LabError> {
        Ok(())
    }
}

/// A trial that was driven.
pub(crate) struct Driven {
    /// Which level it is of; of programs there is one.
    pub level: u32,
    pub counted: Counted,
    pub observation: Observation,
}

impl Driven {
    /// How long a run of a program took.
    pub fn wall_ns(&self) -> Option<u64> {
        match &self.counted {
            Counted::Run(sample) => Some(sample.wall_ns),
            _ => None,
        }
    }
}

/// What there is to count a trial's result by.
pub(crate) enum Counted {
    /// What tare's own generator counted.
    Requests(Box<HttpSample>),
    /// What somebody else's generator printed by its end, and how long it was watched.
    Printed { output: String, window_ns: u64, rate_hz: Option<f64>, report: Box<GeneratorReport> },
    /// A run of a program.
    Run(CommandSample),
    /// Nothing; why not, and how long the trial was.
    Nothing { why: &'static str, elapsed_ns: u64 },
}
