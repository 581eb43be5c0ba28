//! What a load fails on by itself: `p99 > 20ms`, `errors > 1%`, `throughput < 5000`.

use crate::load::LoadOutcome;
use crate::outcome::LatencySummary;
use std::fmt;
use std::str::FromStr;

/// A bound on one figure of a load; it fails once the figure is beyond it.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    figure: LoadFigure,
    above: bool,
    /// In the figure's base unit: nanoseconds, requests per second, a share.
    bound: f64,
    text: String,
}

/// A figure of a load that can have a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LoadFigure {
    Throughput,
    /// Failed attempts, as a share of all.
    Errors,
    /// The latency of this name.
    Latency(&'static str),
}

/// By the names that people write.
fn figures() -> impl Iterator<Item = (&'static str, LoadFigure)> {
    let others = [("throughput", LoadFigure::Throughput), ("errors", LoadFigure::Errors)];
    others.into_iter().chain(LatencySummary::NAMED.map(|(name, _)| (name, LoadFigure::Latency(name))))
}

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Threshold, String> {
        const EXAMPLE: &str = "write it as 'p99 > 20ms', 'errors > 1%' or 'throughput < 5000'";
        let at = text.find(['<', '>']).ok_or_else(|| format!("'{text}' compares nothing; {EXAMPLE}"))?;
        let (name, rest) = text.split_at(at);
        let found = figures().find(|(figure, _)| *figure == name.trim());
        let (_, figure) = found.ok_or_else(|| {
            let names: Vec<&str> = figures().map(|(name, _)| name).collect();
            format!("there is no figure '{}'; there are {}", name.trim(), names.join(", "))
        })?;
        let amount = rest.trim_start_matches(['<', '>']).trim();
        let bound = match figure {
            LoadFigure::Throughput => amount.parse::<f64>().ok(),
            LoadFigure::Errors => {
                amount.strip_suffix('%').and_then(|n| n.trim().parse::<f64>().ok()).map(|n| n / 100.0)
            }
            LoadFigure::Latency(_) => nanoseconds(amount),
        };
        let is_bound = |bound: &f64| bound.is_finite() && *bound >= 0.0;
        let bound = bound
            .filter(is_bound)
            .ok_or_else(|| format!("'{amount}' is no bound of {}; {EXAMPLE}", name.trim()))?;
        Ok(Threshold { figure, above: rest.starts_with('>'), bound, text: text.to_owned() })
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Threshold {
    /// Whether a load is beyond it; `None` where the figure is not there.
    pub fn fails(&self, outcome: &LoadOutcome) -> Option<bool> {
        let value = match self.figure {
            LoadFigure::Throughput => outcome.rate_hz,
            LoadFigure::Errors => error_share(outcome),
            LoadFigure::Latency(name) => LatencySummary::named(name)?(&outcome.latency_ns),
        }?;
        Some(if self.above { value > self.bound } else { value < self.bound })
    }
}

/// Errors of status, and answers that were not expected, are answers too.
fn error_share(outcome: &LoadOutcome) -> Option<f64> {
    let answers = outcome.requests.count?;
    let of = |names: &[&str]| -> u64 {
        let errors = outcome.requests.errors.iter();
        errors.filter(|(name, _)| names.contains(&name.as_str())).map(|(_, count)| count).sum()
    };
    let all: u64 = outcome.requests.errors.values().sum();
    let attempts = answers + all - of(&["status", "unexpected"]);
    (attempts > 0).then(|| all as f64 / attempts as f64)
}

fn nanoseconds(amount: &str) -> Option<f64> {
    let units = [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
    let (number, unit) = units.iter().find_map(|(name, ns)| Some((amount.strip_suffix(name)?, ns)))?;
    number.trim().parse::<f64>().ok().map(|number| number * unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_people_write() {
        let read = |text: &str| text.parse::<Threshold>().map(|of| (of.figure, of.above, of.bound));
        assert_eq!(read("p99>20ms"), Ok((LoadFigure::Latency("p99"), true, 20e6)));
        assert_eq!(read("p99.9 > 1.5 s"), Ok((LoadFigure::Latency("p99.9"), true, 1.5e9)));
        assert_eq!(read("errors > 0.5 %"), Ok((LoadFigure::Errors, true, 0.005)));
        assert_eq!(read("throughput < 5000"), Ok((LoadFigure::Throughput, false, 5000.0)));
        for (text, wanted) in [
            ("p99", "compares nothing"),
            ("p98 > 1ms", "there is no figure 'p98'"),
            ("p99 > 20", "'20' is no bound of p99"),
            ("errors > 5", "is no bound"),
            ("throughput < -1", "is no bound"),
            ("max > NaNs", "is no bound"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(wanted), "{text}: {error}");
        }
        assert_eq!("p99 > 20ms".parse::<Threshold>().unwrap().to_string(), "p99 > 20ms");
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC*") {
            let _ = text.parse::<Threshold>();
        }
    }
}
