//! [Locust](https://locust.io)'s tables as CSV (`--csv`): `*_stats.csv` and `*_stats_history.csv`.

use crate::metrics::{Kind, Metrics, Sample};
use crate::numbers::share;
use crate::reader::{Input, Reader};
use crate::rows::fields;
use std::borrow::Cow;
use tare_model::outcome::Better;

/// Times in milliseconds, as the oldest versions call them and the others.
const TIMES: [(&str, &str); 8] = [
    ("Median Response Time", "response time p50"),
    ("Average Response Time", "response time mean"),
    ("Min Response Time", "response time min"),
    ("Max Response Time", "response time max"),
    ("Median response time", "response time p50"),
    ("Average response time", "response time mean"),
    ("Min response time", "response time min"),
    ("Max response time", "response time max"),
];

/// The table of the whole test.
pub(crate) const STATS: Reader = Reader {
    name: "locust-stats",
    gets_wrong: &[
        "the file is written now and then: requests of the last second may be missing in it, that the printed table has",
        "percentiles are rounded to two digits, and at least to milliseconds",
        "Requests/s counts requests that failed, with all their response times",
        "a user that waits for an answer sends nothing meanwhile: percentiles leave out how long requests should have been sent before",
    ],
    detect: |input| input.head().any(is_stats),
    read: |input, metrics| read(input, is_stats, metrics),
};

/// The time series.
pub(crate) const HISTORY: Reader = Reader {
    name: "locust-history",
    gets_wrong: &[
        "its percentiles are of the last ten seconds at each time, so that neighbours are not independent and their mean is none of the test",
        "Requests/s is a mean of the last ten seconds, and 0 in the first ones",
        "Requests/s counts requests that failed, with all their response times",
    ],
    detect: |input| input.head().any(is_history),
    read: |input, metrics| read(input, is_history, metrics),
};

fn is_stats(line: &str) -> bool {
    let line = line.replace('"', "");
    (line.starts_with("Type,Name,") || line.starts_with("Method,Name,"))
        && line.to_lowercase().contains(",median response time,average response time,")
}

fn is_history(line: &str) -> bool {
    let line = line.replace('"', "");
    line.starts_with("Timestamp,User Count,Type,Name,")
}

/// One column, as it is kept.
struct Column {
    at: usize,
    name: String,
    unit: &'static str,
    per_unit: f64,
    better: Option<Better>,
}

fn read(input: &Input<'_>, is_head: fn(&str) -> bool, metrics: &mut Metrics) {
    let mut table: Option<Table> = None;
    for (line, number) in input.text.lines().zip(1..) {
        if is_head(line) {
            if let Some(before) = table.replace(Table::of(line)) {
                warn(&before, metrics);
                metrics.next_launch();
            }
        } else if let Some(table) = &mut table {
            table.row(number, line, metrics);
        }
    }
    if let Some(table) = table {
        warn(&table, metrics);
    }
}

/// What a table shows.
fn warn(table: &Table, metrics: &mut Metrics) {
    if table.rows == 0 {
        metrics.skip(1, "the table", "it has no rows");
    }
    if table.zero_rates > 0 {
        let text = format!(
            "in {} of {} rows Requests/s is 0 although requests were counted: it lags behind",
            table.zero_rates, table.rows
        );
        metrics.warn(
            "tool-window-differs",
            &text,
            "take rates from Total Request Count over time, or from a longer test",
        );
    }
    if table.last_s > 0.0 {
        let text = format!(
            "percentiles of {} rows are each of the last ten seconds: those of neighbours are of the same requests",
            table.rows
        );
        metrics.warn(
            "tool-averages-percentiles",
            &text,
            "do not take their mean: read the percentiles of *_stats.csv",
        );
    }
    if let Some((requests, failures)) = table.worst {
        let text = format!(
            "{failures:.0} of {requests:.0} requests failed, and their response times and number are among the others"
        );
        metrics.warn(
            "tool-counts-failures",
            &text,
            "look at Failure Count, and at rows of requests that all succeed",
        );
    }
}

struct Table {
    names: Vec<String>,
    columns: Vec<Column>,
    rows: u64,
    begun: Option<f64>,
    /// Rows whose rate is 0 although there were requests.
    zero_rates: u64,
    last_s: f64,
    /// Requests and failures of the row with the most failures.
    worst: Option<(f64, f64)>,
}

impl Table {
    fn of(head: &str) -> Table {
        let names: Vec<String> = fields(head).into_iter().map(Cow::into_owned).collect();
        let has_time = names.first().is_some_and(|name| name == "Timestamp");
        let columns = names.iter().enumerate().filter_map(|(at, name)| column(at, name, has_time)).collect();
        Table { names, columns, rows: 0, begun: None, zero_rates: 0, last_s: 0.0, worst: None }
    }

