//! What people do today, on the budgets of the comparisons beside them: `wrk` at one server and then at the other, three runs of each, and
//! `hyperfine` with two commands, as many runs as fit; both judged by Welch's t-test at 5 % (Welch, The Generalization of "Student's" Problem,
//! 1947). Beside hyperfine, the same commands in `tare compare`.

use crate::servers::{Server, Servers};
use crate::{Args, Question, Results};
use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tare_model::comparison::{Comparison, Figure, Verdict};
use tare_stats::t_quantile;
use tare_sys::process::{Confinement, Signal, kill_group, spawn};

/// Runs of wrk at each launch.
const WRK_RUNS: usize = 3;
const WRK_CONNECTIONS: u32 = 64;
/// Iterations of the loop that commands are.
const LOOPS: u32 = 20_000;
/// Runs by which it is told how many fit into a budget, and the fewest of which anything is told.
const TRIED_RUNS: u32 = 10;
/// A difference is called at this level.
const LEVEL: f64 = 0.05;
const PATIENCE: Duration = Duration::from_secs(5);

/// With what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tool {
    Wrk,
    Hyperfine,
    /// `tare compare --command`.
    Tare,
}

/// One comparison.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    pub tool: Tool,
    pub question: Question,
    /// `None`: of commands.
    pub server: Option<Server>,
    /// The second over the first: rates, or times.
    pub ratio: f64,
    /// Whether the two were called different.
    pub differs: bool,
    pub elapsed_s: f64,
}

impl Row {
    /// Whether it told what it was to tell: nothing of the same, and of a dearer one that it is dearer.
    pub fn is_right(&self) -> bool {
        let is_worse = if self.server.is_some() { self.ratio < 1.0 } else { self.ratio > 1.0 };
        self.differs == (self.question != Question::Aa) && (!self.differs || is_worse)
    }
}

/// As many of each as are wanted, the tools and servers in turn.
pub fn ask(count: u32, args: &Args, servers: &Servers, results: &mut Results) -> Result<()> {
    for question in [Question::Aa, Question::Power2] {
        for tool in [Tool::Wrk, Tool::Hyperfine, Tool::Tare] {
            for _ in 0..count {
                let Some(row) = row(question, tool, args, servers, results)? else { break };
                eprintln!("{row:?}");
                results.today.push(row);
                crate::keep(args, results)?;
            }
        }
    }
    Ok(())
}

/// One more comparison; `None` where what makes its server dearer is not known yet.
fn row(
    question: Question,
    tool: Tool,
    args: &Args,
    servers: &Servers,
    results: &Results,
) -> Result<Option<Row>> {
    let begun = Instant::now();
    let (server, (ratio, differs)) = match tool {
        Tool::Wrk => {
            let suited: Vec<Server> =
                servers.all().filter(|server| question == Question::Aa || server.can_spin()).collect();
            let is_it = |row: &&Row| row.tool == tool && row.question == question;
            let server = suited[results.today.iter().filter(is_it).count() % suited.len()];
            let Some(pages) = pages(question, server, servers, results) else { return Ok(None) };
            (Some(server), wrk(args, servers, server, &pages, question)?)
        }
        Tool::Hyperfine => (None, hyperfine(args, question)?),
        Tool::Tare => (None, commands(args, question)?),
    };
    let elapsed_s = begun.elapsed().as_secs_f64();
    Ok(Some(Row { tool, question, server, ratio, differs, elapsed_s }))
}

/// What both launches are asked for; `None` where it is not known yet what makes this server dearer.
fn pages(question: Question, server: Server, servers: &Servers, results: &Results) -> Option<[String; 2]> {
    let Some(costlier) = question.costlier() else {
        return Some([servers.page(server).to_owned(), servers.page(server).to_owned()]);
    };
    Some(crate::pages(results.calibration(server)?.more_ns(costlier)))
}

/// One launch after the other, three runs at each.
fn wrk(
    args: &Args,
    servers: &Servers,
    server: Server,
    pages: &[String; 2],
    question: Question,
) -> Result<(f64, bool)> {
    let seconds = question.budget_s(args.short) as usize / (2 * WRK_RUNS);
    let mut rates = [Vec::new(), Vec::new()];
    for (page, rates) in pages.iter().zip(&mut rates) {
        let launched = Launched::of(args, servers, server)?;
        for _ in 0..WRK_RUNS {
            let mut command = Command::new("wrk");
            command.args(["-t1", &format!("-c{WRK_CONNECTIONS}"), &format!("-d{seconds}s")]);
            command.arg(format!("http://{}{page}", launched.address));
            let text = said(&mut command, &[1])?;
            let rate =
                text.lines().find_map(|line| line.strip_prefix("Requests/sec:")?.trim().parse::<f64>().ok());
            rates.push(rate.with_context(|| format!("wrk said: {text}"))?);
        }
    }
    judged(&rates)
}

/// A loop in the shell, and one that is dearer by the question's share.
fn lines(question: Question) -> [String; 2] {
    let of = |count: u32| format!("sh -c 'i=0; while [ $i -lt {count} ]; do i=$((i+1)); done'");
    [of(LOOPS), of((f64::from(LOOPS) * (1.0 + question.costlier().unwrap_or(0.0))).round() as u32)]
}

