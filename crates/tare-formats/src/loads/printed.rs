//! What several load generators print alike: durations as Go writes them, runs one after another, tables of boxes.

use crate::numbers::{positive, whole};
use crate::result::{RESULTS_MAX, ToolOutput};
use std::borrow::Cow;

/// Go's units of time. `µ` has two characters that look alike.
const UNITS_NS: [(&str, f64); 8] =
    [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("μs", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3600e9)];

/// Nanoseconds of a duration as Go prints it: `1m2.5s`, `617.42µs`, `0s`.
pub(crate) fn duration_ns(text: &str) -> Option<f64> {
    let (mut sum, mut rest) = (0.0, text);
    if rest == "0" {
        return Some(0.0);
    }
    while !rest.is_empty() || text.is_empty() {
        let unit_at = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, behind) = rest.split_at(unit_at);
        let next = behind.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(next);
        sum += positive(number)? * UNITS_NS.iter().find(|(name, _)| *name == unit)?.1;
        rest = behind;
    }
    Some(sum)
}

/// The same, as a whole number.
pub(crate) fn whole_ns(text: &str) -> Option<u64> {
    whole(duration_ns(text)?)
}

/// Nanoseconds of seconds.
pub(crate) fn seconds_ns(seconds: f64) -> Option<u64> {
    whole(seconds * 1e9)
}

/// The trimmed lines of each run: another one begins with a line that `begins`. Lines before the first are of it.
pub(crate) fn runs(printed: &str, begins: impl Fn(&str) -> bool) -> Vec<Vec<&str>> {
    let mut runs = vec![Vec::new()];
    let mut has_begun = false;
    for line in printed.lines().map(str::trim) {
        if begins(line) {
            if has_begun && runs.len() < RESULTS_MAX {
                runs.push(Vec::new());
            }
            has_begun = true;
        }
        if let Some(last) = runs.last_mut() {
            last.push(line);
        }
    }
    runs
}

/// The results of each run, one after another: a run prints lines of these steps in their order, though maybe not all of
/// them. What is of a run without a result is said.
pub(crate) fn of_each(
    printed: &str,
    step: impl Fn(&str) -> Option<usize>,
    read: impl Fn(&mut dyn Iterator<Item = &str>) -> ToolOutput,
) -> ToolOutput {
    let mut whole = ToolOutput::default();
    for part in parts(printed, step) {
        if whole.results.len() >= RESULTS_MAX {
            whole.complaint.get_or_insert_with(|| "more runs than are kept".to_owned());
            break;
        }
        let ToolOutput { results, complaint } = read(&mut part.lines().map(str::trim));
        if results.is_empty() && !whole.results.is_empty() && complaint.is_none() {
            let number = whole.results.len() + 1;
            whole
                .complaint
                .get_or_insert_with(|| format!("run {number} has no whole summary: it is cut off"));
        }
        whole.results.extend(results);
        whole.complaint = whole.complaint.or(complaint);
    }
    whole
}

/// The step of a line, where each begins with one of these texts.
pub(crate) fn step_of(order: &[&str], line: &str) -> Option<usize> {
    order.iter().position(|start| line.starts_with(start))
}

/// The text of each run, as [`of_each`] finds them.
fn parts(printed: &str, step: impl Fn(&str) -> Option<usize>) -> Vec<&str> {
    let (mut parts, mut from, mut at, mut reached) = (Vec::new(), 0, 0, None);
    for line in printed.split_inclusive('\n') {
        let step = step(line.trim());
        if step.is_some() {
            if reached >= step {
                parts.push(printed.get(from..at).unwrap_or_default());
                from = at;
            }
            reached = step;
        }
        at += line.len();
    }
    parts.push(printed.get(from..).unwrap_or_default());
    parts
}

/// Without the codes that colour a terminal.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains("\u{1b}[") {
        return Cow::Borrowed(text);
    }
    let mut parts = text.split("\u{1b}[");
    let mut out = String::with_capacity(text.len());
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        // A code is digits and semicolons, and a letter behind them.
        let code = part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        out.push_str(code.strip_prefix(|c: char| c.is_ascii_alphabetic()).unwrap_or(code));
    }
    Cow::Owned(out)
}

/// The cells of a row of a table that is drawn with lines; `None` where it is no row.
pub(crate) fn cells(line: &str) -> Option<Vec<&str>> {
    let row = line.trim().strip_prefix('│')?.strip_suffix('│')?;
    Some(row.split('│').map(str::trim).take(64).collect())
}

/// The name of a column that is a quantile: `97.5%`, `p99`, `p(95)`, `med`, `min`, `max`.
pub(crate) fn quantile(name: &str) -> Option<f64> {
    let percent = match name {
        "min" | "Min" | "fastest" | "Fastest" => return Some(0.0),
        "med" | "50th" => return Some(0.5),
        "max" | "Max" | "slowest" | "Slowest" => return Some(1.0),
        _ => name.strip_suffix('%').or_else(|| name.strip_prefix('p')).or_else(|| name.strip_suffix("th"))?,
    };
    crate::numbers::share(percent.trim_matches(['(', ')']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_of_go_have_one_unit_or_several() {
        for (text, ns) in [
            ("0s", 0.0),
            ("617.42µs", 617_420.0),
            ("1.5ms", 1.5e6),
            ("1m2.5s", 62.5e9),
            ("1h0m0s", 3600e9),
            ("12ns", 12.0),
        ] {
            assert_eq!(duration_ns(text), Some(ns), "{text}");
        }
        for text in ["", "s", "1", "1x", "-1s", "1m2", "1.2.3s", "NaNs"] {
            assert_eq!(duration_ns(text), None, "{text}");
        }
    }

    #[test]
    fn colours_are_left_out() {
        assert_eq!(plain("\u{1b}[90m│\u{1b}[39m\u{1b}[1;31m Stat\u{1b}["), "│ Stat");
        assert_eq!(plain("a[3m"), "a[3m");
    }

    #[test]
    fn columns_are_quantiles_or_not() {
        let names = ["97.5%", "p99", "p(95)", "med", "max", "Avg", "p(x)", "101%", "99.99th"];
        let found = names.map(quantile);
        let expected =
            [Some(0.975), Some(0.99), Some(0.95), Some(0.5), Some(1.0), None, None, None, Some(0.9999)];
        assert_eq!(found, expected);
    }
}
