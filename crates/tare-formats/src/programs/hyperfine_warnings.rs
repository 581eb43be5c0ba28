//! What any output of hyperfine may show to be wrong with its figures.

use crate::metrics::Metrics;
use serde_json::Value;

/// Commands shorter than this are not much longer than the start of a process; hyperfine itself warns below it.
const SHORT_S: f64 = 5e-3;

/// With `-i` the times of runs that failed are among the others.
pub(super) fn failures(benchmark: &str, codes: &[&Value], metrics: &mut Metrics) {
    let failed = codes.iter().filter(|code| code.as_i64() != Some(0)).count();
    if failed > 0 {
        let first = codes.iter().find(|code| code.as_i64() != Some(0));
        let first = match first.filter(|code| !code.is_null()) {
            Some(code) => format!("the first with exit code {code}"),
            None => "the first by a signal".to_owned(),
        };
        metrics.warn(
            "tool-counts-failures",
            &format!(
                "{failed} of {} runs of `{benchmark}` failed, {first}; their times are among the others",
                codes.len()
            ),
            "a failed run may end early: run the command alone and see why it fails; leave -i out",
        );
    }
}

pub(super) fn short(benchmark: &str, what: &str, time_s: Option<f64>, metrics: &mut Metrics) {
    if let Some(time_s) = time_s.filter(|time_s| *time_s < SHORT_S) {
        metrics.warn(
            "tool-times-process-start",
            &format!(
                "`{benchmark}` took {:.2} ms in the {what}: most of it may be the start of the process",
                time_s * 1e3
            ),
            "give the command more work in one process, and run hyperfine with --shell=none",
        );
    }
}
