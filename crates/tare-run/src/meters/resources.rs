//! CPU time and the time accounting alone, where nobody counts what was done.

use super::meter::Meter;
use crate::loads::load::Counted;
use std::collections::BTreeMap;
use tare_model::Reading;
use tare_model::trial::{HttpSample, Measure};

/// No count.
pub(super) struct Resources;

impl Meter for Resources {
    fn read(&self, counted: Counted) -> Result<Measure, Counted> {
        match counted {
            Counted::Nothing { why, elapsed_ns } => Ok(Measure::Http(uncounted(elapsed_ns, why))),
            other => Err(other),
        }
    }
}

fn uncounted(elapsed_ns: u64, why: &str) -> HttpSample {
    HttpSample {
        elapsed_ns,
        requests: Reading::missing(why),
        errors: BTreeMap::new(),
        latency: Reading::missing(why),
        printed_quantiles_ns: Vec::new(),
        bytes_in: Reading::missing(why),
        in_flight: Reading::missing(why),
        connections: Reading::missing(why),
        scheduled: None,
        lateness: None,
        slices: Vec::new(),
        detail: None,
    }
}
