//! Records of a scene with something changed or added, and what is to come out.

use crate::support::*;
use tare_explain::explain;
use tare_model::Record;
use tare_model::metric::{Descriptor, Subject};
use tare_model::outcome::{Cause, Finding, Outcome};
use tare_model::trial::{HttpSample, Measure, Trial};

/// Neither side full: 30 % and 20 % busy, at 64 connections.
pub fn idle() -> Scene {
    Scene { threads: vec![server(0.3, 0.0), generator(0.2, 0.0)], rate_hz: 10_000.0, ..Scene::default() }
}

pub fn each(mut record: Record, change: impl Fn(&mut Trial)) -> Record {
    record.trials.iter_mut().for_each(change);
    record
}

/// Adds counters that grew so fast.
pub fn counted(record: Record, scene: &Scene, counts: &[(&Descriptor, Subject, f64)]) -> Record {
    each(record, |trial| {
        let columns = counts.iter().map(|(metric, subject, hz)| scene.column(metric, subject.clone(), *hz));
        trial.observation.columns.extend(columns);
    })
}

/// Adds a gauge.
pub fn gauge(record: Record, metric: &Descriptor, subject: &Subject, value: f64) -> Record {
    each(record, |trial| {
        let mut column = Scene::default().column(metric, subject.clone(), 0.0);
        column.samples.iter_mut().for_each(|sample| sample.value = value);
        trial.observation.columns.push(column);
    })
}

pub fn sampled(record: Record, change: impl Fn(&mut HttpSample)) -> Record {
    each(record, |trial| {
        if let Measure::Http(sample) = &mut trial.sample {
            change(sample);
        }
    })
}

pub fn finding(outcome: &Outcome, cause: Cause) -> Option<&Finding> {
    outcome.verdict.findings.iter().find(|finding| finding.cause == cause)
}

pub fn has_bottleneck(record: &Record, cause: Cause) -> Outcome {
    let outcome = explain(record);
    assert_eq!(
        outcome.verdict.bottleneck, cause,
        "{:#?}\n{:#?}",
        outcome.verdict.findings, outcome.verdict.warnings
    );
    let found = finding(&outcome, cause).expect("the bottleneck has its finding");
    assert!(!found.evidence.is_empty() && !found.remedy.is_empty() && !found.confirm.is_empty());
    outcome
}

pub fn silent(record: &Record, cause: Cause) -> Outcome {
    let outcome = explain(record);
    assert!(
        outcome.verdict.bottleneck != cause && finding(&outcome, cause).is_none(),
        "{:#?}",
        outcome.verdict.findings
    );
    outcome
}

pub fn could_not_judge(outcome: &Outcome, cause: &str) -> bool {
    outcome
        .verdict
        .warnings
        .iter()
        .any(|warning| warning.id == "could-not-judge" && warning.text.contains(cause))
}
