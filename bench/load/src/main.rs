//! Measures load generators against wrk: requests per second of the *generator's* CPU time, in interleaved trials.
//!
//! `bench-load [--rounds 31] [--out ../results/load.json] [--table ../results/load.md]`, see README.md beside this.

mod generators;
mod load;
mod report;
#[path = "../../server/src/statistics.rs"]
mod statistics;
mod table;
mod trial;

use clap::Parser;
use generators::GENERATORS;
use load::{Load, Serves};
use std::path::PathBuf;
use std::time::Instant;
use table::{Row, Table};
use trial::Workshop;

/// What is measured and where the result goes.
#[derive(Debug, Parser)]
struct Args {
    /// Rounds; in each, every generator has one trial of a second under every load, in random order.
    #[arg(long, default_value_t = 31)]
    rounds: usize,
    /// The `tare` to measure; by default the release build of this tree.
    #[arg(long, default_value = "../../target/release/tare")]
    tare: PathBuf,
    /// Folder with generators that Debian does not have (oha, bombardier), before those in PATH.
    #[arg(long)]
    peers: Option<PathBuf>,
    /// Only the loads whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// Only these generators, by their names.
    #[arg(long, value_delimiter = ',')]
    by: Vec<String>,
    /// Where every trial goes as JSON.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Where the tables go as Markdown, besides standard output.
    #[arg(long)]
    table: Option<PathBuf>,
}

/// The loads, and who makes them. Each generator has one thread on CPU 1, the server is on CPU 0.
const LOADS: &[Load] = &[
    Load {
        name: "depth 1, 64 connections",
        connections: 64,
        depth: 1,
        server: Serves::Constant,
        by: &["tare", "tare epoll", "tare io_uring", "bare", "wrk", "ab", "h2load", "bombardier", "oha"],
    },
    Load {
        name: "depth 1, 1024 connections",
        connections: 1024,
        depth: 1,
        server: Serves::Constant,
        by: &["tare", "tare epoll", "tare io_uring", "bare", "wrk", "h2load"],
    },
    Load {
        name: "depth 16, 64 connections",
        connections: 64,
        depth: 16,
        server: Serves::Constant,
        by: &["tare", "tare epoll", "tare io_uring", "bare", "wrk", "h2load"],
    },
    Load {
        name: "TLS, 64 connections",
        connections: 64,
        depth: 1,
        server: Serves::Tls,
        by: &["tare", "wrk", "h2load"],
    },
    Load {
        name: "a connection per request, 64 at a time",
        connections: 64,
        depth: 1,
        server: Serves::OneEach,
        by: &["tare", "tare io_uring", "wrk", "ab"],
    },
];

fn main() -> Result<(), String> {
    let args = Args::parse();
    let mut workshop = Workshop::new(&args.tare, args.peers.as_deref())?;
    let there: Vec<_> = GENERATORS.iter().map(|generator| (generator, workshop.version(generator))).collect();
    for (generator, version) in &there {
        eprintln!("{}: {}", generator.name, version.as_ref().unwrap_or_else(|why| why));
    }
    let can = |name: &str| there.iter().any(|(generator, version)| generator.name == name && version.is_ok());
    let mut tables: Vec<Table> = LOADS
        .iter()
        .filter(|load| load.name.contains(&args.only) && workshop.can_serve(load.server))
        .map(|load| {
            let wanted = |name: &str| args.by.is_empty() || args.by.iter().any(|by| by == name);
            let names = load.by.iter().filter(|name| wanted(name) && can(name));
            Table { load, rows: names.map(|generator| Row { generator, trials: Vec::new() }).collect() }
        })
        .collect();
    let places: Vec<(usize, usize)> =
        tables.iter().enumerate().flat_map(|(t, table)| (0..table.rows.len()).map(move |r| (t, r))).collect();
    let mut random = statistics::Random::new();
    let start = Instant::now();
    for round in 0..args.rounds {
        for at in random.order(places.len()) {
            let (t, r) = places[at];
            let table = &mut tables[t];
            let trial = workshop.trial(table.rows[r].generator, table.load);
            if let Err(why) = &trial {
                eprintln!("round {round}, {}, {}: {why}", table.load.name, table.rows[r].generator);
            }
            table.rows[r].trials.push(trial.ok());
        }
    }
    eprintln!("{} rounds in {:.0} s", args.rounds, start.elapsed().as_secs_f64());
    let markdown = report::markdown(&tables);
    print!("{markdown}");
    let write = |path: &Option<PathBuf>, text: String| match path {
        Some(path) => std::fs::write(path, text).map_err(|why| format!("{}: {why}", path.display())),
        None => Ok(()),
    };
    write(&args.table, markdown)?;
    write(&args.out, report::json(&tables, &there))
}
