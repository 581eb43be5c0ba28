//! How often `tare compare` is wrong: servers against themselves (any difference that is told is made up), and against
//! themselves made 2 % and 1 % dearer a request (which is to be found).
//!
//! `cargo build --release -p tare -p bench-trust && target/release/bench-trust --only aa --count 100`; what the JSON file holds already
//! stays, so it can be done in slices. `--short` is for those who only want to know whether it works.
#![allow(clippy::print_stdout, clippy::print_stderr)] // a program of its own, not a room

mod report;
mod servers;
mod today;
mod work;

use anyhow::{Context, Result, ensure};
use clap::{Parser, ValueEnum};
use serde::{Deserialize, Serialize};
use servers::{Server, Servers};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tare_model::comparison::{Change, Comparison, Effect, Figure};
use tare_sys::process::{Confinement, spawn};

/// Spun by both: the first reading of the clock, which a server that does not spin saves, is in neither's favour then.
const BASE_NS: u64 = 500;
/// Spun more for a calibration, which makes the servers dearer by half and more: a few per cent would drown in noise.
const LEVER_NS: u64 = 16_000;
const LEVER_COSTLIER_MIN: f64 = 0.3;

/// Compares servers with themselves, over and over.
#[derive(Debug, Parser)]
struct Args {
    /// Only these questions.
    #[arg(long, value_delimiter = ',')]
    only: Vec<Question>,
    /// Comparisons of each, servers in turn; 0 with --today alone.
    #[arg(long, default_value_t = 10)]
    count: u32,
    /// Two short comparisons of each question, kept nowhere: fails on errors, never on luck.
    #[arg(long)]
    short: bool,
    /// Beside it what people do today: so many of each of wrk with Welch's t-test, hyperfine, and `tare compare --command`.
    #[arg(long, default_value_t = 0)]
    today: u32,
    /// So many comparisons of servers with 2 and 5 % more work (with --count 0: these alone), each of the pair that has the fewest.
    #[arg(long, default_value_t = 0)]
    work: u32,
    /// So many long runs of fresh processes that say what that work costs in truth.
    #[arg(long, default_value_t = 0)]
    truths: u32,
    /// Only these servers.
    #[arg(long, value_delimiter = ',')]
    workers: Vec<work::Worker>,
    /// Another budget than two minutes for each.
    #[arg(long, value_name = "TIME")]
    work_budget: Option<String>,
    /// No comparisons: only tell what the JSON file holds.
    #[arg(long, conflicts_with_all = ["count", "short", "today"])]
    report: bool,
    /// The tare to compare with.
    #[arg(long, default_value = "target/release/tare")]
    tare: PathBuf,
    /// Every comparison.
    #[arg(long, default_value = "bench/results/trust.json")]
    json: PathBuf,
    /// What follows from them.
    #[arg(long, default_value = "bench/results/trust.md")]
    markdown: PathBuf,
}

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Question {
    /// A server against itself, 20 s.
    Aa,
    /// 2 % dearer, 60 s.
    Power2,
    /// 1 % dearer, 180 s.
    Power1,
}

impl Question {
    const ALL: [Question; 3] = [Question::Aa, Question::Power2, Question::Power1];

    fn costlier(self) -> Option<f64> {
        match self {
            Question::Aa => None,
            Question::Power2 => Some(0.02),
            Question::Power1 => Some(0.01),
        }
    }

    fn budget_s(self, short: bool) -> u32 {
        match self {
            _ if short => 10,
            Question::Aa => 20,
            Question::Power2 => 60,
            Question::Power1 => 180,
        }
    }

    /// A difference is to be found with this precision; what is finer than the default must be asked for.
    fn precision(self) -> &'static str {
        if self == Question::Power1 { "0.4%" } else { "1%" }
    }
}

/// A comparison and what it told.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Row {
    question: Question,
    server: Server,
    started_unix_s: u64,
    seed: u64,
    launches: usize,
    disturbed: usize,
    elapsed_s: f64,
    effects: Vec<Effect>,
}

/// All of them, with what they were made on.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Results {
    machine: serde_json::Value,
    /// How each server was made dearer.
    calibrations: Vec<Calibration>,
    rows: Vec<Row>,
    /// What people do today.
    #[serde(default)]
    today: Vec<today::Row>,
    /// Servers with more work.
    #[serde(default)]
    work: Vec<work::Row>,
    /// What that costs.
    #[serde(default)]
    truths: Vec<work::Truth>,
}

/// By how much a server is dearer with [`LEVER_NS`] more.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Calibration {
    server: Server,
    /// Spun beside [`BASE_NS`], nanoseconds.
    lever_ns: u64,
    /// By how much CPU time of a request grows with it, and its interval.
    #[serde(alias = "dearer")]
    costlier: Change,
}

impl Calibration {
    /// What makes it dearer by a share: CPU time grows in proportion to what is spun.
    fn more_ns(&self, costlier: f64) -> u64 {
        (self.lever_ns as f64 * costlier / self.costlier.value).round() as u64
    }
}

