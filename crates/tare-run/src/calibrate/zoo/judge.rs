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
    let net = match &outcome.figures.net {
        NetOrMissing::Net(net) => Some(net),
        NetOrMissing::Missing(_) => None,
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
        net: net.map(|net| net.value),
        net_ci95: net.and_then(|net| net.ci95),
        net_over_reference: net.and_then(|net| Some(net.against_reference.as_ref()?.ratio)),
        findings: verdict.findings.iter().take(FINDINGS_MAX).map(listed).collect(),
    }
}

fn listed(finding: &Finding) -> Listed {
    Listed { cause: finding.cause, effect_ln: finding.effect_ln }
}

/// Counts the runs.
pub(super) fn summary(runs: &[Run], truths: &[Truth]) -> Summary {
    let mut summary = Summary { runs: runs.len(), ..Summary::default() };
    let mut nets: BTreeMap<(&str, &str), Vec<Net>> = BTreeMap::new();
    for run in runs {
        let nets = nets.entry((&run.subject, &run.truth)).or_default();
        let RunResult::Measured(found) = &run.result else {
            summary.failed += 1;
            continue;
        };
        let net = found.net.filter(|net| net.is_finite() && *net > 0.0);
        nets.extend(net.map(|value| Net { value, ci95: found.net_ci95 }));
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
    for nets in nets.values().filter(|nets| nets.len() > 1) {
        summary.nets += 1;
        summary.nets_repeat += usize::from(apart(nets) <= NETS_APART);
        let held = (0..nets.len()).filter_map(|place| is_held(nets, place)).collect::<Vec<bool>>();
        summary.intervals += held.len();
        summary.intervals_hold += held.into_iter().filter(|held| *held).count();
    }
    summary
}

/// The net of a run.
struct Net {
    value: f64,
    ci95: Option<[f64; 2]>,
}

/// By how much the largest is above the smallest.
fn apart(nets: &[Net]) -> f64 {
    let values = || nets.iter().map(|net| net.value);
    values().fold(0.0, f64::max) / values().fold(f64::INFINITY, f64::min) - 1.0
}

/// Whether the interval of one holds the median of the others; `None`: it has no interval.
fn is_held(nets: &[Net], place: usize) -> Option<bool> {
    let [low, high] = nets[place].ci95?;
    let others = nets.iter().enumerate().filter(|(other, _)| *other != place);
    let median = tare_stats::median(&others.map(|(_, net)| net.value).collect::<Vec<f64>>())?;
    Some((low..=high).contains(&median))
}
