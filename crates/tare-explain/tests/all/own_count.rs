//! A generator's report is held against what its connections received, and only a report of more than that is wrong for sure.

use crate::support::*;
use tare_explain::explain;
use tare_model::metric::Subject;
use tare_model::metrics::load_connections::{BYTES_IN, SEGMENTS_IN};
use tare_model::observation::Absence;
use tare_model::outcome::Outcome;
use tare_model::plan::{Generator, Workload};
use tare_model::trial::*;
use tare_model::{Missing, Reading, Record};

/// In two seconds 200,000 answers of 150 bytes, and what the connections received of them, as shares of that.
fn reported(answers: f64, bytes: f64) -> Record {
    let mut record = asked(&Scene::default());
    let Workload::Http(http) = &mut record.plan.workload else { unreachable!() };
    http.generator = Generator::Started { command: "wrk".to_owned() };
    for trial in &mut record.trials {
        let scene = Scene::default();
        let Measure::Http(sample) = &mut trial.sample else { unreachable!() };
        sample.requests = Reading::Measured((200_000.0 * answers) as u64);
        sample.bytes_in = Reading::Measured((200_000.0 * 150.0 * bytes) as u64);
        // From when they were opened: the first reading has some already, and the last one is from before the end.
        for (metric, each) in [(&SEGMENTS_IN, 1.0), (&BYTES_IN, 150.0)] {
            let mut column = scene.column(metric, Subject::Machine, 0.0);
            for (sample, answered) in column.samples.iter_mut().zip([1_000.0, 101_000.0, 191_000.0]) {
                sample.value = answered * each;
            }
            column.samples[2].at_ns -= 100_000_000;
            trial.observation.columns.push(column);
        }
        trial.report =
            Some(Box::new(GeneratorReport { window_ns: Some(2_000_000_000), stderr: String::new() }));
    }
    record
}

fn warns(outcome: &Outcome) -> bool {
    outcome.verdict.warnings.iter().any(|warning| warning.id == "report-of-other-count")
}

#[test]
fn only_more_answers_and_more_bytes_than_were_received_are_wrong_for_sure() {
    // As it was; counted from later on; pipelined; bodies counted after they were decompressed; large answers, a segment for each part.
    for (answers, bytes) in [(1.0, 1.0), (0.5, 0.5), (8.0, 1.0), (1.0, 5.0), (0.01, 1.0), (1.1, 1.1)] {
        let outcome = explain(&reported(answers, bytes));
        assert!(
            outcome.verdict.valid && !warns(&outcome),
            "{answers} {bytes}: {:#?}",
            outcome.verdict.warnings
        );
    }
    let outcome = explain(&reported(2.0, 2.0));
    assert!(!outcome.verdict.valid && warns(&outcome), "{:#?}", outcome.verdict.warnings);
    let own = outcome.answers.own_count.unwrap();
    assert_eq!((own.reported_answers, own.segments), (Some(3 * 400_000), Reading::Measured(3 * 191_000)));
    assert!((own.unread_s.unwrap() - 0.3).abs() < 1e-6);
}

#[test]
fn what_was_not_counted_is_missing_and_proves_nothing() {
    let mut record = reported(9.0, 9.0);
    for trial in &mut record.trials {
        trial
            .observation
            .columns
            .retain(|column| ![SEGMENTS_IN.id, BYTES_IN.id].contains(&column.metric.as_str()));
        let reason = Missing::new("connections were opened or closed meanwhile");
        let absences = [SEGMENTS_IN.id, BYTES_IN.id];
        let absence =
            |metric: &str| Absence { metric: metric.to_owned(), subject: None, reason: reason.clone() };
        trial.observation.absences.extend(absences.map(absence));
    }
    let outcome = explain(&record);
    assert!(outcome.verdict.valid && !warns(&outcome));
    let own = outcome.answers.own_count.unwrap();
    assert!(
        matches!(own.segments, Reading::Missing(reason) if reason.why.starts_with("connections were opened"))
    );
    assert_eq!(own.unread_s, None);
    assert!(explain(&asked(&Scene::default())).answers.own_count.is_none(), "tare's own generator");
}
