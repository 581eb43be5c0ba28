//! What a request costs two servers, or one server set up in two ways: CPU time of all its threads over requests, in
//! pairs of slices whose order is drawn at random. The figure is the median log ratio of the pairs, which a bad
//! moment of the machine that hits one slice does not move.
//!
//! `cargo run --release -p bench-pairs -- --pairs 60 'SERVER A' 'SERVER B'`
#![allow(clippy::print_stdout)] // a program of its own, not a room

use anyhow::{Context, Result, ensure};
use clap::Parser;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tare_load::{Generator, LoadSpec, Target, Workers};

/// Two commands, each of which prints `listening on ADDR:PORT`.
#[derive(Debug, Parser)]
struct Args {
    /// The one to compare with.
    a: String,
    /// The one that is compared.
    b: String,
    /// Pairs of slices, one of each server.
    #[arg(long, default_value_t = 60)]
    pairs: u32,
    /// Length of a slice in milliseconds.
    #[arg(long, default_value_t = 300)]
    slice_ms: u64,
    /// Connections.
    #[arg(long, default_value_t = 64)]
    connections: u32,
    /// Requests in flight on each connection.
    #[arg(long, default_value_t = 1)]
    pipeline: u32,
    /// What is asked for.
    #[arg(long, default_value = "/plaintext")]
    path: String,
}

/// A server on CPU 0, which ends with us.
struct Server {
    child: Child,
    spec: LoadSpec,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn main() -> Result<()> {
    let args = Args::parse();
    let servers = [start(&args.a, &args)?, start(&args.b, &args)?];
    let mut costs = [Vec::new(), Vec::new()];
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64 ^ u64::from(std::process::id());
    for _ in 0..args.pairs {
        // xorshift64: one bit decides who goes first.
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        for which in if seed & 1 == 0 { [0, 1] } else { [1, 0] } {
            costs[which].push(cost_us(&servers[which], &args)?);
        }
    }
    let ratios = costs[0].iter().zip(&costs[1]).map(|(a, b)| (b / a).ln()).collect();
    for (name, of) in ["a", "b"].into_iter().zip(costs) {
        let (middle, low, high) = median(of);
        println!("{name}: {middle:.3} µs of CPU a request, 95 % interval {low:.3} to {high:.3}");
    }
    let (middle, low, high) = median(ratios);
    let [middle, low, high] = [middle, low, high].map(|ln| (ln.exp() - 1.0) * 100.0);
    println!(
        "b costs {middle:+.2} % (median of {} pairs), 95 % interval {low:+.2} to {high:+.2} %",
        args.pairs
    );
    Ok(())
}

fn start(command: &str, args: &Args) -> Result<Server> {
    let mut child = Command::new("sh")
        .args(["-c", &format!("exec taskset -c 0 {command}")])
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {command}"))?;
    let stdout = child.stdout.take().context("the server's output is piped")?;
    let line = BufReader::new(stdout).lines().next().context("the server printed nothing")??;
    let address = line.strip_prefix("listening on ").with_context(|| format!("not an address: {line}"))?;
    let address = address.split_whitespace().next().unwrap_or_default();
    let spec = LoadSpec {
        connections: args.connections,
        pipeline: args.pipeline,
        workers: Workers { cpus: vec![1], ..Workers::default() },
        ..LoadSpec::new(Target::parse(&format!("http://{address}{}", args.path))?)
    };
    Ok(Server { child, spec })
}

/// CPU time of a request in one slice, in µs.
fn cost_us(server: &Server, args: &Args) -> Result<f64> {
    let mut generator = Generator::start(&server.spec)?;
    std::thread::sleep(Duration::from_millis(50));
    generator.cut();
    let before = cpu_ns(server.child.id())?;
    std::thread::sleep(Duration::from_millis(args.slice_ms));
    let sample = generator.cut();
    let spent = cpu_ns(server.child.id())? - before;
    generator.stop()?;
    let requests = sample.requests.value().copied().unwrap_or(0);
    ensure!(requests > 0, "no requests were answered: is the server up?");
    Ok(spent / 1e3 / requests as f64)
}

/// CPU time of all threads of a process so far.
fn cpu_ns(pid: u32) -> Result<f64> {
    let mut sum = 0.0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).context("the server ended")?.flatten() {
        let text = std::fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        sum += text.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0);
    }
    Ok(sum)
}

/// Median and the distribution-free 95 % interval of the sign test: the order statistics n/2 ∓ 0.98·√n (Conover,
/// Practical Nonparametric Statistics, 3.2).
fn median(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    let half = 0.98 * n.sqrt();
    let at = |rank: f64| values[(rank.max(0.0) as usize).min(values.len() - 1)];
    let middle = (at(((n - 1.0) / 2.0).floor()) + at(((n - 1.0) / 2.0).ceil())) / 2.0;
    (middle, at((n / 2.0 - half).floor() - 1.0), at((n / 2.0 + half).ceil()))
}
