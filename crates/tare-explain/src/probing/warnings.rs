//! What a reader must know before quoting a figure.

use super::measured::Measured;
use super::rows::{failures, requests};
use tare_model::warning::Warning;

/// From this share of failed requests on there is a warning.
const FAILED_SHARE: f64 = 0.01;
/// The probe's own lateness is worth a warning from this share of the response time on, and from so many seconds.
const LATE_SHARE: f64 = 0.5;
const LATE_S: f64 = 1e-3;

pub(super) fn all(measured: &Measured<'_>) -> Vec<Warning> {
    let run = measured.run;
    let mut warnings = run.warnings.clone();
    for state in &run.states {
        if let Some(failed) = &state.failed {
            warnings.push(warning(
                "state-failed",
                format!(
                    "the state '{}' could not be made in round {}: {}",
                    state.name,
                    failed.round + 1,
                    failed.what
                ),
                "it was not tried again, and all else was measured; run its command by hand",
            ));
        }
    }
    if run
        .probes
        .iter()
        .any(|probe| probe.calls_assumed && probe.calls.as_ref().is_some_and(|calls| !calls.is_empty()))
    {
        warnings.push(warning(
            "calls-assumed",
            "nobody said what the services call: each database and cache that has a probe was taken for one"
                .into(),
            "--via SERVICE:PROBE,PROBE says it",
        ));
    }
    for (at, probe) in run.probes.iter().enumerate() {
        let windows: Vec<_> = run.windows.iter().filter(|window| window.probe == at).collect();
        let sent: u64 = windows.iter().map(|window| requests(window)).sum();
        let failed = failures(&windows);
        let count: u64 = failed.iter().map(|failure| failure.count).sum();
        if let Some(most) = failed.first().filter(|_| count as f64 > FAILED_SHARE * sent as f64) {
            let of_them = if most.count == count {
                "all of them".to_owned()
            } else {
                format!("{} of them", most.count)
            };
            warnings.push(warning(
                "probes-failed",
                format!("{count} of {sent} requests of {} failed, {of_them}: {}", probe.name, most.why),
                "they count as slower than all answers, one that timed out as the time limit",
            ));
        }
        let late = windows.iter().filter(|window| {
            let (time, late) = (tare_stats::median(&window.times_s), window.own_lateness_s);
            time.zip(late).is_some_and(|(time, late)| late > LATE_S && late > LATE_SHARE * time)
        });
        if 2 * late.count() > windows.len() {
            warnings.push(warning(
                "probe-late",
                format!("tare itself got no CPU in time for the requests of {}", probe.name),
                "its wake-up is in no response time, but the answers waited for it too: probe from another host, or leave it a CPU",
            ));
        }
    }
    warnings
}

fn warning(id: &str, text: String, hint: &str) -> Warning {
    Warning { id: id.into(), text, hint: hint.into() }
}
