//! Plain CSV with a header: a column named `benchmark`, `name`, `test` or `command` groups its rows, every other one of numbers is a metric. tare's own
//! table of samples is read as the metrics that it was written of.

use super::figures::{decimal, scaled, usual};
use crate::metrics::{Kind, Metrics, Sample};
use crate::reader::{Input, Reader};
use csv::StringRecord;
use std::collections::HashMap;
use tare_model::outcome::Better;

pub(crate) const READER: Reader = Reader {
    name: "csv",
    gets_wrong: &[
        "a file of columns does not say which rows are of one process, unless a column is named launch or fork",
        "units are as the header says: of time_ms or time (ms) milliseconds, else none",
    ],
    detect: |input| table(input.text).is_some(),
    read,
};

const COLUMNS_MAX: usize = 1000;
/// The header of what `tare export --format csv` writes: in base units.
const OWN: [&str; 8] = ["benchmark", "metric", "unit", "better", "launch", "worker", "at_s", "value"];
/// So many lines are looked at to know a table.
const LOOKED_AT: usize = 100;

/// What a column is.
#[derive(Debug, Clone, PartialEq)]
enum Column {
    /// Nothing has stood in it yet.
    Unknown,
    /// Of the benchmark's name.
    Group,
    Launch,
    /// When, or a number of the row: no metric.
    Place,
    /// Names the metric of the column `value`, or its unit.
    MetricName,
    MetricUnit,
    /// Whether more is better, which thread or client a row is of, and when it was.
    Better,
    Worker,
    At,
    Number,
    Text(String),
}

impl Column {
    fn of(header: &str) -> Column {
        match header.to_ascii_lowercase().as_str() {
            "benchmark" | "name" | "test" | "command" => Column::Group,
            "launch" | "fork" => Column::Launch,
            "metric" => Column::MetricName,
            "unit" => Column::MetricUnit,
            "better" => Column::Better,
            "worker" => Column::Worker,
            "at_s" => Column::At,
            "" | "index" | "#" | "row" | "iteration" | "timestamp" | "time_stamp" | "date" | "datetime" => {
                Column::Place
            }
            _ => Column::Unknown,
        }
    }

    /// Whether the cell is what the column's title says; a column of that name may be of something else.
    fn fits(&self, cell: &str) -> bool {
        match self {
            Column::Better => better(cell).is_some(),
            Column::Worker => cell.parse::<u32>().is_ok(),
            Column::At => decimal(cell).is_ok_and(f64::is_finite),
            _ => true,
        }
    }
}

fn better(cell: &str) -> Option<Better> {
    match cell {
        "higher" => Some(Better::Higher),
        "lower" => Some(Better::Lower),
        _ => None,
    }
}

/// The separator and what is from the header on, if a table begins in the first line.
fn table(text: &str) -> Option<(u8, &str)> {
    let text = text.trim_start_matches(['\n', '\r']);
    let (first, _) = text.split_once('\n')?;
    let separator = [b'\t', b';', b','].into_iter().find(|separator| first.as_bytes().contains(separator))?;
    let end: usize = text.split_inclusive('\n').take(LOOKED_AT).map(str::len).sum();
    let mut records = reader(&text[..end], separator).into_records().filter_map(Result::ok);
    let header = records.next()?;
    let rows: Vec<StringRecord> = records.filter(|row| row.len() == header.len()).collect();
    let mut names = std::collections::HashSet::new();
    let named = header.iter().all(|name| is_title(name) && names.insert(name));
    let is_measured = |(at, name): (usize, &str)| {
        let is_figure = |row: &&StringRecord| {
            row.get(at).is_some_and(|cell| decimal(cell).is_ok() || with_unit(cell).is_some())
        };
        let figures = rows.iter().filter(is_figure).count();
        may_be_measured(name) && figures > 0 && figures * 3 >= rows.len()
    };
    let fits = (rows.len() >= 2 || header.iter().eq(OWN)) && (2..=COLUMNS_MAX).contains(&header.len());
    (fits && named && header.iter().enumerate().any(is_measured)).then_some((separator, text))
}

/// Whether it may stand over a column: it is no sentence, no number and no `key:`.
fn is_title(name: &str) -> bool {
    let words = Named::of(name).name.split_whitespace().count();
    name.len() < 200 && words <= 4 && !name.ends_with([':', '.', '!', '?']) && decimal(name).is_err()
}

