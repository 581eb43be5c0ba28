//! Every result in every form: laid out once, so that no command has a renderer of its own.

use insta::assert_snapshot;
use serde_json::{Value, json};
use tare_model::calibration::Injection;
use tare_model::cause_page::CausePage;
use tare_model::check::{Area, Check, Level};
use tare_model::comparison::Comparison;
use tare_model::outcome::Cause;
use tare_report::steady::Examined;
use tare_report::{
    Report, Style, calibration, cause_page, comparison, doctor, gate, load, probing, steady, study, tool,
    tool_comparison, tune, why, zoo,
};

const STYLE: Style = Style { color: false, width: 120, unicode: true };

/// All five forms as snapshots. `schema`: what the JSON form fits; none where the command prints it within another object.
fn forms(name: &str, schema: Option<&str>, report: &Report, json: Result<String, serde_json::Error>) {
    assert_snapshot!(format!("{name}-terminal"), report.terminal(STYLE));
    assert_snapshot!(format!("{name}-markdown"), report.markdown());
    assert_snapshot!(format!("{name}-csv"), report.csv());
    object(name, schema, &json.unwrap());
    page(name, &report.html());
}

pub(crate) fn object(name: &str, schema: Option<&str>, text: &str) {
    if let Some(schema) = schema {
        let of: Value = serde_json::from_str(tare_model::schema::find(schema).unwrap().text).unwrap();
        let value: Value = serde_json::from_str(text).unwrap();
        let validator = jsonschema::validator_for(&of).unwrap();
        let errors = validator.iter_errors(&value);
        let errors: Vec<String> = errors.map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(errors.is_empty(), "{name} does not fit docs/schema/{schema}.json: {errors:#?}");
    }
    assert_snapshot!(format!("{name}-json"), text);
}

/// What is behind the page's style sheet.
pub(crate) fn page(name: &str, page: &str) {
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"), "{name}: {page}");
    assert!(!page.contains("<script"), "{name}");
    let (_, body) = page.split_once("</style>").unwrap();
    assert_snapshot!(format!("{name}-html"), body);
}

/// On a terminal, in Markdown and as CSV it is in `text.rs`, of every kind of outcome.
#[test]
fn a_run() {
    for (name, record, outcome) in crate::support::all() {
        if ["server-bound", "throttled", "generator-bound", "commands"].contains(&name) {
            let name = format!("run-{name}");
            object(&name, Some("run"), &tare_report::json(&outcome).unwrap());
            page(&name, &tare_report::html(&record, &outcome));
        }
    }
}

fn launch(at: u32) -> Value {
    let arm = json!({
        "own_ns": 200_000_000, "answers": 16_000, "errors": 0, "cpu_ns": 190_000_000,
        "figures": { "throughput": 80_000.0 },
    });
    let disturbed = if at == 1 { vec!["steal"] } else { Vec::new() };
    json!({
        "begin_s": 1.5 * f64::from(at), "took_s": 1.25, "turn_ns": 1_000_000, "arms": [arm, arm, arm],
        "interference": { "steal_share": 0.0, "throttled_share": null }, "disturbed": disturbed,
        "warm_up": { "length_s": 0.2, "is_steady": at > 0, "arms": [{}, {}, {}] },
    })
}

fn compared() -> Comparison {
    let program = |name: &str| json!({ "name": name, "command": format!("./{name} --port {{port}}"), "url": "http://127.0.0.1:{port}/" });
    let effect = |figure: &str, baseline: f64, change: f64, verdict: &str| {
        json!({
            "program": "B", "figure": figure, "baseline": baseline, "value": baseline * (1.0 + change), "launches": 3,
            "change": { "value": change, "interval": [change - 0.01, change + 0.01] },
            "adjusted": { "value": change + 0.002, "interval": [change - 0.006, change + 0.01] },
            "aa_control": { "value": 0.001, "interval": [-0.005, 0.007] },
            "verdict": verdict, "detectable": 0.0125, "one_percent_s": 90.0,
        })
    };
    let part = |id: &str, within: Option<&str>, ln: f64, sides: [f64; 2], unit: &str| {
        json!({
            "program": "B", "id": id, "within": within, "ln": ln, "ci95": [ln - 0.008, ln + 0.008],
            "from": sides[0], "to": sides[1], "unit": unit,
        })
    };
    serde_json::from_value(json!({
        "schema": 2, "argv": ["tare", "compare"], "programs": [program("A"), program("B")], "seed": 1, "budget_s": 60.0,
        "precision": 0.01, "margin": 0.02, "planned": 40, "turn_ns": 1_000_000, "sut_cpus": [0], "load_cpus": [1],
        "ended": "budget", "elapsed_s": 58.5, "launches": [launch(0), launch(1), launch(2)],
        "effects": [
            effect("throughput", 81_200.0, -0.1, "slower"), effect("cpu_per_request", 11e-6, 0.087, "slower"),
            effect("p99", 2.4e-3, 0.001, "no-difference"),
        ],
        "parts": [
            part("busy", None, -0.022, [0.958, 0.937], "share"), part("cost", None, -0.0834, [11e-6, 11.96e-6], "s"),
            part("user", Some("cost"), -0.0641, [4.1e-6, 4.85e-6], "s"),
            part("kernel", Some("cost"), -0.0193, [6.9e-6, 7.11e-6], "s"),
        ],
        "interleaving": [{
            "program": "A", "alone_s": 10.9e-6, "change": { "value": 0.012, "interval": [-0.004, 0.028] }, "measured": 3,
        }],
        "not_known": [{ "program": "B", "figure": "p99.9", "missing": "too few answers", "remedy": "a longer --window" }],
        "warnings": [{ "id": "not-busy", "text": "the servers were idle, at times", "hint": "more connections" }],
    }))
    .unwrap()
}

