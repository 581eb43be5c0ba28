//! Records that are made up, whose right answer is how they were made.

use super::explain;
use tare_model::Reading;
use tare_model::probing::{
    Call, LoadState, Probe, ProbeFailure, ProbeFinding, ProbeKind, ProbeWindow, ProbingOutcome, ProbingPlan,
    ProbingRun,
};
use tare_stats::SplitMix64;

/// A probe, and its median in each state, milliseconds.
struct Case {
    probe: Probe,
    medians_ms: Vec<f64>,
}

fn case(
    name: &str,
    kind: ProbeKind,
    address: &str,
    calls: Option<&[(&str, Option<u32>)]>,
    medians_ms: &[f64],
) -> Case {
    let call = |(probe, times): &(&str, Option<u32>)| Call { probe: (*probe).into(), times: *times };
    let probe = Probe {
        name: name.into(),
        kind,
        target: String::new(),
        address: Some(address.into()),
        fresh: kind == ProbeKind::Tcp,
        calls: calls.map(|calls| calls.iter().map(call).collect()),
        calls_assumed: false,
    };
    Case { probe, medians_ms: medians_ms.to_vec() }
}

fn svc(calls: &[(&str, Option<u32>)], medians_ms: &[f64]) -> Case {
    case("svc", ProbeKind::Http, "10.0.0.1:80", Some(calls), medians_ms)
}

fn still(medians_ms: &[f64]) -> Case {
    case("still", ProbeKind::Http, "10.0.0.1:80", Some(&[]), medians_ms)
}

fn db(medians_ms: &[f64]) -> Case {
    case("db", ProbeKind::Mysql, "10.0.0.2:3306", None, medians_ms)
}

fn net(medians_ms: &[f64]) -> Case {
    case("net", ProbeKind::Tcp, "10.0.0.1:22", None, medians_ms)
}

