//! What counts the result: one file each, and the registry.

pub(crate) mod meter;
mod requests;
mod resources;
mod runs;
mod tool;

use crate::error::LabError;
use crate::loads::load::Counted;
use meter::Meter;
use tare_model::trial::Measure;

/// Every meter.
static METERS: [&dyn Meter; 4] = [&requests::Requests, &tool::Tool, &runs::Runs, &resources::Resources];

/// Reads what a trial came to.
pub(crate) fn read(mut counted: Counted) -> Result<Measure, LabError> {
    for meter in METERS {
        match meter.read(counted) {
            Ok(measured) => return Ok(measured),
            Err(not_mine) => counted = not_mine,
        }
    }
    Err(LabError::Observe("no meter reads what was driven".to_owned()))
}
