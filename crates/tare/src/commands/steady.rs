//! `tare steady`: from where on somebody's series of times or rates is steady.

use crate::cli::steady::SteadyArgs;
use crate::failure::{Ended, Failure};
use anyhow::{Context, anyhow, bail};
use serde::Deserialize;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::process::ExitCode;
use tare_report::Style;
use tare_report::steady::{self as report, Examined};
use tare_stats::{VALUES_MAX, VALUES_MIN, steadiness};

/// A line of the longest series with every digit that a double has.
const LINE_BYTES_MAX: u64 = 32 * VALUES_MAX as u64;
const SERIES_MAX: usize = 10_000;

/// A series as a JSON line holds it; what else stands there is nobody's business here.
#[derive(Deserialize)]
struct Line {
    seconds: Vec<f64>,
    name: Option<String>,
    fork: Option<serde_json::Value>,
}

/// Reads, examines and prints.
pub fn steady(args: &SteadyArgs, style: Style) -> Ended {
    let unusable =
        |error: anyhow::Error| Failure::usage(error.context(format!("cannot use {}", args.file.display())));
    let examined = match examine(&args.file) {
        Ok(_) if args.chosen.is_given() => {
            return Err(unusable(anyhow!(
                "it is a series, and no results of a benchmark (hint: leave out --benchmark and --metric)"
            )));
        }
        Ok(examined) => examined,
        Err(error) => of_a_tool(args)?.ok_or_else(|| unusable(error))?,
    };
    let shown = report::report(&examined);
    let json = report::json(&examined).map_err(Failure::underway)?;
    super::emit_report(&shown, &shown, &json, &args.exports, style)?;
    Ok(ExitCode::SUCCESS)
}

fn examine(path: &Path) -> anyhow::Result<Vec<Examined>> {
    let mut reader = open(path)?;
    let mut examined = Vec::new();
    let mut numbers = Vec::new();
    let mut text = String::new();
    for number in 1u64.. {
        text.clear();
        if reader.by_ref().take(LINE_BYTES_MAX).read_line(&mut text)? == 0 {
            break;
        }
        let line = text.trim();
        if text.len() as u64 == LINE_BYTES_MAX || examined.len() == SERIES_MAX || numbers.len() > VALUES_MAX {
            bail!(
                "line {number}: more than is taken (hint: series of up to {VALUES_MAX} values, {SERIES_MAX} of them)"
            );
        } else if line.is_empty() || line.starts_with('#') {
            continue;
        } else if line.starts_with('{') {
            let line: Line = serde_json::from_str(line).with_context(|| {
                format!("line {number}: not a series (hint: {{\"name\": …, \"seconds\": [0.12, …]}})")
            })?;
            let fork = line.fork.map(|fork| format!(" #{fork}")).unwrap_or_default();
            let name = line.name.map_or_else(|| number.to_string(), |name| name + &fork);
            examined.push(one(name, &line.seconds, true).with_context(|| format!("line {number}"))?);
        } else {
            let value = line.parse().ok().filter(|value: &f64| value.is_finite());
            let shown: String = line.chars().take(40).collect();
            numbers.push(value.ok_or_else(|| {
                anyhow!("line {number}: '{shown}' is not a number (hint: a number a line, or JSON lines with \"seconds\")")
            })?);
        }
    }
    match (examined.is_empty(), numbers.is_empty()) {
        (true, true) => bail!("it holds no series (hint: a number a line, or JSON lines with \"seconds\")"),
        (false, false) => bail!("it holds numbers and JSON lines (hint: one or the other)"),
        (true, false) => {
            let name = path.file_stem().map_or("-".into(), |name| name.to_string_lossy());
            Ok(vec![one(name.into_owned(), &numbers, false)?])
        }
        (false, true) => Ok(examined),
    }
}

/// The samples of another tool's results, a series for each launch of each metric that has enough of them.
fn of_a_tool(args: &SteadyArgs) -> Result<Option<Vec<Examined>>, Failure> {
    // Standard input has been read.
    if args.file == Path::new("-") {
        return Ok(None);
    }
    let read = match super::results::read(&args.file, &args.chosen.choice()) {
        Ok(read) => read,
        Err(why) if args.chosen.is_given() => return Err(why),
        Err(_) => return Ok(None),
    };
    let mut examined = Vec::new();
    for metric in &read.metrics {
        let name = format!("{} {}", metric.benchmark, metric.name);
        let samples = metric.samples.iter().zip(&metric.launches);
        for launch in samples.collect::<Vec<_>>().chunk_by(|one, other| one.1 == other.1) {
            let values: Vec<f64> = launch.iter().map(|(value, _)| **value).collect();
            let number = launch.first().map_or(0, |(_, number)| **number);
            let one = one(
                format!("{} #{number}", name.trim()),
                &values,
                metric.unit == "s" || metric.unit.starts_with("s/"),
            );
            examined.extend(one.ok().filter(|_| examined.len() < SERIES_MAX));
        }
    }
    Ok((!examined.is_empty()).then_some(examined))
}

fn one(name: String, values: &[f64], seconds: bool) -> anyhow::Result<Examined> {
    let found = steadiness(values).ok_or_else(|| match values.iter().find(|value| **value <= 0.0) {
        Some(value) => anyhow!("{value} is not above zero (hint: times or rates, as they were measured)"),
        None => anyhow!("{} values (hint: from {VALUES_MIN} to {VALUES_MAX} can be judged)", values.len()),
    })?;
    Ok(Examined { name, values: values.len(), seconds, found })
}

/// The file or standard input, decompressed where it is compressed.
fn open(path: &Path) -> io::Result<BufReader<Box<dyn Read>>> {
    let plain: Box<dyn Read> = match path == Path::new("-") {
        true => Box::new(io::stdin()),
        false => Box::new(File::open(path)?),
    };
    let mut reader = BufReader::new(plain);
    let compressed = reader.fill_buf()?.starts_with(&[0x1f, 0x8b]);
    Ok(match compressed {
        true => BufReader::new(Box::new(flate2::bufread::MultiGzDecoder::new(reader))),
        false => BufReader::new(Box::new(reader)),
    })
}
