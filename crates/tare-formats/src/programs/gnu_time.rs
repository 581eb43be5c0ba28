//! How long a command took: GNU `time` (`-v`, its default and `-p`), and what the shells' own `time` prints.

use super::common::{Counts, LOWER, kind};
use crate::metrics::{Metrics, Sample};
use crate::reader::{Input, Reader};
use tare_model::outcome::Better;

pub(crate) const READER: Reader = Reader {
    name: "gnu-time",
    gets_wrong: &[
        "times have steps of 10 ms: of short commands little is known",
        "the largest resident size is that of the largest process alone, not the sum over its children",
        "version 1.7 gives four times the resident size, but where a distribution has repaired it",
        "averages of sizes are always 0 on Linux: the kernel does not count them",
    ],
    detect: is_there,
    read,
};

fn is_there(input: &Input<'_>) -> bool {
    let lines: Vec<&str> = input.head().collect();
    lines.iter().any(|line| is_begin(line) || default(line).is_some() || zsh(line).is_some())
        || lines.windows(3).any(|three| posix(three).is_some())
}

fn is_begin(line: &str) -> bool {
    line.trim_start().starts_with("Command being timed: \"")
}

/// Times that end with hundredths are unknown by half of one.
const STEP_S: f64 = 0.01;

struct Figure {
    name: &'static str,
    unit: &'static str,
    better: Option<Better>,
    value: f64,
}

fn figure(name: &'static str, unit: &'static str, better: Option<Better>, value: f64) -> Figure {
    Figure { name, unit, better, value }
}

/// The command's run that is being read.
#[derive(Default)]
struct State {
    launches: Counts,
    /// `Command exited with non-zero status 3`, for the run that follows.
    failed: Option<String>,
    command: String,
    line: u64,
    figures: Vec<Figure>,
    shortest: Option<f64>,
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let lines: Vec<&str> = input.text.lines().map(str::trim_end).collect();
    let mut state = State::default();
    let mut is_block = false;
    for (at, line) in lines.iter().enumerate() {
        let number = at as u64 + 1;
        let text = line.trim_start();
        if text.starts_with("Command exited with ") || text.starts_with("Command terminated by signal ") {
            state.finish(metrics);
            state.failed = Some(text.to_owned());
        } else if let Some(command) = text.strip_prefix("Command being timed: \"") {
            state.finish_block(is_block, metrics);
            (state.command, state.line, is_block) = (command.trim_end_matches('"').to_owned(), number, true);
        } else if is_block {
            is_block = state.verbose(text, metrics);
        } else if let Some(figures) = default(text) {
            state.finish(metrics);
            (state.line, state.figures) = (number, figures);
        } else if let (false, Some(more)) = (state.figures.is_empty(), second(text)) {
            state.figures.extend(more);
            state.finish(metrics);
        } else if let Some(figures) = lines.get(at..at + 3).and_then(posix).or_else(|| zsh(text)) {
            state.finish(metrics);
            (state.line, state.figures) = (number, figures);
            state.finish(metrics);
        }
    }
    state.finish_block(is_block, metrics);
    if let Some(seconds) = state.shortest {
        metrics.warn(
            "tool-rounds-times",
            &format!(
                "{seconds} s was printed with two decimals: it is known to half of 10 ms, {}",
                match seconds > 0.0 {
                    true => format!("{:.0} % of it", 50.0 * STEP_S / seconds),
                    false => "and may be anything below that".to_owned(),
                }
            ),
            "let the command do more work, or measure with tare run, which has nanoseconds",
        );
    }
}

