//! Two files of results of another tool held against each other: one sentence, a row for each metric.

use crate::Report;
use crate::block::{Block, Field, Rows, Text, Tone};
use crate::format::joined;
use crate::metric_changes::{self, MetricChange};
use crate::sections::{Part, warnings::note};
use crate::words::id;
use tare_model::Reading;
use tare_model::tool_comparison::{ToolComparison, ToolEffect};

/// The result, laid out.
pub fn report(compared: &ToolComparison) -> Report {
    let changes = changes(compared);
    let (new, old) = (&compared.after, &compared.before);
    let headline = match metric_changes::headline(new, old, &changes) {
        Some(text) => text,
        None => Text::new(format!("{new} and {old} have no metric in common."), Tone::Warn),
    };
    let table = metric_changes::table(["was", "is", "values"], &changes, compared.margin);
    let mut parts = vec![
        Part { title: "", blocks: vec![Block::Headline(headline)] },
        Part { title: "Metrics", blocks: vec![table] },
    ];
    let mut part = |title, blocks: Vec<Block>| {
        if !blocks.is_empty() {
            parts.push(Part { title, blocks });
        }
    };
    part("Not compared", not_compared(compared));
    part("How far to trust it", vec![Block::Line(Text::dim(joined(&compared.method)))]);
    part("Warnings", vec![Block::Notes(compared.warnings.iter().map(note).collect())]);
    Report { parts, rows: rows(compared) }
}

/// As the JSON object that scripts rely on, indented.
///
/// # Errors
/// None that is known.
pub fn json(compared: &ToolComparison) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(compared).map(|text| text + "\n")
}

fn changes(compared: &ToolComparison) -> Vec<MetricChange<'_>> {
    let change = |effect: &'_ ToolEffect| (effect.change.value().copied(), effect.verdict);
    let of = compared.effects.iter().map(|effect| MetricChange {
        benchmark: &effect.benchmark,
        name: &effect.name,
        unit: &effect.unit,
        better: effect.better,
        sides: [effect.before, effect.after],
        change: change(effect),
        last: format!("{}+{}", effect.values[0], effect.values[1]),
    });
    of.collect()
}

/// Metrics of one file alone, and those without a change, with the reason.
fn not_compared(compared: &ToolComparison) -> Vec<Block> {
    const SHOWN: usize = 20;
    let name = |benchmark: &str, name: &str| format!("{benchmark} {name}").trim().to_owned();
    let alone = compared.unpaired.iter().map(|one| {
        let file = if one.is_new { &compared.after } else { &compared.before };
        (name(&one.benchmark, &one.name), format!("in {file} alone"))
    });
    let unknown = compared.effects.iter().filter_map(|effect| match &effect.change {
        Reading::Missing(missing) => {
            Some((name(&effect.benchmark, &effect.name), format!("{} ({})", missing.why, missing.remedy)))
        }
        _ => None,
    });
    let mut pairs: Vec<(String, String)> = alone.chain(unknown).collect();
    let more = pairs.len().saturating_sub(SHOWN);
    if more > 0 {
        pairs.truncate(SHOWN);
        pairs.push((String::new(), format!("and {more} more")));
    }
    let without_remedy = |(what, why): (String, String)| (what, joined(why.trim_end_matches(" ()")));
    if pairs.is_empty() {
        Vec::new()
    } else {
        vec![Block::Pairs(pairs.into_iter().map(without_remedy).collect())]
    }
}

fn rows(compared: &ToolComparison) -> Rows {
    let row = |effect: &ToolEffect| -> Vec<Field> {
        let change = effect.change.value();
        let end = |at: usize| change.map(|change| change.interval[at]);
        vec![
            effect.benchmark.as_str().into(),
            effect.name.as_str().into(),
            effect.unit.as_str().into(),
            effect.before.into(),
            effect.after.into(),
            change.map(|change| change.value).into(),
            end(0).into(),
            end(1).into(),
            id(effect.verdict).into(),
        ]
    };
    Rows {
        header: &[
            "benchmark",
            "metric",
            "unit",
            "before",
            "after",
            "change",
            "ci95_low",
            "ci95_high",
            "verdict",
        ],
        rows: compared.effects.iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Style;
    use tare_model::Missing;
    use tare_model::comparison::{Change, Verdict};
    use tare_model::outcome::Better;
    use tare_model::tool_comparison::Unpaired;
    use tare_model::warning::Warning;

    #[test]
    fn two_files_in_every_form() {
        let effect = |name: &str, better, change: Reading<Change>, verdict| ToolEffect {
            benchmark: "BenchmarkSort-2".into(),
            name: name.into(),
            unit: "s/op".into(),
            better,
            before: Some(1.25e-8),
            after: Some(1.5e-8),
            values: [10, 10],
            change,
            verdict,
        };
        let change = Reading::Measured(Change { value: 0.2, interval: [0.18, 0.22] });
        let missing = Reading::Missing(Missing::new("a value is not above 0, so there is no ratio"));
        let compared = ToolComparison {
            schema: 2,
            format: "go-bench".into(),
            before: "old.txt".into(),
            after: "new.txt".into(),
            margin: 0.02,
            effects: vec![
                effect("ns/op", Some(Better::Lower), change.clone(), Verdict::Slower),
                effect("items", None, change, Verdict::CannotTell),
                effect("B/op", Some(Better::Lower), missing, Verdict::CannotTell),
            ],
            unpaired: vec![Unpaired {
                benchmark: "BenchmarkGone-2".into(),
                name: "ns/op".into(),
                is_new: false,
            }],
            method: "95 % intervals".into(),
            warnings: vec![Warning {
                id: "not-interleaved".into(),
                text: "drift".into(),
                hint: "interleave".into(),
            }],
        };
        let report = report(&compared);
        let plain = Style { color: false, width: 100, unicode: true };
        insta::assert_snapshot!("tool_comparison_terminal", report.terminal(plain));
        insta::assert_snapshot!("tool_comparison_markdown", report.markdown());
        insta::assert_snapshot!("tool_comparison_csv", report.csv());
        insta::assert_snapshot!("tool_comparison_json", json(&compared).unwrap());
        assert!(report.html().contains("BenchmarkGone-2"));
    }
}
