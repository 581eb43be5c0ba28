//! What came of a plan: a row for each cell, then what was expected and whether it held.

use crate::block::{Block, Column, Field, Row, Rows, Table, Text, Tone};
use crate::comparison::disturbance;
use crate::format::{self, percent, with_unit};
use crate::sections::Part;
use crate::{Report, words};
use std::collections::BTreeSet;
use tare_model::figure::Figure;
use tare_model::outcome::Cause;
use tare_model::study::{CellOutcome, FigureSeen, Judgement, Seen, StudyOutcome, Unit, Verdict};

/// Figures that every table has, with their heads.
const SHOWN: [(&str, &str, u8); 6] = [
    ("throughput", "req/s", 0),
    ("p50", "p50", 2),
    ("p99", "p99", 0),
    ("sut.voluntary_switches", "sleeps/s", 1),
    ("sut.busy", "busy", 3),
    ("load.busy", "load", 4),
];

/// The result, laid out.
pub fn report(study: &StudyOutcome) -> Report {
    let mut parts = Vec::new();
    if !study.name.is_empty() {
        parts.push(Part { title: "", blocks: vec![Block::Line(Text::strong(study.name.clone()))] });
    }
    parts.push(Part { title: "Cells", blocks: cells(study) });
    parts.extend(against(study));
    let expected: Vec<Row> = study.cells.iter().flat_map(expectations).collect();
    if !expected.is_empty() {
        let columns = vec![Column::words("expected", 0), Column::words("", 0), Column::words("seen", 0)];
        parts.push(Part {
            title: "Expectations",
            blocks: vec![Block::Table(Table { columns, rows: expected })],
        });
    }
    Report { parts, rows: rows(study) }
}

fn rows(study: &StudyOutcome) -> Rows {
    let header = &["cell", "baseline", "blocks", "valid", "figure", "value", "ci95_low", "ci95_high", "unit"];
    let row = |cell: &CellOutcome, name: &str, seen: Option<FigureSeen>| {
        let [low, high] = Field::ends(seen.and_then(|seen| seen.ci95));
        vec![
            cell.name.as_str().into(),
            cell.baseline.as_deref().unwrap_or_default().into(),
            (cell.blocks as f64).into(),
            (cell.valid as f64).into(),
            name.into(),
            seen.map(|seen| seen.value).into(),
            low,
            high,
            seen.map_or_else(String::new, |seen| words::id(seen.unit)).into(),
        ]
    };
    let of = |cell: &'_ CellOutcome| -> Vec<Vec<Field>> {
        cell.figures.iter().map(|(name, seen)| row(cell, name, *seen)).collect()
    };
    Rows { header, rows: study.cells.iter().flat_map(of).collect() }
}

/// The result as one JSON object.
pub fn json(study: &StudyOutcome) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(study).map(|text| text + "\n")
}

fn cells(study: &StudyOutcome) -> Vec<Block> {
    let mut columns = vec![Column::words("cell", 0), Column::figures("blocks", 5)];
    columns.extend(SHOWN.map(|(_, head, rank)| Column::figures(head, rank)));
    columns.push(Column::words("bottleneck", 2));
    let rows = study.cells.iter().map(|cell| {
        let blocks = match cell.blocks == cell.valid {
            true => cell.valid.to_string(),
            false => format!("{} of {}", cell.valid, cell.blocks),
        };
        let figures = SHOWN.map(|(name, ..)| figure(cell.figures.get(name).copied().flatten()));
        let words =
            [cell.name.clone(), blocks].into_iter().chain(figures).chain([each_once(&cell.bottlenecks)]);
        Row::Cells(words.map(Text::plain).collect())
    });
    let table = Block::Table(Table { columns, rows: rows.collect() });
    let left_out = study
        .left_out
        .iter()
        .map(|(name, cpus)| Block::Line(Text::dim(format!("{name} was left out: it needs {cpus} CPUs"))));
    let disturbed = interference(study).map(|text| Block::Line(Text::dim(text)));
    let known = precision(study).into_iter().map(|text| Block::Line(Text::plain(text)));
    let order = Text::dim(format!("order of the cells: seed {}", study.seed));
    std::iter::once(table).chain(known).chain(left_out).chain(disturbed).chain([Block::Line(order)]).collect()
}

