//! What a run used of what the machine can do at most, and figures that cannot be.

use crate::support::*;
use tare_explain::explain;
use tare_model::ceiling::{CeilingShare, KnownBounds, KnownCeiling, KnownCeilings, Link};
use tare_model::outcome::{Estimate, Outcome};
use tare_model::plan::{Transport, Workload};
use tare_model::trial::Measure;
use tare_model::{Reading, Record};

/// Ceilings, each known to 1 %.
fn known(ceilings: &[(&str, f64, &str)]) -> Reading<KnownCeilings> {
    let one = |(name, value, unit): &(&str, f64, &str)| KnownCeiling {
        name: (*name).to_owned(),
        estimate: Estimate {
            value: *value,
            unit: (*unit).to_owned(),
            ci95: Some([value * 0.99, value * 1.01]),
        },
    };
    Reading::Measured(KnownCeilings { measured_unix_s: 1, ceilings: ceilings.iter().map(one).collect() })
}

/// 100,000 requests per second of 150 bytes on so many connections, with these ceilings.
fn run(connections: u32, ceilings: &[(&str, f64, &str)]) -> Record {
    let mut record = asked_at(connections, &Scene::default());
    record.plan.bounds.ceilings = known(ceilings);
    record
}

fn share(record: &Record) -> CeilingShare {
    explain(record).figures.ceiling.ok().expect("a share")
}

fn why(record: &Record) -> String {
    explain(record).figures.ceiling.ok().expect_err("no share").why
}

fn has_warning(outcome: &Outcome, id: &str) -> bool {
    outcome.verdict.warnings.iter().any(|warning| warning.id == id)
}

const FLOWS: [(&str, f64, &str); 3] = [
    ("loopback-flows-1", 20_000.0, "req/s"),
    ("loopback-flows-64", 200_000.0, "req/s"),
    ("loopback-flows-1024", 160_000.0, "req/s"),
];

#[test]
fn the_tightest_ceiling_is_the_one_of_which_most_is_used() {
    let ceilings =
        [&FLOWS[..], &[("reference-depth-1", 125_000.0, "req/s"), ("loopback-bytes", 3e9, "B/s")]].concat();
    let found = share(&run(64, &ceilings));
    assert_eq!(found.tightest, "reference-depth-1");
    assert!((found.share - 0.8).abs() < 0.01, "{found:?}");
    let names: Vec<&str> = found.bounds.iter().map(|bound| bound.name.as_str()).collect();
    assert_eq!(names, ["reference-depth-1", "loopback-flows-64", "loopback-bytes"]);
    let [low, high] = found.ci95.expect("both are known");
    assert!(low < 0.8 && 0.8 < high && high < 0.83, "{low} {high}");
    // 100,000 answers of 150 bytes.
    assert!((found.bounds[2].share - 0.005).abs() < 1e-4, "{found:?}");
}

#[test]
fn between_two_numbers_of_connections_the_ceiling_is_between_theirs() {
    // In the middle of 1 and 64 on the log: the geometric mean of both.
    let found = share(&run(8, &FLOWS));
    let middle = (20_000.0f64 * 200_000.0).sqrt();
    assert!((found.ceiling.value / middle - 1.0).abs() < 1e-9, "{found:?}");
    assert!(found.of.contains("between those of 1 and 64 connections, for 8"), "{}", found.of);
    assert_eq!(share(&run(64, &FLOWS)).of, "64 connections");
    let most = share(&run(5_000, &FLOWS));
    assert!(
        most.tightest == "loopback-flows-1024" && most.of.contains("the most that were measured"),
        "{most:?}"
    );
}

#[test]
fn what_the_reference_server_passed_is_no_ceiling() {
    let found = share(&run(64, &[FLOWS[1], ("reference-depth-1", 250_000.0, "req/s")]));
    assert_eq!(found.bounds.len(), 1, "{found:?}");
    assert_eq!(found.tightest, "reference-depth-1");
    // One connection is another matter: the reference was measured with 64.
    assert_eq!(
        share(&run(1, &[FLOWS[0], ("reference-depth-1", 250_000.0, "req/s")])).tightest,
        "loopback-flows-1"
    );
}

