//! `-v`, `-vv` and `TARE_LOG`: how a verdict was reached, on standard error and only where it was asked for.

use serde_json::Value;
use std::process::{Command, Output};

fn show(record: &str, args: &[&str], log: Option<&str>) -> Output {
    let path = format!("{}/../../tests/records/{record}.tare", env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_tare"));
    command.args(["show", "--json", &path]).args(args).env_remove("TARE_LOG");
    command.envs(log.map(|log| ("TARE_LOG", log))).output().unwrap()
}

/// Lines of these topics.
fn said(output: &Output, topic: &str) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines().filter(|line| line.trim_start().starts_with(topic)).map(str::to_owned).collect()
}

#[test]
fn every_rule_says_why_it_lost_and_the_result_is_the_same() {
    for record in ["nginx-quota", "nginx-under-wrk", "nginx-low-rate", "program-computes", "nginx-error-page"]
    {
        let plain = show(record, &[], None);
        assert_eq!(said(&plain, "rules"), Vec::<String>::new());
        let result: Value = serde_json::from_slice(&plain.stdout).unwrap();
        let named = result["bottleneck"].as_str().unwrap_or_else(|| panic!("{result:#}"));
        let all = show(record, &["-vv"], None);
        assert_eq!(plain.stdout, all.stdout, "{record}");
        let lines = said(&all, "rules");
        let of = |word: &str| lines.iter().filter(|line| line.contains(word)).count();
        assert_eq!(of(&format!("{named} is named: ")), 1, "{record}: {lines:#?}");
        let judged = of(" is named: ") + of(" holds too") + of(" does not hold") + of(" was not judged");
        assert_eq!(judged, lines.len(), "{lines:#?}");
        assert!(judged > 10, "{lines:#?}");
        // Once: what holds, and no more.
        let some = said(&show(record, &["-v"], None), "rules");
        assert!(some.iter().all(|line| !line.contains("does not hold")), "{some:#?}");
        assert!(some.iter().any(|line| line.contains(&format!("{named} is named"))), "{some:#?}");
    }
}

#[test]
fn topics_are_chosen_by_a_variable_and_a_wrong_one_is_refused() {
    let readings = show("nginx-quota", &[], Some("readings"));
    assert!(!said(&readings, "readings").is_empty() && said(&readings, "rules").is_empty());
    let rules = show("nginx-quota", &[], Some("rules"));
    assert!(!said(&rules, "rules").is_empty() && said(&rules, "readings").is_empty());
    let bad = show("nginx-quota", &[], Some("rule=debug"));
    assert_eq!(bad.status.code(), Some(2));
    let text = String::from_utf8_lossy(&bad.stderr).into_owned();
    assert!(text.contains("TARE_LOG") && text.contains("hint"), "{text}");
}
