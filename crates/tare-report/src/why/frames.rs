//! Which code ran for another part of the time, and took another time of a request.

use crate::block::{Block, Column, Row, Table, Text};
use crate::format::{between, hundredths, joined, seconds};
use crate::words;
use tare_model::Reading;
use tare_model::why::{FrameChange, PerRequest, Why};

/// Functions whose change is at least this part of the largest one carry it as well.
const AS_LARGE: f64 = 0.9;

pub(super) fn changed(why: &Why) -> Vec<Block> {
    let line = |text: String| vec![Block::Line(Text::plain(text))];
    let frames = match &why.frames {
        Reading::Missing(missing) => {
            return line(format!("Not known: {}.", joined(&words::then_remedy(missing))));
        }
        Reading::NotApplicable { .. } => return Vec::new(),
        Reading::Measured(frames) if frames.is_empty() => {
            return line("No function's, beyond what samples and trials differ by.".to_owned());
        }
        Reading::Measured(frames) => frames,
    };
    let mut columns = vec![
        Column::words("function", 0),
        Column::words("", 3),
        Column::figures("A %", 2),
        Column::figures("B %", 2),
        Column::figures("change", 0),
        Column::words("95 % together", 1),
    ];
    let is_timed = frames.iter().any(|frame| frame.per_request.is_some());
    if is_timed {
        columns.extend([Column::figures("of a request", 0), Column::words("95 %", 1)]);
    }
    let rows = frames.iter().map(|frame| row(frame, is_timed)).collect();
    vec![Block::Table(Table { columns, rows })]
}

fn row(frame: &FrameChange, is_timed: bool) -> Row {
    let change = frame.after - frame.before;
    let mut cells = vec![
        Text::plain(joined(&frame.function)),
        Text::dim(if frame.own { "itself" } else { "with what it calls" }),
        Text::plain(hundredths(frame.before)),
        Text::plain(hundredths(frame.after)),
        Text::plain(hundredths(change)),
        Text::dim(between(frame.ci95, hundredths)),
    ];
    if is_timed {
        let time = frame.per_request.as_ref();
        cells.push(Text::plain(time.map_or_else(String::new, |time| signed(difference_ns(time)))));
        cells.push(Text::dim(time.map_or_else(String::new, |time| between(time.difference_ci95_ns, signed))));
    }
    Row::Cells(cells)
}

fn difference_ns(time: &PerRequest) -> f64 {
    time.after_ns - time.before_ns
}

fn signed(ns: f64) -> String {
    let text = seconds(ns / 1e9);
    if ns > 0.0 { format!("+{text}") } else { text }
}

/// The sentence about the function that changed most: of those that carry as much of it, the one that does least besides.
pub(super) fn sentence(why: &Why) -> Option<String> {
    let timed = why.frames.value()?.iter().filter_map(|frame| Some((frame, frame.per_request.as_ref()?)));
    // What has no name is no function to look at.
    let timed: Vec<(&FrameChange, &PerRequest)> =
        timed.filter(|(frame, _)| !frame.function.starts_with('[')).collect();
    let size = |time: &PerRequest| difference_ns(time).abs();
    let (_, largest) = timed.iter().max_by(|(_, one), (_, other)| size(one).total_cmp(&size(other)))?;
    // One that became less does not carry what became more.
    let carry = timed.iter().filter(|(_, time)| {
        size(time) >= AS_LARGE * size(largest) && difference_ns(time) * difference_ns(largest) > 0.0
    });
    let (frame, time) = carry.min_by(|(one, _), (other, _)| one.before.total_cmp(&other.before))?;
    let more = if difference_ns(time) > 0.0 { "more" } else { "less" };
    let whose = if frame.own { "" } else { " with what it calls" };
    let [low, high] = time.difference_ci95_ns;
    let takes_lock = [&why.a, &why.b].iter().any(|run| run.lock_taken_in.as_deref() == Some(&frame.function));
    let lock = if takes_lock { " It takes the lock that threads wait for." } else { "" };
    Some(format!(
        "Code: {}{whose} takes {} {more} of a request: {} after {} ({} to {}).{lock}",
        frame.function,
        seconds(difference_ns(time).abs() / 1e9),
        seconds(time.after_ns / 1e9),
        seconds(time.before_ns / 1e9),
        signed(low),
        signed(high)
    ))
}
