//! Which code ran for another share of the time.

use crate::block::{Block, Column, Row, Table, Text};
use crate::format::{between, hundredths, joined};
use tare_model::Reading;
use tare_model::why::{FrameChange, Why};

pub(super) fn changed(why: &Why) -> Vec<Block> {
    let frames = match &why.frames {
        // Stacks are sampled only where that was asked for.
        Reading::Missing(_) | Reading::NotApplicable { .. } => return Vec::new(),
        Reading::Measured(frames) if frames.is_empty() => {
            return vec![Block::Line(Text::plain(
                "No function's, beyond what samples and trials differ by.",
            ))];
        }
        Reading::Measured(frames) => frames,
    };
    let columns = vec![
        Column::words("function", 0),
        Column::words("", 3),
        Column::figures("A %", 2),
        Column::figures("B %", 2),
        Column::figures("change", 0),
        Column::words("95 % together", 1),
    ];
    vec![Block::Table(Table { columns, rows: frames.iter().map(row).collect() })]
}

fn row(frame: &FrameChange) -> Row {
    let change = frame.after - frame.before;
    Row::Cells(vec![
        // A share that falls need not be a function that costs less: others may cost more.
        Text::plain(joined(&frame.function)),
        Text::dim(if frame.own { "itself" } else { "with what it calls" }),
        Text::plain(hundredths(frame.before)),
        Text::plain(hundredths(frame.after)),
        Text::plain(hundredths(change)),
        Text::dim(between(frame.ci95, hundredths)),
    ])
}
