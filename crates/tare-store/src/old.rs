//! Results of tare 0.1.0 (layouts 1 and 2 of a record, format 1 of JSON) in today's words.
//!
//! The one place where the words of 0.1.0 stand.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The format of JSON that has the old words.
pub(crate) const FORMAT: u32 = 1;

/// What every format has.
#[derive(Deserialize)]
pub(crate) struct Version {
    /// The format.
    pub(crate) schema: u32,
}

/// What a text of JSON is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The machine of a record.
    Machine,
    /// Its plan.
    Plan,
    /// Who took part.
    Identity,
    /// What was tried on the bottleneck.
    Intervention,
    /// A trial without its columns.
    Trial,
    /// What a column is about.
    Subject,
    /// A warning of the run itself.
    Notice,
    /// A line of a branch's history.
    Line,
    /// A comparison.
    Comparison,
    /// A calibration report.
    Calibration,
}

/// What has another name today.
enum Change {
    /// The last word of the path is a key: its new name.
    Key(&'static str),
    /// The text at the path, where it is one of these: its new one.
    Value(&'static [(&'static str, &'static str)]),
    /// The number of the format.
    Format,
}

use Change::{Format, Key, Value as Text};

const CAUSES: &[(&str, &str)] =
    &[("softirq-crowded", "softirq-saturated"), ("program-waits", "program-idle")];
const METRICS: &[(&str, &str)] = &[
    ("cpus.idle_exits_looked_at", "cpus.idle_exits_sampled"),
    ("distance.transfer_ns", "core_latency.transfer_ns"),
    ("wakeups.peer", "wakeups.sut"),
];

/// By part and path (`*`: every entry of a list or an object), in this order.
const CHANGES: &[(Part, &str, Change)] = &[
    (Part::Plan, "workload/http/levels/*/parties", Key("arms")),
    (Part::Intervention, "cause", Text(CAUSES)),
    (Part::Intervention, "instead_of/cause", Text(CAUSES)),
    (Part::Trial, "observation/absences/*/metric", Text(METRICS)),
    (Part::Trial, "observation/schedule/source", Text(&[("looks", "samples")])),
    (Part::Line, "schema", Format),
    (Part::Comparison, "schema", Format),
    (Part::Comparison, "launches/*/weather", Key("interference")),
    (Part::Comparison, "effects/*/placebo", Key("aa_control")),
    (Part::Comparison, "not_told", Key("not_known")),
    (Part::Calibration, "schema", Format),
    (Part::Calibration, "against_itself", Key("aa_control")),
    (Part::Calibration, "injections/*/expected/*", Text(CAUSES)),
    (Part::Calibration, "runs/*/result", Text(&[("weighed", "measured")])),
    (Part::Calibration, "runs/*/limit", Text(CAUSES)),
    (Part::Calibration, "runs/*/limit", Key("bottleneck")),
    (Part::Calibration, "runs/*/first_finding", Text(CAUSES)),
    (Part::Calibration, "runs/*/found", Text(CAUSES)),
    (Part::Calibration, "runs/*/alarms/*", Text(CAUSES)),
    (Part::Calibration, "runs/*/findings/*/cause", Text(CAUSES)),
    (Part::Calibration, "summary/confusion/*/softirq-crowded", Key("softirq-saturated")),
    (Part::Calibration, "summary/confusion/*/program-waits", Key("program-idle")),
];

/// Reads a text with old words.
pub(crate) fn read<T: DeserializeOwned>(part: Part, json: &[u8]) -> serde_json::Result<T> {
    let mut value = serde_json::from_slice(json)?;
    translate(part, &mut value);
    serde_json::from_value(value)
}

/// A metric's id today.
pub(crate) fn metric(id: String) -> String {
    renamed(METRICS, &id).map_or(id, str::to_owned)
}

fn translate(part: Part, value: &mut Value) {
    for (_, path, change) in CHANGES.iter().filter(|(of, ..)| *of == part) {
        let (parent, last) = path.rsplit_once('/').unwrap_or(("", path));
        let path: Vec<&str> = parent.split('/').filter(|word| !word.is_empty()).collect();
        each(value, &path, &mut |parent| apply(parent, last, change));
    }
}

/// Calls `change` with everything at the path.
fn each(value: &mut Value, path: &[&str], change: &mut dyn FnMut(&mut Value)) {
    match (path, value) {
        ([], value) => change(value),
        (["*", rest @ ..], Value::Array(items)) => items.iter_mut().for_each(|item| each(item, rest, change)),
        (["*", rest @ ..], Value::Object(map)) => map.values_mut().for_each(|item| each(item, rest, change)),
        ([key, rest @ ..], Value::Object(map)) => {
            if let Some(item) = map.get_mut(*key) {
                each(item, rest, change);
            }
        }
        _ => {}
    }
}

fn apply(parent: &mut Value, last: &str, change: &Change) {
    match change {
        Key(new) => {
            if let Value::Object(map) = parent
                && let Some(item) = map.remove(last)
            {
                map.insert((*new).to_owned(), item);
            }
        }
        Text(words) => each(parent, &[last], &mut |item| {
            if let Some(new) = item.as_str().and_then(|old| renamed(words, old)) {
                *item = new.into();
            }
        }),
        Format => each(parent, &[last], &mut |item| *item = tare_model::format::SCHEMA.into()),
    }
}

fn renamed(words: &[(&str, &'static str)], old: &str) -> Option<&'static str> {
    words.iter().find(|(word, _)| *word == old).map(|(_, new)| *new)
}

#[cfg(test)]
mod tests;
