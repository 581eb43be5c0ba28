//! What does not run must cost a measurement next to nothing. A server of one busy loop is measured by `tare run` beside sleeping threads
//! of its own, and beside idle processes of others: for each number of them the observers' CPUs, the size of the record, how long
//! `tare show` takes and how long the whole run.
//!
//! `cargo build --release -p tare -p bench-idle && target/release/bench-idle --out bench/results/idle.json`
#![allow(clippy::print_stdout)] // a program of its own, not a room

mod server;

use anyhow::{Context, Result, bail, ensure};
use clap::{Parser, Subcommand, ValueEnum};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use tare_machine::{Root, facts};

/// What is measured, and where the result goes.
#[derive(Debug, Parser)]
struct Args {
    #[command(subcommand)]
    serve: Option<Serve>,
    /// How many sleep.
    #[arg(long, value_delimiter = ',', default_value = "0,100,1000,10000")]
    counts: Vec<u32>,
    /// What sleeps.
    #[arg(long, value_delimiter = ',', default_value = "threads,processes")]
    what: Vec<What>,
    /// Trials of each run.
    #[arg(long, default_value_t = 4)]
    trials: u32,
    /// Seconds of each trial.
    #[arg(long, default_value_t = 1.5)]
    seconds: f64,
    /// The program, by default `tare` beside this one.
    #[arg(long)]
    tare: Option<PathBuf>,
    /// Where the result goes as JSON.
    #[arg(long)]
    out: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Serve {
    /// The server that is measured: one busy loop beside threads that sleep.
    Serve {
        /// Where it listens.
        address: SocketAddr,
        /// Threads that sleep.
        #[arg(long, default_value_t = 0)]
        sleepers: u32,
    },
}

/// What sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// Threads of the server.
    Threads,
    /// Processes beside it.
    Processes,
}

/// Processes that end with us, also when a measurement fails.
struct Children(Vec<Child>);

impl Drop for Children {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(|child| _ = child.kill());
        self.0.iter_mut().for_each(|child| _ = child.wait());
    }
}

/// What one run showed.
#[derive(Debug)]
struct Row {
    what: What,
    count: u32,
    /// `None`: what watching took could not be measured.
    observers_cpus: Option<f64>,
    on_sut_cpus: Option<f64>,
    record_bytes: u64,
    show_s: f64,
    run_s: f64,
    residual_percent: Option<f64>,
    rate_hz: Option<f64>,
    bottleneck: String,
}

/// `tare show` is the quickest of so many.
const SHOWS: u32 = 3;

fn main() -> Result<()> {
    let args = Args::parse();
    if let Some(Serve::Serve { address, sleepers }) = args.serve {
        return server::serve(address, sleepers);
    }
    let tare = match &args.tare {
        Some(tare) => tare.clone(),
        None => std::env::current_exe()?.with_file_name("tare"),
    };
    ensure!(tare.exists(), "{} is not there: build it, or name it with --tare", tare.display());
    println!(
        "{:<10} {:>6} {:>10} {:>10} {:>10} {:>7} {:>7} {:>9} {:>9}  bottleneck",
        "idle", "count", "observers", "on server", "record", "show", "run", "residual", "req/s"
    );
    let mut rows: Vec<Row> = Vec::new();
    for &what in &args.what {
        for &count in &args.counts {
            let row = measure(&args, &tare, what, count).with_context(|| format!("{count} {what:?}"))?;
            print(&row);
            rows.push(row);
        }
    }
    let Some(path) = &args.out else { return Ok(()) };
    let machine = facts::read(&Root::live());
    let rows: Vec<Value> = rows.iter().map(as_json).collect();
    let result = json!({ "trials": args.trials, "seconds": args.seconds, "rows": rows, "machine": machine });
    std::fs::write(path, format!("{result:#}\n")).with_context(|| format!("cannot write {}", path.display()))
}