impl Results {
    fn calibration(&self, server: Server) -> Option<Calibration> {
        self.calibrations.iter().find(|known| known.server == server).copied()
    }
}

fn main() -> Result<()> {
    let args = Args::parse();
    let mut results = read(&args.json)?;
    if args.short {
        results = Results::default();
    }
    if !args.report {
        let servers = Servers::prepare()?;
        results.machine = serde_json::to_value(tare_machine::facts::read(&tare_machine::Root::live()))?;
        let all = Question::ALL.into_iter().filter(|one| args.only.is_empty() || args.only.contains(one));
        for question in all {
            ask(question, &args, &servers, &mut results)?;
        }
        today::ask(args.today, &args, &servers, &mut results)?;
        work::ask(&args, &mut results)?;
    }
    let text = report::markdown(&results);
    println!("{text}");
    if !args.short {
        std::fs::write(&args.markdown, text).context("cannot write the report")?;
    }
    Ok(())
}

/// As many comparisons of a question as are wanted, each of the server that has the fewest so far.
fn ask(question: Question, args: &Args, servers: &Servers, results: &mut Results) -> Result<()> {
    let suited: Vec<Server> =
        servers.all().filter(|server| question == Question::Aa || server.can_spin()).collect();
    let count = if args.short { 2 } else { args.count };
    for _ in 0..count {
        let done = |server: &Server| {
            results.rows.iter().filter(|row| row.question == question && row.server == *server).count()
        };
        let server = suited.iter().copied().min_by_key(done).context("there is no server to compare")?;
        let pages = match question.costlier() {
            None => [servers.page(server).to_owned(), servers.page(server).to_owned()],
            Some(costlier) => pages(calibration(server, args, servers, results)?.more_ns(costlier)),
        };
        let budget = format!("{}s", question.budget_s(args.short));
        let started_unix_s = tare_sys::time::wall_s();
        let comparison = compare(args, servers, server, &pages, &budget, question.precision())?;
        let row = Row {
            question,
            server,
            started_unix_s,
            seed: comparison.seed,
            launches: comparison.launches.len(),
            disturbed: comparison.launches.iter().filter(|launch| !launch.disturbed.is_empty()).count(),
            elapsed_s: comparison.elapsed_s,
            effects: comparison.effects,
        };
        eprintln!("{}", report::line(&row));
        results.rows.push(row);
        keep(args, results)?;
    }
    Ok(())
}

/// Finds how much dearer the lever makes a server, once for all questions.
fn calibration(server: Server, args: &Args, servers: &Servers, results: &mut Results) -> Result<Calibration> {
    if let Some(known) = results.calibration(server) {
        return Ok(known);
    }
    let budget = if args.short { "10s" } else { "40s" };
    let comparison = compare(args, servers, server, &pages(LEVER_NS), budget, "0.5%")?;
    let cost = comparison.effects.iter().find(|effect| effect.figure == Figure::CpuPerRequest);
    let costlier = cost.and_then(|effect| effect.change);
    let costlier = costlier.with_context(|| format!("{} has no CPU time of a request", server.name()))?;
    let shown = format!("{} with {LEVER_NS} ns more: {:+.1} %", server.name(), costlier.value * 100.0);
    eprintln!("{shown}");
    ensure!(costlier.value >= LEVER_COSTLIER_MIN, "{shown}, too little to calibrate by");
    let found = Calibration { server, lever_ns: LEVER_NS, costlier };
    results.calibrations.push(found);
    keep(args, results)?;
    Ok(found)
}

/// What both spin, and what the second spins more.
fn pages(more_ns: u64) -> [String; 2] {
    [format!("/spin?ns={BASE_NS}"), format!("/spin?ns={}", BASE_NS + more_ns)]
}

fn compare(
    args: &Args,
    servers: &Servers,
    server: Server,
    pages: &[String; 2],
    budget: &str,
    precision: &str,
) -> Result<Comparison> {
    let folder = tempfile::tempdir()?;
    let mut command = Command::new(&args.tare);
    command.args(["compare", "--json", "-q", "--budget", budget, "--precision", precision]);
    command.args(["--sut", &servers.command(server)]).args(pages);
    command.env("TARE_STATE_DIR", folder.path()).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    // It ends with us, and so does what it starts.
    let child = spawn(&mut command, &Confinement::default()).context("cannot start tare")?;
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "tare compare of {} ended with {}: {said}",
        server.name(),
        output.status
    );
    serde_json::from_slice(&output.stdout).with_context(|| format!("tare said: {said}"))
}

/// After each comparison: a slice that is cut short loses one at most.
fn keep(args: &Args, results: &Results) -> Result<()> {
    if args.short {
        return Ok(());
    }
    let beside = args.json.with_extension("part");
    std::fs::write(&beside, serde_json::to_string(results)?)?;
    std::fs::rename(&beside, &args.json).with_context(|| format!("cannot write {}", args.json.display()))
}

fn median(values: Vec<f64>) -> Option<f64> {
    tare_stats::median(&values)
}

fn read(path: &Path) -> Result<Results> {
    match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).with_context(|| format!("{} is damaged", path.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Results::default()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}
