//! Servers with 2 and 5 % more work a request, some of whose runtimes compile while they run: whether the interval of `tare compare` holds the
//! truth, and whether 5 % is found. The truth is from long loads of fresh processes with no more work and with half as much again: large enough to
//! be known well by a few, and small enough that a round costs what it does among the few more that are compared: what a row costs depends on
//! how many there are.

use crate::{Args, Results, median};
use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tare_model::comparison::{Change, Comparison, Figure, Verdict};
use tare_sys::process::{Confinement, Signal, kill_group, spawn};
use tare_sys::time::process_cpu_ns;
use tempfile::TempDir;

/// Rows, or rounds of a loop, of the first server.
const WORK: u32 = 400;
/// Of the loop in C, for each row.
const ROUNDS: u32 = 100;
/// More work of which the truth is measured: the loop of a request over this.
const LEVER: u32 = 2;
const PATIENCE: Duration = Duration::from_secs(5);
const BUDGET: &str = "120s";
/// Load before a truth is counted, of a runtime that compiles while it runs and of one that does not, and load that is counted.
const LOADED_S: u32 = 15;
const LOADED_SHORT_S: u32 = 1;
const COUNTED_S: u32 = 5;

/// Which server does the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Worker {
    C,
    Go,
    Node,
    Jvm,
}

impl Worker {
    const ALL: [Worker; 4] = [Worker::C, Worker::Go, Worker::Node, Worker::Jvm];

    fn name(self) -> &'static str {
        match self {
            Worker::C => "C",
            Worker::Go => "Go",
            Worker::Node => "Node",
            Worker::Jvm => "JVM",
        }
    }

    /// Rounds of the loop of a request without more work.
    fn rounds(self) -> u32 {
        match self {
            Worker::C => WORK * ROUNDS,
            Worker::Go | Worker::Node | Worker::Jvm => WORK,
        }
    }

    /// More rounds whose cost is measured as the truth.
    fn lever_rounds(self) -> u32 {
        self.rounds() / LEVER
    }

    fn page(self, more_rounds: u32) -> String {
        format!("/?n={}", self.rounds() + more_rounds)
    }

    fn loaded_s(self) -> u32 {
        match self {
            Worker::C | Worker::Go => LOADED_SHORT_S,
            Worker::Node | Worker::Jvm => LOADED_S,
        }
    }
}

/// A comparison.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    worker: Worker,
    percent: u32,
    /// Rounds of the loop that the second does more.
    more_rounds: u32,
    started_unix_s: u64,
    elapsed_s: f64,
    launches: usize,
    /// Load before a launch is counted, median.
    warm_up_s: Option<f64>,
    /// CPU time of a request of the first and the second, seconds.
    cost_s: [f64; 2],
    change: Option<Change>,
    verdict: Verdict,
    warnings: Vec<String>,
}

/// CPU time of a request of a fresh process that has been loaded before, seconds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Truth {
    worker: Worker,
    more_rounds: u32,
    cost_s: f64,
}

/// Servers that this machine can build.
struct Built {
    folder: TempDir,
}

impl Built {
    fn prepare() -> Result<Built> {
        let folder = tempfile::tempdir()?;
        let source = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("work").join(name);
        let run = |command: &mut Command| -> Result<()> {
            let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
            ensure!(status.success(), "{command:?} failed");
            Ok(())
        };
        run(Command::new("cc").args(["-O2", "-o"]).arg(folder.path().join("c")).arg(source("server.c")))?;
        let mut go = Command::new(
            ["/usr/local/go/bin/go", "/usr/bin/go"]
                .into_iter()
                .find(|go| Path::new(go).exists())
                .unwrap_or("go"),
        );
        go.args(["build", "-o"]).arg(folder.path().join("go")).arg(source("server.go"));
        run(go.env("GOCACHE", folder.path().join("cache")).env("GO111MODULE", "off"))?;
        run(Command::new("javac").arg("-d").arg(folder.path()).arg(source("Work.java")))?;
        std::fs::copy(source("server.js"), folder.path().join("server.js"))?;
        Ok(Built { folder })
    }

