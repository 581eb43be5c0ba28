//! The account of a difference where both runs were loaded interleaved with the reference server.

use crate::support::{Scene, generator, in_blocks, server};
use tare_explain::why::why;
use tare_model::Record;
use tare_model::plan::Workload;
use tare_model::reference_level::KnownReference;
use tare_model::why::{Part, Why};

/// What the reference costs, microseconds.
const REFERENCE_US: f64 = 4.0;

fn busy(run: f64, cost_us: f64) -> Scene {
    Scene {
        threads: vec![server(run, 0.0), generator(0.6, 0.0)],
        rate_hz: run / cost_us * 1e6,
        ..Scene::default()
    }
}

/// A run of a program that costs so much, on a machine whose interference has these factors; of the asked load how far it fills the
/// CPU, and what a request costs more in it.
fn run(cost_us: f64, factors: [f64; 5], load: (f64, f64)) -> Record {
    run_with(64, cost_us, factors, load)
}

fn run_with(connections: u32, cost_us: f64, factors: [f64; 5], (filled, more): (f64, f64)) -> Record {
    let own = [1.001, 0.999, 1.0, 1.002, 0.998];
    let blocks: Vec<[Scene; 3]> = factors
        .into_iter()
        .zip(own)
        .map(|(factor, own)| {
            let cost_us = cost_us * factor * own;
            [busy(filled, cost_us * more), busy(0.98, cost_us), busy(0.98, REFERENCE_US * factor)]
        })
        .collect();
    let mut record = in_blocks(connections, &blocks);
    let Workload::Http(http) = &mut record.plan.workload else { unreachable!() };
    http.reference = Some(KnownReference { level: None });
    record
}

const FULL: (f64, f64) = (0.98, 1.0);
const STEADY: [f64; 5] = [1.0, 1.05, 0.96, 1.03, 0.99];
const DISTURBED: [f64; 5] = [1.2, 1.3, 1.15, 1.22, 1.1];

fn account(a: &Record, b: &Record) -> Why {
    let why = why(("a.tare", a), ("b.tare", b)).unwrap();
    let parts = why.parts.value().unwrap();
    let sum: f64 = parts.iter().map(|part| part.ln).sum();
    assert!((sum - why.rate.value().unwrap().ln).abs() < 1e-9, "{why:#?}");
    let clear = |part: &&Part| part.ci95.is_some_and(|[low, high]| low > 0.0 || high < 0.0);
    // The two lines that a reader holds against each other say the same.
    let (cost, net) = (part(&why, "cost"), why.net.value().unwrap());
    assert!((cost.ln - net.ln).abs() < 1e-12 && cost.ci95 == net.ci95, "{why:#?}");
    assert_eq!(clear(&cost), net.ci95.is_some_and(|[low, high]| low > 0.0 || high < 0.0));
    why
}

fn part<'w>(why: &'w Why, id: &str) -> &'w Part {
    let found = why.parts.value().unwrap().iter().find(|part| part.id == id);
    found.unwrap_or_else(|| panic!("no {id}: {why:#?}"))
}

#[test]
fn more_work_in_a_request_is_the_programs_whatever_the_machine_does() {
    for factors in [STEADY, DISTURBED] {
        let why = account(&run(20.0, STEADY, FULL), &run(25.0, factors, FULL));
        let corrected = why.interference_corrected.unwrap();
        let [low, high] = corrected.ci95.unwrap();
        assert!(
            (corrected.ln - 0.8f64.ln()).abs() < 5e-3 && low < 0.8f64.ln() && high < -0.1,
            "{corrected:?}"
        );
        assert!(part(&why, "cost").ln / corrected.ln > 0.95, "{why:#?}");
        // By the rate alone the two could be equal: a host's interference differs by as much.
        assert!(why.rate.value().unwrap().ci95.unwrap()[1] > high, "{why:#?}");
    }
}

#[test]
fn what_the_machine_did_is_no_difference_of_the_programs() {
    let why = account(&run(20.0, STEADY, FULL), &run(20.0, DISTURBED, FULL));
    let corrected = why.interference_corrected.unwrap();
    let [low, high] = corrected.ci95.unwrap();
    assert!(corrected.ln.abs() < 5e-3 && low < 0.0 && high > 0.0, "{corrected:?}");
    assert!((part(&why, "interference").ln + 0.17).abs() < 0.02, "{why:#?}");
    assert_eq!(why.parts.value().unwrap()[0].id, "interference");
}

#[test]
fn an_asked_load_with_time_to_spare_is_a_part_of_its_own() {
    let (light, lighter) = ((0.6, 1.2), (0.3, 1.5));
    let why = account(&run(20.0, STEADY, light), &run(20.0, STEADY, lighter));
    assert!(why.interference_corrected.is_none());
    assert!((part(&why, "underload").ln - (1.2f64 / 1.5).ln()).abs() < 5e-3, "{why:#?}");
    assert!(part(&why, "cost").ln.abs() < 5e-3 && part(&why, "interference").ln.abs() < 5e-3, "{why:#?}");
}

/// Eight connections fill the server too, and a request costs something else than with 64: that is none of the machine's.
#[test]
fn a_load_of_other_connections_is_no_interference() {
    let why = account(&run(20.0, STEADY, FULL), &run_with(8, 20.0, STEADY, (0.98, 1.3)));
    assert!((part(&why, "underload").ln - (1.0 / 1.3f64).ln()).abs() < 5e-3, "{why:#?}");
    assert!(part(&why, "cost").ln.abs() < 5e-3 && part(&why, "interference").ln.abs() < 5e-3, "{why:#?}");
    let corrected = why.interference_corrected.unwrap();
    assert!((corrected.ln - (1.0 / 1.3f64).ln()).abs() < 5e-3, "{corrected:?}");
}
