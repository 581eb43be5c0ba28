//! What is written of subjects and truths fits, and judging is right on made-up runs.

use super::*;
use std::collections::BTreeSet;
use tare_model::outcome::Cause;
use tare_model::zoo::{Found, Judgement};

#[test]
fn every_pair_has_a_truth_and_all_it_needs() {
    let (subjects, truths) = (data::subjects().unwrap(), data::truths().unwrap());
    let known: BTreeSet<&str> = truths.iter().map(|truth| truth.name.as_str()).collect();
    let mut used = BTreeSet::new();
    for subject in &subjects {
        assert!(!subject.needs.is_empty() && !subject.install.is_empty(), "{}", subject.name);
        let mut own = BTreeSet::new();
        for pair in &subject.pairs {
            let of = format!("{}/{}", subject.name, pair.truth);
            assert!(known.contains(pair.truth.as_str()), "{of}");
            assert!(own.insert(pair.truth.clone()), "{of} stands there twice");
            assert!(!pair.run.is_empty() && pair.start.contains("exec "), "{of}");
            used.insert(pair.truth.as_str());
            let words = pair.run.join(" ") + &pair.start + pair.backend.as_deref().unwrap_or("");
            let left = pair.set.keys().fold(words, |words, name| words.replace(&format!("@{name}@"), ""));
            let ours = ["port", "backend", "folder", "truth", "sut", "load", "both", "connections"];
            let left = ours.iter().fold(left, |words, name| words.replace(&format!("@{name}@"), ""));
            assert!(!left.contains('@'), "{of}: {left}");
        }
    }
    assert_eq!(used, known, "truths that nobody has");
    assert!(subjects.iter().map(|subject| subject.pairs.len()).sum::<usize>() >= 24);
}

#[test]
fn every_truth_says_which_names_are_right_and_why() {
    for truth in data::truths().unwrap() {
        assert!(!truth.accepts.is_empty() && !truth.because.is_empty());
        for name in &truth.accepts {
            let is_id =
                !name.is_empty() && name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-');
            assert!(is_id, "{}: {name}", truth.name);
        }
    }
}

fn run(subject: &str, truth: &str, judgement: Judgement, net: Option<f64>) -> Run {
    let found = Found {
        bottleneck: Cause::ServerCpuBound,
        confidence: Some(1.0),
        judgement,
        valid: true,
        alarms: Vec::new(),
        residual_ratio: Some(0.002),
        gross: Some(1.0),
        net,
        net_ci95: net.map(|net| [0.97 * net, 1.05 * net]),
        net_over_reference: None,
        findings: Vec::new(),
    };
    Run { subject: subject.into(), truth: truth.into(), repeat: 1, result: RunResult::Measured(found) }
}

#[test]
fn runs_are_counted_by_pair_and_a_failed_one_is_not_right() {
    let truths = data::truths().unwrap();
    let mut runs = vec![
        run("a", "nothing", Judgement::Right, Some(100.0)),
        run("a", "nothing", Judgement::Right, Some(104.0)),
        run("a", "quota", Judgement::Wrong, Some(100.0)),
        run("a", "quota", Judgement::NotKnown, Some(106.0)),
        run("b", "quota", Judgement::Right, None),
    ];
    runs.push(Run { result: RunResult::Failed { why: "gone".into() }, ..runs[4].clone() });
    let summary = judge::summary(&runs, &truths);
    assert_eq!((summary.pairs, summary.runs, summary.failed), (3, 6, 1));
    assert_eq!((summary.right, summary.not_known, summary.wrong), (3, 1, 1));
    assert_eq!((summary.undisturbed, summary.alarmed, summary.closed), (2, 0, 5));
    assert_eq!((summary.nets, summary.nets_repeat), (2, 1));
    // 100 holds 104 and 104 does not hold 100; 100 and 106 do not hold each other.
    assert_eq!((summary.intervals, summary.intervals_hold), (4, 1));
    assert_eq!(summary.confusion["quota"][&Cause::ServerCpuBound], 3);
    assert!(!summary.is_good());
    assert!(judge::summary(&runs[..2], &truths).is_good());
}
