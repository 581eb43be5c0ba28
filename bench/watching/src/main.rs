//! What watching costs. One launch of a server and of the generator; the default observers are switched on and
//! off every slice, in pairs whose order is drawn at random; the figure is the median log ratio of the rates of a second
//! that the hypervisor left to the server's CPU, fixed before the run: what is stolen from one slice of a pair says
//! nothing of observers, and rates jump by a third when the host does: a few such pairs rule a mean.
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
use tare_load::{Generator, LoadSpec, Target, Workers};
use tare_machine::{Root, facts};
use tare_observe::{LoadWatch, Names, Observers, StackWatch, Unwind, Watch};

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
    /// `/spin?ns=10000` loads a server that is the bottleneck.
    #[arg(long, default_value = "/plaintext")]
    path: String,
    /// Measure what call stacks at this rate (999 by default) cost beside the default observers.
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

const SERVER_CPU: u32 = 0;

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
    let target = Target::parse(&format!("http://{address}{}", args.path))?;
    let server_port = Some(target.port());
    let spec = LoadSpec {
        connections: args.connections,
        workers: Workers { cpus: vec![1], ..Workers::default() },
        ..LoadSpec::new(target)
    };
    let mut generator = Generator::start(&spec)?;
    let watch = Watch {
        server_port,
        sut_pids: vec![server.0.id()],
        beside_pids: Vec::new(),
        load: LoadWatch::Threads(generator.thread_ids()),
        sut_cpus: vec![SERVER_CPU],
        load_cpus: vec![1],
        observer_cpus: vec![1],
        sample_hz: 100.0,
        clock: true,
        stacks: args.stacks.map(|hz| StackWatch {
            hz,
            unwind: Unwind::default(),
            off_cpu: args.stacks_off_cpu,
            names: Names::DebugFiles,
        }),
        stacks_alone: false,
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
    let mut sides = [Side::default(), Side::default()];
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64 ^ u64::from(std::process::id());
    let (mut active_s, mut all_ns, mut within_ns) = (0.0, 0.0, 0.0);
    for pair in 0..args.pairs {
        // xorshift64: one bit decides who goes first.
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        for active in if seed & 1 == 0 { [false, true] } else { [true, false] } {
            let before = cpu_ns(is_not_load);
            let watching = if active { Some(&observers) } else { base.as_ref() };
            let slice = slice(&args, &mut generator, watching)?;
            ensure!(slice.rate_hz > 0.0, "no requests in pair {pair}: is the server up?");
            let side = &mut sides[usize::from(active)];
            side.hz.push(slice.rate_hz);
            side.stolen.push(slice.stolen);
            if active {
                within_ns += slice.observers_ns;
                active_s += args.slice_ms as f64 / 1e3;
                all_ns += cpu_ns(is_not_load) - before;
            }
        }
    }
    observers.stop();
    drop(base);
    generator.stop()?;
    let mut cpus = [all_ns / 1e9 / active_s, within_ns / 1e9 / active_s];
    if let Some(earlier) = earlier(&args)? {
        let pairs = |sides: &[Side; 2]| sides[0].hz.len() as f64;
        let share = pairs(&earlier.sides) / (pairs(&earlier.sides) + pairs(&sides));
        for (cpus, earlier) in cpus.iter_mut().zip(earlier.cpus) {
            *cpus = share * earlier + (1.0 - share) * *cpus;
        }
        for (side, earlier) in sides.iter_mut().zip(earlier.sides) {
            side.hz.extend(earlier.hz);
            side.stolen.extend(earlier.stolen);
        }
    }
    report(&args, &sides, cpus)
}

/// The slices with observers, or those without.
#[derive(Default)]
struct Side {
    hz: Vec<f64>,
    /// Share of a slice in which the hypervisor had the server's CPU.
    stolen: Vec<f64>,
}

impl Side {
    /// Rates of a second that the server's CPU was there.
    fn of_what_was_left(&self) -> Vec<f64> {
        self.hz.iter().zip(&self.stolen).map(|(hz, stolen)| hz / (1.0 - stolen)).collect()
    }
}

/// Pairs of earlier runs.
struct Earlier {
    /// Without and with observers.
    sides: [Side; 2],
    cpus: [f64; 2],
}

/// What the file has, where it is to be added to.
fn earlier(args: &Args) -> Result<Option<Earlier>> {
    let Some(path) = args.out.as_ref().filter(|path| args.append && path.exists()) else { return Ok(None) };
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let value: serde_json::Value = serde_json::from_str(&text)?;
    let numbers = |key: &str| -> Vec<f64> {
        value[key].as_array().into_iter().flatten().filter_map(serde_json::Value::as_f64).collect()
    };
    let sides = ["off", "on"]
        .map(|side| Side { hz: numbers(&format!("{side}_hz")), stolen: numbers(&format!("{side}_stolen")) });
    let pairs = sides[0].hz.len();
    let whole = sides.iter().all(|side| side.hz.len() == pairs && side.stolen.len() == pairs);
    ensure!(whole, "{} does not hold pairs, or no account of what was stolen", path.display());
    let cpus = ["observers_cpus", "observers_cpus_within"].map(|key| value[key].as_f64());
    let [Some(all), Some(within)] = cpus else { bail!("{} is of an older kind", path.display()) };
    Ok(Some(Earlier { sides, cpus: [all, within] }))
}