impl State {
    /// A line of `-v`; whether more of the block follows.
    fn verbose(&mut self, text: &str, metrics: &mut Metrics) -> bool {
        let Some((name, value)) = text.rsplit_once(": ") else {
            self.finish_block(true, metrics);
            return false;
        };
        let number = || value.trim_end_matches('%').parse::<f64>().unwrap_or(f64::NAN);
        let counted = |name| Some(figure(name, "1", LOWER, number()));
        let found = match name {
            "User time (seconds)" => Some(figure("user", "s", LOWER, number())),
            "System time (seconds)" => Some(figure("system", "s", LOWER, number())),
            "Percent of CPU this job got" => match value {
                // Nothing to divide by.
                "?%" => None,
                _ => Some(figure("CPU", "%", None, number())),
            },
            "Elapsed (wall clock) time (h:mm:ss or m:ss)" => {
                let seconds = clock(value).unwrap_or(f64::NAN);
                Some(figure("elapsed", "s", LOWER, seconds))
            }
            "Maximum resident set size (kbytes)" => {
                Some(figure("max resident", "B", LOWER, number() * 1024.0))
            }
            "Major (requiring I/O) page faults" => counted("major page faults"),
            "Minor (reclaiming a frame) page faults" => counted("minor page faults"),
            "Voluntary context switches" => counted("voluntary context switches"),
            "Involuntary context switches" => counted("involuntary context switches"),
            "File system inputs" => counted("file system inputs"),
            "File system outputs" => counted("file system outputs"),
            "Exit status" => {
                if value != "0" && self.failed.is_none() {
                    self.failed = Some(format!("Command exited with status {value}"));
                }
                self.finish(metrics);
                return false;
            }
            _ => None,
        };
        self.figures.extend(found);
        true
    }

    /// A block that has no exit status ends early.
    fn finish_block(&mut self, is_block: bool, metrics: &mut Metrics) {
        if is_block {
            metrics.skip(
                self.line,
                &self.command,
                "its figures end early: the file is cut off, or others wrote into it",
            );
        }
        self.finish(metrics);
    }

    fn finish(&mut self, metrics: &mut Metrics) {
        let figures = std::mem::take(&mut self.figures);
        let command = std::mem::take(&mut self.command);
        if figures.is_empty() {
            return;
        }
        if let Some(failed) = self.failed.take() {
            let what = if command.is_empty() { "command" } else { command.as_str() };
            return metrics.skip(self.line, what, &format!("the command failed: {failed}"));
        }
        let launch = self.launches.next(&command);
        for one in figures {
            let is_short = one.name == "elapsed" && one.value < 50.0 * STEP_S;
            if is_short && ((one.value / STEP_S).round() * STEP_S - one.value).abs() < 1e-9 {
                self.shortest = Some(self.shortest.map_or(one.value, |least| least.min(one.value)));
            }
            let sample = Sample { value: one.value, launch, ..Sample::default() };
            metrics.sample(self.line, kind(&command, one.name, one.unit, one.better), sample);
        }
    }
}

/// `1:02:03`, `0:00.13`, `1m2.345s`, `2.5`; a comma for the point is the only comma there can be.
fn clock(text: &str) -> Option<f64> {
    let text = text.replace(',', ".");
    let parts = match text.strip_suffix('s').and_then(|text| text.split_once('m')) {
        Some((minutes, seconds)) => vec![minutes, seconds],
        None => text.split(':').collect(),
    };
    let mut seconds = 0.0;
    for part in parts.iter().take(4) {
        let value = part.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0)?;
        seconds = seconds * 60.0 + value;
    }
    (!parts.is_empty()).then_some(seconds)
}

/// `0.00user 0.00system 0:00.10elapsed 0%CPU (0avgtext+0avgdata 1656maxresident)k`.
fn default(line: &str) -> Option<Vec<Figure>> {
    let words: Vec<&str> = line.split_whitespace().take(8).collect();
    let [user, system, elapsed, cpu, rest @ ..] = words.as_slice() else { return None };
    let mut figures = vec![
        figure("user", "s", LOWER, clock(user.strip_suffix("user")?)?),
        figure("system", "s", LOWER, clock(system.strip_suffix("system")?)?),
        figure("elapsed", "s", LOWER, clock(elapsed.strip_suffix("elapsed")?)?),
    ];
    let percent = cpu.strip_suffix("%CPU")?.parse::<f64>();
    figures.extend(percent.ok().map(|percent| figure("CPU", "%", None, percent)));
    let kib = rest.iter().find_map(|word| word.strip_suffix("maxresident)k")?.parse::<f64>().ok());
    figures.extend(kib.map(|kib| figure("max resident", "B", LOWER, kib * 1024.0)));
    Some(figures)
}

