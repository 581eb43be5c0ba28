//! What watching costs. One launch of a server and of the generator; the default observers are switched on and
//! off every slice, in pairs whose order is drawn at random; the figure is the median log ratio of the rates,
//! fixed before the run: rates jump by a third when the host does, and a few such pairs rule a mean.
//!
//! `cargo run --release -p bench-watching -- --pairs 300 --out bench/results/watching.json`
//!
//! With `--stacks` (and `--stacks-off-cpu`) the pairs are windows with the default observers alone and windows with the
//! same and call stacks: the figure is what stacks cost beside the rest.
#![allow(clippy::print_stdout)] // a program of its own, not a room

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tare_load::{Generator, LoadSpec, Target};
use tare_machine::{Root, facts};
use tare_observe::{LoadWatch, Observers, StackWatch, Unwind, Watch};

/// What is measured, for how long, and where the result goes.
#[derive(Debug, Parser)]
struct Args {
    /// Pairs of slices, one with and one without observers.
    #[arg(long, default_value_t = 300)]
    pairs: u32,
    /// Length of a slice in milliseconds.
    #[arg(long, default_value_t = 1000)]
    slice_ms: u64,
    /// Connections.
    #[arg(long, default_value_t = 64)]
    connections: u32,
    /// What is asked for. With `/plaintext` the generator is as busy as the server, and loses what the observers beside it take;
    /// `/spin?ns=10000` loads a server that is the limit.
    #[arg(long, default_value = "/plaintext")]
    path: String,
    /// Measure what call stacks at this rate (999 unless told otherwise) cost beside the default observers.
    #[arg(long, value_name = "HZ", num_args = 0..=1, require_equals = true, default_missing_value = "999")]
    stacks: Option<u32>,
    /// Stacks off the CPU as well.
    #[arg(long, requires = "stacks")]
    stacks_off_cpu: bool,
    /// The server: a command that prints `listening on ADDR:PORT`, by default `tare serve` beside this program.
    #[arg(long)]
    server: Option<PathBuf>,
    /// With scheduler tracepoints, as `tare run --trace`.
    #[arg(long)]
    trace: bool,
    /// Where the result goes as JSON.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Adds these pairs to those that the file has already: many short runs are as good as a long one, each of its own
    /// launch.
    #[arg(long, requires = "out")]
    append: bool,
}

/// The server ends with us, also when a measurement fails.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn main() -> Result<()> {
    let args = Args::parse();
    let (server, address) = start_server(&args)?;
    let spec = LoadSpec {
        connections: args.connections,
        threads: 1,
        cpus: vec![1],
        ..LoadSpec::new(Target::parse(&format!("http://{address}{}", args.path))?)
    };
    let mut generator = Generator::start(&spec)?;
    let watch = Watch {
        sut_pids: vec![server.0.id()],
        beside_pids: Vec::new(),
        load: LoadWatch::Threads(generator.thread_ids()),
        sut_cpus: vec![0],
        load_cpus: vec![1],
        observer_cpus: vec![1],
        sample_hz: 100.0,
        clock: true,
        stacks: args.stacks.map(|hz| StackWatch {
            hz,
            unwind: Unwind::default(),
            off_cpu: args.stacks_off_cpu,
        }),
        trace: args.trace,
    };
    // Without stacks, a slice is watched or it is not.
    let base = match args.stacks {
        Some(_) => Some(Observers::start(Watch { stacks: None, ..watch.clone() }, &Root::live())?),
        None => None,
    };
    let observers = Observers::start(watch, &Root::live())?;
    base.iter().chain([&observers]).for_each(|all| all.set_active(false));
    std::thread::sleep(Duration::from_secs(2));
    let (mut off, mut on) = (Vec::new(), Vec::new());
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64 ^ u64::from(std::process::id());
    let (mut active_s, mut all_ns, mut within_ns) = (0.0, 0.0, 0.0);
    for pair in 0..args.pairs {
        // xorshift64: one bit decides who goes first.
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        let mut rates = [0.0; 2];
        for active in if seed & 1 == 0 { [false, true] } else { [true, false] } {
            let before = cpu_ns(is_not_load);
            let watching = if active { Some(&observers) } else { base.as_ref() };
            let (rate, within) = slice(&args, &mut generator, watching);
            rates[usize::from(active)] = rate;
            if active {
                within_ns += within;
                active_s += args.slice_ms as f64 / 1e3;
                all_ns += cpu_ns(is_not_load) - before;
            }
        }
        ensure!(rates.iter().all(|rate| *rate > 0.0), "no requests in pair {pair}: is the server up?");
        off.push(rates[0]);
        on.push(rates[1]);
    }
    observers.stop();
    drop(base);
    generator.stop()?;
    let mut cpus = [all_ns / 1e9 / active_s, within_ns / 1e9 / active_s];
    if let Some(earlier) = earlier(&args)? {
        let share = earlier.off.len() as f64 / (earlier.off.len() + off.len()) as f64;
        for (cpus, earlier) in cpus.iter_mut().zip(earlier.cpus) {
            *cpus = share * earlier + (1.0 - share) * *cpus;
        }
        off.extend(earlier.off);
        on.extend(earlier.on);
    }
    report(&args, &off, &on, cpus)
}

