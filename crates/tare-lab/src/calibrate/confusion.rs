//! What a verdict says of an injection, and what all of them come to. Pure.

use super::injection::Injection;
use tare_record::calibration::{Found, Run, RunResult, Summary};
use tare_record::outcome::{Cause, Finding, Gross, NetOrMissing, Outcome};

/// What costs less than this, on the log, limits nothing: it is a note.
const NOTE_LN: f64 = tare_explain::LOSS_SHARE_MIN;

/// Judges a verdict by what was injected.
pub(super) fn judge(injection: &Injection, undisturbed: bool, outcome: &Outcome) -> Found {
    let expected = |cause: &Cause| injection.expected.contains(cause);
    let beside = outcome.findings.iter().filter(|finding| finding.cause != outcome.limit);
    let first_finding = beside.filter(|finding| !is_note(finding)).map(|finding| finding.cause).next();
    let found = std::iter::once(outcome.limit).chain(first_finding).find(expected);
    let alarms: Vec<Cause> = match undisturbed {
        true => {
            outcome.findings.iter().filter(|finding| is_alarm(injection, finding)).map(|f| f.cause).collect()
        }
        false => Vec::new(),
    };
    // Of an undisturbed run the limit itself must be one of those that are always there.
    let right = match undisturbed {
        true => expected(&outcome.limit) && alarms.is_empty(),
        false => found.is_some(),
    };
    Found {
        limit: outcome.limit,
        first_finding,
        found: found.unwrap_or(outcome.limit),
        right,
        alarms,
        gross: match &outcome.gross {
            Gross::Measured(estimate) => Some(estimate.value),
            Gross::Missing { .. } => None,
        },
        net: match &outcome.net {
            NetOrMissing::Net(net) => Some(net.value),
            NetOrMissing::Missing(_) => None,
        },
    }
}

/// Whether a finding is of a loss that is there, and too small to limit anything. Causes that have no loss of their own (errors, threads
/// in each other's way) are none, and a drift is none: its effect is how far the figure moved, and it is only told where that matters.
fn is_note(finding: &Finding) -> bool {
    finding.effect_ln > 0.0 && finding.effect_ln < NOTE_LN && finding.cause != Cause::NotSteady
}

/// Whether a finding tells of something that is not there: neither a limit that is, nor a note.
fn is_alarm(injection: &Injection, finding: &Finding) -> bool {
    !injection.expected.contains(&finding.cause) && !is_note(finding)
}

/// Counts the runs.
pub(super) fn summary(runs: &[Run], is_undisturbed: impl Fn(&str) -> bool) -> Summary {
    let (counted, disturbed): (Vec<&Run>, Vec<&Run>) = runs.iter().partition(|run| run.disturbed.is_empty());
    let mut summary = Summary { runs: counted.len(), disturbed: disturbed.len(), ..Summary::default() };
    for run in counted {
        let undisturbed = is_undisturbed(&run.injection);
        summary.undisturbed += usize::from(undisturbed);
        let RunResult::Weighed(found) = &run.result else { continue };
        summary.right += usize::from(found.right);
        summary.false_alarms += usize::from(undisturbed && !found.right);
        *summary.confusion.entry(run.injection.clone()).or_default().entry(found.found).or_default() += 1;
    }
    summary
}
