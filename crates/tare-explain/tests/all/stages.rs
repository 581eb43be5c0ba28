//! Stages of a load whose rate changes: each is explained for itself, and the first that was not followed decides.

use crate::support::*;
use tare_explain::explain;
use tare_model::outcome::{Cause, Outcome, WatchedStage};
use tare_model::plan::*;
use tare_model::trial::*;
use tare_model::{Reading, Record};

/// What became of a stage in each of its passes: its ends, what was answered per second, and how busy the server was.
struct Driven {
    ends_hz: (f64, f64),
    rate_hz: f64,
    busy: f64,
    errors: Vec<(ErrorKind, u64)>,
    unsent: Unsent,
}

fn followed(hz: f64) -> Driven {
    Driven {
        ends_hz: (hz, hz),
        rate_hz: hz,
        busy: hz / 10_500.0,
        errors: Vec::new(),
        unsent: Unsent::default(),
    }
}

/// The server answers 10,000 a second, and by so much does what waits for a connection grow in two seconds.
fn too_much(hz: f64, left_before: u64) -> Driven {
    let at_begin = left_before + 500;
    let unsent = Unsent { left_before, at_begin, at_end: at_begin + 2 * (hz as u64 - 10_000) };
    Driven { ends_hz: (hz, hz), rate_hz: 10_000.0, busy: 0.99, errors: Vec::new(), unsent }
}

fn driven(passes: usize, stages: &[Driven]) -> Record {
    let levels = stages.iter().map(|stage| {
        let (from_hz, to_hz) = stage.ends_hz;
        let rate_hz = Some(0.5 * (from_hz + to_hz));
        Level { rate_hz, stage: Some(PlannedStage { from_hz, to_hz }), ..level(Purpose::Asked, 64) }
    });
    let scene = |stage: &Driven| Scene {
        rate_hz: stage.rate_hz,
        scheduled_hz: Some(0.5 * (stage.ends_hz.0 + stage.ends_hz.1)),
        threads: vec![server(stage.busy, 0.0), generator(0.1, 0.0)],
        errors: stage.errors.clone(),
        ..Scene::default()
    };
    let pass = || (0u32..).zip(stages).map(|(level, stage)| (level, scene(stage)));
    let scenes: Vec<(u32, Scene)> = (0..passes).flat_map(|_| pass()).collect();
    let mut record = record(levels.collect(), &scenes);
    for trial in &mut record.trials {
        let Measure::Http(sample) = &mut trial.sample else { continue };
        let unsent = Some(stages[trial.level as usize].unsent);
        sample.detail = Some(Box::new(HttpDetail { unsent, ..HttpDetail::default() }));
    }
    record
}

fn verdicts(outcome: &Outcome) -> Vec<(Option<bool>, bool, Cause)> {
    let of = |stage: &WatchedStage| (stage.counted.followed, stage.counted.valid, stage.bottleneck);
    outcome.answers.stages.iter().map(of).collect()
}

fn deciding(outcome: &Outcome) -> Option<u32> {
    outcome.answers.stages.iter().find(|stage| stage.decides).map(|stage| stage.stage)
}

#[test]
fn the_first_stage_that_is_not_followed_is_the_capacity() {
    let outcome = explain(&driven(3, &[followed(3_000.0), followed(6_000.0), too_much(30_000.0, 0)]));
    assert_eq!(
        verdicts(&outcome),
        [
            (Some(true), true, Cause::OfferedLoad),
            (Some(true), true, Cause::OfferedLoad),
            (Some(false), false, Cause::ServerCpuBound),
        ]
    );
    let shown = outcome.answers.followed.unwrap();
    assert_eq!([shown.held_hz, shown.missed_hz, shown.capacity_hz], [Some(6e3), Some(3e4), Some(1e4)]);
    assert!(outcome.verdict.valid, "{:#?}", outcome.verdict.warnings);
    assert!(outcome.verdict.warnings.iter().all(|warning| warning.id != "schedule-missed"));
    assert_eq!((deciding(&outcome), outcome.verdict.bottleneck), (Some(3), Cause::ServerCpuBound));
    assert_eq!(outcome.figures.gross.value(), Some(1e4));
    assert_eq!(outcome.answers.latency_ns, None, "waits grow for as long as the stage lasts");
    let last = &outcome.answers.stages[2];
    assert!(last.counted.warnings.iter().any(|warning| warning.id == "schedule-missed"));
    assert!(last.finding.as_ref().is_some_and(|finding| !finding.evidence.is_empty()));
    let stages: Vec<_> = outcome.trials.iter().map(|trial| trial.stage).collect();
    assert_eq!(stages[..4], [Some(1), Some(2), Some(3), Some(1)]);
}