#[test]
fn a_comparison() {
    let compared = compared();
    forms("comparison", Some("compare"), &comparison::report(&compared), comparison::json(&compared));
}

#[test]
fn a_comparison_of_records() {
    let second = crate::gate::against_a_record();
    let mut third = crate::gate::worse();
    (third.new.label, third.against) = ("third.tare".into(), second.against.clone());
    (third.change_points, third.conditions) = (Vec::new(), Vec::new());
    let gates = [second, third];
    let report = Report::joined(gates.iter().map(gate::report));
    forms("compare-records", Some("compare-records"), &report, gate::json(&gates));
}

#[test]
fn a_comparison_of_results() {
    let effect = |name: &str, better: Option<&str>, change: &Value, verdict: &str| {
        json!({
            "benchmark": "BenchmarkSort-2", "name": name, "unit": "s/op", "better": better, "before": 1.25e-8,
            "after": 1.5e-8, "values": [10, 10], "change": change, "verdict": verdict,
        })
    };
    let change = json!({ "value": 0.2, "interval": [0.18, 0.22] });
    let missing = json!({ "missing": "a value is not above 0, so there is no ratio" });
    let compared = json!({
        "schema": 2, "format": "go-bench", "before": "old.txt", "after": "new.txt", "margin": 0.02,
        "effects": [
            effect("ns/op", Some("lower"), &change, "slower"), effect("items", None, &change, "cannot-tell"),
            effect("B/op", Some("lower"), &missing, "cannot-tell"),
        ],
        "unpaired": [{ "benchmark": "BenchmarkGone-2", "name": "ns/op", "is_new": false }],
        "method": "95 % intervals",
        "warnings": [{ "id": "not-interleaved", "text": "drift", "hint": "interleave" }],
    });
    let compared = serde_json::from_value(compared).unwrap();
    let report = tool_comparison::report(&compared);
    forms("compare-tools", Some("compare-tools"), &report, tool_comparison::json(&compared));
}

#[test]
fn results_of_a_tool() {
    let metric = |benchmark: &str, name: &str, unit: &str, samples: &[f64], ci95: Option<[f64; 2]>| {
        let launches: Vec<usize> = (0..samples.len()).collect();
        json!({
            "benchmark": benchmark, "name": name, "unit": unit, "better": "lower", "samples": samples,
            "launches": launches, "workers": [], "at_s": [], "configuration": {}, "summary": {},
            "estimate": { "value": samples[0], "unit": unit, "ci95": ci95 },
        })
    };
    let read = json!({
        "schema": 2, "format": "go-bench",
        "metrics": [
            metric("p.BenchmarkSort-2", "ns/op", "s/op", &[1.25e-8, 1.3e-8], Some([1.2e-8, 1.3e-8])),
            metric("p.BenchmarkSort-2", "B/op", "B/op", &[80.0], None), metric("", "rate", "req/s", &[120e3], None),
        ],
        "configuration": { "goos": "linux" },
        "skipped": [{ "what": "BenchmarkX-2", "line": 7, "why": "the line is cut off" }], "skipped_count": 3,
        "warnings": [{ "id": "one-launch", "text": "of one process", "hint": "start it again" }],
        "gets_wrong": ["its mean hides one slow iteration"],
    });
    let read = serde_json::from_value(read).unwrap();
    forms("tool", Some("tool"), &tool::report(&read), tool::json(&read));
}