/// It has no budget of its own, but a number of runs: one after the other, first all of the one command and then all of the other.
fn hyperfine(args: &Args, question: Question) -> Result<(f64, bool)> {
    let begun = Instant::now();
    hyperfine_runs(question, TRIED_RUNS)?;
    let run_s = begun.elapsed().as_secs_f64() / f64::from(2 * TRIED_RUNS);
    let left_s = f64::from(question.budget_s(args.short)) - begun.elapsed().as_secs_f64();
    let runs = (left_s / (2.0 * run_s)).max(f64::from(TRIED_RUNS)) as u32;
    judged(&hyperfine_runs(question, runs)?)
}

/// The times of so many runs of either command.
fn hyperfine_runs(question: Question, runs: u32) -> Result<[Vec<f64>; 2]> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("times.json");
    let mut command = Command::new("hyperfine");
    command
        .args(["-N", "--style", "none", "--warmup", "1", "--runs", &runs.to_string(), "--export-json"])
        .arg(&file)
        .args(lines(question));
    said(&mut command, &[])?;
    let found: serde_json::Value = serde_json::from_slice(&std::fs::read(&file)?)?;
    let times = |at: usize| -> Vec<f64> {
        let times = found["results"][at]["times"].as_array();
        times.into_iter().flatten().filter_map(serde_json::Value::as_f64).collect()
    };
    Ok([times(0), times(1)])
}

fn commands(args: &Args, question: Question) -> Result<(f64, bool)> {
    let folder = tempfile::tempdir()?;
    let [one, other] = lines(question);
    let budget = format!("{}s", question.budget_s(args.short));
    let mut command = Command::new(&args.tare);
    command.args(["compare", "--json", "-q", "--budget", &budget, "--precision", question.precision()]);
    command.args(["--command", &one, "--command", &other]);
    command.env("TARE_STATE_DIR", folder.path());
    let result: Comparison = serde_json::from_str(&said(&mut command, &[])?)?;
    let effect = |figure: Figure| result.effects.iter().find(move |effect| effect.figure == figure);
    let time = effect(Figure::Time).context("no time")?;
    let differs =
        result.effects.iter().any(|effect| matches!(effect.verdict, Verdict::Faster | Verdict::Slower));
    Ok((time.value / time.baseline, differs))
}

/// The ratio of means, and whether Welch's test calls them different.
fn judged([first, second]: &[Vec<f64>; 2]) -> Result<(f64, bool)> {
    let about = |values: &[f64]| -> Option<(f64, f64)> {
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        Some((mean, tare_stats::stdev(values)?.powi(2) / values.len() as f64))
    };
    let (Some((one, var_one)), Some((other, var_other))) = (about(first), about(second)) else {
        bail!("too few values: {first:?}, {second:?}")
    };
    let dof = |var: f64, values: &[f64]| var.powi(2) / (values.len() as f64 - 1.0);
    let df = (var_one + var_other).powi(2) / (dof(var_one, first) + dof(var_other, second));
    let t = (other - one).abs() / (var_one + var_other).sqrt();
    Ok((other / one, t > t_quantile(1.0 - LEVEL / 2.0, df).context("no quantile")?))
}

/// Runs it to its end on these CPUs (none: anywhere); what it printed.
fn said(command: &mut Command, cpus: &[u32]) -> Result<String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let there = Confinement { cpus: cpus.to_vec(), ..Confinement::default() };
    let name = command.get_program().to_string_lossy().into_owned();
    let child = spawn(command, &there).with_context(|| format!("cannot start {name}"))?;
    let Output { status, stdout, stderr } = child.wait_with_output()?;
    ensure!(status.success(), "{name} ended with {status}: {}", String::from_utf8_lossy(&stderr));
    Ok(String::from_utf8_lossy(&stdout).into_owned())
}

/// A server on CPU 0, until this is dropped.
struct Launched {
    child: Child,
    address: SocketAddr,
}

impl Launched {
    fn of(args: &Args, servers: &Servers, server: Server) -> Result<Launched> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let line = match server {
            Server::Embedded => {
                format!("exec {} serve --threads 1 --listen 127.0.0.1:{{port}}", args.tare.display())
            }
            Server::Nginx | Server::Go => servers.command(server),
        };
        let mut command = Command::new("sh");
        command.args(["-c", &line.replace("{port}", &port.to_string())]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let there = Confinement { cpus: vec![0], ..Confinement::default() };
        let child = spawn(&mut command, &there).with_context(|| format!("cannot start {line}"))?;
        let launched = Launched { child, address: SocketAddr::from(([127, 0, 0, 1], port)) };
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect_timeout(&launched.address, PATIENCE).is_err() {
            ensure!(Instant::now() < deadline, "{} does not answer", server.name());
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(launched)
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        kill_group(self.child.id(), Signal::Term).ok();
        let deadline = Instant::now() + PATIENCE;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                kill_group(self.child.id(), Signal::Kill).ok();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
