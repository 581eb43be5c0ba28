//! Verdicts on records of real runs (`tests/records`), of which it is known how each was disturbed. Nobody can disturb them any more,
//! so that the right name is asked for, and accounting that closes.

use crate::explain;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tare_model::outcome::Outcome;

/// Share of the time that the accounting of an undisturbed run may leave open.
const RESIDUAL_MAX: f64 = 0.02;

/// What is right for a record.
struct Truth {
    name: String,
    /// Any of these.
    bottleneck: Vec<String>,
    valid: bool,
    /// All of these.
    findings: Vec<String>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/records")
}

fn truths() -> Vec<Truth> {
    let table = std::fs::read_to_string(folder().join("truths.tsv")).unwrap();
    let words = |text: &str, by: char| -> Vec<String> {
        text.split(by).filter(|word| *word != "-").map(str::to_owned).collect()
    };
    let truth = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, bottleneck, valid, findings, _] = fields[..] else { panic!("{line}") };
        Truth {
            name: name.to_owned(),
            bottleneck: words(bottleneck, '|'),
            valid: valid == "yes",
            findings: words(findings, ','),
        }
    };
    table.lines().filter(|line| !line.starts_with('#')).map(truth).collect()
}

/// What is wrong with the verdict on a record, in a line each.
fn wrong(truth: &Truth, outcome: &Outcome) -> Vec<String> {
    let mut wrong = Vec::new();
    let found = outcome.verdict.bottleneck.id();
    if !truth.bottleneck.contains(&found) {
        wrong.push(format!("bottleneck {found}, not {:?}", truth.bottleneck));
    }
    if outcome.verdict.valid != truth.valid {
        wrong.push(format!("valid: {}, {:?}", outcome.verdict.valid, outcome.verdict.warnings));
    }
    let findings: BTreeSet<String> =
        outcome.verdict.findings.iter().map(|finding| finding.cause.id()).collect();
    for cause in truth.findings.iter().filter(|cause| !findings.contains(*cause)) {
        wrong.push(format!("no finding {cause} in {findings:?}"));
    }
    let residual = outcome.accounting.residual_ratio;
    if residual.is_none_or(|residual| residual > RESIDUAL_MAX) {
        wrong.push(format!("residual {residual:?}: {:?}", outcome.accounting.residuals));
    }
    wrong
}

#[test]
fn the_verdict_on_every_record_is_right() {
    let mut all = Vec::new();
    for truth in truths() {
        let record = tare_store::read(&folder().join(format!("{}.tare", truth.name))).unwrap();
        let wrong = wrong(&truth, &explain(&record));
        all.extend(wrong.into_iter().map(|wrong| format!("{}: {wrong}", truth.name)));
    }
    assert!(all.is_empty(), "{all:#?}");
}

#[test]
fn every_record_has_a_truth() {
    let files = std::fs::read_dir(folder()).unwrap().map(|file| file.unwrap().path());
    let records = files.filter(|path| path.extension().is_some_and(|ending| ending == "tare"));
    let names: BTreeSet<String> =
        records.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    let known: BTreeSet<String> = truths().into_iter().map(|truth| truth.name).collect();
    assert_eq!(names, known);
}

/// A quota of 30 % was raised by half in pairs of trials: the rate went up with it.
#[test]
fn what_was_tried_is_read_from_the_record() {
    let record = tare_store::read(&folder().join("quota-confirmed.tare")).unwrap();
    let confirmation = explain(&record).verdict.confirmation.unwrap();
    let text = format!("{confirmation:?}");
    assert!(text.contains("Confirmed"), "{text}");
}
