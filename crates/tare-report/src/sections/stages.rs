//! The stages of a load whose rate changes, and what the server could follow of them.

use super::source::{Medium, Section, Source};
use crate::block::{Block, Text};
use crate::format::joined;
use crate::{stages, words};
use tare_model::outcome::{Cause, Followed, Warning, WatchedStage};

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
        Block::Line(Text::dim(format!("Figures, bottleneck, latencies and time accounting below are of stage {stage}, in all its trials together.")))
    }));
    blocks
}

/// How far the server followed, and why no further.
fn summary(followed: &Followed, all: &[WatchedStage]) -> String {
    let is_missed =
        |stage: &&WatchedStage| !stage.counted.valid && stage.counted.offered_hz == followed.missed_hz;
    let missed = all.iter().find(is_missed);
    let (Some(missed), Some(missed_hz)) = (missed, followed.missed_hz) else {
        return match followed.held_hz {
            Some(hz) => {
                format!(
                    "The server followed every stage that was driven, up to {hz:.0} req/s: its capacity is at least that."
                )
            }
            None => "The server followed no stage whose figures are valid.".to_owned(),
        };
    };
    let too_many = match stages::is_ramp(&missed.counted) {
        true => format!("the ramp from {:.0} to {:.0}", missed.counted.from_hz, missed.counted.to_hz),
        false => format!("{missed_hz:.0}"),
    };
    let so_far = match followed.held_hz {
        Some(hz) => format!("The server followed {hz:.0} req/s and no longer {too_many}"),
        None if all.first().is_some_and(|first| first.stage == missed.stage) => {
            format!("The server did not follow {too_many} req/s, and nothing less was tried before")
        }
        None => format!("The server did not follow {too_many} req/s, and no stage before it is valid"),
    };
    let decides = all.iter().find(|stage| stage.decides).unwrap_or(missed);
    // Of the stage that decides, the report begins with all of it.
    let because = |stage: &WatchedStage| {
        let finding = stage.finding.as_ref();
        finding.map_or_else(String::new, |finding| {
            let title = words::titled(finding.cause, &finding.title);
            match stage.decides {
                true => format!(" {title}."),
                false => format!(" {title}: {}.", joined(finding.summary.trim_end_matches('.'))),
            }
        })
    };
    let offered = decides.counted.offered_hz.unwrap_or(missed_hz);
    match followed.capacity_hz {
        Some(hz) if decides.stage == missed.stage => {
            format!("{so_far}, of which it answered {hz:.0}: that is its capacity.{}", because(decides))
        }
        Some(hz) => format!(
            "{so_far}. Of {offered:.0} req/s it answered {hz:.0}: that is its capacity.{}",
            because(decides)
        ),
        None if lies_within(missed) => format!(
            "{so_far}: its capacity lies within. Stages of one rate each (3k:5s,4k:5s) show where.{}",
            because(missed)
        ),
        None => format!("{so_far}; what it can do at most is not known.{}", because(missed)),
    }
}

/// Whether a ramp passed what the server can do: not where the generator gave out, or requests failed.
fn lies_within(missed: &WatchedStage) -> bool {
    stages::is_ramp(&missed.counted)
        && missed.counted.followed == Some(false)
        && missed.bottleneck != Cause::LoadGeneratorBound
}

/// Of the first stage that was followed and is not valid all the same.
fn why_not_valid(all: &[WatchedStage]) -> Option<String> {
    let is_it = |stage: &&WatchedStage| {
        !stage.counted.valid && stage.counted.followed != Some(false) && !stages::is_pause(&stage.counted)
    };
    let stage = all.iter().find(is_it)?;
    // Few answers, and accounting that is a little open, alone make nothing invalid.
    let is_reason = |warning: &&Warning| !matches!(warning.id.as_str(), "few-requests" | "accounting-open");
    let warnings = &stage.counted.warnings;
    let warning = warnings.iter().find(is_reason).or_else(|| warnings.first())?;
    Some(format!("Stage {} is not valid: {}.", stage.stage, warning.text.trim_end_matches('.')))
}