#[test]
fn of_stages_that_were_all_followed_the_highest_rate_decides() {
    let outcome = explain(&driven(2, &[followed(3_000.0), followed(6_000.0), followed(4_000.0)]));
    assert!(outcome.verdict.valid, "{:#?}", outcome.verdict.warnings);
    assert_eq!((deciding(&outcome), outcome.figures.gross.value()), (Some(2), Some(6e3)));
    let shown = outcome.answers.followed.unwrap();
    assert_eq!([shown.held_hz, shown.missed_hz, shown.capacity_hz], [Some(6e3), None, None]);
    assert!(outcome.answers.latency_ns.is_some());
}

#[test]
fn what_a_stage_leaves_is_said_of_the_next_and_shows_no_capacity() {
    let after =
        Driven { unsent: Unsent { left_before: 40_000, at_begin: 39_000, at_end: 0 }, ..followed(2_000.0) };
    let outcome = explain(&driven(1, &[followed(3_000.0), too_much(30_000.0, 0), after]));
    let stages = &outcome.answers.stages;
    assert_eq!((stages[2].counted.followed, stages[2].counted.valid), (Some(true), false));
    assert_eq!((stages[1].counted.left_before, stages[2].counted.left_before), (0, 39_000));
    assert_eq!(stages[2].counted.warnings[0].id, "left-over");
    assert_eq!(outcome.answers.followed.unwrap().held_hz, Some(3e3));
}

/// What it answers on the average of a ramp is no capacity, and errors are none either: then the highest rate before counts.
#[test]
fn ramps_and_errors_show_no_capacity() {
    let ramp = Driven { ends_hz: (0.0, 30_000.0), rate_hz: 8_000.0, ..too_much(15_000.0, 0) };
    let refused = Driven { errors: vec![(ErrorKind::Status, 30_000)], ..followed(30_000.0) };
    for last in [ramp, refused] {
        let outcome = explain(&driven(2, &[followed(3_000.0), last]));
        assert!(outcome.verdict.valid, "{:#?}", outcome.verdict.warnings);
        assert_eq!((deciding(&outcome), outcome.figures.gross.value()), (Some(1), Some(3e3)));
        let shown = outcome.answers.followed.unwrap();
        assert_eq!((shown.held_hz, shown.capacity_hz), (Some(3e3), None));
        assert!(shown.missed_hz.is_some());
    }
}

/// Behind a ramp that was too much, a stage of one rate that is too much as well is answered as fast as it can be.
#[test]
fn a_step_behind_a_ramp_shows_the_capacity() {
    let ramp = Driven { ends_hz: (0.0, 30_000.0), rate_hz: 8_000.0, ..too_much(15_000.0, 0) };
    let outcome = explain(&driven(2, &[followed(3_000.0), ramp, too_much(30_000.0, 5_000)]));
    assert_eq!((deciding(&outcome), outcome.figures.gross.value()), (Some(3), Some(1e4)));
    let shown = outcome.answers.followed.unwrap();
    assert_eq!([shown.held_hz, shown.missed_hz, shown.capacity_hz], [Some(3e3), Some(15e3), Some(1e4)]);
}

