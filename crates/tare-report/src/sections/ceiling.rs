//! What the run used of what the machine can do at most.

use super::source::{Medium, Section, Source};
use crate::block::{Block, Text};
use crate::format::{percent, with_unit};

pub(crate) static SECTION: Section =
    Section { title: "", media: &[Medium::Terminal, Medium::Markdown, Medium::Page], build };

/// Nothing where no ceiling is known.
fn build(source: &Source) -> Vec<Block> {
    let Some(share) = source.outcome.figures.ceiling.value() else { return Vec::new() };
    let interval =
        share.ci95.map_or(String::new(), |[low, high]| format!(" ({} to {})", percent(low), percent(high)));
    let text = format!(
        "{}{interval} of the tightest ceiling, {}: {} of {} ({})",
        percent(share.share),
        share.tightest,
        with_unit(share.figure, &share.ceiling.unit),
        with_unit(share.ceiling.value, &share.ceiling.unit),
        share.of
    );
    vec![Block::Line(Text::plain(text))]
}
