//! What several readers of this folder need: launches of results, and numbers as people write them.

use crate::metrics::Sample;
use std::collections::HashSet;

/// Which launch results are of, where runs were appended to one file: what comes again is of the next one.
#[derive(Debug, Default)]
pub(super) struct Runs {
    first: u32,
    last: u32,
    seen: HashSet<String>,
}

impl Runs {
    /// The launch of a result by its name.
    pub(super) fn of(&mut self, name: &str) -> u32 {
        if self.seen.contains(name) {
            self.next();
        }
        self.seen.insert(name.to_owned());
        self.first
    }

    /// A run begins here; before the first result it has begun already.
    pub(super) fn next(&mut self) {
        if !self.seen.is_empty() {
            self.first = self.last.saturating_add(1);
            self.last = self.first;
            self.seen.clear();
        }
    }

    /// The launch where a run itself counts several, from 0 on.
    pub(super) fn launch(&mut self, index: u32) -> u32 {
        let launch = self.first.saturating_add(index);
        self.last = self.last.max(launch);
        launch
    }

    pub(super) fn current(&self) -> u32 {
        self.first
    }
}

/// A value of a launch.
pub(super) fn at(value: f64, launch: u32) -> Sample {
    Sample { value, launch, ..Sample::default() }
}

/// A number that may have commas between groups of three digits: `1,234,567.8`.
pub(super) fn grouped(text: &str) -> Option<f64> {
    let (whole, _) = text.split_once('.').unwrap_or((text, ""));
    let mut groups = whole.trim_start_matches('-').split(',');
    let first = groups.next()?;
    let mut rest = groups.peekable();
    let is_grouped = rest.peek().is_none() || first.len() <= 3 && rest.all(|group| group.len() == 3);
    let digits = is_grouped.then(|| text.replace(',', ""))?;
    digits.parse().ok().filter(|value: &f64| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_stand_between_groups_of_three() {
        assert_eq!(grouped("1,234,567.8"), Some(1_234_567.8));
        assert_eq!(grouped("12345"), Some(12345.0));
        assert_eq!(grouped("1,23"), None);
        assert_eq!(grouped("inf"), None);
    }
}