/// Pairs of earlier runs.
struct Earlier {
    off: Vec<f64>,
    on: Vec<f64>,
    cpus: [f64; 2],
}

/// What the file has, where it is to be added to.
fn earlier(args: &Args) -> Result<Option<Earlier>> {
    let Some(path) = args.out.as_ref().filter(|path| args.append && path.exists()) else { return Ok(None) };
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let value: serde_json::Value = serde_json::from_str(&text)?;
    let rates = |key: &str| -> Vec<f64> {
        value[key].as_array().into_iter().flatten().filter_map(serde_json::Value::as_f64).collect()
    };
    let (off, on) = (rates("off_hz"), rates("on_hz"));
    ensure!(off.len() == on.len(), "{} does not hold pairs", path.display());
    let cpus = ["observers_cpus", "observers_cpus_within"].map(|key| value[key].as_f64());
    let [Some(all), Some(within)] = cpus else { bail!("{} is of an older kind", path.display()) };
    Ok(Some(Earlier { off, on, cpus: [all, within] }))
}

/// The rate of one slice, and the observers' CPU time within it. With observers, it is taken as `tare run` takes a
/// trial: a whole window around it.
fn slice(args: &Args, generator: &mut Generator, observers: Option<&Observers>) -> (f64, f64) {
    if let Some(observers) = observers {
        observers.set_active(true);
        observers.begin();
    }
    let before_ns = cpu_ns(is_observer);
    generator.cut();
    std::thread::sleep(Duration::from_millis(args.slice_ms));
    let sample = generator.cut();
    let within_ns = cpu_ns(is_observer) - before_ns;
    if let Some(observers) = observers {
        drop(observers.end());
        observers.set_active(false);
    }
    let count = sample.requests.value().copied().unwrap_or(0);
    (count as f64 * 1e9 / sample.elapsed_ns.max(1) as f64, within_ns)
}

fn start_server(args: &Args) -> Result<(Server, String)> {
    let program = match &args.server {
        Some(path) => path.clone(),
        None => std::env::current_exe()?.with_file_name("tare"),
    };
    let mut child = Command::new(&program)
        .args(["serve", "--listen", "127.0.0.1:0", "--threads", "1", "--cpus", "0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| {
            format!("cannot start {} (build it with cargo build --release)", program.display())
        })?;
    let stdout = child.stdout.take().context("the server's output is piped")?;
    let server = Server(child);
    let line = BufReader::new(stdout).lines().next().context("the server printed nothing")??;
    let address = line.strip_prefix("listening on ").with_context(|| format!("not an address: {line}"))?;
    Ok((server, address.split_whitespace().next().unwrap_or_default().to_string()))
}

