//! How a figure grows, in every form: read from a file, and measured with the accounting of each level.

use serde_json::{Value, json};
use tare_model::scaling::ScaleOutcome;
use tare_report::{Style, scaling};

const STYLE: Style = Style { color: false, width: 120, unicode: true };

fn estimate(value: f64, unit: &str, half: f64) -> Value {
    json!({ "value": value, "unit": unit, "ci95": [value - half, value + half] })
}

fn outcome(measured: bool) -> ScaleOutcome {
    let law = |n: f64| 1000.0 * n / (1.0 + 0.05 * (n - 1.0) + 0.002 * n * (n - 1.0));
    let level = |n: f64| {
        let lost = json!([
            { "part": "waiting for a lock", "share": 0.8, "evidence": "0.41 s per second" },
            { "part": "CPU time of a request", "share": 0.2, "evidence": "11 µs, 9 µs at 1" },
        ]);
        let accounting = json!({ "cpus_entitled": 2.0, "cpus_busy": 1.9, "cpu_s_per_unit": 1.1e-5, "lock_wait_s_per_s": 0.41 });
        json!({
            "n": n, "estimate": estimate(law(n) * 1.01, "req/s", 20.0), "samples": [law(n) * 1.0, law(n) * 1.02],
            "is_outlier": n == 8.0, "bottlenecks": if measured { json!(["lock-contended"]) } else { json!([]) },
            "accounting": if measured { accounting } else { json!({ "missing": "nothing was observed: the figures are from a file" }) },
            "lost": if measured && n > 1.0 { lost } else { json!([]) },
        })
    };
    let levels: Vec<Value> = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 48.0].map(level).to_vec();
    let curve: Vec<Value> = (0..9)
        .map(|at| 1.0 + 47.0 * f64::from(at) / 8.0)
        .map(|n| json!({ "n": n, "value": law(n), "ci95": [law(n) * 0.97, law(n) * 1.03] }))
        .collect();
    let order =
        json!([{ "cpu": 0, "adds": "core", "node": 0 }, { "cpu": 1, "adds": "smt-sibling", "node": null }]);
    serde_json::from_value(json!({
        "schema": 2, "factor": "connections", "source": if measured { "measured" } else { "sweep.csv" },
        "scaling": {
            "model": "usl", "weights": "relative", "alpha": estimate(0.05, "share", 0.01), "beta": estimate(0.002, "", 3e-4),
            "gamma": estimate(1000.0, "req/s", 15.0), "peak_n": estimate(21.8, "", 1.2), "knee_n": estimate(7.3, "", 0.3),
            "break_n": { "missing": "the universal scalability law has no break" },
            "slope_after": { "missing": "the universal scalability law has no break" },
            "alternatives": [
                { "model": "usl", "aicc_delta": 0.0, "rms_share": 0.011 }, { "model": "amdahl", "aicc_delta": 21.4, "rms_share": 0.08 },
                { "model": "piecewise", "aicc_delta": 30.25, "rms_share": 0.09 }, { "model": "linear", "aicc_delta": null, "rms_share": null },
            ],
            "curve": curve,
        },
        "levels": levels, "cpu_order": if measured { order } else { json!([]) },
        "smt_worth": if measured { estimate(0.2, "cores", 0.05) } else { json!({ "not_applicable": "the figures are from a file" }) },
        "blocks": if measured { 2 } else { 0 }, "seed": 7,
        "warnings": [{ "id": "outlier", "text": "the level at 8 is far from what all others say, and is left out", "hint": "measure it again" }],
    }))
    .unwrap()
}

#[test]
fn a_sweep_in_every_form() {
    for (name, measured) in [("scale-file", false), ("scale-measured", true)] {
        let outcome = outcome(measured);
        let (report, page) = (scaling::report(&outcome), scaling::page(&outcome));
        insta::assert_snapshot!(format!("{name}-terminal"), report.terminal(STYLE));
        insta::assert_snapshot!(format!("{name}-markdown"), page.markdown());
        insta::assert_snapshot!(format!("{name}-csv"), report.csv());
        crate::forms::object(name, Some("scale"), &scaling::json(&outcome).unwrap());
        crate::forms::page(name, &page.html());
    }
}

/// The figures of field report R4, with two instances in place of 200.
fn instances() -> ScaleOutcome {
    let state = |x: f64, ipc: f64| {
        json!({
            "estimate": estimate(x, "req/s", 300.0), "samples": [x, x], "ipc": ipc,
            "accounting": { "cpus_entitled": 4.0, "cpus_busy": 3.9, "cpu_s_per_unit": 3.9 / x, "ipc": ipc },
        })
    };
    let instance = |i: u32| {
        json!({
            "i": i, "cpus": [4 * i - 4, 4 * i - 3, 4 * i - 2, 4 * i - 1], "shared_cpus": if i == 2 { json!([4]) } else { json!([]) },
            "load_cpus": [], "alone": state(24_000.0, 0.58), "together": state(12_000.0, 0.29), "kept": estimate(0.5, "share", 0.02),
            "taken": [
                { "by": "memory", "share": 0.97, "evidence": "0.29 instructions in a cycle instead of 0.58" },
                { "by": "not-explained", "share": 0.03, "evidence": "parts below 1 %" },
            ],
            "summary": "CPU still 390 %, half the work: IPC 0.58 → 0.29",
        })
    };
    let fairness =
        json!([{ "n": 2.0, "jain": estimate(0.98, "", 0.01), "least_kept": 0.49, "most_kept": 0.51 }]);
    ScaleOutcome {
        factor: "instances".to_owned(),
        cpu_order: Vec::new(),
        instances: serde_json::from_value(json!([instance(1), instance(2)])).unwrap(),
        fairness: serde_json::from_value(fairness).unwrap(),
        smt_worth: tare_model::Reading::NotApplicable { not_applicable: "CPUs were not varied".to_owned() },
        ..outcome(true)
    }
}

#[test]
fn instances_in_every_form() {
    let outcome = instances();
    let (report, page) = (scaling::report(&outcome), scaling::page(&outcome));
    let shown = report.terminal(STYLE);
    let said = shown.replace('\u{a0}', " ");
    assert!(said.contains("Instance 1: CPU still 390 %, half the work: IPC 0.58 → 0.29."), "{shown}");
    insta::assert_snapshot!("scale-instances-terminal", shown);
    insta::assert_snapshot!("scale-instances-markdown", page.markdown());
    crate::forms::object("scale-instances", Some("scale"), &scaling::json(&outcome).unwrap());
    crate::forms::page("scale-instances", &page.html());
    // Of a machine without a PMU the reason stands once.
    let mut blind = outcome;
    for instance in &mut blind.instances {
        instance.alone.ipc = tare_model::Reading::missing("this VM exposes no PMU");
    }
    let shown = scaling::report(&blind).terminal(STYLE);
    assert_eq!(shown.matches("this VM exposes no PMU").count(), 1, "{shown}");
}

#[test]
fn a_narrow_terminal_keeps_the_figures_and_ascii_has_a_drawing() {
    let shown = scaling::report(&outcome(false));
    let narrow = shown.terminal(Style { width: 60, ..STYLE });
    assert!(narrow.lines().all(|line| line.chars().count() <= 60) && narrow.contains("outlier"), "{narrow}");
    let ascii = shown.terminal(Style { unicode: false, ..STYLE });
    assert!(ascii.is_ascii() && ascii.contains("+-x") && ascii.contains("X = gn"), "{ascii}");
}
