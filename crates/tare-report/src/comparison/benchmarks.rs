//! What commands differ by that print the results of benchmarks.

use crate::block::{Block, Text};
use crate::metric_changes::{self, MetricChange};
use tare_model::comparison::{Comparison, Program};

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
    of_program.map(MetricChange::of).collect()
}
