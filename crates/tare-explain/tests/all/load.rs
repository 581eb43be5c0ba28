//! Loads without time accounting: what is said of what the generator counted.

use std::collections::BTreeMap;
use tare_explain::load::explain as explain_load;
use tare_model::Reading;
use tare_model::latency::Latencies;
use tare_model::load::{AskedLoad, LoadOutcome, LoadRun, LoadStage};
use tare_model::outcome::{Followed, GrossIs};
use tare_model::trial::{ErrorKind, GeneratorThread, HttpDetail, HttpSample, SeriesSlice};

/// Two seconds of load from 16 connections; a thread that is busy for a share of them.
fn load(
    answers: u64,
    status_class: usize,
    errors: &[(ErrorKind, u64)],
    scheduled: Option<u64>,
    busy: f64,
) -> LoadRun {
    let mut latency = Latencies::new();
    latency.record_n(1_500_000, answers);
    let mut status_classes = [0; 6];
    status_classes[status_class - 1] = answers;
    let thread =
        GeneratorThread { tid: 1, wall_ns: 2_000_000_000, cpu_ns: (2e9 * busy) as u64, busy_poll: false };
    let sample = HttpSample {
        elapsed_ns: 2_000_000_000,
        requests: Reading::Measured(answers),
        errors: errors.iter().copied().collect::<BTreeMap<_, _>>(),
        latency: Reading::Measured(latency),
        printed_quantiles_ns: Vec::new(),
        bytes_in: Reading::Measured(1000),
        in_flight: Reading::Measured(16),
        connections: Reading::Measured(16),
        scheduled,
        lateness: None,
        slices: Vec::new(),
        detail: Some(Box::new(HttpDetail { status_classes, threads: vec![thread], ..HttpDetail::default() })),
    };
    LoadRun {
        url: "http://127.0.0.1:1/".to_owned(),
        asked: AskedLoad {
            connections: 16,
            threads: 1,
            pipeline: 1,
            http2: false,
            open_loop: scheduled.is_some(),
            busy_poll: false,
        },
        tls_certificate: None,
        redirects: None,
        started_unix_s: 0.0,
        begin_ns: 0,
        sample,
        intervals: Vec::new(),
        capacity: None,
        stages: Vec::new(),
    }
}

/// 16 connections at a rate of steps of two seconds each: answered, and requests that were due and had no connection at the end.
fn staged(stages: &[(f64, u64, u64)]) -> LoadRun {
    let stage = |&(rate_hz, answers, unsent): &(f64, u64, u64)| {
        let mut sample = load(answers, 2, &[], Some((2.0 * rate_hz) as u64), 0.5).sample;
        sample.in_flight = Reading::Measured(unsent + 4);
        LoadStage { from_hz: rate_hz, to_hz: rate_hz, sample }
    };
    let stages: Vec<LoadStage> = stages.iter().map(stage).collect();
    let samples = stages.iter().map(|stage| stage.sample.clone());
    let sample = samples.reduce(HttpSample::followed_by).unwrap();
    LoadRun { sample, stages, ..load(1, 2, &[], Some(1), 0.5) }
}

#[test]
fn each_stage_is_a_result_and_the_first_that_is_missed_shows_the_capacity() {
    let outcome = explain_load(&staged(&[
        (1000.0, 1996, 0),
        (3000.0, 5998, 0),
        (5000.0, 8000, 2000),
        (7000.0, 8100, 8000),
    ]));
    let followed: Vec<_> = outcome.stages.iter().map(|stage| stage.followed).collect();
    assert_eq!(followed, [Some(true), Some(true), Some(false), Some(false)]);
    let valid: Vec<_> = outcome.stages.iter().map(|stage| stage.valid).collect();
    assert_eq!(valid, [true, true, false, false]);
    assert_eq!(outcome.stages[3].left_before, 1988);
    assert_eq!(
        outcome.followed,
        Some(Followed { held_hz: Some(2999.0), missed_hz: Some(5000.0), capacity_hz: Some(4000.0) })
    );
    // The whole is no measure of one rate, and no failure.
    assert!(
        outcome.warnings.iter().all(|warning| warning.id != "schedule-missed"),
        "{:#?}",
        outcome.warnings
    );
    // A stage that the server follows while it catches up says that its latencies are another's.
    let slower = explain_load(&staged(&[(5000.0, 8000, 2000), (1000.0, 3980, 0)]));
    assert_eq!((slower.stages[1].followed, slower.stages[1].valid), (Some(true), false));
    assert!(slower.stages[1].warnings[0].text.contains("1988 requests"));
}

fn text<'o>(outcome: &'o LoadOutcome, id: &str) -> &'o str {
    let warning = outcome.warnings.iter().find(|warning| warning.id == id);
    warning.map_or_else(|| panic!("{id}: {:#?}", outcome.warnings), |warning| warning.text.as_str())
}

#[test]
fn a_server_that_cannot_follow_is_not_the_generators_fault() {
    let outcome = explain_load(&load(18_000, 2, &[], Some(40_000), 0.4));
    assert!(!outcome.valid);
    assert_eq!(outcome.rate_is, GrossIs::LowerBound);
    let missed = text(&outcome, "schedule-missed");
    assert!(missed.contains("all 16 connections") && missed.contains("more than 40 %"), "{missed}");
    assert!(outcome.warnings.iter().all(|warning| warning.id != "generator-saturated"));
    let full = explain_load(&load(18_000, 2, &[], Some(40_000), 0.99));
    assert!(text(&full, "schedule-missed").contains("generator had no time left"));
    text(&full, "generator-saturated");
    let kept = explain_load(&load(39_990, 2, &[], Some(40_000), 0.4));
    assert_eq!((kept.valid, kept.rate_is), (true, GrossIs::Offered));
}