#[test]
fn a_gate_and_several() {
    let judged = crate::gate::worse();
    let of = gate::report(&judged);
    forms("gate", Some("gate"), &of, gate::json(&judged));
    let twice = Report::joined([of.clone(), of.clone()]);
    let lines = |report: &Report| report.csv().lines().count();
    assert_eq!(lines(&twice), 2 * lines(&of) - 1, "one header for both");
    assert_eq!(twice.terminal(STYLE).matches("is worse than").count(), 2);
}

#[test]
fn a_difference_and_a_story() {
    let of = crate::why::throttled();
    forms("why", Some("why"), &why::report(&of), why::json(&of));
    let (record, outcome) = (crate::support::record(), crate::support::throttled());
    forms("why-story", Some("run"), &why::story(&record, &outcome), tare_report::json(&outcome));
}

#[test]
fn an_examination() {
    let check = |id: &str, level: Level| Check {
        id: id.into(),
        area: Area::Processor,
        level,
        found: format!("{id}, as it is"),
        effect: "figures vary by 10 %".into(),
        fix: "set it, then look again".into(),
        setting: None,
    };
    let checks = vec![check("governor", Level::Warn), check("cpu-quota", Level::Ok)];
    // The object that holds them is a snapshot of the command line's tests, for every made-up machine.
    forms("doctor", None, &doctor::report(&checks, true), serde_json::to_string_pretty(&checks));
}

#[test]
fn series() {
    let values: Vec<f64> =
        (0..200).map(|at| if at < 50 { 2.0 } else { 1.0 } + 0.001 * f64::from(at % 7)).collect();
    let found = tare_stats::steadiness(&values).unwrap();
    let all = [Examined { name: "a, b".into(), values: 200, seconds: true, found }];
    forms("steady", Some("steady"), &steady::report(&all), steady::json(&all));
}

#[test]
fn a_plan() {
    let rate = |value: f64| json!({ "value": value, "ci95": [0.99 * value, 1.01 * value], "unit": "1/s" });
    let cell = |name: &str, value: f64| {
        json!({
            "name": name, "baseline": null, "blocks": 3, "valid": 3,
            "figures": { "throughput": rate(value), "p99": null },
            "bottlenecks": ["server-cpu-bound", "server-cpu-bound", "too-noisy"], "expectations": [],
        })
    };
    let mut other = cell("one", 90e3);
    other["baseline"] = "two".into();
    other["changes"] = json!({
        "throughput": { "ratio": { "value": 0.9, "ci95": [0.87, 0.93] } },
        "p99": { "nothing": "no p99 in a result" },
    });
    other["expectations"] = json!([
        { "expected": "throughput down", "verdict": "held", "seen": { "ratio": { "value": 0.9, "ci95": [0.88, 0.92] } } },
        { "expected": "p99 up", "verdict": "could-not-tell", "seen": { "nothing": "no p99 in a result" } },
    ]);
    let plan = json!({
        "schema": 2, "name": "layouts", "seed": 7, "blocks": 16, "measured_again": 1,
        "disturbed": [{ "block": 2, "by": ["steal"] }], "cells": [cell("two", 100e3), other], "left_out": { "eight": 9 },
    });
    let plan = serde_json::from_value(plan).unwrap();
    forms("plan", Some("plan"), &study::report(&plan), study::json(&plan));
}

#[test]
fn a_load() {
    let load = serde_json::from_str(include_str!("load.json")).unwrap();
    forms("load", Some("load"), &load::report(&load, true), load::json(&load));
}

/// A run that was right, one that was not, and one that failed.
#[test]
fn a_calibration() {
    let run = |injection: &str, found: &str, right: bool| {
        json!({
            "injection": injection, "begin_s": 1.0, "took_s": 7.0, "result": "measured", "bottleneck": found,
            "first_finding": null, "found": found, "right": right, "alarms": [], "gross": 1000.0, "net": 1200.0,
            "findings": [{ "cause": found, "effect_ln": 0.1 }], "right_as_listed": right,
        })
    };
    let failed = json!({
        "injection": "loss", "begin_s": 15.0, "took_s": 1.0, "result": "failed", "why": "no nft here",
    });
    let injection = |name: &str, expected: &str| {
        json!({
            "name": name, "about": format!("{name}, by hand"), "expected": [expected], "undisturbed": false,
            "leaves_net": true, "not_here": null,
        })
    };
    let calibration = json!({
        "schema": 2, "argv": ["tare", "calibrate"], "started_unix_s": 1_795_000_000, "took_s": 16.0, "seed": 7,
        "repeats": 1, "complete": true, "machine": { "kernel": "6.18", "cpu_model": "A CPU", "cpus": 2 },
        "injections": [
            injection("quota", "cpu-quota-throttled"), injection("lock", "lock-contended"),
            injection("loss", "network-ceiling"),
        ],
        "runs": [run("quota", "cpu-quota-throttled", true), run("lock", "server-cpu-bound", false), failed],
        "summary": {
            "runs": 3, "right": 1, "right_as_listed": 1, "undisturbed": 0, "false_alarms": 0, "disturbed": 0,
            "confusion": { "quota": { "cpu-quota-throttled": 1 }, "lock": { "server-cpu-bound": 1 } },
        },
        "comparisons": [],
    });
    let calibration = serde_json::from_value(calibration).unwrap();
    let report = calibration::report(&calibration);
    forms("calibration", Some("calibrate"), &report, calibration::json(&calibration));
}

