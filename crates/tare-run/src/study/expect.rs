//! What a plan expects: `p99 up; sut.voluntary_switches = 0; bottleneck = load-generator-bound`.

use super::figures::{self, Figure, find};
use super::nearest::hint;
use std::fmt;
use tare_model::outcome::Cause;
use tare_model::study::Unit;

/// Most expectations of a case.
const EXPECTATIONS_MAX: usize = 64;
/// Up and down are by more than this unless it says otherwise: what is within it nobody means.
const CHANGE: f64 = 0.01;
/// The same is within this unless it says otherwise.
const SAME: f64 = 0.05;

/// One thing that is expected.
#[derive(Debug, Clone, PartialEq)]
pub struct Expectation {
    /// As written.
    pub text: String,
    /// What is claimed.
    pub claim: Claim,
}

impl Expectation {
    /// Whether it is about a change against the baseline.
    pub fn needs_baseline(&self) -> bool {
        matches!(self.claim, Claim::Change { .. })
    }

    /// Whether it is about this figure.
    pub fn is_about(&self, name: &str) -> bool {
        match &self.claim {
            Claim::Change { figure, .. } | Claim::Value { figure, .. } => figure.name == name,
            Claim::Bottleneck(_) => false,
        }
    }

    /// Whether it is known from scheduler tracepoints only.
    pub fn needs_trace(&self) -> bool {
        matches!(&self.claim, Claim::Change { figure, .. } | Claim::Value { figure, .. } if figure.traced)
    }
}

/// What is claimed.
#[derive(Debug, Clone, Copy)]
pub enum Claim {
    /// The figure against the baseline's.
    Change {
        /// Which.
        figure: &'static Figure,
        /// Whereto.
        direction: Direction,
        /// By more than this (up, down) or within it (same), as a share.
        by: f64,
    },
    /// The figure by itself.
    Value {
        /// Which.
        figure: &'static Figure,
        /// How it stands to the value.
        comparison: Comparison,
        /// In the figure's unit.
        value: f64,
    },
    /// What holds throughput where it is.
    Bottleneck(Cause),
}

impl PartialEq for Claim {
    fn eq(&self, other: &Claim) -> bool {
        use Claim::{Bottleneck, Change, Value};
        match (self, other) {
            (Change { figure, direction, by }, Change { figure: f, direction: d, by: b }) => {
                (figure.name, direction, by) == (f.name, d, b)
            }
            (Value { figure, comparison, value }, Value { figure: f, comparison: c, value: v }) => {
                (figure.name, comparison, value) == (f.name, c, v)
            }
            (Bottleneck(one), Bottleneck(other)) => one == other,
            _ => false,
        }
    }
}

/// Whereto a figure goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // as a plan writes them
pub enum Direction {
    Up,
    Down,
    Same,
}

/// How a figure stands to a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `<` or `<=`.
    Below,
    /// `>` or `>=`.
    Above,
    /// `=`: within a tenth of it, or by what is negligible of the figure.
    About,
}

/// What is not an expectation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotExpected {
    /// What is wrong.
    pub what: String,
    /// What to write instead.
    pub hint: String,
}

impl fmt::Display for NotExpected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (hint: {})", self.what, self.hint)
    }
}

/// Parses expectations, one or several between semicolons:
///
/// - `FIGURE up`, `FIGURE down`, with `by 20%` where it must be by more than that (1 % unless said);
/// - `FIGURE same`, with `within 10%` (5 %);
/// - `FIGURE = 25`, `< 2ms`, `> 300k`; `=` is within a tenth;
/// - `bottleneck = CAUSE`.
pub fn parse(text: &str) -> Result<Vec<Expectation>, NotExpected> {
    let parts: Vec<&str> = text.split(';').map(str::trim).filter(|part| !part.is_empty()).collect();
    if parts.len() > EXPECTATIONS_MAX {
        return Err(wrong(format!("more than {EXPECTATIONS_MAX} expectations"), "split them among cases"));
    }
    parts.into_iter().map(|part| Ok(Expectation { text: part.to_owned(), claim: claim(part)? })).collect()
}

fn wrong(what: impl Into<String>, hint: impl Into<String>) -> NotExpected {
    NotExpected { what: what.into(), hint: hint.into() }
}

