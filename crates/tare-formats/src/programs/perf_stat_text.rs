//! What `perf stat` prints for people: figures in groups of three, as the language of the machine has them.

use super::perf_stat_count::Count;
use std::borrow::Cow;

/// Where in the text the reader is.
#[derive(Debug, Default)]
pub(super) struct Text<'a> {
    /// What is counted, between the head and the next.
    command: Option<&'a str>,
    /// Lines begin with the end of their interval.
    is_interval: bool,
}

/// `Performance counter stats for 'true' (3 runs):`.
fn head(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("Performance counter stats for ")?;
    let rest = rest.strip_suffix(':').unwrap_or(rest);
    let rest = rest.split(" (").next().filter(|_| rest.ends_with(" runs)")).unwrap_or(rest);
    Some(rest.trim_matches('\''))
}

/// `#           time             counts unit events`.
fn is_interval_head(line: &str) -> bool {
    line.starts_with('#') && line.contains(" time ") && line.contains("counts unit events")
}

/// Whether the line is one that only this text has.
pub(super) fn is_head(line: &str) -> bool {
    head(line).is_some() || is_interval_head(line)
}

impl<'a> Text<'a> {
    /// The count in the line, where it has one.
    pub fn line(&mut self, line: &'a str) -> Option<Count<'a>> {
        if is_interval_head(line) {
            (self.command, self.is_interval) = (Some(""), true);
            return None;
        }
        if let Some(command) = head(line) {
            (self.command, self.is_interval) = (Some(command), false);
            return None;
        }
        let command = self.command?;
        let mut count = self.count(line)?;
        count.command = Some(command).filter(|command| !command.is_empty());
        Some(count)
    }

    fn count(&self, line: &'a str) -> Option<Count<'a>> {
        let (left, right) = line.split_once('#').unwrap_or((line, ""));
        let mut count = Count::default();
        for part in [left, right] {
            for inner in part.split(['(', '[']).skip(1) {
                let closed = ["%)", "% )", "%]"].into_iter().find_map(|end| inner.split_once(end));
                let Some((inner, _)) = closed else { continue };
                let percent = decimal(inner.trim_start_matches(" +-").trim());
                if inner.contains("+-") {
                    count.variance = percent;
                } else {
                    count.running = percent;
                }
            }
        }
        // Groups of three may be parted by a space that does not break.
        let words: Vec<&str> =
            figures_of(left).split([' ', '\t']).filter(|word| !word.is_empty()).take(12).collect();
        let mut words = words.as_slice();
        if let (true, [at_s, rest @ ..]) = (self.is_interval, words) {
            count.at_s = Some(decimal(at_s)?);
            words = rest;
        }
        match words {
            [value, "seconds", "time", "elapsed"] => seconds(&mut count, value, "elapsed")?,
            [value, "+-", _, "seconds", "time", "elapsed"] => seconds(&mut count, value, "elapsed")?,
            [value, "seconds", name @ ("user" | "sys")] => seconds(&mut count, value, name)?,
            ["<not", what @ ("supported>" | "counted>"), .., event] => {
                count.value =
                    Cow::Borrowed(if *what == "counted>" { "<not counted>" } else { "<not supported>" });
                count.event = Cow::Borrowed(*event);
            }
            [place, "<not", what @ ("supported>" | "counted>"), .., event] => {
                count.place = Some(Cow::Borrowed(*place));
                count.value =
                    Cow::Borrowed(if *what == "counted>" { "<not counted>" } else { "<not supported>" });
                count.event = Cow::Borrowed(*event);
            }
            words => {
                // Before version 4.18 the unit stands behind the event: `task-clock (msec)`.
                let is_ms = left.split('(').skip(1).any(|behind| behind.starts_with("msec)"));
                figures(&mut count, words, is_ms)?;
            }
        }
        count.derived = derived(right);
        Some(count)
    }
}

/// What stands before the first bracket with a share or a unit.
fn figures_of(text: &str) -> &str {
    let text = text.split('(').next().unwrap_or_default();
    match text.rsplit_once('[') {
        Some((before, share)) if share.trim_end().ends_with("%]") => before,
        _ => text,
    }
}

fn seconds<'a>(count: &mut Count<'a>, value: &str, name: &'a str) -> Option<()> {
    count.value = Cow::Owned(decimal(value)?.to_string());
    (count.unit, count.event) = (Cow::Borrowed("s"), Cow::Borrowed(name));
    Some(())
}

/// `0.80 msec task-clock`, `1,234 cycles`, behind `CPU0` or `S0 2` where counts are of places.
fn figures<'a>(count: &mut Count<'a>, words: &[&'a str], is_ms: bool) -> Option<()> {
    let (place, rest) = match words {
        [first, rest @ ..] if first.starts_with(|c: char| c.is_ascii_alphabetic()) && rest.len() >= 2 => {
            (Some(*first), rest)
        }
        rest => (None, rest),
    };
    // How many CPUs the place has, before value and event.
    let rest = match rest {
        [cpus, value, tail @ ..]
            if place.is_some() && !tail.is_empty() && cpus.parse::<u32>().is_ok() && is_number(value) =>
        {
            rest.get(1..)?
        }
        rest => rest,
    };
    match *rest {
        [value, event] if is_event(event) && (is_ms || is_clock(event)) => {
            count.value = Cow::Owned(decimal(value)?.to_string());
            (count.unit, count.event) = (Cow::Borrowed("msec"), Cow::Borrowed(event));
        }
        [value, event] if is_event(event) && is_number(value) => {
            count.value = whole(value).map_or(Cow::Borrowed(UNCLEAR), Cow::Owned);
            count.event = Cow::Borrowed(event);
        }
        [value, unit, event] if is_event(event) && !is_number(unit) => {
            count.value = Cow::Owned(decimal(value)?.to_string());
            (count.unit, count.event) = (Cow::Borrowed(unit), Cow::Borrowed(event));
        }
        _ => return None,
    }
    count.place = place.map(Cow::Borrowed);
    Some(())
}

/// The value of a count that has decimals, or groups that are not of three.
pub(super) const UNCLEAR: &str = "<unclear>";

/// The digits of a count, which is a whole number: what parts it are groups of three.
fn whole(value: &str) -> Option<String> {
    let mut groups = value.split(|c: char| !c.is_ascii_digit());
    let first = groups.next()?;
    let mut digits = first.to_owned();
    for group in groups {
        if group.len() != 3 || first.len() > 3 {
            return None;
        }
        digits += group;
    }
    Some(digits)
}

/// Whether the event is a time in ms, whichever unit is printed.
fn is_clock(event: &str) -> bool {
    matches!(event.split(':').next(), Some("task-clock" | "cpu-clock"))
}

fn is_event(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic())
}

fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
        && word.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | '\'' | '\u{a0}' | '\u{202f}'))
}

/// `0.238 CPUs utilized`, `65.154 K/sec`; nothing where it is a percentage alone.
fn derived(right: &str) -> Option<(f64, Cow<'_, str>)> {
    let text = figures_of(right).trim();
    let (value, what) = text.split_once(|c: char| c.is_whitespace() || c == '%')?;
    let what = what.trim();
    (!what.is_empty()).then_some((decimal(value)?, Cow::Borrowed(what)))
}

/// A number with decimals: the last point or comma is that of the decimals, all others part groups.
fn decimal(text: &str) -> Option<f64> {
    if !is_number(text) {
        return None;
    }
    let (whole, decimals) = match text.rfind(['.', ',']) {
        Some(at) => (text.get(..at)?, text.get(at + 1..)?),
        None => (text, "0"),
    };
    let whole: String = whole.chars().filter(char::is_ascii_digit).collect();
    format!("{whole}.{decimals}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(text: &str) -> Vec<(String, String, String)> {
        let mut reader = Text::default();
        let found = text.lines().filter_map(|line| reader.line(line));
        found
            .map(|count| (count.event.into_owned(), count.value.into_owned(), count.unit.into_owned()))
            .collect()
    }

    fn owned(expected: &[(&str, &str, &str)]) -> Vec<(String, String, String)> {
        expected.iter().map(|(a, b, c)| ((*a).to_owned(), (*b).to_owned(), (*c).to_owned())).collect()
    }

    #[test]
    fn groups_of_three_are_those_of_any_language() {
        let expected =
            owned(&[("task-clock", "1234.56", "msec"), ("cycles", "1234567", ""), ("elapsed", "0.5", "s")]);
        for (thousands, point) in [(",", "."), (".", ","), ("\u{202f}", ","), ("", ".")] {
            let text = format!(
                " Performance counter stats for 'a b':\n\n   1{thousands}234{point}56 msec task-clock    #    0{point}238 CPUs utilized\n\
                 \x20  1{thousands}234{thousands}567      cycles   #  3{point}1 GHz     (66{point}67%)\n\n   0{point}500000000 seconds time elapsed\n"
            );
            assert_eq!(counts(&text), expected, "{text}");
        }
    }

    #[test]
    fn earlier_versions_have_the_unit_behind_the_event() {
        let head = " Performance counter stats for 'a':\n";
        let text = format!(
            "{head}  1.234567  task-clock (msec)  # 0.812 CPUs utilized\n  2,5 cpu-clock:u\n  1.5 cycles\n  12.34.567 faults\n"
        );
        let expected = [
            ("task-clock", "1.234567", "msec"),
            ("cpu-clock:u", "2.5", "msec"),
            ("cycles", UNCLEAR, ""),
            ("faults", UNCLEAR, ""),
        ];
        assert_eq!(counts(&text), owned(&expected));
    }

    #[test]
    fn earlier_versions_have_the_share_in_square_brackets() {
        let mut reader = Text::default();
        reader.line(" Performance counter stats for 'a':");
        for line in ["  1,234 cycles  # 3.1 GHz  [30.11%]", "  1,234 cycles   [30.11%]"] {
            let count = reader.line(line).unwrap();
            assert_eq!((&*count.event, &*count.value, count.running), ("cycles", "1234", Some(30.11)));
            assert!(count.derived.is_none_or(|derived| derived == (3.1, Cow::Borrowed("GHz"))));
        }
    }

    #[test]
    fn only_what_stands_below_a_head_is_a_count() {
        assert_eq!(counts("   12      cycles\n"), []);
        let text = " Performance counter stats for 'system wide':\nCPU0    7      cycles\nS0   2   9      cycles\nbuild of 3 files\n";
        assert_eq!(counts(text), owned(&[("cycles", "7", ""), ("cycles", "9", "")]));
    }
}