/// Whether a column of that title may have figures: numbers of people, days and rows are none.
fn may_be_measured(name: &str) -> bool {
    const NOT: &str =
        "id uuid uid gid pid year month day age zip zipcode postcode phone birthday born no nr number";
    let lower = name.to_ascii_lowercase();
    let is_known = NOT.split(' ').any(|not| not == lower) || lower.ends_with("_id");
    let is_place = matches!(
        Column::of(name),
        Column::Group | Column::Place | Column::Launch | Column::Better | Column::Worker | Column::At
    );
    name.chars().any(char::is_alphabetic) && !is_known && !is_place
}

fn reader(text: &str, separator: u8) -> csv::Reader<&[u8]> {
    csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .delimiter(separator)
        .from_reader(text.as_bytes())
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let Some((separator, text)) = table(input.text) else { return };
    let before = input.text[..input.text.len() - text.len()].matches('\n').count() as u64;
    let mut reader = reader(text, separator);
    let mut record = StringRecord::new();
    if !matches!(reader.read_record(&mut record), Ok(true)) {
        return;
    }
    let titles = record.clone();
    let header = named(&titles);
    let is_in_base = titles.iter().eq(OWN);
    let mut columns: Vec<Column> = record.iter().map(Column::of).collect();
    let (mut first_launch, mut next_launch) = (0_u32, 0_u32);
    loop {
        match reader.read_record(&mut record) {
            Ok(true) => {}
            Ok(false) => break,
            Err(why) => {
                let line = why.position().map_or(0, csv::Position::line);
                metrics.skip(before + line, "a row", "it is no UTF-8");
                continue;
            }
        }
        let line = before + record.position().map_or(1, csv::Position::line);
        if record.len() != header.len() {
            let what = record.iter().collect::<Vec<_>>().join(",");
            metrics.skip(line, &what, "it has not as many cells as the header: it is cut off, or no row");
            continue;
        }
        if record == titles {
            // Another run was appended: it has launches of its own.
            (first_launch, next_launch) = (next_launch, next_launch);
            continue;
        }
        let launch = match columns.iter().position(|column| *column == Column::Launch) {
            None => first_launch,
            Some(at) => match record.get(at).unwrap_or_default().parse::<u32>() {
                Ok(launch) => first_launch.saturating_add(launch),
                Err(_) => {
                    let what = record.iter().collect::<Vec<_>>().join(",");
                    metrics.skip(line, &what, "its launch is no number");
                    continue;
                }
            },
        };
        next_launch = next_launch.max(launch.saturating_add(1));
        row(Place { line, launch, is_in_base }, &header, &mut columns, &record, metrics);
    }
    for (named, column) in header.iter().zip(&columns) {
        if let Column::Text(text) = column {
            metrics.set(&named.whole, text);
        }
    }
}

/// Headers taken apart, but for those that would then be the same.
fn named(titles: &StringRecord) -> Vec<Named> {
    let mut all: Vec<Named> = titles.iter().map(Named::of).collect();
    let mut counts: HashMap<String, u32> = HashMap::new();
    for one in &all {
        *counts.entry(one.name.clone()).or_default() += 1;
    }
    for one in &mut all {
        if counts.get(&one.name).is_some_and(|count| *count > 1) {
            one.name = one.whole.clone();
        }
    }
    all
}

/// A column's header, taken apart.
struct Named {
    whole: String,
    name: String,
    unit: String,
}

impl Named {
    /// `time (ms)`, `time [ms]`, `time_ms`, `items_per_s`.
    fn of(header: &str) -> Named {
        let new = |name: &str, unit: &str| Named {
            whole: header.to_owned(),
            name: name.trim().to_owned(),
            unit: unit.trim().to_owned(),
        };
        for (open, close) in [('(', ')'), ('[', ']')] {
            let inner = header.strip_suffix(close).and_then(|rest| rest.rsplit_once(open));
            if let Some((name, unit)) =
                inner.filter(|(name, unit)| !name.trim().is_empty() && !unit.is_empty())
            {
                return new(name, unit);
            }
        }
        for end in ["_per_second", "_per_sec", "_per_s"] {
            if let Some(name) = header.strip_suffix(end) {
                return new(header, &format!("{name}/s"));
            }
        }
        match header.rsplit_once('_') {
            Some((name, "s" | "sec")) if counted(name).is_some() => {
                new(header, &format!("{}/s", counted(name).unwrap_or_default()))
            }
            Some((name, unit)) if !name.is_empty() && is_unit(unit) => new(name, unit),
            _ => new(header, ""),
        }
    }
}

/// Things of which one counts how many there are in a second.
const COUNTED: &str = "req reqs requests op ops operations tx txs txn txns tps qps rps transactions query queries b kb mb \
    gb tb kib mib gib byte bytes bit bits kbit mbit gbit item items msg msgs messages row rows record \
    records packets pkts events calls frames iterations iter iters tokens files docs points samples keys \
    commits jobs tasks lines words hits reads writes";