fn print(row: &Row) {
    let known = |value: Option<f64>| value.map_or("missing".to_owned(), |value| format!("{value:.4}"));
    println!(
        "{:<10} {:>6} {:>10} {:>10} {:>10} {:>6.2}s {:>6.1}s {:>9} {:>9.0}  {}",
        format!("{:?}", row.what).to_lowercase(),
        row.count,
        known(row.observers_cpus),
        known(row.on_sut_cpus),
        row.record_bytes,
        row.show_s,
        row.run_s,
        row.residual_percent.map_or("missing".to_owned(), |percent| format!("{percent:.2} %")),
        row.rate_hz.unwrap_or(f64::NAN),
        row.bottleneck
    );
}

fn as_json(row: &Row) -> Value {
    json!({
        "what": format!("{:?}", row.what).to_lowercase(),
        "count": row.count,
        "observers_cpus": row.observers_cpus,
        "observers_on_sut_cpus": row.on_sut_cpus,
        "record_bytes": row.record_bytes,
        "show_s": row.show_s,
        "run_s": row.run_s,
        "residual_percent": row.residual_percent,
        "rate_hz": row.rate_hz,
        "bottleneck": row.bottleneck,
    })
}

fn measure(args: &Args, tare: &Path, what: What, count: u32) -> Result<Row> {
    let threads = if what == What::Threads { count } else { 0 };
    let (server, address) = start_server(threads)?;
    let processes = if what == What::Processes { count } else { 0 };
    let idle = idle_processes(processes)?;
    let record = std::env::temp_dir().join(format!("bench-idle-{}.tare", std::process::id()));
    let begun = Instant::now();
    let run = Command::new(tare)
        .arg("run")
        .args(["--trials", &args.trials.to_string(), "-d", &format!("{}s", args.seconds), "--json", "-o"])
        .arg(&record)
        .arg(format!("http://{address}/plaintext"))
        .stderr(Stdio::inherit())
        .output()?;
    let run_s = begun.elapsed().as_secs_f64();
    drop((server, idle));
    let outcome: Value = serde_json::from_slice(&run.stdout).context("what tare run printed")?;
    let mut show_s = f64::INFINITY;
    for _ in 0..SHOWS {
        let begun = Instant::now();
        let show = Command::new(tare).arg("show").arg(&record).arg("--json").output()?;
        ensure!(!show.stdout.is_empty(), "tare show printed nothing");
        show_s = show_s.min(begun.elapsed().as_secs_f64());
    }
    let record_bytes = std::fs::metadata(&record)?.len();
    std::fs::remove_file(&record)?;
    let cost = &outcome["own_cost"];
    Ok(Row {
        what,
        count,
        observers_cpus: cost["observers_cpus"].as_f64(),
        on_sut_cpus: cost["observers_on_sut_cpus"].as_f64(),
        record_bytes,
        show_s,
        run_s,
        residual_percent: outcome["accounting"]["residual_ratio"].as_f64().map(|ratio| 100.0 * ratio),
        rate_hz: outcome["gross"]["value"].as_f64(),
        bottleneck: outcome["bottleneck"].as_str().unwrap_or("none").to_owned(),
    })
}

fn start_server(sleepers: u32) -> Result<(Children, SocketAddr)> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["serve", "127.0.0.1:0", "--sleepers", &sleepers.to_string()]).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let stdout = child.stdout.take();
    let children = Children(vec![child]);
    let mut line = String::new();
    BufReader::new(stdout.context("no output of the server")?).read_line(&mut line)?;
    let Some(address) = line.trim().strip_prefix("listening on ") else { bail!("the server said {line:?}") };
    Ok((children, address.parse()?))
}

fn idle_processes(count: u32) -> Result<Children> {
    let mut children = Children(Vec::new());
    for number in 0..count {
        let child = Command::new("sleep").arg("100000").spawn();
        children.0.push(child.with_context(|| format!("idle process {number}"))?);
    }
    Ok(children)
}
