//! Runs of a program: their wall and CPU time.

use super::meter::Meter;
use crate::loads::load::Counted;
use tare_model::trial::Measure;

/// Runs.
pub(super) struct Runs;

impl Meter for Runs {
    fn read(&self, counted: Counted) -> Result<Measure, Counted> {
        match counted {
            Counted::Run(sample) => Ok(Measure::Command(sample)),
            other => Err(other),
        }
    }
}