/// Rounds whose windows differ by so much, and requests by 30 %.
fn record(cases: &[Case], noise: f64, rounds: u32, seed: u64) -> ProbingRun {
    let mut random = SplitMix64::new(seed);
    // Near enough to normal: the sum of twelve.
    let mut normal =
        || (0..12).map(|_| (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64).sum::<f64>() - 6.0;
    let states = cases[0].medians_ms.len();
    let mut windows = Vec::new();
    for round in 0..rounds {
        for state in 0..states {
            for (probe, case) in cases.iter().enumerate() {
                let level = 1e-3 * case.medians_ms[state] * (noise * normal()).exp();
                let times_s = (0..60).map(|_| level * (0.3 * normal()).exp()).collect();
                windows.push(ProbeWindow {
                    round,
                    state,
                    probe,
                    times_s,
                    timed_out: 0,
                    failures: Vec::new(),
                    own_lateness_s: Some(5e-5),
                });
            }
        }
    }
    let state = |at: usize| LoadState { name: format!("s{at}"), command: None, failed: None };
    ProbingRun {
        started_unix_s: 0,
        plan: ProbingPlan { rate_hz: 20.0, window_s: 3.0, settle_s: 0.5, timeout_s: 2.0, rounds, seed },
        probes: cases.iter().map(|case| case.probe.clone()).collect(),
        states: (0..states).map(state).collect(),
        windows,
        warnings: Vec::new(),
    }
}

/// What is found in 20 records of each noise: always this, never another name.
fn found(
    cases: &[Case],
    noise: f64,
    rounds: u32,
    finding: ProbeFinding,
    culprit: Option<&str>,
) -> ProbingOutcome {
    let mut last = None;
    for seed in 0..20 {
        let outcome = explain(&record(cases, noise, rounds, seed));
        let verdict = outcome.verdicts.iter().find(|verdict| verdict.service == "svc").unwrap();
        assert_eq!(verdict.finding, finding, "seed {seed}: {}", verdict.text);
        assert_eq!(verdict.culprit.value().map(String::as_str), culprit, "{}", verdict.text);
        assert_eq!(outcome.culprit, verdict.culprit);
        last = Some(outcome);
    }
    last.unwrap()
}

const NOISE: f64 = 0.04;
const ONCE: &[(&str, Option<u32>)] = &[("db", Some(1))];
const SOME: &[(&str, Option<u32>)] = &[("db", None)];

#[test]
fn the_database_answers_as_before_and_the_service_takes_twice_as_long() {
    let cases = [svc(SOME, &[8.0, 16.8]), db(&[1.0, 1.03])];
    let outcome = found(&cases, NOISE, 6, ProbeFinding::ServiceOrNetwork, Some("svc"));
    let text = &outcome.verdicts[0].text;
    assert!(text.contains("svc takes 2.") && text.contains("db 1.0") && text.contains("hosts"), "{text}");
}

#[test]
fn the_database_explains_what_the_service_takes_longer() {
    found(
        &[svc(ONCE, &[8.0, 28.0]), db(&[1.0, 21.0])],
        NOISE,
        5,
        ProbeFinding::DownstreamOrNetwork,
        Some("db"),
    );
    found(
        &[svc(SOME, &[8.0, 28.0]), db(&[1.0, 21.0])],
        NOISE,
        5,
        ProbeFinding::DownstreamOrNetwork,
        Some("db"),
    );
    // Three calls an answer, which somebody said.
    let thrice: &[(&str, Option<u32>)] = &[("db", Some(3))];
    found(
        &[svc(thrice, &[8.0, 23.0]), db(&[1.0, 6.0])],
        NOISE,
        5,
        ProbeFinding::DownstreamOrNetwork,
        Some("db"),
    );
    // Of two databases one is slow.
    let both: &[(&str, Option<u32>)] = &[("db", None), ("other", None)];
    let other = case("other", ProbeKind::Redis, "10.0.0.3:1", None, &[0.5, 0.5]);
    found(
        &[svc(both, &[8.0, 28.0]), db(&[1.0, 21.0]), other],
        NOISE,
        5,
        ProbeFinding::DownstreamOrNetwork,
        Some("db"),
    );
}

#[test]
fn a_path_that_does_not_call_the_database_shows_whose_fault_it_is() {
    // Nobody knows how often it is called: 3 ms more of each call, 12 ms more in all.
    let unknown = || vec![svc(SOME, &[8.0, 20.0]), db(&[1.0, 4.0])];
    found(&unknown(), NOISE, 5, ProbeFinding::Undecided, None);
    let with_path: Vec<Case> = unknown().into_iter().chain([still(&[3.0, 3.1])]).collect();
    found(&with_path, NOISE, 5, ProbeFinding::DownstreamOrNetwork, Some("db"));
    // That path is slow too, and the database is not.
    let cases = [svc(SOME, &[8.0, 20.0]), still(&[3.0, 9.0]), db(&[1.0, 1.0])];
    found(&cases, NOISE, 5, ProbeFinding::ServiceOrNetwork, Some("svc"));
}

#[test]
fn the_network_is_the_cause_where_a_connection_takes_longer() {
    let cases = [svc(SOME, &[8.0, 18.0]), still(&[3.0, 13.0]), db(&[1.0, 1.0]), net(&[0.2, 10.2])];
    found(&cases, NOISE, 5, ProbeFinding::Network, Some("net"));
    // The database is behind the same link: what its own probe takes longer is the link's.
    let there = case("db", ProbeKind::Mysql, "10.0.0.1:3306", None, &[1.0, 11.0]);
    let cases = [svc(SOME, &[8.0, 18.0]), there, net(&[0.2, 10.2])];
    found(&cases, NOISE, 5, ProbeFinding::Network, Some("net"));
    // A connection takes 10 µs longer, beside a service that takes 10 ms longer.
    let cases = [svc(SOME, &[8.0, 18.0]), db(&[1.0, 1.0]), net(&[0.05, 0.06])];
    found(&cases, NOISE, 5, ProbeFinding::Service, Some("svc"));
}

/// A delay on the way from here would look the same.
#[test]
fn a_server_elsewhere_is_named_alone_only_where_the_way_to_it_was_seen() {
    use ProbeFinding::{Downstream, DownstreamOrNetwork, Service, ServiceOrNetwork};
    let service = |address: &str| case("svc", ProbeKind::Http, address, Some(&[]), &[8.0, 28.0]);
    let outcome = found(&[service("10.0.0.1:80")], NOISE, 5, ServiceOrNetwork, Some("svc"));
    let verdict = &outcome.verdicts[0];
    assert!(verdict.text.contains("the way to svc"), "{}", verdict.text);
    assert!(verdict.hint.contains("tcp://10.0.0.1:PORT"), "{}", verdict.hint);
    // On this host there is no way, and what else the same host answers went by it.
    for address in ["127.0.0.1:80", "[::1]:80"] {
        found(&[service(address)], NOISE, 5, Service, Some("svc"));
    }
    let cases = [service("10.0.0.1:80"), net(&[0.2, 0.2])];
    found(&cases, NOISE, 5, Service, Some("svc"));
    let cases = [svc(ONCE, &[8.0, 28.0]), db(&[1.0, 1.0]), still(&[3.0, 3.1])];
    found(&cases, NOISE, 5, Service, Some("svc"));
    // One that is slow itself shows nothing.
    let cases = [svc(ONCE, &[8.0, 28.0]), db(&[1.0, 1.0]), still(&[3.0, 13.0])];
    found(&cases, NOISE, 5, ServiceOrNetwork, Some("svc"));
    // The same of what is called.
    let outcome =
        found(&[svc(ONCE, &[8.0, 28.0]), db(&[1.0, 21.0])], NOISE, 5, DownstreamOrNetwork, Some("db"));
    assert!(outcome.verdicts[0].text.contains("the way to db"), "{}", outcome.verdicts[0].text);
    let link = case("link", ProbeKind::Tcp, "10.0.0.2:22", None, &[0.2, 0.2]);
    found(&[svc(ONCE, &[8.0, 28.0]), db(&[1.0, 21.0]), link], NOISE, 5, Downstream, Some("db"));
}

#[test]
fn nothing_slower_names_nobody() {
    let cases = [svc(SOME, &[8.0, 8.1]), still(&[3.0, 3.0]), db(&[1.0, 1.0]), net(&[0.1, 0.1])];
    let outcome = found(&cases, 0.02, 8, ProbeFinding::NothingSlowed, None);
    assert!(outcome.verdicts[0].text.contains("not slower"), "{}", outcome.verdicts[0].text);
    // The database is slower, and the service does not wait for it.
    let cases = [svc(SOME, &[8.0, 8.0]), db(&[0.1, 0.3])];
    found(&cases, 0.02, 8, ProbeFinding::NothingSlowed, None);
}

#[test]
fn what_one_host_carries_gets_slower_alike_and_nobody_is_named() {
    for calls in [ONCE, SOME] {
        found(&[svc(calls, &[8.0, 16.0]), db(&[1.0, 2.0])], 0.02, 8, ProbeFinding::Undecided, None);
        found(&[svc(calls, &[2.0, 4.0]), db(&[1.5, 3.0])], 0.02, 8, ProbeFinding::Undecided, None);
        let cases = [svc(calls, &[2.0, 4.0]), still(&[0.5, 1.0]), db(&[1.5, 3.0])];
        found(&cases, 0.02, 8, ProbeFinding::Undecided, None);
    }
}

#[test]
fn what_is_too_noisy_is_undecided_and_says_how_much_could_be_shown() {
    let mut named = 0;
    for seed in 0..200 {
        let cases = [svc(SOME, &[8.0, 8.0]), db(&[1.0, 1.0]), net(&[0.1, 0.1])];
        let outcome = explain(&record(&cases, 0.5, 4, seed));
        named += usize::from(outcome.culprit.value().is_some());
        if outcome.verdicts[0].finding == ProbeFinding::Undecided {
            let text = &outcome.verdicts[0].text;
            assert!(text.contains("could not be shown") || text.contains("may explain"), "{text}");
        }
    }
    // Intervals hold together in 95 of 100; a name needs more than one of them to fail.
    assert!(named <= 10, "{named} of 200");
}

#[test]
fn intervals_of_all_rows_hold_together() {
    let truth = [2.1, 1.0, 1.0];
    let cases = || [svc(SOME, &[8.0, 16.8]), db(&[1.0, 1.0]), net(&[0.1, 0.1])];
    let held = |seed: u64| {
        let outcome = explain(&record(&cases(), 0.2, 5, seed));
        let rows = outcome.table.iter().filter(|row| row.state == "s1");
        rows.zip(truth).all(|(row, truth)| {
            let [low, high] = row.ratio.value().unwrap().ci95.unwrap();
            low <= truth && truth <= high
        })
    };
    let held = (0..1000).filter(|seed| held(*seed)).count();
    // As many differences hold beside them: 97.5 %, more or less four standard deviations of a thousand draws.
    assert!((955..=995).contains(&held), "{held}");
}

#[test]
fn failures_are_never_fast_answers() {
    let mut run = record(&[svc(SOME, &[8.0, 8.0]), db(&[1.0, 1.0])], 0.01, 5, 1);
    for window in run.windows.iter_mut().filter(|window| window.state == 1 && window.probe == 0) {
        window.times_s.truncate(20);
        window.timed_out = 40;
    }
    let outcome = explain(&run);
    let row = &outcome.table[1];
    assert_eq!((row.median.value().unwrap().value, row.failures[0].count), (2.0, 200));
    assert_eq!(outcome.culprit, Reading::Measured("svc".into()), "{}", outcome.verdicts[0].text);
    assert!(outcome.warnings.iter().any(|warning| warning.id == "probes-failed"));
    // What fails at once has no time at all.
    for window in run.windows.iter_mut().filter(|window| window.state == 1 && window.probe == 0) {
        window.timed_out = 0;
        window.failures = vec![ProbeFailure { why: "cannot connect".into(), count: 40 }];
    }
    let outcome = explain(&run);
    assert!(outcome.table[1].median.value().is_none() && outcome.culprit.value().is_none());
    assert!(outcome.verdicts[0].text.contains("cannot connect"), "{}", outcome.verdicts[0].text);
}

#[test]
fn what_is_lacking_is_said() {
    let alone = |calls: Option<&[(&str, Option<u32>)]>| {
        let cases = [case("svc", ProbeKind::Http, "10.0.0.1:80", calls, &[8.0, 16.0]), net(&[0.1, 0.1])];
        explain(&record(&cases, NOISE, 5, 1))
    };
    let outcome = alone(None);
    assert!(
        outcome.culprit.value().is_none() && outcome.verdicts[0].text.contains("nobody named"),
        "{:?}",
        outcome.verdicts
    );
    // It calls nothing, and the network is as fast as before.
    assert_eq!(alone(Some(&[])).culprit, Reading::Measured("svc".into()));
    let few = explain(&record(&[svc(SOME, &[8.0, 16.0]), db(&[1.0, 1.0])], NOISE, 2, 1));
    assert!(few.verdicts[0].text.contains("2 rounds"), "{}", few.verdicts[0].text);
    let one_state = explain(&record(&[svc(SOME, &[8.0])], NOISE, 5, 1));
    assert!(one_state.verdicts.is_empty() && one_state.culprit.value().is_none());
    let empty = ProbingRun { windows: Vec::new(), ..record(&[svc(SOME, &[8.0, 9.0])], NOISE, 1, 1) };
    assert!(explain(&empty).culprit.value().is_none());
}
