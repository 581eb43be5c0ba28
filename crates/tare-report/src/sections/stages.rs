//! The stages of a load whose rate changes, and what the server could follow of them.

use super::source::{Medium, Section, Source};
use crate::block::{Block, Text};
use crate::format::joined;
use crate::{stages, words};
use tare_model::outcome::{Followed, WatchedStage};

pub(crate) static SECTION: Section =
    Section { title: "Stages", media: &[Medium::Terminal, Medium::Markdown, Medium::Page], build };

fn build(source: &Source) -> Vec<Block> {
    let answers = &source.outcome.answers;
    let Some(followed) = &answers.followed else { return Vec::new() };
    let rows = answers.stages.iter().map(|stage| (&stage.counted, Some(stage.bottleneck.id())));
    let mut blocks = vec![Block::Table(stages::table(rows))];
    blocks.push(Block::Line(Text::strong(summary(followed, &answers.stages))));
    blocks.extend(why_not_valid(&answers.stages).map(|text| Block::Line(Text::plain(text))));
    let other = answers.stages.iter().find(|stage| stage.decides).map(|stage| stage.stage);
    blocks.extend(other.map(|stage| {
        Block::Line(Text::dim(format!("All that follows is of stage {stage}, in all its trials together.")))
    }));
    blocks
}

/// How far the server followed, and why no further.
fn summary(followed: &Followed, all: &[WatchedStage]) -> String {
    let held = followed.held_hz.map_or_else(
        || "The server followed no stage".to_owned(),
        |hz| format!("The server followed {hz:.0} req/s"),
    );
    let Some(missed_hz) = followed.missed_hz else {
        return match followed.held_hz {
            Some(_) => format!("{held} and every other stage: its capacity is higher."),
            None => format!("{held} whose figures are valid."),
        };
    };
    let no_longer = match followed.held_hz {
        Some(_) => format!("{held} and no longer {missed_hz:.0}"),
        None => format!("{held}: {missed_hz:.0} req/s were too many"),
    };
    let stage = all.iter().find(|stage| stage.counted.offered_hz == Some(missed_hz));
    let because = stage.and_then(|stage| stage.finding.as_ref()).map_or_else(String::new, |finding| {
        let summary = finding.summary.trim_end_matches('.');
        format!(" {}: {}.", words::titled(finding.cause, &finding.title), joined(summary))
    });
    match (followed.capacity_hz, stage) {
        (Some(capacity_hz), _) => {
            format!("{no_longer}, of which it answered {capacity_hz:.0}: that is its capacity.{because}")
        }
        (None, Some(stage)) if stages::is_ramp(&stage.counted) => format!(
            "{no_longer} on average: within that ramp is its capacity. Stages of one rate each (3k:5s,4k:5s) show where.{because}"
        ),
        (None, _) => format!("{no_longer}; what it can do at most is not known.{because}"),
    }
}

/// Of the first stage that was followed and is not valid all the same.
fn why_not_valid(all: &[WatchedStage]) -> Option<String> {
    let stage = all.iter().find(|stage| !stage.counted.valid && stage.counted.followed != Some(false))?;
    let warning = stage.counted.warnings.first()?;
    Some(format!("Stage {} is not valid: {}.", stage.stage, warning.text.trim_end_matches('.')))
}
