//! What becomes of a trial that was driven.

use crate::error::LabError;
use crate::loads::load::{Counted, Driven};
use crate::meters;
use crate::progress::Event;
use crate::running::Running;
use tare_model::trial::{Measure, Trial};

/// Has a trial read by its meter, and puts it on disk.
pub(crate) fn keep(driven: Driven, running: &mut Running<'_>) -> Result<(), LabError> {
    let Driven { level, counted, observation } = driven;
    let report = match &counted {
        Counted::Printed { report, .. } => Some(report.clone()),
        _ => None,
    };
    let mut sample = meters::read(counted)?;
    let value = match &mut sample {
        Measure::Http(sample) => {
            if let Some(detail) = sample.detail.as_mut().filter(|_| running.is_asked(level)) {
                detail.warm_up = running.warm_up.take();
            }
            // Of its own turns, as while it ran.
            let own_s = sample.elapsed_ns.max(1) as f64 / 1e9 / f64::from(running.arms(level));
            sample.requests.value().map(|count| *count as f64 / own_s)
        }
        Measure::Command(run) => Some(run.wall_ns as f64 / 1e9),
    };
    let seq = running.next_seq();
    running.keep(Trial { seq, level, sample, observation, report })?;
    running.progress.show(Event::TrialDone { seq, value, unit: running.unit() });
    Ok(())
}
