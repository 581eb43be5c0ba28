//! Tables of what was measured, as Markdown and as JSON.

use std::fmt::Write;
use std::path::Path;

use serde_json::{Value, json};
use tare_machine::{Root, facts};

use crate::servers::Running;
use crate::statistics::{Interval, median_interval};
use crate::{Cell, Options, Round};

/// One server of a table.
struct Row<'a> {
    name: &'static str,
    rounds: &'a [Round],
    cost_us: Interval,
    /// To the floor of the same turn.
    ratio: Interval,
    requests_per_s: Interval,
    p50_us: Interval,
    p99_us: Interval,
}

/// The floor of a table is the cheaper one; every server's ratio is to its round of the same turn.
fn rows(cell: &Cell) -> (Option<&'static str>, Vec<Row<'_>>) {
    let measured: Vec<(&'static str, &[Round])> = cell
        .servers
        .iter()
        .filter_map(|(name, rounds)| Some((*name, rounds.as_ref().ok()?.as_slice())))
        .collect();
    let cost = |rounds: &[Round]| median_interval(rounds.iter().map(|r| r.cpu_ns_per_request / 1e3));
    let floors = measured.iter().filter(|(name, _)| name.starts_with("floor"));
    let floor = floors.min_by(|a, b| cost(a.1).median.total_cmp(&cost(b.1).median));
    let rows = measured.iter().map(|(name, rounds)| {
        let floor = floor.map_or(*rounds, |f| f.1);
        let pairs = rounds.iter().zip(floor).map(|(a, b)| a.cpu_ns_per_request / b.cpu_ns_per_request);
        Row {
            name,
            rounds,
            cost_us: cost(rounds),
            ratio: median_interval(pairs),
            requests_per_s: median_interval(rounds.iter().map(|r| r.requests_per_s)),
            p50_us: median_interval(rounds.iter().map(|r| r.p50_ns / 1e3)),
            p99_us: median_interval(rounds.iter().map(|r| r.p99_ns / 1e3)),
        }
    });
    let mut rows: Vec<Row<'_>> = rows.collect();
    // With one connection wake-ups of idle CPUs rule: nothing is ranked.
    if cell.connections > 1 {
        rows.sort_by(|a, b| a.cost_us.median.total_cmp(&b.cost_us.median));
    }
    (floor.map(|f| f.0), rows)
}

pub fn markdown(cell: &Cell) -> String {
    let (floor, rows) = rows(cell);
    let mut text = format!("\n### {} connections, depth {}\n\n", cell.connections, cell.depth);
    text += "| server | CPU µs per request | 95 % | / floor | 95 % | req/s | p50 µs | p99 µs | 95 % |\n";
    text += "|---|---|---|---|---|---|---|---|---|\n";
    for row in &rows {
        let ratio = match floor {
            Some(name) if name == row.name => ("1".to_owned(), String::new()),
            Some(_) if cell.connections > 1 => {
                (format!("{:.3}", row.ratio.median), format!("{:.3}–{:.3}", row.ratio.low, row.ratio.high))
            }
            _ => Default::default(),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "| {} | {:.3} | {:.3}–{:.3} | {} | {} | {:.0} | {:.0} | {:.0} | {:.0}–{:.0} |",
            row.name,
            row.cost_us.median,
            row.cost_us.low,
            row.cost_us.high,
            ratio.0,
            ratio.1,
            row.requests_per_s.median,
            row.p50_us.median,
            row.p99_us.median,
            row.p99_us.low,
            row.p99_us.high,
        );
    }
    for (name, why) in cell.servers.iter().filter_map(|(name, rounds)| Some((name, rounds.as_ref().err()?))) {
        let _ = writeln!(text, "\n{name} has no figure: {why}");
    }
    text
}

fn interval(of: &Interval) -> Value {
    json!({ "median": of.median, "low": of.low, "high": of.high })
}

fn json(cell: &Cell) -> Value {
    let (floor, rows) = rows(cell);
    let servers: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({
                "name": row.name,
                "cpu_us_per_request": interval(&row.cost_us),
                "ratio_to_floor": interval(&row.ratio),
                "requests_per_s": interval(&row.requests_per_s),
                "p50_us": interval(&row.p50_us),
                "p99_us": interval(&row.p99_us),
                "rounds_cpu_ns_per_request":
                    row.rounds.iter().map(|r| r.cpu_ns_per_request.round()).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({
        "connections": cell.connections, "depth": cell.depth, "floor": floor,
        "ranked": cell.connections > 1, "servers": servers,
    })
}

/// Writes `path` as JSON and, beside it, the tables as Markdown.
pub fn write(path: &Path, cells: &[Cell], running: &[Running], options: &Options) -> Result<(), String> {
    // Where the tree stands on this disk is nobody's business.
    let here = std::env::current_dir().map_or_else(|_| String::new(), |here| format!("{}/", here.display()));
    let told = |command: &str| if here.is_empty() { command.to_owned() } else { command.replace(&here, "") };
    let commands: Vec<Value> = running
        .iter()
        .map(|r| json!({ "name": r.name, "command": told(&r.command), "version": r.version }))
        .collect();
    let result = json!({
        "rounds": options.rounds,
        "round_s": options.round.as_secs_f64(),
        "placement": "server on CPU 0, load on CPU 1, loopback",
        "intervals": "95 %, of medians, by order statistics",
        "servers": commands,
        "tables": cells.iter().map(json).collect::<Vec<_>>(),
        "machine": facts::read(&Root::live()),
    });
    let text: String = cells.iter().map(markdown).collect();
    let failed = |e: std::io::Error| format!("cannot write {}: {e}", path.display());
    std::fs::write(path, format!("{result:#}\n")).map_err(failed)?;
    std::fs::write(path.with_extension("md"), text.trim_start()).map_err(failed)
}
