//! What is taken of a launch: requests per second, the result that a program prints, or its runs per second.

use crate::error::LabError;
use std::str::FromStr;
use tare_formats::Choice;
use tare_model::better::Better;
use tare_model::outcome::Outcome;
use tare_model::tool::ToolMetric;

/// How much a run of a program does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Work {
    /// Units of work.
    per_run: f64,
    /// Times the factor's value.
    times_n: bool,
}

impl FromStr for Work {
    type Err = String;

    fn from_str(text: &str) -> Result<Work, String> {
        let text = text.trim();
        let (number, times_n) = match text.strip_suffix("{n}") {
            Some(number) => (number.trim_end_matches('*'), true),
            None => (text, false),
        };
        let per_run =
            if number.is_empty() && times_n { Some(1.0) } else { number.trim().parse::<f64>().ok() };
        let per_run = per_run.filter(|value| value.is_finite() && *value > 0.0);
        per_run.map(|per_run| Work { per_run, times_n }).ok_or_else(|| {
            format!("'{text}' is not a number of units; write it as 1000, {{n}} or 1000*{{n}}")
        })
    }
}

impl Work {
    fn at(self, n: f64) -> f64 {
        if self.times_n { self.per_run * n } else { self.per_run }
    }
}

/// How the figure of a program is made.
#[derive(Debug, Clone, Default)]
pub struct Metering {
    /// Which results of a benchmark, where it prints any.
    pub choice: Choice,
    /// How much a run does; then the figure is units per second, whatever it prints.
    pub work: Option<Work>,
}

/// The figure of a launch.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Figure {
    pub value: f64,
    pub unit: String,
    /// What it counts.
    pub counted: &'static str,
    /// The printed result that it is, where it is one and others could have been taken.
    pub of_result: Option<String>,
}

impl Metering {
    /// The figure at the factor's value `n`; `None` where there is none.
    ///
    /// # Errors
    /// What was chosen of the results is not among them.
    pub(super) fn figure(&self, outcome: &Outcome, n: f64) -> Result<Option<Figure>, LabError> {
        let Some(command) = outcome.answers.commands.first() else {
            let gross = &outcome.figures.gross;
            let figure =
                |value| Figure { value, unit: gross.unit().to_owned(), counted: "request", of_result: None };
            return Ok(gross.value().filter(|value| *value > 0.0).map(figure));
        };
        if let Some(figure) = self.printed(outcome)? {
            return Ok(Some(figure));
        }
        let rate =
            |units: f64| Some(units / command.gross.value).filter(|rate| rate.is_finite() && *rate > 0.0);
        let (units, unit, counted) = match self.work {
            Some(work) => (work.at(n), "units/s", "unit"),
            None => (1.0, "runs/s", "run"),
        };
        Ok(rate(units).map(|value| Figure { value, unit: unit.to_owned(), counted, of_result: None }))
    }

    /// A rate that it printed, or of a time how many there would be in a second.
    fn printed(&self, outcome: &Outcome) -> Result<Option<Figure>, LabError> {
        let Some(results) = outcome.answers.results.as_ref().filter(|_| self.work.is_none()) else {
            return match self.choice.is_all() || self.work.is_some() {
                true => Ok(None),
                false => Err(LabError::usage(
                    "--benchmark and --metric choose among results, and the program printed none",
                    "leave them out to count runs per second, or see 'tare help formats' for the tools that are read",
                )),
            };
        };
        let mut kept = results.clone();
        self.choice.keep(&mut kept).map_err(|none| LabError::usage(none.why, none.hint))?;
        let is_rate = |metric: &&ToolMetric| metric.better == Some(Better::Higher);
        let is_time = |metric: &&ToolMetric| {
            metric.better == Some(Better::Lower) && (metric.unit == "s" || metric.unit.starts_with("s/"))
        };
        let usable = || kept.metrics.iter().filter(|metric| metric.estimate.is_some());
        let taken = usable().find(is_rate).or_else(|| usable().find(is_time));
        if taken.is_none() && !self.choice.is_all() {
            return Err(LabError::usage(
                "the chosen result is neither a rate nor a time, so it does not say how much is done in a second",
                "choose another with --metric, or count runs per second without it",
            ));
        }
        let several = usable().count() > 1;
        Ok(taken.and_then(|metric| of_result(metric, several)))
    }
}

fn of_result(metric: &ToolMetric, several: bool) -> Option<Figure> {
    let value = metric.estimate.as_ref()?.value;
    let (value, unit) = match metric.better {
        Some(Better::Higher) => (value, metric.unit.clone()),
        _ => (1.0 / value, format!("{}/s", metric.unit.strip_prefix("s/").unwrap_or("1"))),
    };
    let name = [metric.benchmark.as_str(), metric.name.as_str()];
    let name: Vec<&str> = name.into_iter().filter(|part| !part.is_empty()).collect();
    let is_there = value.is_finite() && value > 0.0;
    is_there.then(|| Figure { value, unit, counted: "unit", of_result: several.then(|| name.join(" ")) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_work() {
        let at = |text: &str, n| text.parse::<Work>().map(|work| work.at(n));
        assert_eq!(
            (at("{n}", 3.0), at("100", 3.0), at("100*{n}", 3.0), at("2.5{n}", 2.0)),
            (Ok(3.0), Ok(100.0), Ok(300.0), Ok(5.0))
        );
        for bad in ["", "0", "-1", "n", "{n}{n}", "nan", "*"] {
            assert!(bad.parse::<Work>().is_err(), "{bad}");
        }
    }
}
