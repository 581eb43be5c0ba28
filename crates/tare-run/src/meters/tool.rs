//! What somebody else's generator says that it did, read from what it printed.

use super::meter::Meter;
use crate::loads::load::Counted;
use tare_model::trial::Measure;

/// A summary that a format reads.
pub(super) struct Tool;

impl Meter for Tool {
    fn read(&self, counted: Counted) -> Result<Measure, Counted> {
        match counted {
            Counted::Printed { output, window_ns, rate_hz, .. } => {
                Ok(Measure::Http(tare_formats::http_sample(&output, window_ns, rate_hz)))
            }
            other => Err(other),
        }
    }
}