/// A pause of the server as the window ends leaves as much unanswered as a rate that is a little too much; most of the time it kept up.
#[test]
fn a_pause_at_the_end_is_no_capacity() {
    let paused = || {
        let unsent = Unsent { left_before: 0, at_begin: 0, at_end: 300 };
        Driven { rate_hz: 4_850.0, busy: 0.99, unsent, ..followed(5_000.0) }
    };
    let explained = |counts: &dyn Fn(u64) -> u64| {
        let mut record = driven(2, &[followed(3_000.0), paused()]);
        for trial in record.trials.iter_mut().filter(|trial| trial.level == 1) {
            let Measure::Http(sample) = &mut trial.sample else { continue };
            let begin_ns = trial.observation.begin_ns;
            sample.slices = (1..=20).map(|at| (begin_ns + at * 100_000_000, counts(at))).collect();
        }
        explain(&record)
    };
    let paused = explained(&|at| if at > 19 { 200 } else { 500 });
    assert_eq!((paused.answers.stages[1].counted.followed, deciding(&paused)), (Some(false), Some(1)));
    let shown = paused.answers.followed.unwrap();
    assert_eq!([shown.held_hz, shown.missed_hz, shown.capacity_hz], [Some(3e3), Some(5e3), None]);
    let full = explained(&|_| 485);
    assert_eq!((deciding(&full), full.answers.followed.unwrap().capacity_hz), (Some(2), Some(4850.0)));
}

/// A server that does 100 a second and is asked for 110: what it does not answer has a connection of its own. One that takes 200 ms for each
/// is only slow.
#[test]
fn a_backlog_that_finds_room_on_connections_is_missed_all_the_same() {
    let explained = |answered: &dyn Fn(u64) -> u64, in_flight: u64| {
        let mut record = driven(2, &[followed(50.0), followed(110.0)]);
        for trial in record.trials.iter_mut().filter(|trial| trial.level == 1) {
            let Measure::Http(sample) = &mut trial.sample else { continue };
            let begin_ns = trial.observation.begin_ns;
            sample.slices = (1..=20).map(|at| (begin_ns + at * 100_000_000, answered(at))).collect();
            sample.requests = Reading::Measured((1..=20).map(answered).sum());
            sample.in_flight = Reading::Measured(in_flight);
        }
        let outcome = explain(&record);
        outcome.answers.stages[1].counted.followed
    };
    assert_eq!(explained(&|_| 10, 25), Some(false));
    assert_eq!(explained(&|_| 11, 0), Some(true));
    assert_eq!(explained(&|at| if at > 2 { 11 } else { 0 }, 22), Some(true));
    assert_eq!(explained(&|_| 0, 225), Some(false), "it stands still");
}

/// An interrupted pass has fewer stages, and a pause asks for nothing.
#[test]
fn stages_without_a_trial_or_without_requests_decide_nothing() {
    let pause = Driven { ends_hz: (0.0, 0.0), ..followed(0.0) };
    let mut record = driven(1, &[pause, followed(3_000.0), too_much(30_000.0, 0)]);
    record.trials.truncate(2);
    let outcome = explain(&record);
    assert_eq!(outcome.answers.stages.len(), 2);
    assert_eq!((outcome.answers.stages[0].counted.followed, deciding(&outcome)), (None, Some(2)));
    record.trials.clear();
    let outcome = explain(&record);
    assert!(
        outcome.answers.stages.is_empty() && outcome.answers.followed.is_none() && !outcome.verdict.valid
    );
}

/// Requests on their way at the edges are answered later: a ramp ends with more of them than it began with.
#[test]
fn requests_on_their_way_are_not_missing() {
    let slow = Driven { ends_hz: (0.0, 200.0), rate_hz: 80.0, ..followed(100.0) };
    let outcome = explain(&driven(1, &[slow]));
    assert_eq!(outcome.answers.stages[0].counted.followed, Some(true));
    let mut record = driven(1, &[Driven { rate_hz: 80.0, ..followed(100.0) }]);
    let Measure::Http(sample) = &mut record.trials[0].sample else { unreachable!() };
    sample.detail = None;
    sample.requests = Reading::Measured(160);
    assert_eq!(
        explain(&record).answers.stages[0].counted.followed,
        Some(false),
        "nobody saw what was on its way"
    );
}