#[test]
fn a_server_that_ends_is_not_a_slow_one() {
    // Two seconds, of which it answered in `slices` tenths.
    let until = |slices: u64, refused: u64| {
        let mut run = load(20_000, 2, &[(ErrorKind::Connect, refused), (ErrorKind::Io, 16)], None, 0.4);
        let begin_ns = run.begin_ns;
        let slice = |at: u64| SeriesSlice {
            end_ns: begin_ns + (at + 1) * 100_000_000,
            requests: if at < slices { 20_000 / slices } else { 0 },
            ..SeriesSlice::default()
        };
        run.sample.detail.as_mut().unwrap().series = (0..20).map(slice).collect();
        explain_load(&run)
    };
    let gone = until(8, 40);
    assert!(!gone.valid && text(&gone, "server-gone").contains("1.2 s of 2.0 s"), "{:#?}", gone.warnings);
    // It was there to the end, or paused for a moment, or refuses some connections only.
    for (slices, refused) in [(20, 40), (17, 40), (8, 3)] {
        let outcome = until(slices, refused);
        assert!(outcome.warnings.iter().all(|warning| warning.id != "server-gone"), "{slices} {refused}");
    }
}

#[test]
fn a_server_that_answers_none_of_the_attempts_has_failed() {
    let failed = |answers: u64, errors: &[(ErrorKind, u64)]| {
        let outcome = explain_load(&load(answers, 4, errors, None, 0.4));
        assert!(!outcome.valid, "{:#?}", outcome.warnings);
        outcome.has_failed()
    };
    for kind in [ErrorKind::Io, ErrorKind::Timeout, ErrorKind::Malformed, ErrorKind::Tls] {
        assert!(failed(0, &[(kind, 16)]), "{kind:?}");
    }
    // A few that were answered, also by an error page, make a result, though none that is valid.
    assert!(!failed(1, &[(ErrorKind::Io, 900)]));
    assert!(!failed(16, &[(ErrorKind::Status, 16)]));
    // The load ended before the time for an answer was over: nothing failed yet.
    assert!(!failed(0, &[]));
}

#[test]
fn nothing_but_redirects_or_resets_is_said() {
    let redirects = explain_load(&load(20_000, 3, &[], None, 0.4));
    assert!(text(&redirects, "only-redirects").starts_with("100 % of the answers are redirects"));
    let pages = explain_load(&load(20_000, 2, &[], None, 0.4));
    assert!(pages.warnings.iter().all(|warning| warning.id != "only-redirects"));
    let mut led = load(20_000, 3, &[], None, 0.4);
    led.sample.detail.as_mut().unwrap().said.redirected_to = Some("https://h/new".to_owned());
    let led = explain_load(&led);
    assert!(
        text(&led, "only-redirects").contains("redirects (3xx) to https://h/new: "),
        "{:?}",
        led.warnings
    );
    let hint = led.warnings.iter().find(|warning| warning.id == "only-redirects").map(|of| of.hint.as_str());
    assert_eq!(hint, Some("ask for that address"));
    // What a client has already is no redirect, alone or among pages.
    for (class, codes) in [(3, vec![(304, 20_000)]), (2, vec![(200, 19_000), (304, 1_000)])] {
        let mut cached = load(20_000, class, &[], None, 0.4);
        cached.sample.detail.as_mut().unwrap().status_codes = codes.into_iter().collect();
        let outcome = explain_load(&cached);
        assert!(outcome.valid && outcome.warnings.iter().all(|of| of.id != "only-redirects"));
    }
    let resets = [(ErrorKind::Io, 900), (ErrorKind::Connect, 100)];
    let outcome = explain_load(&load(0, 2, &resets, None, 0.4));
    assert_eq!(
        text(&outcome, "no-requests"),
        "no request was answered: 900 connections were reset or closed before an answer was whole"
    );
    assert_eq!(text(&explain_load(&load(0, 2, &[], None, 0.4)), "no-requests"), "no request was answered");
    let because = |answers: u64, kind: ErrorKind, why: &str| {
        let mut run = load(answers, 2, &[(kind, 900)], None, 0.4);
        let reasons = BTreeMap::from([(why.to_owned(), 900)]);
        run.sample.detail.as_mut().unwrap().said.reasons = BTreeMap::from([(kind, reasons)]);
        explain_load(&run)
    };
    let reset = because(0, ErrorKind::Io, "connection reset");
    assert_eq!(
        text(&reset, "no-requests"),
        "no request was answered: 900 connections were reset by the server"
    );
    assert!(!reset.valid && reset.requests.error_reasons["io"]["connection reset"] == 900);
    let few = because(100, ErrorKind::Io, "connection reset");
    assert_eq!(
        text(&few, "errors"),
        "90.00 % of the attempts failed: 900 connections were reset by the server"
    );
    let broken = because(0, ErrorKind::Malformed, "chunk size is not a number");
    assert_eq!(
        text(&broken, "no-requests"),
        "no request was answered: 900 answers broke the rules of HTTP (most: chunk size is not a number)"
    );
}