    fn at(&self, names: &[&str]) -> Option<usize> {
        self.names.iter().position(|known| names.contains(&known.as_str()))
    }

    fn row(&mut self, number: u64, line: &str, metrics: &mut Metrics) {
        let row = fields(line);
        if line.trim().is_empty() {
            return;
        }
        if row.len() != self.names.len() {
            return metrics.skip(
                number,
                line,
                "not as many fields as columns: the line is cut off, or no row",
            );
        }
        self.rows += 1;
        let field = |at: Option<usize>| at.and_then(|at| row.get(at)).map_or("", |field| field.as_ref());
        let value = |at: Option<usize>| field(at).parse::<f64>().ok();
        let time = value(self.at(&["Timestamp"]));
        let at_s = time.map(|time| time - *self.begun.get_or_insert(time));
        self.last_s = self.last_s.max(at_s.unwrap_or(0.0));
        let method = field(self.at(&["Type", "Method"]));
        let name = [method, field(self.at(&["Name"]))].join(" ");
        let benchmark = name.trim();
        // No response time in the last seconds: all percentiles are 0 then.
        let is_idle = time.is_some() && value(self.at(&["100%"])) == Some(0.0);
        let requests = value(self.at(&["Request Count", "Total Request Count", "# requests"]));
        let failures = value(self.at(&["Failure Count", "Total Failure Count", "# failures"]));
        if let Some((requests, failures)) = requests.zip(failures).filter(|(_, failures)| *failures > 0.0)
            && self.worst.is_none_or(|(_, most)| failures >= most)
        {
            self.worst = Some((requests, failures));
        }
        let rate = value(self.at(&["Requests/s"]));
        self.zero_rates +=
            u64::from(time.is_some() && rate == Some(0.0) && requests.is_some_and(|count| count > 0.0));
        for column in &self.columns {
            let text = field(Some(column.at));
            // Nothing was answered yet; or too few for it.
            if text == "N/A" || text.is_empty() || is_idle && column.unit == "s" {
                continue;
            }
            let kind = Kind { benchmark, name: &column.name, unit: column.unit, better: column.better };
            match text.parse::<f64>() {
                Ok(value) => {
                    let value = value / column.per_unit;
                    metrics.sample(number, kind, Sample { value, at_s, ..Sample::default() });
                }
                Err(_) => {
                    metrics.skip(number, &format!("{benchmark} {}", column.name), "the value is no number")
                }
            }
        }
    }
}

/// How a column is kept. Of a time series its running totals are left out.
fn column(at: usize, name: &str, has_time: bool) -> Option<Column> {
    let (more, less) = (Some(Better::Higher), Some(Better::Lower));
    let (name, unit, per_unit, better) = match name {
        "Request Count" | "# requests" => ("requests".to_owned(), "req", 1.0, None),
        "Failure Count" | "# failures" => ("failures".to_owned(), "req", 1.0, less),
        "Requests/s" => ("requests per second".to_owned(), "req/s", 1.0, more),
        "Failures/s" => ("failures per second".to_owned(), "req/s", 1.0, less),
        "Average Content Size" | "Average Content-Length" => ("content size mean".to_owned(), "B", 1.0, None),
        "User Count" => ("users".to_owned(), "", 1.0, None),
        _ if name.ends_with('%') => {
            let share = share(name.trim_end_matches('%'))?;
            // The greatest one has a column of its own in the table, with more digits; and so has the median.
            match (share, has_time) {
                (0.5 | 1.0, false) => return None,
                (1.0, true) => ("response time max".to_owned(), "s", 1e3, less),
                _ => (format!("response time p{}", name.trim_end_matches('%')), "s", 1e3, less),
            }
        }
        _ => {
            let (_, known) = TIMES.iter().find(|(column, _)| *column == name)?;
            ((*known).to_owned(), "s", 1e3, less)
        }
    };
    Some(Column { at, name, unit, per_unit, better })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_and_rows_that_are_cut_off_are_said() {
        let text = "Type,Name,Request Count,Failure Count,Median Response Time,Average Response Time,99%,100%\n\
            GET,\"/a,b\",10,1,4,5.5,40,68\n,Aggregated,10\n";
        let read = STATS.read(&Input::of_text(text));
        let found: Vec<_> =
            read.metrics.iter().map(|m| (m.benchmark.as_str(), m.name.as_str(), m.samples[0])).collect();
        assert_eq!(
            found,
            [
                ("GET /a,b", "requests", 10.0),
                ("GET /a,b", "failures", 1.0),
                ("GET /a,b", "response time p50", 0.004),
                ("GET /a,b", "response time mean", 0.0055),
                ("GET /a,b", "response time p99", 0.04),
            ]
        );
        assert_eq!((read.skipped[0].line, read.warnings.len()), (3, 1));
    }
}