/// What each cell changes against its baseline.
fn against(study: &StudyOutcome) -> Option<Part> {
    let mut columns = vec![Column::words("cell", 0), Column::words("against", 1)];
    let column = |figure: Figure| Column::words(figure.title(), figure.describe().rank);
    columns.extend(Figure::of_servers().map(column));
    let row = |cell: &CellOutcome| {
        let reported = |name: &str| match cell.changes.get(name) {
            None | Some(Seen::Nothing(_)) => format::NONE.to_owned(),
            Some(change) => seen(change),
        };
        let words = [cell.name.clone(), cell.baseline.clone().unwrap_or_default()];
        let words = words.into_iter().chain(Figure::of_servers().map(|figure| reported(figure.name())));
        Row::Cells(words.map(Text::plain).collect())
    };
    let rows: Vec<Row> = study.cells.iter().filter(|cell| !cell.changes.is_empty()).map(row).collect();
    let table = Block::Table(Table { columns, rows });
    let note =
        Block::Line(Text::dim("95 % intervals, each by itself: of twenty that are nothing one is reported"));
    let unknown = study.cells.iter().filter_map(|cell| match cell.changes.get(Figure::Throughput.name()) {
        Some(Seen::Nothing(why)) => Some(Block::Line(Text::dim(format!("{}: {why}", cell.name)))),
        _ => None,
    });
    let compared = study.cells.iter().any(|cell| !cell.changes.is_empty());
    let blocks = [table, note].into_iter().chain(unknown).collect();
    compared.then_some(Part { title: "Against the baseline", blocks })
}

/// How well throughput is known, where that was to end it, and what more blocks would tell.
fn precision(study: &StudyOutcome) -> Vec<String> {
    let Some(precision) = study.precision else { return Vec::new() };
    let blocks = measured(study);
    let reached = match precision.reached {
        Some(reached) => format!("known to ±{} against its baseline", percent(reached)),
        None => "not known against its baseline".to_owned(),
    };
    let asked = percent(precision.asked);
    let shows = precision.detectable.map(|share| {
        format!("{} blocks would show a change of {} in nine of ten cases", study.blocks, percent(share))
    });
    let takes =
        precision.one_percent_blocks.map(|blocks| format!("±1 % takes {}", words::things(blocks, "block")));
    let foreseen = [shows, takes].into_iter().flatten().collect::<Vec<_>>().join("; ");
    let known = format!(
        "throughput is {reached} after {blocks} of {} blocks at most; ±{asked} was asked",
        study.blocks
    );
    [known, foreseen].into_iter().filter(|line| !line.is_empty()).collect()
}

/// What was disturbed from outside, and what was done about it.
fn interference(study: &StudyOutcome) -> Option<String> {
    let again = match study.measured_again {
        0 => String::new(),
        blocks => format!("; {} measured once more", words::things(blocks, "block")),
    };
    let by: BTreeSet<&str> =
        study.disturbed.iter().flat_map(|block| &block.by).map(|what| disturbance(*what)).collect();
    let by = by.into_iter().collect::<Vec<_>>().join(", ");
    match study.disturbed.len() {
        0 if again.is_empty() => None,
        0 => Some(format!("no block that counts was disturbed from outside{again}")),
        blocks => Some(format!(
            "{blocks} of {} were disturbed from outside ({by}) and count{again}",
            words::things(measured(study), "block")
        )),
    }
}

/// Blocks that there are, which may be fewer than were planned.
fn measured(study: &StudyOutcome) -> usize {
    study.cells.iter().map(|cell| cell.blocks).max().unwrap_or(0)
}

fn figure(seen: Option<FigureSeen>) -> String {
    let Some(seen) = seen else { return format::NONE.to_owned() };
    let value = format::figure(seen.value, seen.unit);
    match format::spread(seen.value, seen.ci95, |end| in_unit(end, seen.unit)) {
        spread if spread.is_empty() => value,
        spread => format!("{value} {spread}"),
    }
}

fn in_unit(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Time => with_unit(value, "s"),
        Unit::Rate => with_unit(value, "1/s"),
        Unit::Cpus => with_unit(value, "CPUs"),
        Unit::Share => format::percent(value),
    }
}

fn expectations(cell: &CellOutcome) -> Vec<Row> {
    if cell.expectations.is_empty() {
        return Vec::new();
    }
    let against = cell.baseline.as_ref().map(|baseline| format!(", against {baseline}")).unwrap_or_default();
    let heading = Row::Heading(Text::strong(format!("{}{against}", cell.name)));
    std::iter::once(heading).chain(cell.expectations.iter().map(judged)).collect()
}

fn judged(judgement: &Judgement) -> Row {
    let verdict = match judgement.verdict {
        Verdict::Held => Text::new("held", Tone::Good),
        Verdict::DidNotHold => Text::new("did not hold", Tone::Bad),
        Verdict::CouldNotTell => Text::new("could not tell", Tone::Warn),
    };
    Row::Cells(vec![Text::plain(&judgement.expected), verdict, Text::plain(seen(&judgement.seen))])
}

