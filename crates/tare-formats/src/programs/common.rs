//! What several readers of this folder need.

use crate::metrics::Kind;
use std::collections::HashMap;
use tare_model::outcome::Better;

/// Fewer is better.
pub(super) const LOWER: Option<Better> = Some(Better::Lower);
/// More is better.
pub(super) const HIGHER: Option<Better> = Some(Better::Higher);

/// A kind of sample, in one line.
pub(super) fn kind<'a>(benchmark: &'a str, name: &'a str, unit: &'a str, better: Option<Better>) -> Kind<'a> {
    Kind { benchmark, name, unit, better }
}

/// Gives names that come again a number: `sleep 1`, `sleep 1 #2`.
#[derive(Debug, Default)]
pub(super) struct Names(HashMap<String, u32>);

impl Names {
    /// The name by which this one is kept.
    pub fn unique(&mut self, name: String) -> String {
        let count = self.0.entry(name.clone()).or_default();
        *count += 1;
        match *count {
            1 => name,
            count => format!("{name} #{count}"),
        }
    }
}

/// How often each name has come so far; it counts launches.
#[derive(Debug, Default)]
pub(super) struct Counts(HashMap<String, u32>);

impl Counts {
    /// How often it had come before this time.
    pub fn next(&mut self, name: &str) -> u32 {
        // Looked up first: most names have come before, and need no copy.
        match self.0.get_mut(name) {
            Some(count) => {
                *count += 1;
                *count - 1
            }
            None => {
                self.0.insert(name.to_owned(), 1);
                0
            }
        }
    }

    /// How often it has come.
    pub fn of(&self, name: &str) -> u32 {
        self.0.get(name).copied().unwrap_or_default()
    }
}

/// `99.000000` is `p99`.
pub(super) fn percentile(percent: &str) -> String {
    let short = percent.trim();
    let short = if short.contains('.') { short.trim_end_matches('0').trim_end_matches('.') } else { short };
    format!("p{short}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_named_without_zeros_that_say_nothing() {
        assert_eq!(
            [percentile("99.000000"), percentile("99.950"), percentile("50")],
            ["p99", "p99.95", "p50"]
        );
    }
}
