//! What a verdict says of a truth, and what all of them come to. Pure.

use std::collections::BTreeMap;
use tare_model::calibration::Listed;
use tare_model::outcome::{Cause, Finding, Gross, NetOrMissing, Outcome};
use tare_model::zoo::{FINDINGS_MAX, Found, Judgement, Run, RunResult, Summary, Truth};

/// Accounting that leaves less open is closed.
const CLOSED: f64 = 0.01;
/// Nets of the same program that differ by no more repeat.
const NETS_APART: f64 = 0.05;
/// What costs less than this, on the log, is a note.
const NOTE_LN: f64 = tare_explain::NOTICE_SHARE;

/// Judges a verdict by what is true: the bottleneck alone counts.
pub(super) fn judge(truth: &Truth, outcome: &Outcome) -> Found {
    let verdict = &outcome.verdict;
    let accepted = |cause: Cause| truth.accepts.contains(&cause.id());
    let judgement = match verdict.bottleneck {
        cause if accepted(cause) => Judgement::Right,
        Cause::Unknown | Cause::TooNoisy => Judgement::NotKnown,
        _ => Judgement::Wrong,
    };
    let is_alarm = |finding: &&Finding| {
        let own = finding.cause == verdict.bottleneck || accepted(finding.cause);
        let note =
            finding.effect_ln > 0.0 && finding.effect_ln < NOTE_LN && finding.cause != Cause::NotSteady;
        truth.undisturbed && !own && !note
    };
    Found {
        bottleneck: verdict.bottleneck,
        confidence: verdict.bottleneck_confidence,
        judgement,
        valid: verdict.valid,
        alarms: verdict.findings.iter().filter(is_alarm).map(|finding| finding.cause).collect(),
        residual_ratio: outcome.accounting.residual_ratio,
        gross: match &outcome.figures.gross {
            Gross::Measured(estimate) => Some(estimate.value),
            Gross::Missing { .. } => None,
        },
        net: match &outcome.figures.net {
            NetOrMissing::Net(net) => Some(net.value),
            NetOrMissing::Missing(_) => None,
        },
        findings: verdict.findings.iter().take(FINDINGS_MAX).map(listed).collect(),
    }
}

fn listed(finding: &Finding) -> Listed {
    Listed { cause: finding.cause, effect_ln: finding.effect_ln }
}

/// Counts the runs.
pub(super) fn summary(runs: &[Run], truths: &[Truth]) -> Summary {
    let mut summary = Summary { runs: runs.len(), ..Summary::default() };
    let mut nets: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
    for run in runs {
        let nets = nets.entry((&run.subject, &run.truth)).or_default();
        let RunResult::Measured(found) = &run.result else {
            summary.failed += 1;
            continue;
        };
        nets.extend(found.net.filter(|net| net.is_finite() && *net > 0.0));
        match found.judgement {
            Judgement::Right => summary.right += 1,
            Judgement::NotKnown => summary.not_known += 1,
            Judgement::Wrong => summary.wrong += 1,
        }
        if truths.iter().any(|truth| truth.name == run.truth && truth.undisturbed) {
            summary.undisturbed += 1;
            summary.alarmed += usize::from(!found.alarms.is_empty());
        }
        if let Some(residual) = found.residual_ratio {
            summary.closed += usize::from(residual < CLOSED);
            summary.residual_max = Some(summary.residual_max.map_or(residual, |max| max.max(residual)));
        }
        *summary.confusion.entry(run.truth.clone()).or_default().entry(found.bottleneck).or_default() += 1;
    }
    summary.pairs = nets.len();
    let several = nets.values().filter(|nets| nets.len() > 1);
    let apart = |nets: &&Vec<f64>| {
        let most = nets.iter().copied().fold(0.0, f64::max);
        most / nets.iter().copied().fold(f64::INFINITY, f64::min) - 1.0 <= NETS_APART
    };
    (summary.nets, summary.nets_repeat) = (several.clone().count(), several.filter(apart).count());
    summary
}
