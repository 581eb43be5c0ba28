//! What the metrics of benchmarks changed by: one sentence, a row for each.

use crate::block::{Block, Column, Field, Row, Table, Text, Tone};
use crate::figures::{self, said, whole};
use crate::format::{NONE, with_unit};
use crate::words::things;
use tare_model::comparison::{BenchmarkEffect, Change, Verdict};
use tare_model::outcome::Better;

/// A metric, before and after.
pub(crate) struct MetricChange<'a> {
    pub benchmark: &'a str,
    pub name: &'a str,
    pub unit: &'a str,
    pub better: Option<Better>,
    pub sides: [Option<f64>; 2],
    pub change: (Option<Change>, Verdict),
    /// What stands in the last column.
    pub last: String,
}

impl<'a> MetricChange<'a> {
    /// What commands printed, with the A/A control last.
    pub(crate) fn of(effect: &'a BenchmarkEffect) -> MetricChange<'a> {
        MetricChange {
            benchmark: &effect.benchmark,
            name: &effect.name,
            unit: &effect.unit,
            better: effect.better,
            sides: [Some(effect.baseline), Some(effect.value)],
            change: (effect.change.value().copied(), effect.verdict),
            last: effect.aa_control.map_or_else(|| NONE.to_owned(), whole),
        }
    }
}

/// In how many metrics the new side is better or worse; `None` where there is no metric.
pub(crate) fn headline(new: &str, old: &str, changes: &[MetricChange<'_>]) -> Option<Text> {
    let of = |verdict| changes.iter().filter(|metric| metric.change.1 == verdict).count();
    let (better, worse, metrics) = (of(Verdict::Faster), of(Verdict::Slower), changes.len());
    Some(match (better, worse) {
        _ if metrics == 0 => return None,
        (0, 0) => Text::strong(format!("No metric of {new} is shown to be better or worse than in {old}.")),
        (_, 0) => Text::new(
            format!("{new} is better than {old} in {} of {metrics}.", things(better, "metric")),
            Tone::Good,
        ),
        (0, _) => Text::new(
            format!("{new} is worse than {old} in {} of {metrics}.", things(worse, "metric")),
            Tone::Bad,
        ),
        _ => Text::new(
            format!(
                "{new} is better than {old} in {better} and worse in {worse} of {}.",
                things(metrics, "metric")
            ),
            Tone::Warn,
        ),
    })
}

/// A row for each metric, below its benchmark. `names`: of both sides and of the last column.
pub(crate) fn table(names: [&str; 3], changes: &[MetricChange<'_>], margin: f64) -> Block {
    let columns = vec![
        Column::words("metric", 0),
        Column::figures(names[0], 2),
        Column::figures(names[1], 2),
        Column::figures("change", 0),
        Column::words("", 0),
        Column::figures(names[2], 3),
    ];
    let rows = Row::below_headings(changes, |metric| metric.benchmark, |metric| cells(metric, margin));
    Block::Table(Table { columns, rows })
}

fn cells(metric: &MetricChange<'_>, margin: f64) -> Vec<Text> {
    let shown = |value: Option<f64>| value.map_or(NONE.to_owned(), |value| with_unit(value, metric.unit));
    let (change, verdict) = metric.change;
    let verdict = match metric.better {
        None if verdict == Verdict::CannotTell => Text::dim(""),
        _ => said(verdict, margin),
    };
    vec![
        Text::plain(metric.name),
        Text::plain(shown(metric.sides[0])),
        Text::plain(shown(metric.sides[1])),
        Text::strong(change.map_or(NONE.to_owned(), whole)),
        verdict,
        Text::dim(metric.last.clone()),
    ]
}

/// What a metric is called beside those of other benchmarks.
pub(crate) fn full_name(benchmark: &str, name: &str) -> String {
    format!("{benchmark} {name}").trim().to_owned()
}

/// A metric as other programs read it, in the columns of figures.
pub(crate) fn csv(effect: &BenchmarkEffect, launches: usize) -> Vec<Field> {
    let name = full_name(&effect.benchmark, &effect.name);
    let sides = [Some(effect.baseline), Some(effect.value)];
    let verdict = (effect.verdict, launches as f64, None);
    figures::csv((&effect.program, &name, false), sides, effect.change.value().copied(), verdict)
}