/// `0inputs+0outputs (0major+98minor)pagefaults 0swaps`.
fn second(line: &str) -> Option<Vec<Figure>> {
    let (inputs, rest) = line.split_once("inputs+")?;
    let (outputs, rest) = rest.split_once("outputs (")?;
    let (major, rest) = rest.split_once("major+")?;
    let (minor, _) = rest.split_once("minor)pagefaults")?;
    let counted = |name, text: &str| Some(figure(name, "1", LOWER, text.parse().ok()?));
    [
        counted("file system inputs", inputs),
        counted("file system outputs", outputs),
        counted("major page faults", major),
        counted("minor page faults", minor),
    ]
    .into_iter()
    .collect()
}

/// `real 0.11`, `user 0.00`, `sys 0.00`, or bash's `real 0m0.110s` with a tab.
fn posix<'a>(lines: &[&'a str]) -> Option<Vec<Figure>> {
    let [real, user, sys] = lines else { return None };
    let seconds = |line: &'a str, name: &str| {
        let rest = line.trim().strip_prefix(name)?;
        let is_apart = rest.starts_with(char::is_whitespace);
        clock(rest.trim()).filter(|_| is_apart)
    };
    Some(vec![
        figure("elapsed", "s", LOWER, seconds(real, "real")?),
        figure("user", "s", LOWER, seconds(user, "user")?),
        figure("system", "s", LOWER, seconds(sys, "sys")?),
    ])
}

/// zsh: `sleep 1  0.00s user 0.00s system 0% cpu 1.003 total`.
fn zsh(line: &str) -> Option<Vec<Figure>> {
    let words: Vec<&str> = line.rsplitn(9, char::is_whitespace).collect();
    let ["total", total, "cpu", percent, "system", system, "user", user, ..] = words.as_slice() else {
        return None;
    };
    let seconds = |text: &str| clock(text.strip_suffix('s')?);
    Some(vec![
        figure("elapsed", "s", LOWER, clock(total)?),
        figure("user", "s", LOWER, seconds(user)?),
        figure("system", "s", LOWER, seconds(system)?),
        figure("CPU", "%", None, percent.strip_suffix('%')?.parse().ok()?),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> tare_model::tool::ToolMetrics {
        assert!(READER.detects(&Input::of_text(text)), "{text}");
        READER.read(&Input::of_text(text))
    }

    fn elapsed(read: &tare_model::tool::ToolMetrics) -> Vec<f64> {
        read.metrics
            .iter()
            .find(|metric| metric.name == "elapsed")
            .map(|m| m.samples.clone())
            .unwrap_or_default()
    }

    #[test]
    fn clocks_of_all_shapes() {
        let read = ["1:02:03", "1:01.50", "2m1,5s", "2.5"].map(clock);
        assert_eq!(read, [Some(3723.0), Some(61.5), Some(121.5), Some(2.5)]);
        assert_eq!([clock(""), clock("x:1"), clock("-1")], [None, None, None]);
    }

    #[test]
    fn shells_have_shapes_of_their_own() {
        let read = of(
            "real\t0m1,250s\nuser\t0m0,001s\nsys\t0m0,000s\n\nreal\t0m2.000s\nuser\t0m0.001s\nsys\t0m0.000s\n",
        );
        assert_eq!((elapsed(&read), read.metrics[0].launches.clone()), (vec![1.25, 2.0], vec![0, 1]));
        assert_eq!(elapsed(&of("sleep 1  0.00s user 0.00s system 0% cpu 1.003 total\n")), [1.003]);
        assert!(!READER.detects(&Input::of_text("real 5\nuser bob\nsys x\n")));
    }

    #[test]
    fn a_command_that_failed_and_a_block_that_is_cut_off_are_said() {
        let block = "\tCommand being timed: \"a\"\n\tUser time (seconds): 1.00\n";
        let read = of(&format!("{block}\tExit status: 0\n{block}\tExit status: 3\n{block}"));
        let lines: Vec<u64> = read.skipped.iter().map(|skipped| skipped.line).collect();
        assert_eq!((lines, read.metrics[0].samples.clone()), (vec![4, 7], vec![1.0, 1.0]));
    }
}
