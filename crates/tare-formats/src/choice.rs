//! Some of a tool's results: those of benchmarks and metrics whose names match.

use regex::{Regex, RegexBuilder};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use tare_model::tool::{ToolMetric, ToolMetrics};

/// A larger regular expression is refused, in bytes when compiled.
const SIZE_MAX: usize = 1 << 20;
/// So many names are listed where none matches.
const NAMES_SHOWN: usize = 8;

/// A regular expression that names are held against; it may match a part of one.
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Pattern, String> {
        let built = RegexBuilder::new(text).size_limit(SIZE_MAX).dfa_size_limit(4 * SIZE_MAX).build();
        built.map(Pattern).map_err(|why| {
            // The lines before draw where it is.
            let why = why.to_string();
            let last = why.lines().last().unwrap_or_default().trim_start_matches("error: ");
            format!("it is no regular expression: {last}")
        })
    }
}

/// Which results are taken: all where neither is given.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// Benchmarks with such names.
    pub benchmark: Option<Pattern>,
    /// Metrics with such names, in the tool's own words.
    pub metric: Option<Pattern>,
}

/// No name matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoMatch {
    /// What matches nothing.
    pub why: String,
    /// Which names there are.
    pub hint: String,
}

impl fmt::Display for NoMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (hint: {})", self.why, self.hint)
    }
}

impl Choice {
    /// Whether all are taken.
    pub fn is_all(&self) -> bool {
        self.benchmark.is_none() && self.metric.is_none()
    }

    /// Leaves those that are chosen.
    ///
    /// # Errors
    /// None is, and which names there are; all stay then.
    pub fn keep(&self, results: &mut ToolMetrics) -> Result<(), NoMatch> {
        let kept = self.chosen(results)?;
        let mut at = 0..;
        results.metrics.retain(|_| at.next().is_some_and(|at| kept.binary_search(&at).is_ok()));
        Ok(())
    }

    /// Marks those that are chosen as what runs are to make known: of all, those of which it is known which side is better.
    ///
    /// # Errors
    /// None is chosen, and which names there are.
    pub fn mark(&self, results: &mut ToolMetrics) -> Result<(), NoMatch> {
        for at in self.chosen(results)? {
            let metric = &mut results.metrics[at];
            metric.is_target = !self.is_all() || metric.better.is_some();
        }
        Ok(())
    }

    /// Which are chosen, in their order.
    fn chosen(&self, results: &ToolMetrics) -> Result<Vec<usize>, NoMatch> {
        let of_benchmark: fn(&ToolMetric) -> &str = |metric| &metric.benchmark;
        let of_metric: fn(&ToolMetric) -> &str = |metric| &metric.name;
        let mut kept: Vec<usize> = (0..results.metrics.len()).collect();
        for (what, pattern, name) in
            [("benchmark", &self.benchmark, of_benchmark), ("metric", &self.metric, of_metric)]
        {
            let Some(Pattern(regex)) = pattern else { continue };
            let name = |at: &usize| name(&results.metrics[*at]);
            let matching: Vec<usize> = kept.iter().copied().filter(|at| regex.is_match(name(at))).collect();
            if matching.is_empty() {
                return Err(none_matches(what, regex, kept.iter().map(name)));
            }
            kept = matching;
        }
        Ok(kept)
    }
}

fn none_matches<'a>(what: &str, regex: &Regex, names: impl Iterator<Item = &'a str>) -> NoMatch {
    let names: BTreeSet<&str> = names.filter(|name| !name.is_empty()).collect();
    let shown: Vec<&str> = names.iter().copied().take(NAMES_SHOWN).collect();
    let more = names.len() - shown.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let hint = match shown.is_empty() {
        true => format!("the results name no {what}"),
        false => format!("there are {}{more}", shown.join(", ")),
    };
    NoMatch { why: format!("no {what} matches '{regex}'"), hint }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::Input;
    use crate::registry::read;

    fn chosen(benchmark: &str, metric: &str) -> Result<Vec<(String, String)>, String> {
        let text = "BenchmarkAdd-2 100 5 ns/op 3 B/op\nBenchmarkSort-2 100 7 ns/op 1 B/op\n";
        let mut results = read(&Input::of_text(text)).unwrap();
        let of = |text: &str| (!text.is_empty()).then(|| text.parse().unwrap());
        let choice = Choice { benchmark: of(benchmark), metric: of(metric) };
        choice.keep(&mut results).map_err(|none| none.to_string())?;
        Ok(results.metrics.into_iter().map(|metric| (metric.benchmark, metric.name)).collect())
    }

    #[test]
    fn a_part_of_a_name_is_enough() {
        assert_eq!(chosen("", "").unwrap().len(), 4);
        assert_eq!(chosen("Sort", "").unwrap().len(), 2);
        let both = chosen("^Benchmark.dd", "^ns").unwrap();
        assert_eq!(both, [("BenchmarkAdd-2".to_owned(), "ns/op".to_owned())]);
    }

    #[test]
    fn what_is_chosen_is_marked_and_all_stay() {
        let text = "BenchmarkAdd-2 100 5 ns/op 3 B/op 9 widgets\n";
        let marked = |metric: Option<&str>| {
            let mut results = read(&Input::of_text(text)).unwrap();
            let choice = Choice { benchmark: None, metric: metric.map(|text| text.parse().unwrap()) };
            choice.mark(&mut results).unwrap();
            assert_eq!(results.metrics.len(), 3);
            let marked = results.metrics.into_iter().filter(|metric| metric.is_target);
            marked.map(|metric| metric.name).collect::<Vec<_>>()
        };
        // Which side of widgets is better is not known.
        assert_eq!(marked(None), ["ns/op", "B/op"]);
        assert_eq!(marked(Some("widgets")), ["widgets"]);
    }

    #[test]
    fn what_matches_nothing_says_what_there_is() {
        let said = chosen("Sorted", "").unwrap_err();
        assert_eq!(said, "no benchmark matches 'Sorted' (hint: there are BenchmarkAdd-2, BenchmarkSort-2)");
        let said = chosen("Sort", "allocs").unwrap_err();
        assert_eq!(said, "no metric matches 'allocs' (hint: there are B/op, ns/op)");
        assert!("(".parse::<Pattern>().unwrap_err().starts_with("it is no regular expression"));
    }
}
