//! `mysqlslap` (`mariadb-slap`), which comes with MySQL and MariaDB: its text, and the rows of `--csv`.

use super::shared::{LESS, MORE, kind};
use crate::format::Format;
use crate::generator::{Generator, Senders, SetUp};
use crate::metrics::{Metrics, Sample};
use crate::numbers::positive;
use crate::reader::{Input, Reader};
use crate::result::{RESULTS_MAX, ToolOutput, ToolResult, short};
use crate::shapes::Shapes;
use std::time::Duration;
use tare_model::{Missing, Reading};

const NAME: &str = "mysqlslap";

const GETS_WRONG: &[&str] = &[
    "its times are whole milliseconds of a whole iteration: it has no latency of a query",
    "its time includes connecting, for each client connects in each iteration",
    "it counts queries that failed as run, and one iteration that failed is timed as others are",
    "queries per client are rounded down, and how many iterations there were is not printed",
];

/// The text.
pub(crate) const FORMAT: Format =
    Format { name: NAME, gets_wrong: GETS_WRONG, detect: is_summary, read: summary, shapes: SHAPES };

const SHAPES: Shapes = Shapes {
    lines: &[
        "Average number of seconds to run all queries: # seconds",
        "Number of clients running queries: #",
        "Average number of queries per client: #",
    ],
    units: &[],
    documents: &[],
};

/// Each client is a thread with a connection, opened anew for each iteration; the first thread only waits.
pub(crate) const GENERATOR: Generator = Generator {
    program: NAME,
    senders: Senders::Workers,
    set_up: SetUp { steady_for: Duration::from_millis(100), at_most: Duration::from_millis(400) },
    rate_options: &[],
    chatter: &[],
    format: Some(&FORMAT),
};

/// The rows.
pub(crate) const READER: Reader = Reader { name: NAME, gets_wrong: GETS_WRONG, detect, read };

const AVERAGE: &str = "Average number of seconds to run all queries: ";

fn is_summary(printed: &str) -> bool {
    // Long texts of others are not looked at line by line.
    (printed.contains(AVERAGE) || printed.contains("slap: "))
        && printed.lines().any(|line| line.trim_start().starts_with(AVERAGE) || is_complaint(line))
}

fn is_complaint(line: &str) -> bool {
    line.starts_with("mysqlslap: ") || line.starts_with("mariadb-slap: ")
}

/// Average, least and greatest seconds, clients, and queries of each.
#[derive(Default)]
struct Block {
    mean_s: Option<f64>,
    clients: Option<f64>,
    each: Option<f64>,
    settings: Vec<(String, String)>,
}

fn summary(printed: &str) -> ToolOutput {
    let (mut output, mut blocks) = (ToolOutput::default(), Vec::<Block>::new());
    for line in printed.lines().map(str::trim) {
        if is_complaint(line) {
            output.complaint.get_or_insert_with(|| short(line));
        } else if line == "Benchmark" && blocks.len() < RESULTS_MAX {
            blocks.push(Block::default());
        } else if let (Some(block), Some((name, value))) = (blocks.last_mut(), line.split_once(": ")) {
            let number = value.split(' ').next().and_then(positive);
            match name {
                "Average number of seconds to run all queries" => block.mean_s = number,
                "Number of clients running queries" => block.clients = number,
                "Average number of queries per client" => block.each = number,
                "Minimum number of seconds to run all queries"
                | "Maximum number of seconds to run all queries"
                | "Running for engine" => {
                    block.settings.push((name.to_owned(), value.to_owned()));
                }
                _ => {}
            }
        }
    }
    output.results = blocks.into_iter().filter_map(Block::into_result).collect();
    output
}

impl Block {
    fn into_result(self) -> Option<ToolResult> {
        let (mean_s, clients, each) = (self.mean_s?, self.clients?, self.each?);
        let mut result = ToolResult::unsaid(NAME);
        result.name = Some(format!("{clients} clients"));
        result.operations =
            Reading::Missing(Missing::new("mysqlslap does not print how many iterations there were"));
        result.errors = Reading::Missing(Missing::new("mysqlslap does not count queries that failed"));
        result.bytes_in = Reading::Missing(Missing::new("mysqlslap does not count bytes"));
        result.latency = Reading::Missing(Missing::new("mysqlslap has no latency of a query"));
        result.connections = Reading::Measured(clients as u32);
        if mean_s > 0.0 && each > 0.0 {
            result.rate_hz = Reading::Measured(clients * each / mean_s);
        }
        result.set("seconds of an iteration", &mean_s.to_string());
        self.settings.iter().for_each(|(name, value)| result.set(name, value));
        Some(result)
    }
}