fn claim(part: &str) -> Result<Claim, NotExpected> {
    let end = part.find(|c: char| c.is_whitespace() || "<>=".contains(c)).unwrap_or(part.len());
    let (name, rest) = (&part[..end], part[end..].trim());
    if name == "bottleneck" {
        return bottleneck(rest).map(Claim::Bottleneck);
    }
    let Some(figure) = find(name) else {
        let known: Vec<&str> =
            figures::all().iter().map(|figure| figure.name).chain(["bottleneck"]).collect();
        return Err(wrong(format!("'{part}': there is no figure '{name}'"), hint(name, &known)));
    };
    let (symbol, value) = rest.split_at(rest.find(|c: char| !"<>=".contains(c)).unwrap_or(rest.len()));
    let comparison = match symbol {
        "" => return change(part, figure, rest),
        "<" | "<=" => Comparison::Below,
        ">" | ">=" => Comparison::Above,
        "=" | "==" => Comparison::About,
        _ => return Err(wrong(format!("'{part}': '{symbol}' compares nothing"), "write <, > or =")),
    };
    let value = number(value.trim(), figure.unit)
        .map_err(|hint| wrong(format!("'{part}': no number stands after '{symbol}'"), hint))?;
    Ok(Claim::Value { figure, comparison, value })
}

fn bottleneck(rest: &str) -> Result<Cause, NotExpected> {
    let name = rest.trim_start_matches('=').trim();
    // The names are those of the JSON result.
    serde_json::from_value(serde_json::Value::String(name.to_owned())).map_err(|_| {
        wrong(
            format!("'bottleneck {rest}': there is no cause '{name}'"),
            "write one that 'tare run' names, as bottleneck = load-generator-bound",
        )
    })
}

fn change(part: &str, figure: &'static Figure, rest: &str) -> Result<Claim, NotExpected> {
    let words: Vec<&str> = rest.split_whitespace().collect();
    let usual = "write up, down or same, <, > or = and a number";
    let (direction, usually, joint) = match words.first() {
        Some(&"up") => (Direction::Up, CHANGE, "by"),
        Some(&"down") => (Direction::Down, CHANGE, "by"),
        Some(&"same") => (Direction::Same, SAME, "within"),
        _ => return Err(wrong(format!("'{part}' says nothing of '{}'", figure.name), usual)),
    };
    let by = match words.as_slice() {
        [_] => usually,
        [_, word, share] if *word == joint => percent(share).ok_or_else(|| {
            wrong(format!("'{part}': '{share}' is no share"), format!("write it as {joint} 20%"))
        })?,
        _ => {
            return Err(wrong(
                format!("'{part}' is not understood"),
                format!("write it as {} {} {joint} 20%", figure.name, words[0]),
            ));
        }
    };
    if direction == Direction::Down && by >= 1.0 {
        return Err(wrong(format!("'{part}': nothing falls by 100 %"), "write less than 100%"));
    }
    Ok(Claim::Change { figure, direction, by })
}

/// `20%`, to 1000 %.
pub(super) fn percent(text: &str) -> Option<f64> {
    let share = text.strip_suffix('%')?.parse::<f64>().ok()? / 100.0;
    (0.0..=10.0).contains(&share).then_some(share)
}

/// A number with the suffixes of its unit (`ns` to `s`, `k` and `M`, `%` of a CPU); `Err` says which those are.
fn number(text: &str, unit: Unit) -> Result<f64, &'static str> {
    let (suffixes, usual): (&[(&str, f64)], _) = match unit {
        Unit::Time => {
            (&[("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)], "write a time, as 2ms")
        }
        Unit::Rate => (&[("k", 1e3), ("M", 1e6), ("", 1.0)], "write a rate per second, as 300k"),
        Unit::Cpus => (&[("%", 0.01), ("", 1.0)], "write busy CPUs, as 0.9 or 90%"),
        Unit::Share => (&[("%", 0.01), ("", 1.0)], "write a share, as 3% or 0.03"),
    };
    let parsed = suffixes.iter().find_map(|(suffix, scale)| {
        let number: f64 = text.strip_suffix(suffix)?.trim().parse().ok()?;
        Some(number * scale).filter(|value| value.is_finite() && *value >= 0.0)
    });
    parsed.ok_or(usual)
}

#[cfg(test)]
#[path = "expect_tests.rs"]
mod tests;
