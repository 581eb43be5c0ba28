//! Whether net holds still: nginx and the embedded server on CPU 0, measured by `tare run` while eight things are done to
//! them, in rounds with fresh processes and an order drawn at random. Gross moves many-fold; net should not.
//!
//! `cargo build --release -p tare -p bench-net && target/release/bench-net --rounds 40` (as root, on two CPUs or more)
#![allow(clippy::print_stdout, clippy::print_stderr)] // a program of its own, not a room

mod cell;
mod disturb;
mod headline;
mod place;
mod report;
mod rows;
mod servers;
mod toggle;

use anyhow::{Context, Result};
use cell::Cell;
use clap::Parser;
use rows::Row;
use serde::{Deserialize, Serialize};
use servers::Kind;
use std::path::PathBuf;

/// Measures both servers in all rows, round by round.
#[derive(Debug, Parser)]
struct Args {
    /// Rounds, one cell of every row and server in each.
    #[arg(long, default_value_t = 40)]
    rounds: u32,
    /// Go on with what the JSON file holds already.
    #[arg(long)]
    append: bool,
    /// No rounds: only make the tables of the JSON file again.
    #[arg(long, conflicts_with_all = ["rounds", "append"])]
    report: bool,
    /// No rounds: so many pairs of windows of one launch of each server, beside a busy loop and without.
    #[arg(long, value_name = "PAIRS", conflicts_with_all = ["rounds", "append", "report", "only"])]
    toggle: Option<u32>,
    /// The same of nginx and the reference interleaved: a busy loop, and a quota, that come and go.
    #[arg(long, value_name = "PAIRS", conflicts_with_all = ["rounds", "append", "report", "only", "toggle"])]
    toggle_interleaved: Option<u32>,
    /// Length of a trial in milliseconds; under a quota it is twice that.
    #[arg(long, default_value_t = 1000)]
    trial_ms: u64,
    /// Trials of each level in a cell: more of them average over more of what a host does to two programs unlike.
    #[arg(long, default_value_t = 1)]
    trials: u32,
    /// Sessions as `tare run` makes them by itself: warm-up, trials and their lengths are its own choice.
    #[arg(long, conflicts_with_all = ["trial_ms", "trials"])]
    long: bool,
    /// Only these servers.
    #[arg(long = "server", value_delimiter = ',')]
    servers: Vec<Kind>,
    /// Only these rows.
    #[arg(long, value_delimiter = ',')]
    only: Vec<Row>,
    /// Seed of the order.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The tare to measure with.
    #[arg(long, default_value = "target/release/tare")]
    tare: PathBuf,
    /// Where tare keeps its state: one for all cells, as on a user's machine.
    #[arg(long, default_value = "target/bench-net-state")]
    state: PathBuf,
    /// Every cell, and what follows from them.
    #[arg(long, default_value = "bench/results/net.json")]
    json: PathBuf,
    /// The same as tables.
    #[arg(long, default_value = "bench/results/net.md")]
    markdown: PathBuf,
}

/// All cells with what they were made on.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Results {
    machine: serde_json::Value,
    /// Trial length and seeds, slice by slice.
    slices: Vec<Slice>,
    cells: Vec<Cell>,
    /// What follows from the cells, made anew each time.
    #[serde(default)]
    summary: serde_json::Value,
}

#[derive(Debug, Serialize, Deserialize)]
struct Slice {
    rounds: u32,
    trial_ms: u64,
    #[serde(default = "one")]
    trials: u32,
    #[serde(default)]
    long: bool,
    seed: u64,
}

/// So often is a cell measured once more that failed, or that met the CPUs in another place than most. All are kept.
const AGAIN: u32 = 1;
/// Of each kind, in turn.
const LAUNCHES: usize = 3;

fn one() -> u32 {
    1
}

fn main() -> Result<()> {
    let args = Args::parse();
    if let Some(pairs) = args.toggle {
        let kinds = Kind::ALL.into_iter().cycle().take(LAUNCHES * Kind::ALL.len());
        return launches(&args, kinds.map(|kind| toggle::alone(&args, kind, pairs)));
    }
    if let Some(pairs) = args.toggle_interleaved {
        let rows = [Row::Busy, Row::Quota].into_iter().cycle().take(2 * LAUNCHES);
        return launches(&args, rows.map(|row| toggle::interleaved(&args, row, pairs)));
    }
    std::fs::create_dir_all(&args.state)?;
    let mut results = match args.append || args.report {
        true => read(&args.json)?,
        false => Results::default(),
    };
    if !args.report {
        rounds(&args, &mut results)?;
    }
    let summary = report::summary(&results.cells);
    results.summary = serde_json::to_value(&summary)?;
    let headlines = headline::of(&results.cells);
    results.summary["headline"] = serde_json::to_value(&headlines)?;
    write(&args.json, &serde_json::to_string(&results)?)?;
    let text = report::markdown(&results, &summary) + &headline::markdown(&headlines);
    write(&args.markdown, &text)?;
    println!("{text}");
    Ok(())
}

/// Makes launches, one after the other, and keeps what came of them.
fn launches<T: Serialize + std::fmt::Debug>(
    args: &Args,
    launches: impl Iterator<Item = Result<T>>,
) -> Result<()> {
    let machine = tare_machine::facts::read(&tare_machine::Root::live());
    let mut results = Vec::new();
    for launch in launches {
        let launch = launch?;
        eprintln!("{launch:?}");
        results.push(launch);
    }
    let results = serde_json::json!({ "machine": machine, "launches": results });
    write(&args.json, &serde_json::to_string_pretty(&results)?)
}

fn write(path: &PathBuf, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn read(path: &PathBuf) -> Result<Results> {
    match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).with_context(|| format!("{} is damaged", path.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Results::default()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

fn rounds(args: &Args, results: &mut Results) -> Result<()> {
    let first = results.cells.iter().map(|cell| cell.round + 1).max().unwrap_or(0);
    let mut random = Random(args.seed ^ (u64::from(first) << 32));
    results.machine = serde_json::to_value(tare_machine::facts::read(&tare_machine::Root::live()))?;
    results.slices.push(Slice {
        rounds: args.rounds,
        trial_ms: args.trial_ms,
        trials: args.trials,
        long: args.long,
        seed: args.seed,
    });
    let rows: Vec<Row> = match args.only.is_empty() {
        true => Row::ALL.to_vec(),
        false => args.only.clone(),
    };
    let servers: Vec<Kind> = match args.servers.is_empty() {
        true => Kind::ALL.to_vec(),
        false => args.servers.clone(),
    };
    for round in first..first + args.rounds {
        let mut cells: Vec<(Kind, Row)> =
            servers.iter().flat_map(|kind| rows.iter().map(move |row| (*kind, *row))).collect();
        random.shuffle(&mut cells);
        for (kind, row) in cells {
            for _ in 0..=AGAIN {
                match cell::measure(args, round, kind, row) {
                    Ok(cell) => {
                        eprintln!("{round:3} {cell}");
                        let is_usual = place::is_usual(&cell, &results.cells);
                        results.cells.push(cell);
                        if is_usual {
                            break;
                        }
                    }
                    // One that failed is missing, and said so; the others stand.
                    Err(error) => eprintln!("{round:3} {kind:?} {row:?}: {error:#}"),
                }
            }
        }
        // After each round: a slice that is cut short loses one at most.
        write(&args.json, &serde_json::to_string(results)?)?;
    }
    Ok(())
}

/// xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, count: usize) -> usize {
        self.0 |= 1;
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % count.max(1)
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}
