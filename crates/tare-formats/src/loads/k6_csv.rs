//! [k6](https://k6.io)'s `--out csv`: one row for each measurement.

use super::k6_points::{Contains, Holds, Known, Point, Points, built_in};
use super::time::{rfc3339, unix_seconds};
use crate::metrics::Metrics;
use crate::reader::{Input, Reader};
use crate::rows::fields;

const START: &str = "metric_name,timestamp,metric_value,";

pub(crate) const READER: Reader = Reader {
    name: "k6-csv",
    gets_wrong: &[
        "times of measurements are whole seconds, unless K6_CSV_TIME_FORMAT says otherwise",
        "it does not say what a metric of the script's own is: sums of its counters are not known",
        "http_req_duration leaves out the time for a connection, and holds the times of failures",
        "a user that waits for an answer sends nothing meanwhile: percentiles leave out how long requests should have been sent before",
    ],
    detect: |input| input.head().any(|line| line.starts_with(START)),
    read,
};

/// Where the columns that are read stand.
#[derive(Default)]
struct Columns {
    count: usize,
    scenario: Option<usize>,
    group: Option<usize>,
    status: Option<usize>,
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let mut points = Points::default();
    let mut columns: Option<Columns> = None;
    for (line, number) in input.text.lines().zip(1..) {
        if line.starts_with(START) {
            if points.any() {
                std::mem::take(&mut points).finish(metrics);
                metrics.next_launch();
            }
            columns = Some(columns_of(line));
            continue;
        }
        let Some(columns) = &columns else { continue };
        let row = fields(line);
        let [metric, time, value, ..] = row.as_slice() else { continue };
        let (Some(at), Ok(value)) = (time_of(time), value.parse::<f64>()) else {
            // Lines of a log are not rows.
            if row.len() == columns.count {
                metrics.skip(number, line, "the time or the value is no number");
            }
            continue;
        };
        if row.len() != columns.count {
            metrics.skip(number, line, "not as many fields as columns: the line is cut off");
            continue;
        }
        if !value.is_finite() {
            metrics.skip(number, line, "the tool printed no finite number");
            continue;
        }
        let of = |at: Option<usize>| at.and_then(|at| row.get(at)).map_or("", |field| field.as_ref());
        let point = Point {
            line: number,
            metric,
            value,
            at,
            scenario: of(columns.scenario),
            group: of(columns.group),
            status: of(columns.status),
        };
        let own = Known { holds: Holds::Trend, contains: Contains::Other };
        points.add(built_in(metric).unwrap_or(own), &point, metrics);
    }
    if !points.any() && metrics.is_empty() {
        metrics.skip(1, START, "the table has no rows");
    }
    points.finish(metrics);
}

fn columns_of(header: &str) -> Columns {
    let names = fields(header);
    let at = |wanted: &str| names.iter().position(|name| name == wanted);
    Columns { count: names.len(), scenario: at("scenario"), group: at("group"), status: at("status") }
}

/// Seconds, or what `K6_CSV_TIME_FORMAT` makes of them: the number of digits tells since 2001.
fn time_of(text: &str) -> Option<(i64, u32)> {
    if text.contains('T') {
        return rfc3339(text);
    }
    let per_second = match text.len() {
        ..12 => return unix_seconds(text),
        12..15 => 1_000,
        15..18 => 1_000_000,
        _ => 1_000_000_000,
    };
    let whole: i64 = text.parse().ok()?;
    let nanos = whole.rem_euclid(per_second) * (1_000_000_000 / per_second);
    Some((whole.div_euclid(per_second), u32::try_from(nanos).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_may_be_finer_than_seconds() {
        assert_eq!(time_of("1715587200"), Some((1_715_587_200, 0)));
        assert_eq!(time_of("1715587200125"), Some((1_715_587_200, 125_000_000)));
        assert_eq!(time_of("1715587200125000"), Some((1_715_587_200, 125_000_000)));
        assert_eq!(time_of("1715587200125000000"), Some((1_715_587_200, 125_000_000)));
        assert_eq!(time_of("2024-05-13T08:00:00Z"), Some((1_715_587_200, 0)));
        assert_eq!(time_of("x"), None);
    }

    #[test]
    fn rows_that_are_cut_off_are_said() {
        let text = "metric_name,timestamp,metric_value,scenario\nvus,1715587200,1.0,default\nvus,1715587201,2\nvus,1715587201,x,\n";
        let read = READER.read(&Input::of_text(text));
        assert_eq!(read.metrics[0].samples, [1.0]);
        let lines: Vec<u64> = read.skipped.iter().map(|skipped| skipped.line).collect();
        assert_eq!(lines, [3, 4]);
    }
}
