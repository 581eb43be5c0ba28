//! Medians, ratios to wrk of the same round, their intervals; as Markdown and as JSON with every trial.

use crate::generators::Generator;
use crate::statistics::{Interval, median_interval};
use crate::table::{Row, Table};
use crate::trial::Trial;
use serde_json::{Value, json};
use tare_machine::{Root, facts};

/// What every other is divided by.
const BASE: &str = "wrk";

/// One table for each load.
pub fn markdown(tables: &[Table]) -> String {
    let mut text = String::new();
    for table in tables {
        text += &format!("\n{}\n\n", table.load.name);
        text += "| generator | requests per CPU second | 95 % | CPU µs each | ÷ wrk | 95 % | req/s | server's CPU busy |\n";
        text += "|---|---|---|---|---|---|---|---|\n";
        for row in &table.rows {
            let Some(per_cpu_s) = of(row, Trial::per_cpu_s) else { continue };
            let middle =
                |value: fn(&Trial) -> f64| of(row, value).map_or(f64::NAN, |interval| interval.median);
            let (ratio, ends) = ratio(table, row).map_or(("–".to_owned(), "–".to_owned()), |ratio| {
                (format!("{:.2}", ratio.median), format!("{:.2}–{:.2}", ratio.low, ratio.high))
            });
            text += &format!(
                "| {} | {:.0}k | {:.0}–{:.0}k | {:.2} | {ratio} | {ends} | {:.0}k | {:.0} % |\n",
                row.generator,
                per_cpu_s.median / 1e3,
                per_cpu_s.low / 1e3,
                per_cpu_s.high / 1e3,
                1e6 / per_cpu_s.median,
                middle(Trial::rate_hz) / 1e3,
                100.0 * middle(|trial| trial.server_cpu_s / trial.wall_s),
            );
        }
    }
    text
}

/// Everything, with the machine's facts and the generators' versions, or why one is missing.
pub fn json(tables: &[Table], generators: &[(&Generator, Result<String, String>)]) -> String {
    let versions = generators.iter().map(|(generator, version)| match version {
        Ok(version) => (generator.name.to_owned(), Value::from(version.as_str())),
        Err(why) => (generator.name.to_owned(), json!({ "missing": why })),
    });
    let loads = tables.iter().map(|table| {
        let rows = table.rows.iter().map(|row| {
            json!({
                "generator": row.generator,
                "requests_per_cpu_s": of(row, Trial::per_cpu_s).map(interval),
                "rate_hz": of(row, Trial::rate_hz).map(interval),
                "ratio_to_wrk": ratio(table, row).map(interval),
                "trials": row.trials.iter().map(|trial| trial.as_ref().map(|trial| json!({
                    "requests": trial.requests, "cpu_s": trial.cpu_s, "wall_s": trial.wall_s,
                    "server_cpu_s": trial.server_cpu_s,
                }))).collect::<Vec<_>>(),
            })
        });
        json!({
            "load": table.load.name, "connections": table.load.connections, "depth": table.load.depth,
            "server": format!("{:?}", table.load.server), "rows": rows.collect::<Vec<_>>(),
        })
    });
    let result = json!({
        "generators": versions.collect::<serde_json::Map<_, _>>(),
        "loads": loads.collect::<Vec<_>>(),
        "machine": facts::read(&Root::live()),
    });
    format!("{result:#}\n")
}

fn interval(interval: Interval) -> Value {
    json!({ "median": interval.median, "ci95": [interval.low, interval.high] })
}

fn of(row: &Row, value: impl Fn(&Trial) -> f64) -> Option<Interval> {
    some_interval(row.trials.iter().flatten().map(value).collect())
}

/// Requests per CPU second over the base's of the same round.
fn ratio(table: &Table, row: &Row) -> Option<Interval> {
    let base = table.rows.iter().find(|row| row.generator == BASE)?;
    let pairs = row.trials.iter().zip(&base.trials);
    some_interval(
        pairs
            .filter_map(|(trial, base)| Some(trial.as_ref()?.per_cpu_s() / base.as_ref()?.per_cpu_s()))
            .collect(),
    )
}

fn some_interval(values: Vec<f64>) -> Option<Interval> {
    (!values.is_empty()).then(|| median_interval(values.into_iter()))
}
