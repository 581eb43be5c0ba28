//! Two files of results of another tool held against each other: one sentence, a row for each metric.

use crate::block::{Block, Field, Rows, Text, Tone};
use crate::format::joined;
use crate::metric_changes::{self, MetricChange, full_name};
use crate::sections::{Part, warnings};
use crate::{Report, words};
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
    let parts = [
        Part::of("", vec![Block::Headline(headline)]),
        Part::of("Metrics", vec![table]),
        Part::of("Not compared", not_compared(compared)),
        Part::of("How far to trust it", vec![Block::Line(Text::dim(joined(&compared.method)))]),
        warnings::part(&compared.warnings),
    ];
    Report { parts: parts.into_iter().flatten().collect(), rows: rows(compared) }
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
    let alone = compared.unpaired.iter().map(|one| {
        let file = if one.is_new { &compared.after } else { &compared.before };
        (full_name(&one.benchmark, &one.name), joined(&format!("in {file} alone")))
    });
    let unknown = compared.effects.iter().filter_map(|effect| match &effect.change {
        Reading::Missing(missing) => {
            Some((full_name(&effect.benchmark, &effect.name), joined(&words::with_remedy(missing))))
        }
        _ => None,
    });
    let mut pairs: Vec<(String, String)> = alone.chain(unknown).collect();
    let more = pairs.len().saturating_sub(SHOWN);
    if more > 0 {
        pairs.truncate(SHOWN);
        pairs.push((String::new(), joined(&format!("and {more} more"))));
    }
    if pairs.is_empty() { Vec::new() } else { vec![Block::Pairs(pairs)] }
}

fn rows(compared: &ToolComparison) -> Rows {
    let row = |effect: &ToolEffect| -> Vec<Field> {
        let change = effect.change.value();
        let [low, high] = Field::ends(change.map(|change| change.interval));
        vec![
            effect.benchmark.as_str().into(),
            effect.name.as_str().into(),
            effect.unit.as_str().into(),
            effect.before.into(),
            effect.after.into(),
            change.map(|change| change.value).into(),
            low,
            high,
            words::id(effect.verdict).into(),
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
