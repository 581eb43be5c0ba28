//! Requests, as tare's own generator counts them.

use super::meter::Meter;
use crate::loads::load::Counted;
use tare_model::trial::Measure;

/// Answers of tare's own generator.
pub(super) struct Requests;

impl Meter for Requests {
    fn read(&self, counted: Counted) -> Result<Measure, Counted> {
        match counted {
            Counted::Requests(sample) => Ok(Measure::Http(*sample)),
            other => Err(other),
        }
    }
}
