//! What a benchmark printed of itself, beside what tare measured of its program.

use super::source::{Medium, Section, Source};
use crate::block::{Block, Text};
use crate::tool;

pub(crate) static SECTION: Section = Section {
    title: "Results of the benchmark",
    media: &[Medium::Terminal, Medium::Page, Medium::Markdown],
    build,
};

/// What the tool is known to get wrong.
pub(crate) static WRONG: Section =
    Section { title: "What this tool gets wrong", media: &[Medium::Terminal, Medium::Page], build: wrong };

fn build(source: &Source) -> Vec<Block> {
    let Some(results) = &source.outcome.answers.results else { return Vec::new() };
    let mut blocks =
        vec![Block::Line(Text::dim(format!("as {} printed them", results.format))), tool::table(results)];
    if results.skipped_count > 0 {
        blocks.push(tool::skipped(results));
    }
    if !results.warnings.is_empty() {
        blocks.push(Block::Notes(results.warnings.iter().map(super::warnings::note).collect()));
    }
    blocks
}

fn wrong(source: &Source) -> Vec<Block> {
    let results = source.outcome.answers.results.iter();
    results.filter(|results| !results.gets_wrong.is_empty()).map(tool::wrong).collect()
}