    fn command(&self, worker: Worker) -> String {
        let folder = self.folder.path().display();
        match worker {
            Worker::C => format!("exec {folder}/c {{port}}"),
            Worker::Go => format!("exec {folder}/go {{port}}"),
            Worker::Node => format!("exec node {folder}/server.js {{port}}"),
            Worker::Jvm => format!("exec java -Dsun.net.httpserver.nodelay=true -cp {folder} Work {{port}}"),
        }
    }
}

/// So many more comparisons, and truths, each of what has the fewest.
pub fn ask(args: &Args, results: &mut Results) -> Result<()> {
    if args.work + args.truths == 0 {
        return Ok(());
    }
    let built = Built::prepare()?;
    let chosen = |worker: &Worker| args.workers.is_empty() || args.workers.contains(worker);
    let workers: Vec<Worker> = Worker::ALL.into_iter().filter(chosen).collect();
    let pairs = |two: [u32; 2]| workers.iter().flat_map(move |worker| two.map(|one| (*worker, one)));
    for _ in 0..args.truths {
        let done = |(worker, levers): &(Worker, u32)| {
            let more_rounds = levers * worker.lever_rounds();
            results
                .truths
                .iter()
                .filter(|one| (one.worker, one.more_rounds) == (*worker, more_rounds))
                .count()
        };
        let (worker, levers) = pairs([0, 1]).min_by_key(done).context("no server")?;
        let more_rounds = levers * worker.lever_rounds();
        let truth = Truth { worker, more_rounds, cost_s: long_cost_s(args, &built, worker, more_rounds)? };
        eprintln!("{truth:?}");
        results.truths.push(truth);
        crate::keep(args, results)?;
    }
    for _ in 0..args.work {
        let done = |pair: &(Worker, u32)| {
            results.work.iter().filter(|row| (row.worker, row.percent) == *pair).count()
        };
        let (worker, percent) = pairs([5, 2]).min_by_key(done).context("no server")?;
        let round = cost_of_a_round(results, worker).with_context(|| {
            format!("what more work costs {} is not known (give --truths)", worker.name())
        })?;
        let more_rounds = (f64::from(percent) / 100.0 / round).round() as u32;
        let row = compared(args, &built, worker, percent, more_rounds)?;
        eprintln!("{row:?}");
        results.work.push(row);
        crate::keep(args, results)?;
    }
    Ok(())
}

fn compared(args: &Args, built: &Built, worker: Worker, percent: u32, more_rounds: u32) -> Result<Row> {
    let folder = tempfile::tempdir()?;
    let mut command = Command::new(&args.tare);
    let budget = args.work_budget.as_deref().unwrap_or(BUDGET);
    command.args(["compare", "--json", "-q", "--budget", budget, "--sut", &built.command(worker)]);
    command.args([worker.page(0), worker.page(more_rounds)]);
    command
        .env("TARE_STATE_DIR", folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let started_unix_s = tare_sys::time::wall_s();
    let child = spawn(&mut command, &Confinement::default()).context("cannot start tare")?;
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "tare compare: {}", String::from_utf8_lossy(&output.stderr));
    let found: Comparison = serde_json::from_slice(&output.stdout)?;
    let warm_ups =
        found.launches.iter().filter_map(|launch| Some(launch.warm_up.as_ref()?.length_s)).collect();
    let cost =
        found.effects.iter().find(|effect| effect.figure == Figure::CpuPerRequest).context("no CPU time")?;
    Ok(Row {
        worker,
        percent,
        more_rounds,
        started_unix_s,
        elapsed_s: found.elapsed_s,
        launches: found.launches.len(),
        warm_up_s: median(warm_ups),
        cost_s: [cost.baseline, cost.value],
        change: cost.change,
        verdict: cost.verdict,
        warnings: found.warnings.iter().map(|warning| warning.id.clone()).collect(),
    })
}