/// `innodb,mixed,0.017,0.014,0.020,2,10`: the engine may be empty.
fn row(line: &str) -> Option<[f64; 5]> {
    let parts: Vec<&str> = line.trim_end().split(',').take(9).collect();
    let [_, load, numbers @ ..] = parts.as_slice() else { return None };
    let known = matches!(*load, "mixed" | "write" | "key" | "read" | "update" | "");
    // Seconds have three digits behind the point, and counts none.
    let printed = |text: &&str| text.split_once('.').is_some_and(|(_, digits)| digits.len() == 3);
    let [mean, least, most, clients, each] = numbers else { return None };
    let fits = known
        && [mean, least, most].iter().all(|text| printed(text))
        && !clients.contains('.')
        && !each.contains('.');
    let numbers = [positive(mean)?, positive(least)?, positive(most)?, positive(clients)?, positive(each)?];
    fits.then_some(numbers)
}

fn detect(input: &Input<'_>) -> bool {
    let mut lines = input.head().filter(|line| !line.is_empty()).peekable();
    lines.peek().is_some() && lines.all(|line| row(line).is_some())
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let mut zeros = 0;
    let mut launches = std::collections::HashMap::<String, u32>::new();
    for (line, number) in input.text.lines().zip(1..).filter(|(line, _)| !line.is_empty()) {
        let Some([mean, least, most, clients, each]) = row(line) else {
            metrics.skip(number, line, "it is no row of mysqlslap, or was cut off");
            continue;
        };
        let mut words = line.split(',');
        let (engine, load) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let benchmark = [engine, load, &format!("{clients} clients")]
            .iter()
            .filter(|part| !part.is_empty())
            .copied()
            .collect::<Vec<_>>()
            .join(" ");
        // The same again is another run of the program.
        let count = launches.entry(benchmark.clone()).or_default();
        let launch = *count;
        *count += 1;
        for (name, value) in [("average time", mean), ("minimum time", least), ("maximum time", most)] {
            metrics.sample(
                number,
                kind(&benchmark, name, "s", LESS),
                Sample { value, launch, ..Sample::default() },
            );
        }
        if mean > 0.0 {
            let value = clients * each / mean;
            metrics.sample(
                number,
                kind(&benchmark, "queries per average time", "op/s", MORE),
                Sample { value, launch, ..Sample::default() },
            );
        } else {
            zeros += 1;
        }
        metrics.set_of(kind(&benchmark, "average time", "s", LESS), "queries per client", &each.to_string());
    }
    if zeros > 0 {
        let text = format!("{zeros} rows took less than a millisecond, which is printed as 0");
        metrics.warn("tool-rounds-to-ms", &text, "give it more queries (--number-of-queries)");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_three_digits_and_no_head() {
        assert_eq!(row(",mixed,0.017,0.014,0.020,2,10"), Some([0.017, 0.014, 0.020, 2.0, 10.0]));
        for other in [
            "a,b,1,2,3,4,5",
            "innodb,mixed,0.017,0.014,0.020,2",
            "1,2",
            "innodb,mixed,0.017,0.014,0.020,2,10,1",
            "innodb,mixed,0.017,0.014,0.020,2,1.5",
        ] {
            assert_eq!(row(other), None, "{other}");
        }
    }

    #[test]
    fn a_time_of_nothing_has_no_rate() {
        let read =
            READER.read(&Input::of_text(",mixed,0.000,0.000,0.000,2,10\n,mixed,0.004,0.000,0.008,2,10\nmix"));
        assert_eq!(read.metrics[3].samples, [5000.0]);
        assert_eq!(
            (read.metrics[0].launches.as_slice(), read.skipped[0].line, read.warnings.len()),
            (&[0, 1][..], 3, 1)
        );
    }
}
