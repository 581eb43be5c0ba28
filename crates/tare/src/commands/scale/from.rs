//! The levels of a sweep from a file: a table, or results of another tool.

use super::table::{self, Table};
use crate::cli::scale::ScaleArgs;
use crate::commands::results;
use crate::failure::Failure;
use anyhow::anyhow;
use std::collections::BTreeMap;
use std::path::Path;
use tare_model::better::Better;
use tare_model::tool::{ToolMetric, ToolMetrics};

/// Names that are listed where one must be chosen.
const NAMES_SHOWN: usize = 6;

/// Levels, with what they are of.
#[derive(Debug)]
pub struct Sweep {
    pub factor: String,
    /// The file.
    pub source: String,
    /// Of the figure.
    pub unit: String,
    /// Every n, ascending, with its samples.
    pub levels: Vec<(f64, Vec<f64>)>,
}

/// Reads a file.
pub fn read(file: &Path, args: &ScaleArgs) -> Result<Sweep, Failure> {
    let bytes = results::bytes(file)?;
    let text = tare_formats::text_of(&bytes);
    let shown = file.display().to_string();
    let unusable = |error: anyhow::Error| Failure::usage(error.context(format!("cannot use {shown}")));
    let mut sweep = if table::is_table(&text) {
        if args.chosen().is_given() {
            return Err(unusable(anyhow!(
                "it is a table, and no results of a benchmark (hint: leave out --benchmark and --metric)"
            )));
        }
        of_table(table::read(&text).map_err(unusable)?, &shown)
    } else {
        let found = results::read_bytes(&bytes, file, &args.chosen().choice())?;
        of_results(found, &shown, args.invert).map_err(unusable)?
    };
    if args.invert {
        sweep.levels.iter_mut().flat_map(|(_, samples)| samples).for_each(|sample| *sample = 1.0 / *sample);
        sweep.unit = inverted(&sweep.unit);
    }
    Ok(sweep)
}

fn of_table(table: Table, source: &str) -> Sweep {
    let unit = if table.figure == "x" { String::new() } else { table.figure };
    Sweep { factor: table.factor, source: source.to_owned(), unit, levels: table.levels }
}

/// The unit of 1/x: `op/s` of `s/op`.
fn inverted(unit: &str) -> String {
    match unit.split_once('/') {
        Some((above, below)) => format!("{below}/{above}"),
        None if unit.is_empty() => String::new(),
        None => format!("1/{unit}"),
    }
}

/// Benchmarks whose names end in a number, which is n: those that are alike but for it, of one metric.
fn of_results(found: ToolMetrics, source: &str, invert: bool) -> anyhow::Result<Sweep> {
    let mut series: BTreeMap<(String, String), Vec<(f64, &ToolMetric)>> = BTreeMap::new();
    for metric in &found.metrics {
        if let Some((stem, n)) = ends_in_a_number(&metric.benchmark) {
            series.entry((stem.to_owned(), metric.name.clone())).or_default().push((n, metric));
        }
    }
    series.retain(|_, levels| levels.iter().any(|(n, _)| *n != levels[0].0));
    let names: Vec<String> =
        series.keys().take(NAMES_SHOWN).map(|(stem, metric)| format!("{stem}… {metric}")).collect();
    let Some(((stem, name), levels)) = series.pop_first() else {
        return Err(anyhow!(
            "no benchmark is there with several numbers at the end of its name, as Map-1 and Map-8, or threads=1 and threads=4 (hint: \
             write a table with the header n,x)"
        ));
    };
    if !series.is_empty() {
        let names = names.join(", ");
        return Err(anyhow!(
            "it holds several series: {names} (hint: choose one with --benchmark and --metric)"
        ));
    }
    let is_time = levels.iter().any(|(_, metric)| metric.better == Some(Better::Lower));
    if is_time && !invert {
        return Err(anyhow!(
            "of {name} less is better, and the laws are of rates (hint: --invert fits 1/x; or choose another metric with --metric)"
        ));
    }
    let unit = levels[0].1.unit.clone();
    let samples =
        levels.iter().flat_map(|(n, metric)| metric.samples.iter().map(move |sample| (*n, *sample)));
    let usable: Vec<(f64, f64)> = samples.filter(|(_, sample)| sample.is_finite() && *sample > 0.0).collect();
    if usable.is_empty() {
        return Err(anyhow!("{name} has no figure above zero (hint: choose another metric with --metric)"));
    }
    Ok(Sweep { factor: factor(&stem), source: source.to_owned(), unit, levels: table::grouped(usable)? })
}

/// A name without the number above zero that it ends in, and that number.
fn ends_in_a_number(name: &str) -> Option<(&str, f64)> {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let number = name[stem.len()..].parse::<f64>().ok().filter(|n| n.is_finite() && *n > 0.0)?;
    let is_apart = stem.ends_with(['-', '=', ':', '/', '_', ' ', ',', '@', '(']);
    is_apart.then_some((stem, number))
}

/// What a number is of: the word before it; `n` where there is none, as in `Map-8`.
fn factor(stem: &str) -> String {
    let word = stem.strip_suffix(['=', ':']).map(|stem| {
        let begin = stem.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |at| at + 1);
        stem.get(begin..).unwrap_or_default()
    });
    word.filter(|word| !word.is_empty()).unwrap_or("n").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n_is_the_number_at_the_end_of_a_name() {
        let read = |name| ends_in_a_number(name).map(|(stem, n)| (factor(stem), n));
        assert_eq!(read("BenchmarkMap-8"), Some(("n".to_owned(), 8.0)));
        assert_eq!(read("Map/threads=4"), Some(("threads".to_owned(), 4.0)));
        assert_eq!(read("conns:64"), Some(("conns".to_owned(), 64.0)));
        assert_eq!(read("cpus=1.5"), Some(("cpus".to_owned(), 1.5)));
        for name in ["", "Map", "sha256", "Map-0", "8", "Map-1.2.3", "Map-."] {
            assert_eq!(read(name), None, "{name}");
        }
        assert_eq!([inverted("s/op"), inverted("s"), inverted("")], ["op/s", "1/s", ""]);
    }
}