/// What was seen in a slice.
struct Slice {
    rate_hz: f64,
    /// The observers' CPU time within it.
    observers_ns: f64,
    stolen: f64,
}

/// One slice. With observers, it is taken as `tare run` takes a trial: a whole window around it.
fn slice(args: &Args, generator: &mut Generator, observers: Option<&Observers>) -> Result<Slice> {
    if let Some(observers) = observers {
        observers.set_active(true);
        observers.begin();
    }
    let (before_ns, before_stolen_s) = (cpu_ns(is_observer), stolen_s(SERVER_CPU)?);
    generator.cut();
    std::thread::sleep(Duration::from_millis(args.slice_ms));
    let sample = generator.cut();
    let observers_ns = cpu_ns(is_observer) - before_ns;
    let elapsed_s = sample.elapsed_ns.max(1) as f64 / 1e9;
    // Counted in ticks: more than all of it is none of it.
    let stolen = ((stolen_s(SERVER_CPU)? - before_stolen_s) / elapsed_s).clamp(0.0, 0.9);
    if let Some(observers) = observers {
        drop(observers.end());
        observers.set_active(false);
    }
    let count = sample.requests.value().copied().unwrap_or(0);
    Ok(Slice { rate_hz: count as f64 / elapsed_s, observers_ns, stolen })
}

/// Seconds so far in which the hypervisor gave this CPU to somebody else (proc(5): the eighth figure of its line, in ticks of
/// 10 ms).
fn stolen_s(cpu: u32) -> Result<f64> {
    let text = std::fs::read_to_string("/proc/stat")?;
    let name = format!("cpu{cpu}");
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(&name));
    let ticks = line.and_then(|line| line.split_whitespace().nth(8)?.parse::<f64>().ok());
    Ok(ticks.with_context(|| format!("/proc/stat does not tell what was stolen from {name}"))? / 100.0)
}

fn start_server(args: &Args) -> Result<(Server, String)> {
    let program = match &args.server {
        Some(path) => path.clone(),
        None => std::env::current_exe()?.with_file_name("tare"),
    };
    let mut child = Command::new(&program)
        .args(["serve", "--listen", "127.0.0.1:0", "--threads", "1", "--cpus", &SERVER_CPU.to_string()])
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

fn report(args: &Args, sides: &[Side; 2], cpus: [f64; 2]) -> Result<()> {
    let [off, on] = sides.each_ref().map(Side::of_what_was_left);
    let (cost, ci) = percent(median_log_ratio(&off, &on));
    let (cost_mean, ci_mean) = percent(mean_log_ratio(&off, &on)?);
    let (cost_raw, ci_raw) = percent(median_log_ratio(&sides[0].hz, &sides[1].hz));
    let what = match args.stacks {
        Some(_) => "stacks cost, beside the default observers,",
        None => "watching costs",
    };
    let figure =
        |cost: f64, [low, high]: [f64; 2]| format!("{cost:.2} %, 95 % interval {low:.2} to {high:.2} %");
    println!("{what} of throughput where the CPU was there (median pair): {}", figure(cost, ci));
    println!("mean of the pairs: {}", figure(cost_mean, ci_mean));
    println!("median pair with what was stolen: {}", figure(cost_raw, ci_raw));
    let [with_edges, within] = cpus.map(|cpus| cpus * 100.0);
    println!(
        "observers' CPU time: {within:.2} % of one CPU within windows, {with_edges:.2} % with the edges of one each second"
    );
    if let Some(path) = &args.out {
        let result = serde_json::json!({
            "pairs": off.len(), "stacks_hz": args.stacks, "stacks_off_cpu": args.stacks_off_cpu, "slice_s": args.slice_ms as f64 / 1e3, "connections": args.connections, "path": args.path,
            "cost_percent": cost, "ci95_percent": ci, "mean_cost_percent": cost_mean, "mean_ci95_percent": ci_mean,
            "cost_with_steal_percent": cost_raw, "ci95_with_steal_percent": ci_raw,
            "observers_cpus": cpus[0], "observers_cpus_within": cpus[1], "off_hz": sides[0].hz, "on_hz": sides[1].hz,
            "off_stolen": sides[0].stolen, "on_stolen": sides[1].stolen,
            "machine": facts::read(&Root::live()),
        });
        std::fs::write(path, format!("{result:#}\n"))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// The mean log ratio of the pairs, with Student's interval.
fn mean_log_ratio(off: &[f64], on: &[f64]) -> Result<(f64, f64, f64)> {
    let mean = tare_stats::paired_log_ratio(off, on).context("no pairs")?;
    let ci95 = mean.ci95.context("fewer than two pairs")?;
    Ok((mean.value, ci95.lo, ci95.hi))
}

/// What is lost: the negative of the log ratio, so the ends of the interval change places.
fn percent((value, low, high): (f64, f64, f64)) -> (f64, [f64; 2]) {
    let lost = |ln: f64| (1.0 - ln.exp()) * 100.0;
    (lost(value), [lost(high), lost(low)])
}
