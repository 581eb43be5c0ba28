//! [Gungraun](https://github.com/gungraun/gungraun), which was iai-callgrind, and [iai](https://github.com/bheisler/iai): what they print, and
//! the JSON of Gungraun.

use super::fields::{self, Launches};
use crate::documents::{each_whole_document, has};
use crate::json;
use crate::metrics::{Kind, Metrics, Sample};
use crate::reader::{Input, Reader};
use serde_json::Value;
use tare_model::outcome::Better;

pub(crate) const READER: Reader = Reader {
    name: "gungraun",
    gets_wrong: &[
        "instructions are no time: the same number of them takes several times as long where caches or branches miss",
        "Estimated Cycles are a sum with fixed weights (1, 5 and 35) over a simple model of two caches: no machine has it",
        "one run of one input is counted: what depends on addresses or hashes differs from run to run, and no spread is seen",
    ],
    detect: |input| is_text(input) || is_json(input),
    read,
};

/// What iai printed, before Gungraun was made from it.
pub(crate) const IAI: Reader = Reader {
    name: "iai",
    gets_wrong: &[
        "instructions are no time: the same number of them takes several times as long where caches or branches miss",
        "Estimated Cycles are a sum with fixed weights (1, 5 and 35) over a simple model of two caches: no machine has it",
        "what a program does before its benchmark is taken off by a run that does nothing: what differs by chance stays in the figure",
    ],
    detect: |input| has_row(input, |row| matches!(row, Row::Iai(..))),
    read: text,
};

fn is_text(input: &Input<'_>) -> bool {
    has_row(input, |row| matches!(row, Row::Gungraun(..)))
}

fn is_json(input: &Input<'_>) -> bool {
    has(input, &[&["\"benchmark_exe\"", "\"function_name\"", "\"module_path\""]])
}

/// Whether there is an indented row below a name.
fn has_row(input: &Input<'_>, is: impl Fn(&Row<'_>) -> bool) -> bool {
    let mut before = "";
    for line in input.head() {
        let is_named = !before.is_empty() && !before.starts_with(' ');
        if is_named && Row::of(line).is_some_and(|row| row.name() == "Instructions" && is(&row)) {
            return true;
        }
        before = line;
    }
    false
}

/// A figure as it is printed.
enum Row<'a> {
    /// `  Instructions:   15752|15752   (No change)`, and the run before.
    Gungraun(&'a str, &'a str),
    /// `  Instructions:   363 (No change)`.
    Iai(&'a str, &'a str),
}

impl<'a> Row<'a> {
    fn of(line: &'a str) -> Option<Row<'a>> {
        let (name, rest) = line.strip_prefix("  ")?.split_once(':')?;
        let word = rest.split_whitespace().next()?;
        if name.starts_with(' ') {
            return None;
        }
        match word.split_once('|') {
            Some((new, _)) => Some(Row::Gungraun(name, new)),
            None => word.starts_with(|c: char| c.is_ascii_digit()).then_some(Row::Iai(name, word)),
        }
    }

    fn name(&self) -> &'a str {
        match self {
            Row::Gungraun(name, _) | Row::Iai(name, _) => name,
        }
    }

    fn value(&self) -> &'a str {
        match self {
            Row::Gungraun(_, value) | Row::Iai(_, value) => value,
        }
    }
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    if !is_json(input) {
        return text(input, metrics);
    }
    let mut launches = Launches::default();
    let keys: &[&[&str]] = &[&["\"benchmark_exe\""], &["\"function_name\""]];
    each_whole_document(input.text, keys, metrics, |metrics, line, document| {
        let all = document.as_array().map_or(std::slice::from_ref(&document), Vec::as_slice);
        for summary in all.iter().filter(|summary| summary["module_path"].is_string()) {
            one(line, summary, &mut launches, metrics);
        }
    });
}

fn text(input: &Input<'_>, metrics: &mut Metrics) {
    let mut launches = Launches::default();
    let (mut before, mut benchmark, mut launch) = ("", "", 0);
    for (line, number) in input.text.lines().zip(1..) {
        let line = line.trim_end();
        let row = Row::of(line).filter(|_| !before.is_empty());
        if let Some(row) = row {
            if !before.starts_with(' ') {
                benchmark = before;
                launch = launches.next(benchmark, 1);
            }
            // A run that exists only before this one has no figure now.
            match row.value() {
                "N/A" => metrics.skip(number, row.name(), "there is only a figure of the run before"),
                value => note(number, benchmark, row.name(), value.parse().ok(), launch, metrics),
            }
        } else if line.contains("panicked at") {
            metrics.skip(number, line, "the benchmark failed");
        } else if is_cut_off(line, before) {
            metrics.skip(number, line, "the line is cut off");
        }
        before = line;
    }
}

