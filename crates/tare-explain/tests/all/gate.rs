//! What a gate takes from records with a known truth.

use crate::support::*;
use tare_explain::gate::{Asked, against_baseline, run};
use tare_model::comparison::{Figure, Verdict};
use tare_model::gate::State;
use tare_model::plan::{Sut, Workload};
use tare_model::{Reading, Record};

/// A server that costs `cost_us` a request, while interference makes everything cost `slower` times as much.
fn measured(cost_us: f64, slower: f64) -> Record {
    let busy = |cost_us: f64| Scene {
        threads: vec![server(0.98, 0.0), generator(0.6, 0.0)],
        rate_hz: 0.98 / (cost_us * slower) * 1e6,
        ..Scene::default()
    };
    let block = |own: f64| [busy(cost_us * own), busy(cost_us * own), busy(4.0)];
    in_blocks(64, &[1.001, 0.999, 1.0, 0.999, 1.001].map(block))
}

#[test]
fn a_program_that_takes_more_cpu_is_found_under_any_interference_and_interference_alone_is_not() {
    let asked = Asked { margin: 0.02, conditions: Some(vec!["net < -5%".parse().unwrap()]) };
    let base = || run(&measured(5.0, 1.0), "base").unwrap();
    let cost = base().against_reference[&Figure::CpuPerRequest];
    assert!((cost.value - 1.25).abs() < 0.01 && cost.trials == 5, "{cost:?}");
    for (cost_us, slower, state, verdict) in [
        (5.0, 1.4, State::NotProven, Verdict::NoDifference),
        (5.5, 0.7, State::Proven, Verdict::Slower),
        (4.5, 1.4, State::NotProven, Verdict::Faster),
    ] {
        let gate = against_baseline(run(&measured(cost_us, slower), "new").unwrap(), base(), &asked);
        assert_eq!(gate.conditions[0].state, state, "{cost_us} {slower}: {gate:#?}");
        for figure in [Figure::Net, Figure::CpuPerRequest] {
            let effect = gate.effects.iter().find(|effect| effect.figure == figure).unwrap();
            assert!(effect.of_reference && effect.verdict == verdict, "{cost_us} {slower}: {effect:?}");
        }
    }
}

#[test]
fn what_is_no_figure_of_the_server_is_missing() {
    let no_work = Scene { threads: vec![server(0.6, 0.0), generator(0.99, 0.0)], ..Scene::default() };
    let figures = run(&asked(&no_work), "no-work").unwrap().figures;
    let Reading::Missing(missing) = &figures[&Figure::Throughput] else { panic!("{figures:?}") };
    assert!(missing.why.contains("the generator gave out first"), "{missing:?}");
    let blind = Scene { latency: false, ..Scene::default() };
    assert!(run(&asked(&blind), "blind").unwrap().figures[&Figure::P99].value().is_none());
    assert!(run(&commands(&[(1.0, 0, Scene::default())]), "command").is_err());
}

#[test]
fn the_port_of_a_server_that_is_started_is_no_part_of_the_plan() {
    let plan = |url: &str, sut: Sut| {
        let mut record = asked(&Scene::default());
        let Workload::Http(http) = &mut record.plan.workload else { panic!() };
        (http.url, http.sut) = (Some(url.to_owned()), sut);
        run(&record, "one").unwrap().plan
    };
    let started = |url: &str| plan(url, Sut::Started { command: "./server".to_owned() });
    assert_eq!(started("http://127.0.0.1:8080/a:1"), started("http://127.0.0.1:9090/a:1"));
    assert_ne!(started("http://127.0.0.1:8080/a"), started("http://127.0.0.1:8080/b"));
    assert!(started("http://[::1]/").starts_with("http://[::1]/,"));
    assert!(started("http://[::1]:80/").starts_with("http://[::1]/,"));
    let attached = |url: &str| plan(url, Sut::Attached { pids: vec![SUT_PID] });
    assert_ne!(attached("http://127.0.0.1:8080/"), attached("http://127.0.0.1:9090/"));
}
