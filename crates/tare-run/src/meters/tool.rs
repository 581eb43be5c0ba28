//! Somebody else's generator: started for each trial or found running, its summary read when it ends.

use crate::error::LabError;
use crate::process::Started;
use std::collections::BTreeMap;
use tare_model::Reading;
use tare_model::trial::HttpSample;

/// What is known when the generator says nothing that can be read.
pub fn uncounted(elapsed_ns: u64, why: &str) -> HttpSample {
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

/// Reads an ended generator's summary.
pub fn summary(generator: &mut Started, window_ns: u64) -> Result<HttpSample, LabError> {
    let output = generator.output();
    let status = generator.exit_description();
    if !generator.succeeded() {
        return Err(LabError::Load { what: format!("failed: {status}"), last_output: output });
    }
    Ok(tare_formats::http_sample(&output, window_ns))
}
