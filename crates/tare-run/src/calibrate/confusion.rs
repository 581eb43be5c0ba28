//! What a verdict says of an injection, and what all of them come to. Pure.

use super::injection::Injection;
use tare_model::calibration::{FINDINGS_MAX, Found, Listed, Run, RunResult, Summary};
use tare_model::outcome::{Cause, Finding, Gross, NetOrMissing, Outcome};

/// What costs less than this, on the log, is a note: a loss of a smaller share of the CPU entitlement is no finding of its own (and a share is less
/// than what it is on the log), so that this is left to the bottleneck and to what costs by more than time.
pub(super) const NOTE_LN: f64 = tare_explain::NOTICE_SHARE;
/// What the host takes of a run is there whatever was injected; up to what limits a server it stands before nothing.
const INTERFERENCE_LN: f64 = tare_explain::LOSS_SHARE_MIN;

/// Judges a verdict by what was injected.
pub(super) fn judge(injection: &Injection, undisturbed: bool, outcome: &Outcome) -> Found {
    let expected = |cause: &Cause| injection.expects(*cause);
    let beside =
        outcome.verdict.findings.iter().filter(|finding| finding.cause != outcome.verdict.bottleneck);
    let first_finding = beside
        .filter(|finding| !is_note(finding) && !is_interference(finding))
        .map(|finding| finding.cause)
        .next();
    let found = std::iter::once(outcome.verdict.bottleneck).chain(first_finding).find(expected);
    let alarms: Vec<Cause> = match undisturbed {
        true => outcome
            .verdict
            .findings
            .iter()
            .filter(|finding| is_alarm(injection, finding))
            .map(|f| f.cause)
            .collect(),
        false => Vec::new(),
    };
    // Of an undisturbed run the bottleneck itself must be one of those that are always there.
    let right = match undisturbed {
        true => expected(&outcome.verdict.bottleneck) && alarms.is_empty(),
        false => found.is_some(),
    };
    Found {
        bottleneck: outcome.verdict.bottleneck,
        first_finding,
        found: found.unwrap_or(outcome.verdict.bottleneck),
        right,
        alarms,
        gross: match &outcome.figures.gross {
            Gross::Measured(estimate) => Some(estimate.value),
            Gross::Missing { .. } => None,
        },
        net: match &outcome.figures.net {
            NetOrMissing::Net(net) => Some(net.value),
            NetOrMissing::Missing(_) => None,
        },
        findings: outcome.verdict.findings.iter().take(FINDINGS_MAX).map(listed).collect(),
        right_as_listed: Some(is_right_as_listed(injection, undisturbed, outcome)),
    }
}

fn listed(finding: &Finding) -> Listed {
    Listed { cause: finding.cause, effect_ln: finding.effect_ln }
}

/// By what the verdict lists, and nothing passed over because it costs little.
fn is_right_as_listed(injection: &Injection, undisturbed: bool, outcome: &Outcome) -> bool {
    let expected = |finding: &Finding| injection.expects(finding.cause);
    let bottleneck = injection.expects(outcome.verdict.bottleneck);
    match undisturbed {
        true => bottleneck && outcome.verdict.findings.iter().all(expected),
        false => bottleneck || outcome.verdict.findings.first().is_some_and(expected),
    }
}

/// Whether a finding is of a loss that is there, and too small to be reported. Causes that have no loss of their own (errors, threads
/// in each other's way) are none, and a drift is none: its effect is how far the figure moved, and it is only reported where that matters.
fn is_note(finding: &Finding) -> bool {
    finding.effect_ln > 0.0 && finding.effect_ln < NOTE_LN && finding.cause != Cause::NotSteady
}

fn is_interference(finding: &Finding) -> bool {
    finding.cause == Cause::Steal && finding.effect_ln < INTERFERENCE_LN
}

/// Whether a finding names something that is not there: neither as the bottleneck, nor as a note.
fn is_alarm(injection: &Injection, finding: &Finding) -> bool {
    !injection.expects(finding.cause) && !is_note(finding)
}

/// Counts the runs.
pub(super) fn summary(runs: &[Run], is_undisturbed: impl Fn(&str) -> bool) -> Summary {
    let (counted, disturbed): (Vec<&Run>, Vec<&Run>) = runs.iter().partition(|run| run.disturbed.is_empty());
    let mut summary = Summary { runs: counted.len(), disturbed: disturbed.len(), ..Summary::default() };
    let mut as_listed = Some(0);
    for run in counted {
        let undisturbed = is_undisturbed(&run.injection);
        summary.undisturbed += usize::from(undisturbed);
        let RunResult::Measured(found) = &run.result else { continue };
        as_listed = as_listed.zip(found.right_as_listed).map(|(sum, right)| sum + usize::from(right));
        summary.right += usize::from(found.right);
        summary.false_alarms += usize::from(undisturbed && !found.right);
        *summary.confusion.entry(run.injection.clone()).or_default().entry(found.found).or_default() += 1;
    }
    summary.right_as_listed = as_listed;
    summary
}
