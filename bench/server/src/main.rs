//! Measures HTTP servers against the floor: server CPU time per request, interleaved in random order.
//!
//! `bench/server/run` builds everything and makes the whole table; see README.md.

mod report;
mod servers;
mod statistics;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use servers::Running;
use tare_load::{Generator, LoadSpec, Target};

/// Connections and requests in flight on each: what is measured in one table.
pub const CELLS: &[(u32, u32)] = &[(64, 1), (64, 16), (1024, 1), (1024, 16), (1, 1)];

pub struct Options {
    rounds: usize,
    round: Duration,
    /// The release binary of tare.
    tare: PathBuf,
    /// Where the result goes: NAME.json and NAME.md.
    out: Option<PathBuf>,
    /// Only this cell.
    cell: Option<(u32, u32)>,
    names: Vec<String>,
}

const USAGE: &str = "bench-server [--rounds N] [--round-ms MS] [--cell CONNECTIONS,DEPTH] [--tare FILE] \
                     [--out FILE.json] [NAME…]";

fn options() -> Result<Options, String> {
    let mut options = Options {
        rounds: 31,
        round: Duration::from_millis(200),
        tare: PathBuf::from("../../target/release/tare"),
        out: None,
        cell: None,
        names: Vec::new(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value\n{USAGE}"));
        let number = |text: String| text.parse::<u32>().map_err(|e| format!("{text}: {e}\n{USAGE}"));
        match word.as_str() {
            "--rounds" => options.rounds = number(value()?)?.max(1) as usize,
            "--round-ms" => options.round = Duration::from_millis(u64::from(number(value()?)?)),
            "--tare" => options.tare = value()?.into(),
            "--out" => options.out = Some(value()?.into()),
            "--cell" => {
                let text = value()?;
                let (connections, depth) = text.split_once(',').ok_or(USAGE)?;
                options.cell = Some((number(connections.to_owned())?, number(depth.to_owned())?));
            }
            name if name.starts_with('-') => return Err(format!("unknown option {name}\n{USAGE}")),
            name => options.names.push(name.to_owned()),
        }
    }
    Ok(options)
}

/// What one round of one server showed.
pub struct Round {
    pub cpu_ns_per_request: f64,
    pub requests_per_s: f64,
    pub p50_ns: f64,
    pub p99_ns: f64,
}

/// One table: the rounds of each server, in the order of the servers; or why it has none.
pub struct Cell {
    pub connections: u32,
    pub depth: u32,
    pub servers: Vec<(&'static str, Result<Vec<Round>, String>)>,
}

fn measure_one(server: &Running, (connections, depth): (u32, u32), round: Duration) -> Result<Round, String> {
    let url = format!("http://127.0.0.1:{}/plaintext", server.port);
    let mut spec = LoadSpec::new(Target::parse(&url).map_err(|e| e.to_string())?);
    spec.connections = connections;
    spec.pipeline = depth;
    spec.workers.cpus = vec![1];
    let mut generator = Generator::start(&spec).map_err(|e| e.to_string())?;
    std::thread::sleep(round / 3);
    generator.cut();
    let cpu_before_ns = server.cpu_ns();
    std::thread::sleep(round);
    let cpu_after_ns = server.cpu_ns();
    let sample = generator.cut();
    generator.stop().map_err(|e| e.to_string())?;
    let requests = sample.requests.value().copied().unwrap_or(0) as f64;
    if requests == 0.0 || !sample.errors.is_empty() {
        return Err(format!("{requests} requests, errors {:?}", sample.errors));
    }
    let quantile = |q| sample.latency.value().and_then(|l| l.quantile_ns(q)).unwrap_or(0) as f64;
    Ok(Round {
        cpu_ns_per_request: (cpu_after_ns - cpu_before_ns) / requests,
        requests_per_s: requests / (sample.elapsed_ns as f64 / 1e9),
        p50_ns: quantile(0.5),
        p99_ns: quantile(0.99),
    })
}

/// Rounds of every server, each turn in a new random order. A server that fails once is out of this cell.
fn measure(running: &[Running], at: (u32, u32), options: &Options) -> Cell {
    let mut random = statistics::Random::new();
    let mut rounds: Vec<Vec<Round>> = running.iter().map(|_| Vec::new()).collect();
    let mut failed: BTreeMap<usize, String> = BTreeMap::new();
    for _ in 0..options.rounds {
        for i in random.order(running.len()) {
            if failed.contains_key(&i) {
                continue;
            }
            match measure_one(&running[i], at, options.round) {
                Ok(round) => rounds[i].push(round),
                Err(why) => {
                    eprintln!("{} at {at:?}: {why}", running[i].name);
                    failed.insert(i, why);
                }
            }
        }
    }
    let servers = running
        .iter()
        .zip(rounds)
        .enumerate()
        .map(|(i, (server, rounds))| (server.name, failed.remove(&i).map_or(Ok(rounds), Err)));
    Cell { connections: at.0, depth: at.1, servers: servers.collect() }
}

fn main() -> Result<(), String> {
    let options = options()?;
    let running = servers::start(&options.names, &options.tare)?;
    servers::check_that_floors_answer_as_tare_does(&running)?;
    let cells: Vec<(u32, u32)> = options.cell.map_or(CELLS.to_vec(), |cell| vec![cell]);
    let mut tables = Vec::new();
    for cell in cells {
        let table = measure(&running, cell, &options);
        println!("{}", report::markdown(&table));
        tables.push(table);
    }
    match &options.out {
        Some(path) => report::write(path, &tables, &running, &options),
        None => Ok(()),
    }
}
