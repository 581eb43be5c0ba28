//! What a gate takes from records with a known truth.

use crate::support::*;
use tare_explain::gate::{Asked, against_baseline, interleaved, run};
use tare_model::comparison::{Comparison, Figure, Verdict};
use tare_model::condition::Condition;
use tare_model::gate::{Against, BLIND, Gate, SCHEMA, State};
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

/// Launches of two builds, as `tare compare` judged them.
fn comparison(figure: &str, change: f64, url: Option<&str>) -> Comparison {
    let program =
        |name: &str| serde_json::json!({ "name": name, "command": format!("./{name}"), "url": url });
    serde_json::from_value(serde_json::json!({
        "schema": SCHEMA, "argv": [], "programs": [program("A"), program("B")], "seed": 1, "budget_s": 60.0,
        "precision": 0.01, "margin": 0.02, "planned": 40, "turn_ns": 1_000_000, "sut_cpus": [0], "load_cpus": [1],
        "ended": "budget", "elapsed_s": 60.0, "launches": [], "warnings": [],
        "effects": [{
            "program": "B", "figure": figure, "baseline": 100.0, "value": 100.0 * (1.0 + change), "launches": 40,
            "change": { "value": change, "interval": [change - 0.01, change + 0.01] }, "aa_control": null,
            "verdict": if change < 0.0 { "slower" } else { "faster" }, "detectable": 0.25, "one_percent_s": null,
        }],
    }))
    .unwrap()
}

#[test]
fn builds_that_were_measured_interleaved_are_judged_by_their_launches() {
    let machine = asked(&Scene::default()).machine;
    let gate = |comparison: &Comparison, conditions: &[&str]| {
        let of = |text: &&str| Condition::of(text, Figure::all()).unwrap();
        let conditions = (!conditions.is_empty()).then(|| conditions.iter().map(of).collect());
        interleaved(comparison, (&machine, 7), true, &Asked { margin: 0.02, conditions })
    };
    let states = |gate: &Gate| gate.conditions.iter().map(|judged| judged.state).collect::<Vec<_>>();
    let effect = |gate: &Gate, figure: Figure| {
        gate.effects.iter().find(|effect| effect.figure == figure).unwrap().clone()
    };
    let slower = gate(&comparison("net", -0.1, Some("http://127.0.0.1:{port}/")), &[]);
    assert_eq!((states(&slower), slower.new.label.as_str()), (vec![State::Proven], "./B"));
    assert!(matches!(&slower.against, Against::Interleaved(run) if run.label == "./A"), "{slower:#?}");
    let net = effect(&slower, Figure::Net);
    // Twenty-five per cent more the one way are twenty less the other.
    assert_eq!((net.runs, net.verdict, net.detectable), (40, Verdict::Slower, Some(0.2)));
    assert!(
        matches!(&effect(&slower, Figure::P99).change, Reading::Missing(missing) if !missing.remedy.is_empty())
    );
    let same = gate(&comparison("net", 0.0, Some("http://127.0.0.1:{port}/")), &["net < -5%", "p99 > 5%"]);
    assert_eq!(states(&same), [State::NotProven, State::CannotTell]);
    assert!(same.warnings.iter().any(|warning| warning.id == BLIND), "{same:#?}");
    // A command has no net.
    assert_eq!(gate(&comparison("time", 0.1, None), &[]).conditions[0].condition, "time > 5%");
    assert_eq!(states(&gate(&comparison("time", 0.1, None), &[])), [State::Proven]);
}