/// What is counted in `req`, `http_requests`, `MB`: with `_s` behind it, it is a rate and no time.
fn counted(name: &str) -> Option<&str> {
    let last = name.rsplit('_').next()?;
    COUNTED.split(' ').any(|word| word.eq_ignore_ascii_case(last)).then_some(last)
}

/// `12.5ms`, `12 %`: a number and its unit, of those that are known.
fn with_unit(cell: &str) -> Option<(f64, &str)> {
    let unit =
        cell.trim_start_matches(|c: char| c.is_ascii_digit() || ['.', ',', '-', '+', ' '].contains(&c));
    let known = is_unit(unit) || matches!(unit, "%" | "μs" | "ps" | "min" | "h" | "KB" | "MB" | "GB");
    let value = decimal(cell.strip_suffix(unit)?).ok()?;
    known.then_some((value, unit))
}

/// Whether the end of a header is a unit.
fn is_unit(end: &str) -> bool {
    let known = ["s", "sec", "secs", "seconds", "ms", "us", "µs", "ns", "bytes", "B", "KiB", "MiB", "GiB"];
    known.contains(&end)
}

/// Where a row stands, of which launch it is, and whether its values need no scaling.
struct Place {
    line: u64,
    launch: u32,
    is_in_base: bool,
}

fn row(place: Place, header: &[Named], columns: &mut [Column], record: &StringRecord, metrics: &mut Metrics) {
    let cell_of = |columns: &[Column], wanted: &Column| {
        let at = columns.iter().position(|column| column == wanted);
        at.and_then(|at| record.get(at)).unwrap_or_default()
    };
    let groups = columns.iter().zip(record).filter(|(column, _)| **column == Column::Group);
    let benchmark = groups.map(|(_, cell)| cell).collect::<Vec<_>>().join("/");
    let Place { line, launch, is_in_base } = place;
    for (column, cell) in columns.iter_mut().zip(record) {
        if !cell.is_empty() && !column.fits(cell) {
            *column = Column::Unknown;
        }
    }
    let metric = cell_of(columns, &Column::MetricName);
    let unit = cell_of(columns, &Column::MetricUnit);
    // Where there is such a column, an empty cell says that it is not known.
    let said = columns.contains(&Column::Better).then_some(better(cell_of(columns, &Column::Better)));
    let worker = cell_of(columns, &Column::Worker).parse::<u32>().ok();
    let at_s = decimal(cell_of(columns, &Column::At)).ok();
    for ((column, named), cell) in columns.iter_mut().zip(header).zip(record) {
        match column {
            Column::Unknown if cell.is_empty() => continue,
            Column::Unknown => {
                // What looks like a number that is not read is one all the same.
                let is_number = decimal(cell).is_ok()
                    || with_unit(cell).is_some()
                    || cell.starts_with(|c: char| c.is_ascii_digit()) && cell.contains(',')
                    || matches!(cell, "NA" | "N/A" | "null" | "-");
                *column = if is_number { Column::Number } else { Column::Text(cell.to_owned()) };
            }
            Column::Text(text) if text.as_str() != cell && !cell.is_empty() => {
                metrics.warn(
                    "csv-mixes-rows",
                    &format!("rows of {} and of {} ({}) are samples of one metric", *text, cell, named.whole),
                    "name the column that tells benchmarks apart `benchmark`",
                );
                // It holds for no more than some rows: no setting of all.
                *column = Column::Place;
            }
            _ => {}
        }
        if *column != Column::Number {
            continue;
        }
        let value_column = named.name.eq_ignore_ascii_case("value");
        let name = if value_column && !metric.is_empty() { metric } else { &named.name };
        let unit = if value_column && !unit.is_empty() { unit } else { &named.unit };
        let own = with_unit(cell).filter(|found| unit.is_empty() || found.1 == unit);
        let (value, unit) = match own {
            Some((value, own)) => (Ok(value), own),
            None if with_unit(cell).is_some() => (Err("its unit is not that of its column"), unit),
            None => (decimal(cell), unit),
        };
        match value {
            Ok(value) => {
                let (value, unit) = if is_in_base { (value, unit.to_owned()) } else { scaled(value, unit) };
                let better = said.unwrap_or_else(|| usual(&unit));
                let kind = Kind { benchmark: &benchmark, name, unit: &unit, better };
                metrics.sample(line, kind, Sample { value, launch, worker, at_s });
            }
            Err(why) => metrics.skip(line, &format!("{}: {cell}", named.whole), why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> tare_model::tool::ToolMetrics {
        assert!(READER.detects(&Input::of_text(text)), "{text}");
        READER.read(&Input::of_text(text))
    }

    #[test]
    fn units_stand_in_headers() {
        let read = of("\nbenchmark;time (ms);size_KiB;rows_per_s;launch\n\"a; b\";1,5;2;3;0\na;bad;;4;1\n");
        let found: Vec<_> = read
            .metrics
            .iter()
            .map(|m| (m.benchmark.as_str(), m.name.as_str(), m.unit.as_str(), m.samples[0], m.launches[0]))
            .collect();
        assert_eq!(
            found,
            [
                ("a; b", "time", "s", 1.5e-3, 0),
                ("a; b", "size", "B", 2048.0, 0),
                ("a; b", "rows_per_s", "rows/s", 3.0, 0),
                ("a", "rows_per_s", "rows/s", 4.0, 1),
            ]
        );
        let why: Vec<_> = read.skipped.iter().map(|skipped| (skipped.line, skipped.why.as_str())).collect();
        assert_eq!(why, [(4, "it is no number"), (4, "there is no value")]);
    }

    #[test]
    fn a_column_of_metrics_names_that_of_values() {
        let read = of("name,metric,unit,value\nx,p99,ms,5\ny,p99,ms,6\n");
        let metric = &read.metrics[0];
        assert_eq!((metric.name.as_str(), metric.unit.as_str(), metric.samples[0]), ("p99", "s", 5e-3));
    }

    #[test]
    fn columns_are_kept_apart_and_cells_may_have_units() {
        let read =
            of("time (min),time [h],wait,busy_s,launch\n1,2,12.5ms,3,0\n1,2,13.5ms,4ms,x\n1,2,-,4ms,1\n");
        let found: Vec<_> =
            read.metrics.iter().map(|m| (m.name.as_str(), m.unit.as_str(), m.samples[0])).collect();
        let times = [
            ("time (min)", "s", 60.0),
            ("time [h]", "s", 7200.0),
            ("wait", "s", 12.5e-3),
            ("busy", "s", 3.0),
        ];
        assert_eq!(found, times);
        let why: Vec<_> = read.skipped.iter().map(|skipped| (skipped.line, skipped.why.as_str())).collect();
        assert_eq!(
            why,
            [
                (3, "its launch is no number"),
                (4, "it is no number"),
                (4, "its unit is not that of its column")
            ]
        );
    }

    #[test]
    fn a_second_header_begins_another_launch() {
        let read = of("name,time_ms\na,1\na,2\n\nname,time_ms\na,3\n");
        assert_eq!((read.metrics[0].launches.as_slice(), read.skipped.len()), (&[0, 0, 1][..], 0));
    }

    #[test]
    fn counted_things_before_s_are_rates() {
        let read = of("name,req_s,MB_s,http_queries_sec,time_s\nx,5,6,7,8\ny,5,6,7,8\n");
        let found: Vec<_> =
            read.metrics.iter().take(4).map(|m| (m.name.as_str(), m.unit.as_str(), m.better)).collect();
        let (higher, lower) = (Some(Better::Higher), Some(Better::Lower));
        assert_eq!(
            found,
            [
                ("req_s", "req/s", higher),
                ("MB_s", "MB/s", higher),
                ("http_queries_sec", "queries/s", higher),
                ("time", "s", lower),
            ]
        );
    }

    #[test]
    fn columns_of_another_meaning_are_not_taken_for_workers_and_times() {
        let read = of("name,time_ms,worker,at_s,better\na,1,0,0.5,lower\na,2,1,1.5,lower\n");
        let metric = &read.metrics[0];
        assert_eq!(
            (read.metrics.len(), &metric.workers[..], &metric.at_s[..]),
            (1, &[0, 1][..], &[0.5, 1.5][..])
        );
        let read = of("name,time_ms,worker,better\na,1,left,2.5\na,2,left,3.5\n");
        let found: Vec<_> = read.metrics.iter().map(|m| (m.name.as_str(), m.workers.len())).collect();
        assert_eq!(found, [("time", 0), ("better", 0)]);
        assert_eq!(read.configuration["worker"], "left");
    }

    #[test]
    fn prose_is_no_table() {
        for text in [
            "Hello, my name is Bob\nyear, 2024\n",
            "Hello, what I wanted to say is\nyear, 2024\nmonth, 5\n",
            "Name:\tbash\nUmask:\t0022\nTgid:\t12\nPid:\t12\n",
            "id,name,age\n1,Bob,34\n2,Eve,35\n",
            "Hello, world\nthis is, a text\n",
            "a,b\n",
            "1,2\n3,4\n",
            "a, b, c\n1, 2\n",
            "index,name\n1,x\n",
        ] {
            assert!(!READER.detects(&Input::of_text(text)), "{text:?}");
        }
    }
}
