//! [bonnie++](https://www.coker.com.au/bonnie++/): the line of CSV that it prints last, and alone with `-q`.

use super::common::{Counts, HIGHER, LOWER, kind};
use crate::metrics::{Metrics, Sample};
use crate::reader::{Input, Reader};
use crate::units::in_base;
use tare_model::outcome::Better;

pub(crate) const READER: Reader = Reader {
    name: "bonnie++",
    gets_wrong: &[
        "a file that fits in memory is read from the page cache: its size must be twice the memory",
        "what took less than half a second is printed as +++++: it was measured, but is not said",
        "its use of the CPU is of its own process: what the kernel does later to write the bytes is left out",
    ],
    detect: |input| input.head().any(is_line),
    read,
};

/// The versions of the line that are read.
const VERSIONS: &[&str] = &["1.96", "1.97", "1.98"];
/// Version, name, sizes, then figures with their use of the CPU, then latencies.
const FIELDS: usize = 48;

/// What is measured, by the field that it stands in before version 1.98; behind it stands its use of the CPU.
const FIGURES: [(usize, &str, f64, &str); 12] = [
    (7, "putc", 1024.0, "B/s"),
    (9, "put_block", 1024.0, "B/s"),
    (11, "rewrite", 1024.0, "B/s"),
    (13, "getc", 1024.0, "B/s"),
    (15, "get_block", 1024.0, "B/s"),
    (17, "seeks", 1.0, "op/s"),
    (24, "seq_create", 1.0, "op/s"),
    (26, "seq_stat", 1.0, "op/s"),
    (28, "seq_del", 1.0, "op/s"),
    (30, "ran_create", 1.0, "op/s"),
    (32, "ran_stat", 1.0, "op/s"),
    (34, "ran_del", 1.0, "op/s"),
];

fn is_line(line: &str) -> bool {
    let mut fields = line.splitn(4, ',');
    let format = fields.next().is_some_and(|format| VERSIONS.contains(&format));
    let version = fields.next().is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()));
    format && version && fields.nth(1).is_some_and(|rest| rest.matches(',').count() >= 30)
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let mut launches = Counts::default();
    for (line, number) in input.text.lines().map(str::trim_end).zip(1..) {
        if !is_line(line) {
            continue;
        }
        let fields: Vec<&str> = line.split(',').collect();
        let field = |at: usize| fields.get(at).copied().unwrap_or_default();
        for (at, name) in
            [(0, "format version"), (1, "version"), (3, "concurrency"), (5, "file size"), (6, "chunk size")]
        {
            metrics.set(name, field(at));
        }
        let size = format!("file size {}, {} at once", field(5), field(3));
        let launch = launches.next(&size);
        // Version 1.98 says behind the sizes how many seeks there are, of how many processes.
        let more = if field(0) == "1.98" { 2 } else { 0 };
        if fields.len() < FIELDS + more {
            metrics.skip(number, &size, "the line has too few fields: it is cut off");
            continue;
        }
        let mut note = |name: &str, unit: &str, better: Option<Better>, value: f64| {
            metrics.sample(
                number,
                kind(&size, name, unit, better),
                Sample { value, launch, ..Sample::default() },
            );
        };
        let mut quick = Vec::new();
        for ((at, name, scale, unit), latency) in FIGURES.into_iter().zip(36 + more..) {
            let at = at + more;
            match field(at) {
                // It was not run.
                "" => {}
                value if value.starts_with('+') => quick.push(name),
                value => note(name, unit, HIGHER, value.parse().map_or(f64::NAN, |value: f64| value * scale)),
            }
            if let Ok(percent) = field(at + 1).parse() {
                note(&format!("{name} CPU"), "%", None, percent);
            }
            if let Some(seconds) = duration(field(latency)) {
                note(&format!("{name} latency max"), "s", LOWER, seconds);
            }
        }
        for name in quick {
            metrics.skip(number, name, "bonnie++ prints +++++: it took too little time to be said");
        }
    }
}

/// `1234us`, `12ms`.
fn duration(text: &str) -> Option<f64> {
    let at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (value, unit) = (text.get(..at)?, text.get(at..)?);
    let (value, base) = in_base(value.parse().ok()?, unit);
    (base == "s").then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_cut_off_is_said() {
        let line = format!("1.98,2.00,host,1,5,4M,,{}", "1,".repeat(32));
        assert!(READER.detects(&Input::of_text(&line)));
        let read = READER.read(&Input::of_text(&line));
        assert_eq!((read.metrics.len(), read.skipped_count), (0, 1));
        assert!(!READER.detects(&Input::of_text("1.98,2.00,host,1,5,4M,,1")));
    }

    #[test]
    fn latencies_have_units() {
        assert_eq!(
            ["12ms", "1500us", "2s", "x", ""].map(duration),
            [Some(0.012), Some(0.0015), Some(2.0), None, None]
        );
    }
}
