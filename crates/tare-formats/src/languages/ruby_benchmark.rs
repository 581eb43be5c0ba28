//! Ruby's own [benchmark](https://github.com/ruby/benchmark): the table of `Benchmark.bm` and `bmbm`.

use super::shared::{Runs, at};
use crate::metrics::{Kind, Metrics};
use crate::reader::{Input, Reader};
use tare_model::outcome::Better;

pub(crate) const READER: Reader = Reader {
    name: "ruby-benchmark",
    gets_wrong: &[
        "every figure is of one run of the block: it says nothing of how much runs differ",
        "a block runs without warm-up and with the garbage of those before it: the order of blocks changes figures",
        "user, system and total count waited-for child processes apart: only real has their time",
    ],
    detect: |input| input.head().any(is_header),
    read,
};

const COLUMNS: [&str; 4] = ["user", "system", "total", "real"];

fn is_header(line: &str) -> bool {
    line.starts_with(' ') && line.split_whitespace().eq(COLUMNS)
}

/// The label and the four times of `label  0.022821   0.000000   0.022821 (  0.080162)`.
fn row(line: &str) -> Option<(&str, [f64; 4])> {
    let (before, real) = line.trim_end().strip_suffix(')')?.rsplit_once('(')?;
    let mut rest = before.trim_end();
    let mut times = [0.0; 4];
    times[3] = real.trim().parse().ok()?;
    for time in times.iter_mut().take(3).rev() {
        let at = rest.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        *time = rest.get(at..)?.parse().ok()?;
        rest = rest.get(..at)?.trim_end();
    }
    Some((rest.trim().trim_end_matches(':'), times))
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let mut rehearses = false;
    let mut runs = Runs::default();
    for (line, number) in input.text.lines().zip(1..) {
        // bmbm runs all blocks once before it measures them.
        rehearses = line.starts_with("Rehearsal ---") || rehearses && !line.starts_with("---");
        if rehearses || is_header(line) {
            continue;
        }
        match row(line) {
            Some((benchmark, times)) => {
                let launch = runs.of(benchmark);
                for (name, seconds) in COLUMNS.into_iter().zip(times) {
                    let kind = Kind { benchmark, name, unit: "s", better: Some(Better::Lower) };
                    metrics.sample(number, kind, at(seconds, launch));
                }
            }
            None if line.contains(" (  ") => {
                metrics.skip(number, line, "the line is cut off, or a time is no number");
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_may_be_of_words_or_missing() {
        assert_eq!(
            row("two words:  0.01   0.02   0.03 (  0.04)"),
            Some(("two words", [0.01, 0.02, 0.03, 0.04]))
        );
        assert_eq!(row("   0.01   0.02   0.03 (  0.04)\n"), Some(("", [0.01, 0.02, 0.03, 0.04])));
        assert_eq!(row("done (0.04)"), None);
    }
}
