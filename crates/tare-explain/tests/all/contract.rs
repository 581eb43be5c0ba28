//! The JSON form: every key that scripts rely on, with its type.

use crate::support::*;
use serde_json::Value;
use tare_explain::explain;
use tare_model::Missing;
use tare_model::metrics::wakeups;
use tare_model::observation::Absence;

fn json() -> Value {
    let scene = Scene { threads: vec![server(0.6, 0.1), generator(0.97, 0.0)], ..Scene::default() };
    serde_json::to_value(explain(&with_saturating(64, &scene, &Scene::default())))
        .expect("an outcome is data")
}

/// `path` with `/` between keys; `0` takes the first of a list.
fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    value.pointer(&format!("/{path}")).unwrap_or_else(|| panic!("{path} is not there"))
}

#[test]
fn every_key_of_the_contract_is_there() {
    let json = json();
    for path in ["workload", "bottleneck", "gross_is", "gross/unit", "net/unit", "net/transport"] {
        assert!(at(&json, path).is_string(), "{path}");
    }
    for path in ["findings/0/cause", "findings/0/remedy", "findings/0/confirm", "tare/0/cause"] {
        assert!(at(&json, path).is_string(), "{path}");
    }
    let numbers = [
        "schema",
        "gross/value",
        "gross/ci95/0",
        "gross/ci95/1",
        "net/value",
        "net/ci95/1",
        "net/cpus",
        "net/ref_clock_hz",
        "tare/0/ln_share",
        "tare/0/ci95/0",
        "findings/0/effect_ln",
        "findings/0/confidence",
        "findings/0/evidence/0/value",
        "accounting/residual_ratio",
        "accounting/sut/wall_s",
        "accounting/sut/run_s",
        "accounting/sut/wait_s/throttled",
        "accounting/sut/wait_s/preempted",
        "accounting/sut/wait_s/self_contention",
        "accounting/sut/blocked_s/event",
        "accounting/sut/blocked_s/lock",
        "accounting/load/run_s",
        "accounting/cpus/0/cpu",
        "accounting/cpus/0/sut",
        "accounting/cpus/0/load",
        "accounting/cpus/0/tare",
        "accounting/cpus/0/others",
        "accounting/cpus/0/throttled",
        "accounting/cpus/0/steal",
        "accounting/cpus/0/irq",
        "accounting/cpus/0/idle",
        "accounting/cpus/0/share/user",
        "accounting/cpus/0/share/system",
        "accounting/cpus/0/share/softirq",
        "requests/count",
        "requests/errors/connect",
        "requests/errors/timeout",
        "requests/errors/status",
        "requests/cpu_ns_per_request/sut",
        "requests/cpu_ns_per_request/load",
        "requests/switches_per_request/voluntary",
        "requests/switches_per_request/involuntary",
        "requests/sut_wakeups_per_request/sut",
        "accounting/sut/sut_wakeups_hz",
        "latency_ns/p50",
        "latency_ns/p90",
        "latency_ns/p99",
        "latency_ns/p99_9",
        "latency_ns/max",
        "latency_ns/mean",
        "latency_ns/stdev",
    ];
    for path in numbers {
        assert!(at(&json, path).is_number(), "{path}: {}", at(&json, path));
    }
    assert_eq!(at(&json, "schema"), 2);
    assert!(at(&json, "valid").is_boolean());
    assert!(at(&json, "warnings").is_array() && at(&json, "machine").is_object());
    assert!(at(&json, "accounting/regime").is_object());
    assert_eq!(at(&json, "trials").as_array().map(Vec::len), Some(6));
    for warning in at(&json, "warnings").as_array().unwrap() {
        assert!(["id", "text", "hint"].iter().all(|key| warning[key].is_string()));
    }
}

#[test]
fn a_missing_net_says_why() {
    let scene = Scene { threads: vec![generator(0.97, 0.0)], ..Scene::default() };
    let json = serde_json::to_value(explain(&asked(&scene))).unwrap();
    assert!(at(&json, "net/missing").is_string());
    assert_eq!(at(&json, "accounting/sut"), &Value::Null);
}

#[test]
fn wake_ups_of_sut_threads_are_per_request_or_missing_with_the_reason() {
    let scene = Scene { sut_wakeups_hz: Some(50_000.0), ..Scene::default() };
    let json = serde_json::to_value(explain(&asked(&scene))).unwrap();
    let near = |path: &str, wanted: f64| (at(&json, path).as_f64().unwrap() / wanted - 1.0).abs() < 1e-4;
    assert!(near("requests/sut_wakeups_per_request/sut", 0.5) && near("accounting/sut/sut_wakeups_hz", 50e3));
    assert_eq!(at(&json, "accounting/load/sut_wakeups_hz"), &Value::Null);

    let mut record = asked(&Scene { sut_wakeups_hz: None, ..scene });
    for trial in &mut record.trials {
        let reason = Missing::with_remedy("tracefs: not permitted", "run tare as root");
        let metric = wakeups::SUT.id.to_owned();
        trial.observation.absences.push(Absence { metric, subject: None, reason });
    }
    let json = serde_json::to_value(explain(&record)).unwrap();
    assert_eq!(at(&json, "requests/sut_wakeups_per_request/missing"), "tracefs: not permitted");
    assert_eq!(at(&json, "requests/sut_wakeups_per_request/remedy"), "run tare as root");
    assert_eq!(at(&json, "accounting/sut/sut_wakeups_hz"), &Value::Null);
}
