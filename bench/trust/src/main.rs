//! How often `tare compare` is wrong: servers against themselves (any difference that is told is made up), and against
//! themselves made 2 % and 1 % dearer a request (which is to be found).
//!
//! `cargo build --release -p tare -p bench-trust && target/release/bench-trust --only aa --count 100`; what the JSON file holds already
//! stays, so it can be done in slices. `--short` is for those who only want to know whether it works.
#![allow(clippy::print_stdout, clippy::print_stderr)] // a program of its own, not a room

mod report;
mod servers;

use anyhow::{Context, Result, ensure};
use clap::{Parser, ValueEnum};
use serde::{Deserialize, Serialize};
use servers::{Server, Servers};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tare_record::comparison::{Change, Comparison, Effect, Figure};
use tare_sys::process::{Confinement, spawn};

/// Spun by both: the first reading of the clock, which a server that does not spin saves, is in neither's favour then.
const BASE_NS: u64 = 500;
/// A first guess of what a request costs.
const GUESS_NS: f64 = 5_000.0;
/// A calibration is good enough where it is within this share of what is wanted.
const CALIBRATED_WITHIN: f64 = 0.1;
/// Comparisons for a calibration, at most.
const CALIBRATION_STEPS: u32 = 4;

/// Compares servers with themselves, over and over.
#[derive(Debug, Parser)]
struct Args {
    /// Only these questions.
    #[arg(long, value_delimiter = ',')]
    only: Vec<Question>,
    /// Comparisons of each, servers in turn.
    #[arg(long, default_value_t = 10)]
    count: u32,
    /// Two short comparisons of each question, kept nowhere: fails on errors, never on luck.
    #[arg(long)]
    short: bool,
    /// No comparisons: only tell what the JSON file holds.
    #[arg(long, conflicts_with_all = ["count", "short"])]
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

    fn dearer(self) -> Option<f64> {
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
}

/// What a server must be asked for to be dearer by a share, as measured with what is then asked for: a spin ends with the
/// reading of a clock that finds its time over, so that tens of nanoseconds come in steps.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Calibration {
    server: Server,
    question: Question,
    /// Spun beside [`BASE_NS`], nanoseconds.
    more_ns: u64,
    /// By how much CPU time of a request grows with it, and its interval.
    dearer: Change,
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
    }
    let text = report::markdown(&results);
    println!("{text}");
    if !args.short {
        std::fs::write(&args.markdown, text).context("cannot write the report")?;
    }
    Ok(())
}

/// As many comparisons of a question as are wanted, the servers in turn where those of earlier slices ended.
fn ask(question: Question, args: &Args, servers: &Servers, results: &mut Results) -> Result<()> {
    let suited: Vec<Server> =
        servers.all().filter(|server| question == Question::Aa || server.can_spin()).collect();
    let count = if args.short { 2 } else { args.count };
    for _ in 0..count {
        let before = results.rows.iter().filter(|row| row.question == question).count();
        let server = suited[before % suited.len()];
        let pages = match question.dearer() {
            None => [servers.page(server).to_owned(), servers.page(server).to_owned()],
            Some(dearer) => pages(calibration(question, dearer, server, args, servers, results)?.more_ns),
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

/// Finds what makes a server dearer by `dearer`: secant steps from a first guess.
fn calibration(
    question: Question,
    dearer: f64,
    server: Server,
    args: &Args,
    servers: &Servers,
    results: &mut Results,
) -> Result<Calibration> {
    let is_it = |known: &&Calibration| known.server == server && known.question == question;
    if let Some(known) = results.calibrations.iter().find(is_it) {
        return Ok(*known);
    }
    let off = |found: &Calibration| (found.dearer.value / dearer - 1.0).abs();
    let (steps, budget) = if args.short { (1, "10s") } else { (CALIBRATION_STEPS, "60s") };
    let mut more_ns = (dearer * GUESS_NS) as u64;
    let mut best: Option<Calibration> = None;
    for _ in 0..steps {
        let comparison = compare(args, servers, server, &pages(more_ns), budget, "0.25%")?;
        let cost = comparison.effects.iter().find(|effect| effect.figure == Figure::CpuPerRequest);
        let cost = cost.and_then(|effect| effect.change);
        let cost = cost.with_context(|| format!("{} has no CPU time of a request", server.name()))?;
        let found = Calibration { server, question, more_ns, dearer: cost };
        eprintln!("{question:?} {}: {more_ns} ns more are {:+.2} %", server.name(), cost.value * 100.0);
        if best.is_none_or(|best| off(&found) < off(&best)) {
            best = Some(found);
        }
        if off(&found) <= CALIBRATED_WITHIN {
            break;
        }
        // What was found to be nothing says only that it is too little.
        more_ns = (more_ns as f64 * (dearer / cost.value.max(dearer / 4.0)).clamp(0.25, 4.0)).round() as u64;
    }
    let best = best.context("no calibration")?;
    results.calibrations.push(best);
    keep(args, results)?;
    Ok(best)
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

fn read(path: &Path) -> Result<Results> {
    match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).with_context(|| format!("{} is damaged", path.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Results::default()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}