#[test]
fn requests_in_flight_on_a_connection_are_held_against_the_reference_as_deep() {
    let ceilings = [
        &FLOWS[..],
        &[("reference-depth-1", 100_000.0, "req/s"), ("reference-depth-16", 400_000.0, "req/s")],
    ]
    .concat();
    let mut record = run(64, &ceilings);
    let Workload::Http(http) = &mut record.plan.workload else { panic!("a server") };
    http.levels[0].pipeline = 4;
    let found = share(&record);
    assert!((found.ceiling.value / 200_000.0 - 1.0).abs() < 1e-9 && found.bounds.len() == 1, "{found:?}");
    // Deeper than was measured bounds nothing.
    let Workload::Http(http) = &mut record.plan.workload else { panic!("a server") };
    http.levels[0].pipeline = 64;
    let missing = explain(&record).figures.ceiling.ok().expect_err("no share");
    assert!(
        missing.why.contains("64 requests were in flight") && missing.remedy.contains("--pipeline 16"),
        "{missing:?}"
    );
}

#[test]
fn without_ceilings_or_elsewhere_the_share_is_missing_with_its_reason() {
    let mut record = asked(&Scene::default());
    record.plan.bounds.ceilings = Reading::Missing(KnownBounds::no_ceilings());
    let missing = explain(&record).figures.ceiling.ok().expect_err("none are kept");
    assert_eq!(
        (missing.why.as_str(), missing.remedy.as_str()),
        ("no ceilings are kept for this boot", "run tare ceiling")
    );
    assert!(!has_warning(&explain(&record), "above-ceiling"));
    let mut record = run(64, &FLOWS);
    let Workload::Http(http) = &mut record.plan.workload else { panic!("a server") };
    http.transport = Transport::Namespace;
    assert!(why(&record).contains("loopback"));
    assert!(why(&asked(&Scene::default())).contains("were recorded"));
}

#[test]
fn a_figure_above_its_ceiling_is_a_warning_beyond_chance_alone() {
    let above = |ceiling: f64| explain(&run(64, &[("loopback-flows-64", ceiling, "req/s")]));
    let outcome = above(75_000.0);
    assert!(has_warning(&outcome, "above-ceiling") && outcome.verdict.valid);
    assert!(outcome.figures.ceiling.value().is_some_and(|share| share.share > 1.3));
    assert!(!has_warning(&above(85_000.0), "above-ceiling"));
    assert!(!has_warning(&above(120_000.0), "above-ceiling"));
}

/// A server on another host behind a card of so many bits per second, whose answers have so many bytes.
fn remote(bits_per_s: u64, answer_bytes: u64) -> Record {
    let mut record = asked(&Scene::default());
    let Workload::Http(http) = &mut record.plan.workload else { panic!("a server") };
    http.transport = Transport::Remote;
    record.plan.bounds.link = Reading::Measured(Link { interface: "eth0".to_owned(), bits_per_s });
    for trial in &mut record.trials {
        let Measure::Http(sample) = &mut trial.sample else { panic!("a server") };
        let requests = *sample.requests.value().expect("counted");
        sample.bytes_in = Reading::Measured(requests * answer_bytes);
    }
    record
}

#[test]
fn a_figure_above_the_speed_of_the_network_card_is_not_valid() {
    // 100,000 answers of 1,400 bytes and 78 more on the wire: 1.18 Gbit/s.
    let outcome = explain(&remote(1_000_000_000, 1_400));
    assert!(has_warning(&outcome, "above-link-speed") && !outcome.verdict.valid);
    let text =
        outcome.verdict.warnings.iter().find(|warning| warning.id == "above-link-speed").map(|one| &one.text);
    assert!(text.is_some_and(|text| text.contains("1.18 Gbit/s") && text.contains("eth0")), "{text:?}");
    // Smallest packets alone need 0.16 Gbit/s; within 5 % nothing is said.
    assert!(has_warning(&explain(&remote(100_000_000, 100)), "above-link-speed"));
    assert!(!has_warning(&explain(&remote(1_150_000_000, 1_400)), "above-link-speed"));
    let fast = explain(&remote(10_000_000_000, 1_400));
    assert!(!has_warning(&fast, "above-link-speed"));
    // The same on this machine is no card's matter.
    let mut local = remote(1_000_000_000, 1_400);
    let Workload::Http(http) = &mut local.plan.workload else { panic!("a server") };
    http.transport = Transport::Loopback;
    assert!(!has_warning(&explain(&local), "above-link-speed"));
}
