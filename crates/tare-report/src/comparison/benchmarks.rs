//! What commands differ by that print the results of benchmarks.

use crate::block::{Block, Field, Text};
use crate::figures::whole;
use crate::format::NONE;
use crate::metric_changes::{self, MetricChange};
use crate::words::id;
use tare_model::comparison::{BenchmarkEffect, Comparison, Program};

/// In how many metrics a program is better or worse than the first; `None` where it prints none that is compared.
pub(super) fn headline(comparison: &Comparison, program: &Program) -> Option<Block> {
    let first = comparison.programs.first()?;
    metric_changes::headline(&program.name, &first.name, &changes(comparison, program)).map(Block::Headline)
}

/// A table for each program.
pub(super) fn tables(comparison: &Comparison, others: &[Program]) -> Vec<Block> {
    let first = comparison.programs.first().map_or("", |first| first.name.as_str());
    let mut blocks = Vec::new();
    for program in others {
        let changes = changes(comparison, program);
        if changes.is_empty() {
            continue;
        }
        if others.len() > 1 {
            blocks.push(Block::Line(Text::strong(format!("{}, against {first}", program.name))));
        }
        let names = [first, &program.name, "A/A control"];
        blocks.push(metric_changes::table(names, &changes, comparison.margin));
    }
    blocks
}

fn changes<'a>(comparison: &'a Comparison, program: &Program) -> Vec<MetricChange<'a>> {
    let of_program = comparison.benchmarks.iter().filter(|effect| effect.program == program.name);
    of_program
        .map(|effect| MetricChange {
            benchmark: &effect.benchmark,
            name: &effect.name,
            unit: &effect.unit,
            better: effect.better,
            sides: [Some(effect.baseline), Some(effect.value)],
            change: (effect.change.value().copied(), effect.verdict),
            last: effect.aa_control.map_or_else(|| NONE.to_owned(), whole),
        })
        .collect()
}

/// A metric as other programs read it, in the columns of figures.
pub(super) fn csv(effect: &BenchmarkEffect, launches: usize) -> Vec<Field> {
    let change = effect.change.value();
    let [low, high] = change.map_or([None; 2], |change| change.interval.map(Some));
    vec![
        effect.program.as_str().into(),
        format!("{} {}", effect.benchmark, effect.name).trim().to_owned().into(),
        false.to_string().into(),
        effect.baseline.into(),
        effect.value.into(),
        change.map(|change| change.value).into(),
        low.into(),
        high.into(),
        id(effect.verdict).into(),
        (launches as f64).into(),
        None::<f64>.into(),
    ]
}
