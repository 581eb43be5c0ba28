//! Every result in every form: laid out once, so that no command has a renderer of its own.

use insta::assert_snapshot;
use tare_model::check::{Area, Check, Level};
use tare_model::comparison::Comparison;
use tare_report::steady::Examined;
use tare_report::{Report, Style, comparison, doctor, gate, steady, why};

const STYLE: Style = Style { color: false, width: 120, unicode: true };

/// Markdown and CSV as snapshots; the page is a page, whose words are those of the terminal.
fn forms(name: &str, report: &Report) {
    assert_snapshot!(format!("{name}-markdown"), report.markdown());
    assert_snapshot!(format!("{name}-csv"), report.csv());
    let page = report.html();
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"), "{name}: {page}");
    assert!(!page.contains("<script"), "{name}");
    let text = report.terminal(STYLE);
    let first = text.split_whitespace().next().unwrap();
    assert!(page.contains(first), "{name}: {first}");
}

fn compared() -> Comparison {
    let program = |name: &str| serde_json::json!({ "name": name, "command": format!("./{name} --port {{port}}"), "url": "http://127.0.0.1:{port}/" });
    let effect = |figure: &str, change: f64, verdict: &str| {
        serde_json::json!({
            "program": "B", "figure": figure, "baseline": 1000.0, "value": 1000.0 * (1.0 + change), "launches": 40,
            "change": { "value": change, "interval": [change - 0.01, change + 0.01] },
            "aa_control": { "value": 0.001, "interval": [-0.005, 0.007] },
            "verdict": verdict, "detectable": 0.0125, "one_percent_s": 90.0,
        })
    };
    serde_json::from_value(serde_json::json!({
        "schema": 2, "argv": ["tare", "compare"], "programs": [program("A"), program("B")], "seed": 1, "budget_s": 60.0,
        "precision": 0.01, "margin": 0.02, "planned": 40, "turn_ns": 1_000_000, "sut_cpus": [0], "load_cpus": [1],
        "ended": "budget", "elapsed_s": 58.5, "launches": [],
        "effects": [effect("throughput", -0.1, "slower"), effect("p99", 0.001, "no-difference")],
        "not_known": [{ "program": "B", "figure": "p99.9", "missing": "too few answers", "remedy": "a longer --window" }],
        "warnings": [{ "id": "not-busy", "text": "the servers were idle, at times", "hint": "more connections" }],
    }))
    .unwrap()
}

#[test]
fn a_comparison() {
    forms("comparison", &comparison::report(&compared()));
}

#[test]
fn a_gate_and_several() {
    let of = gate::report(&crate::gate::worse());
    forms("gate", &of);
    let twice = Report::joined([of.clone(), of.clone()]);
    let lines = |report: &Report| report.csv().lines().count();
    assert_eq!(lines(&twice), 2 * lines(&of) - 1, "one header for both");
    assert_eq!(twice.terminal(STYLE).matches("is worse than").count(), 2);
}

#[test]
fn a_difference_and_a_story() {
    forms("why", &why::report(&crate::why::throttled()));
    let (record, outcome) = (crate::support::record(), crate::support::throttled());
    forms("why-story", &why::story(&record, &outcome));
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
    forms("doctor", &doctor::report(&[check("governor", Level::Warn), check("cpu-quota", Level::Ok)], true));
}

#[test]
fn series() {
    let values: Vec<f64> =
        (0..200).map(|at| if at < 50 { 2.0 } else { 1.0 } + 0.001 * f64::from(at % 7)).collect();
    let found = tare_stats::steadiness(&values).unwrap();
    forms("steady", &steady::report(&[Examined { name: "a, b".into(), values: 200, seconds: true, found }]));
}

/// A real result is read as any other.
#[test]
fn the_zoo() {
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/results/zoo.json");
    let zoo = serde_json::from_str(&std::fs::read_to_string(kept).unwrap()).unwrap();
    let [text, page] = [false, true].map(|is_page| tare_report::zoo::report(&zoo, is_page));
    assert!(text.csv().starts_with("subject,truth,repeat,found,judgement\n"), "{}", text.csv());
    assert_eq!(text.csv().lines().count(), zoo.runs.len() + 1);
    assert!(page.markdown().contains("| true | ") && page.html().starts_with("<!doctype html>"));
}
