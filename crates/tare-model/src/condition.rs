//! What a comparison or a gate fails on: `throughput < -2%`, `p99 > 5%`.

use crate::comparison::{Change, Comparison, Effect, Figure};
use std::fmt;
use std::str::FromStr;

/// A change that fails a comparison or a gate once it is proven: once the whole interval is beyond it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Condition {
    /// Of what.
    pub figure: Figure,
    /// Whether more than the bound fails; less otherwise.
    pub above: bool,
    /// The change, as a share.
    pub bound: f64,
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Condition, String> {
        Condition::of(text, Figure::of_servers())
    }
}

impl Condition {
    /// Reads a condition on one of these figures.
    ///
    /// # Errors
    /// What is wrong with the text, and what to write instead.
    pub fn of(text: &str, figures: impl Iterator<Item = Figure> + Clone) -> Result<Condition, String> {
        let example = "write it as 'throughput < -2%' or 'cpu_per_request > 2%'";
        let at = text.find(['<', '>']).ok_or_else(|| format!("'{text}' compares nothing; {example}"))?;
        let (name, rest) = text.split_at(at);
        let found = figures.clone().find(|figure| figure.name() == name.trim());
        let figure = found.ok_or_else(|| {
            let names: Vec<&str> = figures.map(Figure::name).collect();
            format!("there is no figure '{}'; there are {}", name.trim(), names.join(", "))
        })?;
        let number = rest[1..].trim().strip_suffix('%').map(str::trim_end);
        let percent = number.and_then(|number| number.replace('−', "-").parse::<f64>().ok());
        let bound = percent.map(|percent| percent / 100.0).filter(|bound| bound.is_finite() && *bound > -1.0);
        let bound =
            bound.ok_or_else(|| format!("'{}' is no change in per cent; {example}", rest[1..].trim()))?;
        Ok(Condition { figure, above: rest.starts_with('>'), bound })
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let sign = if self.above { '>' } else { '<' };
        // As it was written: a share times a hundred may be 7.000000000000001.
        write!(f, "{} {sign} {}%", self.figure.name(), (self.bound * 1e11).round() / 1e9)
    }
}

impl Condition {
    /// Whether there is an interval for it, of each program: without one nothing was proven, for or against.
    pub fn is_judged(&self, comparison: &Comparison) -> bool {
        let reported = |effect: &&Effect| effect.figure == self.figure && effect.change.is_some();
        comparison.effects.iter().filter(reported).count() + 1 >= comparison.programs.len()
    }

    /// The programs of which it is proven, with their figure's change in per cent.
    pub fn proven<'c>(&self, comparison: &'c Comparison) -> Vec<(&'c str, f64)> {
        let effects = comparison.effects.iter().filter(|effect| effect.figure == self.figure);
        let proven = effects.filter_map(|effect| {
            let change = effect.change.filter(|change| self.is_proven_by(*change))?;
            Some((effect.program.as_str(), change.value * 100.0))
        });
        proven.collect()
    }

    /// Whether the whole interval is beyond the bound.
    pub fn is_proven_by(&self, change: Change) -> bool {
        let [low, high] = change.interval;
        if self.above { low > self.bound } else { high < self.bound }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        let read = |text: &str| text.parse::<Condition>();
        let wanted = Condition { figure: Figure::Throughput, above: false, bound: -0.02 };
        for text in ["throughput < -2%", "throughput<-2 %", "throughput < −2%"] {
            assert_eq!(read(text), Ok(wanted), "{text}");
        }
        assert!(Condition::of("net < -2%", Figure::of_commands()).unwrap_err().contains("no figure 'net'"));
        assert_eq!(read("net < -2%").map(|condition| condition.figure), Ok(Figure::Net));
        assert_eq!(read("p99.9 > 5%").map(|condition| condition.figure), Ok(Figure::P999));
        assert_eq!(read("p99 > 7%").map(|condition| condition.to_string()), Ok("p99 > 7%".to_owned()));
        for (text, wanted) in [
            ("throughput", "compares nothing"),
            ("speed < 2%", "cpu_per_request"),
            ("p99 > 5", "no change in per cent"),
            ("p99 > NaN%", "no change in per cent"),
            ("p99 < -100%", "no change in per cent"),
            ("é<", "no figure"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }
}
