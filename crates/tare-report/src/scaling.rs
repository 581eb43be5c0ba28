//! How a figure grows with one factor: the law in plain words, the levels, a drawing, why it flattens.

mod instances;
mod levels;
mod verdict;

use crate::Report;
use crate::block::{Block, Text};
use crate::sections::{Part, warnings};
use tare_model::scaling::ScaleOutcome;

/// For a terminal and as CSV: the drawing stands beside the levels.
pub fn report(outcome: &ScaleOutcome) -> Report {
    laid_out(outcome, levels::with_drawing(outcome))
}

/// For a page: there is room for a chart.
pub fn page(outcome: &ScaleOutcome) -> Report {
    let mut blocks = levels::chart(outcome);
    blocks.extend(levels::alone(outcome));
    laid_out(outcome, blocks)
}

fn laid_out(outcome: &ScaleOutcome, levels: Vec<Block>) -> Report {
    let scaling = &outcome.scaling;
    let mut lead = vec![Block::Headline(Text::strong(verdict::headline(outcome)))];
    lead.extend(verdict::sentences(outcome).into_iter().map(|text| Block::Line(Text::plain(text))));
    lead.extend(instances::sentences(outcome).into_iter().map(|text| Block::Line(Text::plain(text))));
    let mut pairs = verdict::parameters(scaling, &outcome.factor);
    pairs.extend(verdict::smt_worth(&outcome.smt_worth));
    lead.push(Block::Pairs(pairs));
    let mut parts = vec![Part { title: "", blocks: lead }, Part { title: "Levels", blocks: levels }];
    let mut part = |title: &'static str, blocks: Vec<Block>| {
        parts.extend((!blocks.is_empty()).then_some(Part { title, blocks }));
    };
    part("Instances alone and together", instances::table(outcome));
    part("What took it from each", instances::taken(outcome));
    part("How evenly they lose", instances::fairness(outcome));
    part("Why it flattens", levels::lost(outcome));
    part("Where time went", levels::accounting(outcome));
    part("CPUs in the order in which they were added", levels::cpu_order(outcome));
    part("Laws that were tried", levels::laws(scaling));
    parts.extend(warnings::part(&outcome.warnings));
    Report { parts, rows: levels::rows(outcome) }
}

/// As the JSON object that scripts rely on, indented.
///
/// # Errors
/// None that is known: every key is a string, and a number that is not finite becomes `null`.
pub fn json(outcome: &ScaleOutcome) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(outcome).map(|text| text + "\n")
}
