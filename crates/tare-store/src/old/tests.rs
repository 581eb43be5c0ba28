//! Nothing of what 0.1.0 wrote is lost: each text, read and written again, has all that it had.

use super::*;
use serde::Serialize;
use std::path::{Path, PathBuf};
use tare_model::calibration::Calibration;
use tare_model::comparison::Comparison;
use tare_model::gate::Run;
use tare_model::identity::Identity;
use tare_model::intervention::Intervention;
use tare_model::machine::MachineFacts;
use tare_model::metric::Subject;
use tare_model::outcome::Warning;
use tare_model::plan::Plan;
use tare_model::trial::Trial;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/0.1.0")
}

/// What `old` has and `new` has not, by path.
fn lost(old: &Value, new: &Value, at: &str, out: &mut Vec<String>) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in old {
                match new.get(key) {
                    Some(kept) => lost(value, kept, &format!("{at}/{key}"), out),
                    // Nothing is written for nothing.
                    None if value.is_null() => {}
                    None => out.push(format!("{at}/{key}")),
                }
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (place, (old, new)) in old.iter().zip(new).enumerate() {
                lost(old, new, &format!("{at}/{place}"), out);
            }
        }
        _ if old == new || old.as_f64().is_some_and(|old| new.as_f64() == Some(old)) => {}
        _ => out.push(format!("{at}: {old} became {new}")),
    }
}

fn whole<T: Serialize + DeserializeOwned>(part: Part, json: &str) {
    let mut translated: Value = serde_json::from_str(json).unwrap();
    translate(part, &mut translated);
    let value: T = read(part, json.as_bytes()).unwrap_or_else(|error| panic!("{part:?}: {error}"));
    let mut missing = Vec::new();
    lost(&translated, &serde_json::to_value(&value).unwrap(), "", &mut missing);
    assert!(missing.is_empty(), "{part:?}: {missing:#?}");
}

#[test]
fn records_keep_all_that_they_have() {
    let mut count = 0;
    for entry in std::fs::read_dir(fixtures()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "tare") {
            continue;
        }
        count += 1;
        let file = rusqlite::Connection::open_with_flags(&path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY);
        let file = file.unwrap();
        let texts = |query: &str| -> Vec<(String, String)> {
            let mut rows = file.prepare(query).unwrap();
            rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
        };
        for (key, json) in texts("SELECT \"key\", json FROM meta WHERE \"key\" != 'end'") {
            match key.as_str() {
                "machine" => whole::<MachineFacts>(Part::Machine, &json),
                "plan" => whole::<Plan>(Part::Plan, &json),
                "identity" => whole::<Identity>(Part::Identity, &json),
                "intervention" => whole::<Intervention>(Part::Intervention, &json),
                other => panic!("{other}"),
            }
        }
        texts("SELECT '', json FROM trial").iter().for_each(|(_, json)| whole::<Trial>(Part::Trial, json));
        texts("SELECT '', json FROM notice")
            .iter()
            .for_each(|(_, json)| whole::<Warning>(Part::Notice, json));
        for (id, subject) in texts("SELECT DISTINCT metric, subject FROM \"column\"") {
            let id = metric(id);
            assert!(tare_model::metrics::by_id(&id).is_some(), "{}: {id}", path.display());
            whole::<Subject>(Part::Subject, &subject);
        }
    }
    assert!(count > 10);
}

#[test]
fn other_results_keep_all_that_they_have() {
    let text = |name: &str| std::fs::read_to_string(fixtures().join(name)).unwrap();
    text("history.jsonl").lines().for_each(|line| whole::<Run>(Part::Line, line));
    whole::<Comparison>(Part::Comparison, &text("comparison.json"));
    whole::<Comparison>(Part::Comparison, &text("comparison-commands.json"));
    whole::<Calibration>(Part::Calibration, &text("calibration.json"));
    whole::<Calibration>(Part::Calibration, &text("calibration-first.json"));
}

#[test]
fn names_change_only_where_they_are_names() {
    let mut plan =
        serde_json::json!({"workload": {"http": {"levels": [{"parties": 2}], "parties": 3}}, "parties": 4});
    translate(Part::Plan, &mut plan);
    let wanted =
        serde_json::json!({"workload": {"http": {"levels": [{"arms": 2}], "parties": 3}}, "parties": 4});
    assert_eq!(plan, wanted);
    let mut trial = serde_json::json!({"observation": {"schedule": {"source": "tracepoints"}, "absences": [{"metric": "wakeups.peer"}]}});
    translate(Part::Trial, &mut trial);
    assert_eq!(trial["observation"]["schedule"]["source"], "tracepoints");
    assert_eq!(trial["observation"]["absences"][0]["metric"], "wakeups.sut");
}