fn seen(seen: &Seen) -> String {
    let between = |[lo, hi]: [f64; 2], each: &dyn Fn(f64) -> String| format!("{} to {}", each(lo), each(hi));
    match seen {
        Seen::Ratio { value, ci95 } => format!("{} ({})", change(*value), between(*ci95, &change)),
        Seen::Difference { value, ci95, unit } => {
            let each = |value: f64| format!("{}{}", format::sign(value), in_unit(value.abs(), *unit));
            format!("{} ({})", each(*value), between(*ci95, &each))
        }
        Seen::Value { value, ci95, unit } => {
            let each = |value: f64| in_unit(value, *unit);
            format!("{} ({})", each(*value), between(*ci95, &each))
        }
        Seen::Bottlenecks(bottlenecks) => each_once(bottlenecks),
        Seen::Nothing(why) => why.clone(),
    }
}

fn each_once(bottlenecks: &[Cause]) -> String {
    let ids: BTreeSet<String> = bottlenecks.iter().map(words::id).collect();
    ids.into_iter().collect::<Vec<_>>().join(", ")
}

/// A ratio as people say it: `+12 %`, from a doubling on `×2.3`.
fn change(ratio: f64) -> String {
    if ratio >= 2.0 {
        return format!("×{}", format::ratio(ratio));
    }
    format::change(ratio - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use tare_model::comparison::Disturbance;
    use tare_model::study::{DisturbedBlock, Precision};

    #[test]
    fn says_what_was_expected_and_what_came() {
        let rate = |value: f64| {
            Some(FigureSeen { value, ci95: Some([value * 0.99, value * 1.01]), unit: Unit::Rate })
        };
        let judgement =
            |expected: &str, verdict, seen| Judgement { expected: expected.to_owned(), verdict, seen };
        let cell = |name: &str, value: f64| CellOutcome {
            name: name.to_owned(),
            baseline: None,
            blocks: 3,
            valid: 3,
            figures: BTreeMap::from([("throughput".to_owned(), rate(value)), ("p99".to_owned(), None)]),
            bottlenecks: vec![Cause::ServerCpuBound; 3],
            changes: BTreeMap::new(),
            expectations: Vec::new(),
        };
        let expectations = vec![
            judgement("throughput down", Verdict::Held, Seen::Ratio { value: 0.9, ci95: [0.88, 0.92] }),
            judgement("p99 up", Verdict::CouldNotTell, Seen::Nothing("no p99 in a result".to_owned())),
            judgement(
                "sut.voluntary_switches = 0",
                Verdict::DidNotHold,
                Seen::Value { value: 812.0, ci95: [800.0, 824.0], unit: Unit::Rate },
            ),
        ];
        let study = StudyOutcome {
            schema: tare_model::study::SCHEMA,
            name: "layouts".to_owned(),
            seed: 7,
            blocks: 16,
            precision: Some(Precision {
                asked: 0.02,
                reached: Some(0.013),
                detectable: Some(0.019),
                one_percent_blocks: Some(24),
            }),
            measured_again: 2,
            disturbed: vec![DisturbedBlock { block: 2, by: vec![Disturbance::Steal] }],
            cells: vec![
                cell("two", 100e3),
                CellOutcome {
                    baseline: Some("two".to_owned()),
                    valid: 2,
                    changes: BTreeMap::from([
                        ("throughput".to_owned(), Seen::Ratio { value: 0.9, ci95: [0.87, 0.93] }),
                        ("p99".to_owned(), Seen::Nothing("no p99 in a result".to_owned())),
                    ]),
                    expectations,
                    ..cell("one", 90e3)
                },
            ],
            left_out: BTreeMap::from([("eight".to_owned(), 9)]),
        };
        let text = report(&study).terminal(crate::Style { color: false, width: 120, unicode: true });
        assert!(text.starts_with("layouts\n"), "{text}");
        let table = report(&study).csv();
        assert!(
            table.starts_with("cell,baseline,blocks,valid,figure,value,ci95_low,ci95_high,unit\n"),
            "{table}"
        );
        assert!(table.contains("\none,two,3,2,p99,,,,\n"), "{table}");
        assert!(report(&study).markdown().contains("### Expectations"));
        for wanted in [
            "one, against two",
            "Against the baseline",
            "−10 % (−13 % to −7.0 %)",
            "2 of 3",
            "server-cpu-bound",
            "eight was left out: it needs 9 CPUs",
            "held",
            "(−12",
            "could not tell",
            "no p99 in a result",
            "did not hold",
            "812",
            "throughput is known to ±1.3 % against its baseline after 3 of 16 blocks at most; ±2.0 % was asked",
            "16 blocks would show a change of 1.9 % in nine of ten cases; ±1 % takes 24 blocks",
            "1 of 3 blocks were disturbed from outside (steal) and count; 2 blocks measured once more",
        ] {
            assert!(text.contains(wanted), "{wanted} in\n{text}");
        }
        let back: StudyOutcome = serde_json::from_str(&json(&study).unwrap()).unwrap();
        assert_eq!(back, study);
    }
}
