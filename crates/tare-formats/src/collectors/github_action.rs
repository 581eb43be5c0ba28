//! [github-action-benchmark](https://github.com/benchmark-action/github-action-benchmark): the list that it takes, and its `data.js`.

use super::figures::{scaled, usual};
use crate::documents::{each_document, has};
use crate::json::{number, text};
use crate::metrics::{Kind, Metrics, Sample};
use crate::reader::{Input, Reader};
use serde_json::Value;
use tare_model::outcome::Better;

pub(crate) const READER: Reader = Reader {
    name: "github-action-benchmark",
    gets_wrong: &[
        "there is one value of each benchmark and commit: how much it varies is in a text (range) at best",
        "values of a history are of whatever machine ran each job: steps may be of machines and not of commits",
    ],
    detect: |input| input.head().any(|line| line.starts_with(DATA)) || has(input, &[LIST]) && is_list(input),
    read,
};

const DATA: &str = "window.BENCHMARK_DATA = {";
const LIST: &[&str] = &["\"name\"", "\"unit\"", "\"value\""];

/// Whether the text is a list, of which the first has nothing but the fields of this format.
fn is_list(input: &Input<'_>) -> bool {
    let text = input.text.trim_start();
    let first = text.strip_prefix('[').and_then(|rest| rest.split_inclusive('}').next());
    let first: Option<Value> = first.and_then(|first| serde_json::from_str(first).ok());
    first.as_ref().and_then(Value::as_object).is_some_and(|first| {
        let known = ["name", "unit", "value", "range", "extra", "biggerIsBetter"];
        first.keys().all(|key| known.contains(&key.as_str()))
            && ["name", "unit", "value"].iter().all(|key| first.contains_key(*key))
    })
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    if let Some(at) = input.text.find(DATA) {
        let from = at + DATA.len() - 1;
        let before = input.text[..from].matches('\n').count() as u64;
        let set: &[&str] = &["\"entries\""];
        each_document(&input.text[from..], &[set], metrics, |metrics, line, document| {
            history(before + line, &document, metrics);
        });
        return;
    }
    each_document(input.text, &[LIST], metrics, |metrics, line, document| {
        for one in document.as_array().into_iter().flatten() {
            bench(line, "", one, None, Sample::default(), metrics);
        }
    });
}

/// Every commit of every group.
fn history(line: u64, document: &Value, metrics: &mut Metrics) {
    if let Some(url) = document["repoUrl"].as_str() {
        metrics.set("repoUrl", url);
    }
    for (group, entries) in document["entries"].as_object().into_iter().flatten() {
        let entries = entries.as_array().map(Vec::as_slice).unwrap_or_default();
        let commits = entries.iter().filter_map(|entry| entry["commit"]["id"].as_str());
        let (first, last) = (commits.clone().next(), commits.clone().next_back());
        if let (Some(first), Some(last)) = (first, last)
            && first != last
        {
            metrics.warn(
                "tool-mixes-commits",
                &format!(
                    "{group}: its {} samples are of different commits, from {first} to {last}",
                    entries.len()
                ),
                "they are a history, of one value for each commit: compare single ones, not all together",
            );
        }
        for (entry, launch) in entries.iter().zip(0..) {
            let at_s = number(&entry["date"]).map(|ms| ms / 1e3);
            let tool = entry["tool"].as_str().unwrap_or_default();
            if !tool.is_empty() {
                metrics.set(&format!("{group} tool"), tool);
            }
            let better = match tool {
                "customBiggerIsBetter" => Some(Better::Higher),
                "customSmallerIsBetter" => Some(Better::Lower),
                _ => None,
            };
            for one in entry["benches"].as_array().into_iter().flatten() {
                bench(line, group, one, better, Sample { launch, at_s, ..Sample::default() }, metrics);
            }
        }
    }
}

fn bench(line: u64, group: &str, one: &Value, better: Option<Better>, sample: Sample, metrics: &mut Metrics) {
    let name = one["name"].as_str().unwrap_or_default();
    let benchmark = if group.is_empty() { name.to_owned() } else { format!("{group}/{name}") };
    let Some(value) = number(&one["value"]) else {
        return metrics.skip(line, &benchmark, "it has no value");
    };
    let (value, unit) = scaled(value, one["unit"].as_str().unwrap_or_default());
    let own = one["biggerIsBetter"]
        .as_bool()
        .map(|is_bigger| if is_bigger { Better::Higher } else { Better::Lower });
    let better = own.or(better).or_else(|| usual(&unit));
    let kind = Kind { benchmark: &benchmark, name: "value", unit: &unit, better };
    metrics.sample(line, kind, Sample { value, ..sample });
    for key in ["range", "extra"] {
        if !one[key].is_null() {
            metrics.set_of(kind, key, text(&one[key]).trim());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_way_is_better_is_what_the_result_itself_says() {
        let text = r#"[{"name": "a", "unit": "points", "value": 1, "biggerIsBetter": true},
            {"name": "b", "unit": "points", "value": 1, "biggerIsBetter": false},
            {"name": "c", "unit": "ops/sec", "value": 1, "biggerIsBetter": false}, {"name": "d", "unit": "points", "value": 1}]"#;
        assert!(READER.detects(&Input::of_text(text)));
        let read = READER.read(&Input::of_text(text));
        let found: Vec<Option<Better>> = read.metrics.iter().map(|metric| metric.better).collect();
        assert_eq!(found, [Some(Better::Higher), Some(Better::Lower), Some(Better::Lower), None]);
    }

    #[test]
    fn other_lists_of_names_and_values_are_not_taken() {
        let detects = |text| READER.detects(&Input::of_text(text));
        assert!(detects("[{\"name\": \"a\", \"unit\": \"ms\", \"value\": 1}]"));
        assert!(!detects("[{\"name\": \"a\", \"unit\": \"ms\", \"value\": 1, \"id\": 5}]"));
        assert!(!detects("{\"name\": \"a\", \"unit\": \"ms\", \"value\": 1}"));
    }
}