/// What can be injected here, and what cannot.
#[test]
fn injections() {
    let list = json!([
        {
            "name": "quota", "about": "half a CPU for the server's control group", "expected": ["cpu-quota-throttled"],
            "undisturbed": false, "leaves_net": true, "not_here": null,
        },
        {
            "name": "loss", "about": "1 % of the packets are lost, \"by chance\"",
            "expected": ["network-ceiling", "load-generator-bound"], "undisturbed": false, "leaves_net": false,
            "not_here": "it needs nft",
        },
    ]);
    let list: Vec<Injection> = serde_json::from_value(list).unwrap();
    forms("injections", Some("injections"), &calibration::list(&list), calibration::list_json(&list));
}

fn governor(now: &str) -> Value {
    json!({ "name": "governor", "about": "who chooses the clock: performance does not wait for load", "now": now })
}

/// The settings as they stand; one of them was applied, and changed by somebody else since.
#[test]
fn settings() {
    let boost = json!({
        "name": "boost", "about": "clocks above the nominal one",
        "now": { "missing": "this machine has no cpufreq", "remedy": "set it on the host" },
    });
    let frequency = json!({
        "name": "frequency", "about": "the range of the clock",
        "now": { "missing": "this machine has no cpufreq", "remedy": "set it on the host" },
    });
    let changed = json!({
        "setting": "governor", "path": "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "before": "powersave",
        "applied": "performance", "now": "schedutil",
    });
    let tuned = json!({
        "settings": [governor("schedutil"), boost, frequency],
        "applied": [{
            "by": { "pid": 4711, "command": "tare tune --apply", "since_unix_s": 1_795_000_000 }, "state": "standing",
            "settings": [changed],
        }],
    });
    let tuned = serde_json::from_value(tuned).unwrap();
    forms("tune", Some("tune"), &tune::report(&tuned), tune::json(&tuned));
}

/// What `--apply` would do: in five files, in none, and once; one setting is not here.
#[test]
fn settings_that_are_planned() {
    let with = |mut setting: Value, steps: Value, notes: &[&str]| {
        (setting["steps"], setting["notes"]) = (steps, json!(notes));
        setting
    };
    let of_cpu = |cpu: u32| {
        let path = format!("/sys/devices/system/cpu/cpufreq/policy{cpu}/scaling_governor");
        json!({ "path": path, "before": "powersave", "wanted": "performance" })
    };
    let steps: Vec<Value> = (0..5).map(of_cpu).collect();
    let numa = json!({ "name": "numa-balancing", "about": "the kernel moves pages", "now": "0" });
    let caches = json!({ "name": "drop-caches", "about": "start with cold caches", "now": "1.2 GiB cached" });
    let once = json!([{ "path": "/proc/sys/vm/drop_caches", "before": null, "wanted": "3" }]);
    let quota = json!({
        "name": "quota", "about": "CPU time that a control group may use", "now": { "missing": "no group was named" },
        "not_here": { "missing": "no group was named", "remedy": "give --pid or --cgroup" },
    });
    let plan = json!({
        "settings": [
            with(governor("powersave"), json!(steps), &["the clock may still fall when it gets warm"]),
            with(numa, json!([]), &[]), with(caches, once, &[]), quota,
        ],
    });
    let plan = serde_json::from_value(plan).unwrap();
    forms("tune-plan", Some("tune"), &tune::report(&plan), tune::json(&plan));
}

