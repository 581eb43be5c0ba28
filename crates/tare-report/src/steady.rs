//! From where on series are steady: a row for each.

use crate::block::{Block, Column, Row, Rows, Table, Text, Tone};
use crate::format::{self, count};
use crate::sections::Part;
use crate::{Report, words};
use tare_model::outcome::State;
use tare_model::steady::{Label, Series};
use tare_stats::{Segment, Steadiness};

/// Longer names are cut in tables: the figures beside them say more.
const NAME_CHARS_MAX: usize = 32;

/// A series and what became of it.
#[derive(Debug)]
pub struct Examined {
    /// What it is called.
    pub name: String,
    /// How many values it has.
    pub values: usize,
    /// Whether they are seconds.
    pub seconds: bool,
    /// From where on it is steady.
    pub found: Steadiness,
}

/// The table, laid out.
pub fn report(all: &[Examined]) -> Report {
    let columns = vec![
        Column::words("series", 1),
        Column::words("", 0),
        Column::figures("from", 0),
        Column::figures("of", 2),
        Column::figures("level", 0),
        Column::figures("before it", 1),
        Column::figures("changes", 3),
        Column::figures("wild", 4),
    ];
    let rows = all.iter().map(row).collect();
    let part = Part { title: "", blocks: vec![Block::Table(Table { columns, rows })] };
    Report { parts: vec![part], rows: fields(all) }
}

fn fields(all: &[Examined]) -> Rows {
    let row = |one: &Examined| {
        let found = &one.found;
        vec![
            one.name.as_str().into(),
            words::id(State::from(found.state)).into(),
            steady_from(found).map(|from| from as f64).into(),
            (one.values as f64).into(),
            found.levels.first().copied().into(),
            found.levels.get(1).copied().into(),
            (found.wild as f64).into(),
        ]
    };
    let header = &["series", "state", "steady_from", "values", "level", "other_level", "wild"];
    Rows { header, rows: all.iter().map(row).collect() }
}

fn row(one: &Examined) -> Row {
    let found = &one.found;
    let label = match State::from(found.state) {
        State::Steady => Text::new("steady", Tone::Good),
        State::NeverSteady => Text::new("never steady", Tone::Warn),
        State::Drifting => Text::new("drifting", Tone::Warn),
        State::Bimodal => Text::new("bimodal", Tone::Warn),
    };
    let from = steady_from(found).map_or(format::NONE.to_owned(), |from| from.to_string());
    let figure = |value: &f64| if one.seconds { format::seconds(*value) } else { count(*value) };
    let level = match found.levels[..] {
        [] => format::NONE.to_owned(),
        _ => found.levels.iter().map(figure).collect::<Vec<String>>().join(" and "),
    };
    let apart = before(found).map(|(before, level)| format::change(before / level - 1.0));
    let apart = apart.unwrap_or_else(|| format::NONE.to_owned());
    let words = [from, one.values.to_string(), level, apart];
    let tail = [found.segments.len().saturating_sub(1).to_string(), found.wild.to_string()];
    let cells = [Text::plain(cut(&one.name)), label]
        .into_iter()
        .chain(words.into_iter().chain(tail).map(Text::plain));
    Row::Cells(cells.collect())
}

fn cut(name: &str) -> String {
    match name.char_indices().nth(NAME_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// Since when it is steady, if it is. What drifts or alternates has a last stretch, and no level.
fn steady_from(found: &Steadiness) -> Option<usize> {
    found.from.filter(|_| found.state == tare_stats::State::Steady)
}

/// Mean of all that came before the level, and the level.
fn before(found: &Steadiness) -> Option<(f64, f64)> {
    let until = steady_from(found)?;
    let earlier: Vec<&Segment> = found.segments.iter().filter(|segment| segment.to <= until).collect();
    let weight = |segment: &Segment| (segment.to - segment.from) as f64;
    let values: f64 = earlier.iter().map(|segment| weight(segment)).sum();
    let sum: f64 = earlier.iter().map(|segment| segment.mean * weight(segment)).sum();
    Some((sum / values, *found.levels.first()?)).filter(|_| values > 0.0)
}

/// One JSON object for each series, a line each.
///
/// # Errors
/// None that is known: every key is a string, and a number that is not finite becomes `null`.
pub fn json(all: &[Examined]) -> Result<String, serde_json::Error> {
    let line = |one: &Examined| serde_json::to_string(&series(one)).map(|object| object + "\n");
    all.iter().map(line).collect()
}

fn series(one: &Examined) -> Series {
    let found = &one.found;
    let level = |segment: &Segment| tare_model::steady::Segment {
        from: segment.from,
        to: segment.to,
        mean: segment.mean,
    };
    let from = steady_from(found);
    Series {
        name: one.name.clone(),
        label: if from.is_some() { Label::Steady } else { Label::NotSteady },
        state: State::from(found.state),
        steady_from: from.map_or(-1, |from| from as i64),
        levels: found.levels.clone(),
        values: one.values,
        wild: found.wild,
        segments: found.segments.iter().map(level).collect(),
    }
}