/// The threads that observers have of their own.
fn is_observer(name: &str) -> bool {
    ["tare-observe", "tare-clock"].contains(&name)
}

/// Those and this one, which reads the edges and else sleeps.
fn is_not_load(name: &str) -> bool {
    !name.starts_with("tare-load")
}

/// CPU time so far of those threads of this process that are `wanted` by their names.
fn cpu_ns(wanted: fn(&str) -> bool) -> f64 {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return 0.0 };
    tasks
        .flatten()
        .filter(|task| {
            wanted(std::fs::read_to_string(task.path().join("comm")).unwrap_or_default().trim_end())
        })
        .filter_map(|task| {
            let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<f64>().ok()
        })
        .sum()
}

/// Median log ratio of the pairs with the distribution-free 95 % interval of the sign test: a bad moment of the
/// machine that hits one slice of a pair moves the mean of 300, not their middle. The ends are the order
/// statistics n/2 ∓ 0.98·√n (Conover, Practical Nonparametric Statistics, 3.2).
fn median_log_ratio(off: &[f64], on: &[f64]) -> (f64, f64, f64) {
    let mut ratios: Vec<f64> = off.iter().zip(on).map(|(off, on)| (on / off).ln()).collect();
    ratios.sort_by(f64::total_cmp);
    let n = ratios.len() as f64;
    let half = 0.98 * n.sqrt();
    let at = |rank: f64| ratios[(rank.max(0.0) as usize).min(ratios.len() - 1)];
    let median = (at(((n - 1.0) / 2.0).floor()) + at(((n - 1.0) / 2.0).ceil())) / 2.0;
    (median, at((n / 2.0 - half).floor() - 1.0), at((n / 2.0 + half).ceil()))
}

fn report(args: &Args, off: &[f64], on: &[f64], cpus: [f64; 2]) -> Result<()> {
    let mean = tare_stats::paired_log_ratio(off, on).context("no pairs")?;
    let mean_ci = mean.ci95.context("fewer than two pairs")?;
    let (median, low, high) = median_log_ratio(off, on);
    // The cost is what is lost: the negative of the log ratio, so the ends change places.
    let percent = |ln: f64| (1.0 - ln.exp()) * 100.0;
    let (cost, ci) = (percent(median), [percent(high), percent(low)]);
    let (cost_mean, ci_mean) = (percent(mean.value), [percent(mean_ci.hi), percent(mean_ci.lo)]);
    println!(
        "{} {cost:.2} % of throughput (median pair), 95 % interval {:.2} to {:.2} %",
        match args.stacks {
            Some(_) => "stacks cost, beside the default observers,",
            None => "watching costs",
        },
        ci[0],
        ci[1]
    );
    println!("mean of the pairs: {cost_mean:.2} %, 95 % interval {:.2} to {:.2} %", ci_mean[0], ci_mean[1]);
    let [with_edges, within] = cpus.map(|cpus| cpus * 100.0);
    println!(
        "observers' CPU time: {within:.2} % of one CPU within windows, {with_edges:.2} % with the edges of one each second"
    );
    if let Some(path) = &args.out {
        let result = serde_json::json!({
            "pairs": off.len(), "stacks_hz": args.stacks, "stacks_off_cpu": args.stacks_off_cpu, "slice_s": args.slice_ms as f64 / 1e3, "connections": args.connections, "path": args.path,
            "cost_percent": cost, "ci95_percent": ci, "mean_cost_percent": cost_mean, "mean_ci95_percent": ci_mean,
            "observers_cpus": cpus[0], "observers_cpus_within": cpus[1], "off_hz": off, "on_hz": on,
            "machine": facts::read(&Root::live()),
        });
        std::fs::write(path, format!("{result:#}\n"))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