/// The name of a figure without the figure.
fn is_cut_off(line: &str, before: &str) -> bool {
    let is_name = line.starts_with("  ") && line.ends_with(':');
    is_name && (line.trim() == "Instructions:" || Row::of(before).is_some())
}

fn note(line: u64, benchmark: &str, name: &str, value: Option<f64>, launch: u32, metrics: &mut Metrics) {
    // DHAT counts bytes, all others count events; of hits and rates of them it is not said which way is better.
    let lower = name.starts_with("Instructions")
        || name.starts_with("Estimated")
        || name.starts_with("RAM")
        || name.contains("ytes")
        || name.ends_with("MissRate")
        || matches!(name, "Ir" | "EstimatedCycles" | "RamHits");
    let unit = if name.contains("ytes") { "B" } else { "" };
    let kind = Kind { benchmark, name, unit, better: lower.then_some(Better::Lower) };
    let value = value.unwrap_or(f64::NAN);
    metrics.sample(line, kind, Sample { value, launch, ..Sample::default() });
}

/// One benchmark of the JSON.
fn one(line: u64, summary: &Value, launches: &mut Launches, metrics: &mut Metrics) {
    let mut benchmark = json::text(&summary["module_path"]);
    for field in ["id", "details"] {
        if let Some(text) = summary[field].as_str() {
            benchmark += if field == "id" { " " } else { ":" };
            benchmark += text;
        }
    }
    let launch = launches.next(&benchmark, 1);
    let mut is_any = false;
    // Before version 6 there was one summary of callgrind instead of a list of tools.
    let profiles = summary["profiles"].as_array().into_iter().flatten().map(|profile| &profile["summaries"]);
    for totals in profiles.chain([&summary["callgrind_summary"]["callgrind_run"]]) {
        let total = &totals["total"]["summary"];
        let of_tools = total.as_object().into_iter().flatten().map(|(_, events)| events);
        let events = of_tools.filter(|events| events.is_object()).chain([total]);
        for (name, event) in events.filter_map(Value::as_object).flatten() {
            let metrics_of = &event["metrics"];
            let new = [&metrics_of["Both"][0], &metrics_of["Left"]].into_iter().find(|new| !new.is_null());
            let Some(new) = new else { continue };
            let number = json::number(new).or_else(|| new.as_object()?.values().find_map(json::number));
            note(line, &benchmark, name, number, launch, metrics);
            is_any = true;
        }
    }
    if !is_any {
        metrics.skip(line, &benchmark, "there are no figures of this run: the benchmark failed");
    }
    for setting in ["version", "kind"] {
        if fields::is_plain(&summary[setting]) {
            metrics.set(setting, &json::text(&summary[setting]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_this_run_stand_before_those_of_the_run_before() {
        let text = "log\nm::g::f id:(1)\n  Instructions:   10|20   (-50.0%) [-2x]\n  L1 Hits:   N/A|3   (*)\nm::g::f id:(1)\n  Instructions:   11|N/A   (*)\n";
        let input = Input::of_text(text);
        assert!(READER.detects(&input) && !IAI.detects(&input));
        let read = READER.read(&input);
        assert_eq!(
            (read.metrics[0].samples.as_slice(), read.metrics[0].launches.as_slice()),
            ([10.0, 11.0].as_slice(), [0, 1].as_slice())
        );
        assert_eq!((read.metrics[0].benchmark.as_str(), read.skipped[0].line), ("m::g::f id:(1)", 4));
    }

    #[test]
    fn iai_has_one_figure() {
        let input = Input::of_text(
            "a\n  Instructions:     363 (+1.5%)\n  L1 Accesses:     530\n\nb\n  Instructions:\n",
        );
        assert!(IAI.detects(&input) && !READER.detects(&input));
        let read = IAI.read(&input);
        assert_eq!((read.metrics.len(), read.metrics[0].samples[0], read.skipped[0].line), (2, 363.0, 6));
    }

    #[test]
    fn json_of_older_versions_has_plain_numbers() {
        let text = r#"{"benchmark_exe": "a", "function_name": "f", "module_path": "m::f", "id": "x", "details": null,
            "callgrind_summary": {"callgrind_run": {"total": {"summary": {"Ir": {"metrics": {"Left": 7}}}}}}}"#;
        let read = READER.read(&Input::of_text(text));
        assert_eq!((read.metrics[0].benchmark.as_str(), read.metrics[0].samples[0]), ("m::f x", 7.0));
    }
}
