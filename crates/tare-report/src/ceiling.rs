//! What a machine can do at most: a row for each ceiling.

use crate::block::{Block, Column, Row, Rows, Table, Text};
use crate::format::{self, NONE};
use crate::roofline::{self, Roof};
use crate::sections::{Part, warnings};
use crate::{Report, words};
use tare_model::Reading;
use tare_model::ceiling::{Ceiling, Ceilings, ListedCeiling};

/// For a page: with the roofline.
pub fn page(found: &Ceilings) -> Report {
    let mut report = report(found);
    let value = |name: &str| {
        let ceiling = found.ceilings.iter().find(|ceiling| ceiling.name == name)?;
        ceiling.estimate.value().map(|estimate| estimate.value)
    };
    // Beside the table: forms without drawings have no empty heading then.
    if let (Some(roof), Some(table)) = (Roof::of(value), report.parts.get_mut(1)) {
        table.blocks.push(roofline::chart(roof, None));
    }
    report
}

/// The table, laid out.
pub fn report(found: &Ceilings) -> Report {
    let columns = vec![
        Column::words("ceiling", 0),
        Column::figures("value", 0),
        Column::figures("95 % interval", 1),
        Column::words("what", 2),
    ];
    let rows = found.ceilings.iter().map(row).collect();
    let mut parts = vec![
        Part {
            title: "",
            blocks: vec![Block::Headline(Text::strong(headline(found))), Block::Line(Text::dim(how(found)))],
        },
        Part { title: "", blocks: vec![Block::Table(Table { columns, rows })] },
    ];
    parts.extend(Part::of("Not as usual", notes(found)));
    parts.extend(warnings::part(&found.warnings));
    Report { parts, rows: fields(found) }
}

fn headline(found: &Ceilings) -> String {
    let known = found.ceilings.iter().filter(|ceiling| ceiling.estimate.value().is_some()).count();
    format!("What this machine can do at most: {known} of {} ceilings", found.ceilings.len())
}

fn how(found: &Ceilings) -> String {
    let kept = match found.kept {
        true => "Kept: later runs of this boot say their share of the tightest.",
        false => "Not kept.",
    };
    format!(
        "Medians of {} rounds, each ceiling once in each, {:.0} s in all. CPUs {}. Disk below {}. {kept}",
        found.rounds,
        found.took_s,
        tare_model::CpuSet::from(found.cpus.as_slice()),
        found.directory
    )
}

fn row(ceiling: &Ceiling) -> Row {
    let cells = match &ceiling.estimate {
        Reading::Measured(estimate) => {
            let shown = |value: f64| format::with_unit(value, &estimate.unit);
            let interval = estimate
                .ci95
                .map_or(NONE.to_owned(), |[low, high]| format!("{} to {}", shown(low), shown(high)));
            [Text::strong(shown(estimate.value)), Text::plain(interval)]
        }
        _ => [Text::dim(NONE), Text::dim(NONE)],
    };
    let [value, interval] = cells;
    Row::Cells(vec![Text::plain(&ceiling.name), value, interval, Text::dim(&ceiling.about)])
}

/// What is missing and why, and what was measured in another way.
fn notes(found: &Ceilings) -> Vec<Block> {
    let note = |ceiling: &Ceiling| match &ceiling.estimate {
        Reading::Missing(missing) if missing.remedy.is_empty() => {
            Some(format!("{}: {}", ceiling.name, missing.why))
        }
        Reading::Missing(missing) => Some(format!("{}: {} ({})", ceiling.name, missing.why, missing.remedy)),
        Reading::NotApplicable { not_applicable } => Some(format!("{}: {not_applicable}", ceiling.name)),
        Reading::Measured(_) if ceiling.note.is_empty() => None,
        Reading::Measured(_) => Some(format!("{}: {}", ceiling.name, ceiling.note)),
    };
    found.ceilings.iter().filter_map(note).map(|line| Block::Line(Text::plain(line))).collect()
}

fn fields(found: &Ceilings) -> Rows {
    let row = |ceiling: &Ceiling| {
        let estimate = ceiling.estimate.value();
        let end = |at: usize| estimate.and_then(|estimate| estimate.ci95).map(|ends| ends[at]);
        vec![
            ceiling.name.as_str().into(),
            estimate.map(|estimate| estimate.value).into(),
            end(0).into(),
            end(1).into(),
            estimate.map_or("", |estimate| estimate.unit.as_str()).into(),
            words::id(ceiling.better).into(),
            (ceiling.samples.len() as f64).into(),
        ]
    };
    let header = &["ceiling", "value", "ci95_low", "ci95_high", "unit", "better", "rounds"];
    Rows { header, rows: found.ceilings.iter().map(row).collect() }
}

/// Every ceiling that can be measured here.
pub fn list(all: &[ListedCeiling]) -> Report {
    let columns = vec![Column::words("ceiling", 0), Column::words("unit", 0), Column::words("what", 1)];
    let row = |one: &ListedCeiling| {
        Row::Cells(vec![Text::plain(&one.name), Text::plain(&one.unit), Text::plain(&one.about)])
    };
    let table = Table { columns, rows: all.iter().map(row).collect() };
    let fields = |one: &ListedCeiling| {
        vec![one.name.as_str().into(), one.unit.as_str().into(), one.about.as_str().into()]
    };
    Report {
        parts: vec![Part { title: "", blocks: vec![Block::Table(table)] }],
        rows: Rows { header: &["ceiling", "unit", "about"], rows: all.iter().map(fields).collect() },
    }
}

/// As the JSON object that scripts rely on.
///
/// # Errors
/// None that is known: every key is a string, and a number that is not finite becomes `null`.
pub fn json(found: &Ceilings) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(found).map(|text| text + "\n")
}

/// The same of the list.
///
/// # Errors
/// As [`json`].
pub fn list_json(all: &[ListedCeiling]) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(all).map(|text| text + "\n")
}