#[test]
fn a_cause_and_all() {
    let page = json!({
        "cause": "cpu-quota-throttled", "title": "A CPU quota is the bottleneck",
        "brief": "A CPU quota stopped the program although it had work (throttling).",
        "what_it_means": [
            "A control group of the program may use so much CPU time in each period (mostly 100 ms).",
            "Average CPU use can look low: 8 threads use a quota of 2 CPUs up in 25 ms and then stop for 75 ms.",
        ],
        "evidence": ["Share of the entitlement in which threads were ready and throttled."],
        "looks_the_same_but_is_not": [
            "`cpu-contended`: threads are ready and wait too, but because others run.",
            "`oversubscribed`: many threads under a quota also wait behind each other.",
        ],
        "what_to_do": ["Raise or remove the quota: `cpu.max` (cgroup v2).", "Use no more threads than it has CPUs."],
        "how_to_confirm": ["`tare run --confirm URL` gives 1.5 times the quota in pairs of short trials."],
        "source": ["`cpu.stat` and `cpu.max` of every group up to the root."],
        "intervention": "quota", "injections": ["quota", "parent-quota"],
    });
    let page: CausePage = serde_json::from_value(page).unwrap();
    forms("explain", Some("explain"), &cause_page::report(&page), cause_page::json(&page));
    let brief = "Threads were ready and waited, since others ran on their CPUs.".to_owned();
    let pages = [page.clone(), CausePage { cause: Cause::CpuContended, brief, ..page }];
    forms("causes", Some("causes"), &cause_page::list(&pages), cause_page::json(&pages));
}

/// A real result, with its first runs alone. It is kept beside the test: what the bench shows next time changes no test.
#[test]
fn the_zoo() {
    let zoo: tare_model::zoo::Zoo = serde_json::from_str(include_str!("zoo.json")).unwrap();
    let [text, page] = [false, true].map(|is_page| zoo::report(&zoo, is_page));
    forms("zoo", Some("zoo"), &text, zoo::json(&zoo));
    assert!(page.markdown().contains("| true | "), "the matrix is turned round on a page");
}

#[test]
fn probes_under_states_of_load() {
    let estimate =
        |value: f64, unit: &str| json!({"value": value, "unit": unit, "ci95": [0.95 * value, 1.06 * value]});
    let first = json!({"not_applicable": "the state that others are held against"});
    let row = |probe: &str, state: &str, median_s: f64, ratio: Value, added: Value| {
        json!({
            "probe": probe, "state": state, "median": estimate(median_s, "s"), "p99_s": 3.0 * median_s, "ratio": ratio,
            "added": added, "answers": 296, "failures": [{"why": "no answer within the time limit", "count": 4}],
            "own_lateness_s": 6e-5, "rounds_s": [median_s, median_s, null],
        })
    };
    let mut late = row("db", "full", 1.03e-3, estimate(1.03, ""), estimate(3e-5, "s"));
    late["p99_s"] = json!({"missing": "299 requests, and it takes 300", "remedy": "more rounds"});
    let probe = |name: &str, kind: &str, target: &str, calls: Value| {
        json!({
            "name": name, "kind": kind, "target": target, "address": "10.0.0.1:80", "fresh": false, "calls": calls,
            "calls_assumed": false,
        })
    };
    let verdict = json!({
        "state": "full", "service": "svc", "finding": "service", "culprit": "svc",
        "text": "in 'full' svc takes 2.10 × (2.00 to 2.23) as long as in 'idle', db 1.03 × (0.98 to 1.09): svc itself or the hosts \
                 that it runs on are the cause",
        "hint": "measure it under this load: tare run names the bottleneck of svc",
    });
    let outcome: tare_model::probing::ProbingOutcome = serde_json::from_value(json!({
        "schema": 2, "started_unix_s": 1_763_870_400,
        "plan": {"rate_hz": 20.0, "window_s": 3.0, "settle_s": 0.5, "timeout_s": 2.0, "rounds": 5, "seed": 7},
        "rounds_done": 4,
        "probes": [
            probe("svc", "http", "http://10.0.0.1/", json!([{"probe": "db", "times": 3}])),
            probe("db", "mysql", "mysql://app@10.0.0.2:3306", Value::Null),
        ],
        "states": [
            {"name": "idle", "command": null, "failed": null},
            {"name": "full", "command": "wrk -d{seconds}s http://10.0.0.1/", "failed": null},
        ],
        "table": [
            row("svc", "idle", 8e-3, first.clone(), first.clone()),
            row("svc", "full", 1.68e-2, estimate(2.1, ""), estimate(8.8e-3, "s")),
            row("db", "idle", 1e-3, first.clone(), first),
            late,
        ],
        "culprit": "svc", "verdicts": [verdict],
        "warnings": [{"id": "interrupted", "text": "it was interrupted", "hint": "let it run"}],
    }))
    .unwrap();
    forms("probe", Some("probe"), &probing::report(&outcome), probing::json(&outcome));
}