/// A fresh process on CPU 0, its generator on CPU 1.
fn long_cost_s(args: &Args, built: &Built, worker: Worker, more_rounds: u32) -> Result<f64> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let line = built.command(worker).replace("{port}", &port.to_string());
    let mut command = Command::new("sh");
    command.args(["-c", &line]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = spawn(&mut command, &Confinement { cpus: vec![0], ..Confinement::default() })?;
    let cost_s = (|| {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect_timeout(&address, PATIENCE).is_err() {
            ensure!(Instant::now() < deadline, "{} does not answer", worker.name());
            std::thread::sleep(Duration::from_millis(5));
        }
        let url = format!("http://{address}{}", worker.page(more_rounds));
        loaded(&args.tare, &url, worker.loaded_s())?;
        let before = process_cpu_ns(child.id())?;
        let answers = loaded(&args.tare, &url, COUNTED_S)?;
        Ok((process_cpu_ns(child.id())? - before) as f64 / 1e9 / answers)
    })();
    kill_group(child.id(), Signal::Kill).ok();
    child.wait().ok();
    cost_s
}

/// Answers in so many seconds.
fn loaded(tare: &PathBuf, url: &str, seconds: u32) -> Result<f64> {
    let mut command = Command::new(tare);
    let length = format!("{seconds}s");
    // A generator that sleeps would have the server pay for waking it, which it does not beside another.
    command.args([
        "load",
        "--json",
        "--busy-poll",
        "-t1",
        "-c8",
        "--load-cpus",
        "1",
        "-d",
        &length,
        "-w",
        "0s",
        url,
    ]);
    let output = command.stdin(Stdio::null()).output()?;
    ensure!(output.status.success(), "tare load: {}", String::from_utf8_lossy(&output.stderr));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let answers = found.pointer("/requests/count").and_then(serde_json::Value::as_f64);
    answers.with_context(|| format!("no count of requests in {found}"))
}

/// What a round of the loop costs in truth, as a share of a request without more work: by the medians of the runs without and with
/// [`Worker::lever_rounds`] more.
fn cost_of_a_round(results: &Results, worker: Worker) -> Option<f64> {
    let of = |more_rounds: u32| {
        let costs =
            results.truths.iter().filter(|one| (one.worker, one.more_rounds) == (worker, more_rounds));
        median(costs.map(|one| one.cost_s).collect())
    };
    Some((of(worker.lever_rounds())? / of(0)? - 1.0) / f64::from(worker.lever_rounds()))
}

/// A row for each server and how much more work it does.
pub fn markdown(results: &Results) -> String {
    if results.work.is_empty() && results.truths.is_empty() {
        return String::new();
    }
    let mut text = "\n| server | more work | truth, CPU of a request | fresh runs | comparisons | interval holds it | called slower | \
                    median change | median ± | µs a request | warm-up s | launches | warned of |\n\
                    |---|---|---|---|---|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    for (worker, percent) in Worker::ALL.into_iter().flat_map(|worker| [(worker, 2), (worker, 5)]) {
        let rows: Vec<&Row> =
            results.work.iter().filter(|row| (row.worker, row.percent) == (worker, percent)).collect();
        let runs = results.truths.iter().filter(|one| one.worker == worker);
        let round = cost_of_a_round(results, worker);
        let truth = |row: &Row| Some(round? * f64::from(row.more_rounds));
        let share =
            |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{:+.2} %", value * 100.0));
        let number = |value: Option<f64>, places: usize| {
            value.map_or("–".to_owned(), |value| format!("{value:.places$}"))
        };
        let holds = |row: &&&Row| {
            let Some((change, truth)) = row.change.zip(truth(row)) else { return false };
            change.interval[0] <= truth && truth <= change.interval[1]
        };
        let of =
            |value: &dyn Fn(&Row) -> Option<f64>| median(rows.iter().filter_map(|row| value(row)).collect());
        text += &format!(
            "| {} | {percent} % | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
            worker.name(),
            share(of(&truth)),
            runs.count(),
            rows.len(),
            rows.iter().filter(holds).count(),
            rows.iter().filter(|row| row.verdict == Verdict::Slower).count(),
            share(of(&|row| Some(row.change?.value))),
            share(of(&|row| row.change.map(|change| (change.interval[1] - change.interval[0]) / 2.0))),
            number(of(&|row| Some(row.cost_s[0] * 1e6)), 1),
            number(of(&|row| row.warm_up_s), 1),
            number(of(&|row| Some(row.launches as f64)), 0),
            rows.iter().filter(|row| !row.warnings.is_empty()).count(),
        );
    }
    text
}
