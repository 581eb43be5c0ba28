//! Whether `tare load` tells the truth: against servers whose delays are known. Prints and keeps each claim with its figures.
//!
//! `accuracy [--tare ../../target/release/tare] [--only WORD] [--out ../results/load-accuracy.json]`. Alone on the machine:
//! the claims are about microseconds. Server on CPU 0, generator on CPU 1.

use base64::Engine as _;
use clap::Parser;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tare_machine::{Root, facts};
use tare_sys::affinity;
use tare_sys::process::{self, Signal};
use tare_sys::time::monotonic_ns;

#[derive(Parser)]
struct Args {
    /// The `tare` to judge.
    #[arg(long, default_value = "../../target/release/tare")]
    tare: PathBuf,
    /// Only the claims whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// Where the result goes as JSON.
    #[arg(long)]
    out: Option<PathBuf>,
}

type Result<T> = std::result::Result<T, String>;

/// What was claimed, whether it held, and the figures.
struct Finding {
    holds: bool,
    figures: Value,
}

type Claim = (&'static str, fn(&Path) -> Result<Finding>);

const CLAIMS: &[Claim] = &[
    ("percentiles: within 1 % + 20 µs of the server's log and the round trip", percentiles),
    ("omission: P(latency > x) = 0.1 (1 - x) under stops of 1 s, p92 to p99.9 within 3 %", omission),
    ("pipeline: depth 16 has latencies of its own", pipeline),
    ("open loop at 20k req/s, fixed gaps", open_fixed),
    ("open loop at 20k req/s, Poisson", open_poisson),
    ("connections: 50,000 open, both processes under 2 GB", connections),
];

fn main() -> Result<()> {
    let args = Args::parse();
    let mut all = Vec::new();
    for (name, claim) in CLAIMS.iter().filter(|(name, _)| name.contains(&args.only)) {
        let finding = claim(&args.tare)?;
        println!("{}  {name}\n{:#}", if finding.holds { "holds" } else { "FAILS" }, finding.figures);
        all.push(json!({ "claim": name, "holds": finding.holds, "figures": finding.figures }));
    }
    let result = json!({ "claims": all, "machine": facts::read(&Root::live()) });
    match &args.out {
        Some(path) => std::fs::write(path, format!("{result:#}\n")).map_err(said),
        None => Ok(()),
    }
}

fn said(why: impl std::fmt::Display) -> String {
    why.to_string()
}

/// Runs `tare load --json` with one thread on CPU 1.
fn load(tare: &Path, line: &str, url: &str) -> Result<Value> {
    let mut command = Command::new(tare);
    command.args("load --json -q -t 1 --load-cpus 1".split(' ')).args(line.split(' ')).arg(url);
    let output = command.stderr(Stdio::inherit()).output().map_err(said)?;
    serde_json::from_slice(&output.stdout).map_err(|why| format!("{line}: {why}"))
}

/// The same with every latency, from its histogram's log.
fn load_all(tare: &Path, line: &str, url: &str) -> Result<(Value, Histogram<u64>)> {
    let path = std::env::temp_dir().join(format!("accuracy-{}.hdr", std::process::id()));
    let result = load(tare, &format!("{line} --hdr {}", path.display()), url)?;
    let log = std::fs::read(&path).map_err(said)?;
    std::fs::remove_file(&path).map_err(said)?;
    // A histogram for each second.
    let mut all: Option<Histogram<u64>> = None;
    for entry in IntervalLogIterator::new(&log) {
        let LogEntry::Interval(interval) = entry.map_err(|why| format!("{why:?}"))? else { continue };
        let bytes = base64::prelude::BASE64_STANDARD.decode(interval.encoded_histogram()).map_err(said)?;
        let second =
            Deserializer::new().deserialize(&mut bytes.as_slice()).map_err(|why| format!("{why:?}"))?;
        add(&mut all, second)?;
    }
    let all = all.ok_or("an empty log")?;
    Ok((result, all))
}

fn add(all: &mut Option<Histogram<u64>>, more: Histogram<u64>) -> Result<()> {
    match all {
        Some(all) => all.add(more).map_err(|why| format!("{why:?}")),
        None => {
            *all = Some(more);
            Ok(())
        }
    }
}

fn number(value: &Value, pointer: &str) -> Result<f64> {
    value.pointer(pointer).and_then(Value::as_f64).ok_or_else(|| format!("no {pointer}"))
}

fn warns(result: &Value, id: &str) -> bool {
    result["warnings"].as_array().is_some_and(|all| all.iter().any(|warning| warning["id"] == id))
}

/// `tare serve` on CPU 0, ended when dropped.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(tare: &Path, more: &[&str]) -> Result<Self> {
        Server::with_threads(tare, "1", more)
    }

    fn with_threads(tare: &Path, threads: &str, more: &[&str]) -> Result<Self> {
        let mut command = Command::new(tare);
        command.args(["serve", "--listen", "127.0.0.1:0", "--cpus", "0", "--threads", threads]).args(more);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(said)?;
        let stdout = child.stdout.take().ok_or("no output")?;
        let line = BufReader::new(stdout).lines().next().ok_or("no line")?.map_err(said)?;
        let address = line.split_whitespace().nth(2).ok_or("no address")?;
        Ok(Server { url: format!("http://{address}/plaintext"), child })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server that logs its own delays: one thread on CPU 0, which never sleeps. One that did would have to wake after each
/// delay, the longer the deeper, and what that takes stands in no log.
struct Delaying {
    url: String,
    log: Arc<Mutex<Vec<u64>>>,
    ends: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<Result<()>>>,
}

/// One connection: what to answer on it, and when.
struct Delayed {
    stream: TcpStream,
    /// Which delay is next: in no order, so that each comes after short ones and after long ones.
    random: u64,
    arrived: Option<Instant>,
}

impl Delaying {
    /// Each request is delayed by one of `script`, nanoseconds, from its last byte's arrival to just before the answer.
    fn start(script: &'static [u64]) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(said)?;
        listener.set_nonblocking(true).map_err(said)?;
        let url = format!("http://{}/", listener.local_addr().map_err(said)?);
        let (log, ends) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (own_log, own_ends) = (Arc::clone(&log), Arc::clone(&ends));
        let thread = std::thread::spawn(move || serve_delayed(&listener, script, &own_log, &own_ends));
        Ok(Delaying { url, log, ends, thread: Some(thread) })
    }

    /// Ends it; all delays.
    fn end(mut self) -> Result<Vec<u64>> {
        self.ends.store(true, Ordering::Relaxed);
        let thread = self.thread.take().ok_or("it ended before")?;
        thread.join().map_err(|_| "the delaying server panicked")??;
        Ok(std::mem::take(&mut *self.log.lock().map_err(said)?))
    }
}

fn serve_delayed(
    listener: &TcpListener,
    script: &[u64],
    log: &Mutex<Vec<u64>>,
    ends: &AtomicBool,
) -> Result<()> {
    affinity::set(0, &[0]).map_err(said)?;
    let (mut all, mut delays) = (Vec::new(), Vec::with_capacity(1 << 20));
    let mut checked = Instant::now();
    while !ends.load(Ordering::Relaxed) {
        // Seldom, so that accepting adds to no answer's delay.
        if checked.elapsed() > Duration::from_millis(1) {
            checked = Instant::now();
            if let Ok((stream, _)) = listener.accept() {
                stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true)).map_err(said)?;
                all.push(Delayed { stream, random: all.len() as u64 + 1, arrived: None });
            }
        }
        for one in &mut all {
            delays.extend(one.serve(script));
        }
    }
    log.lock().map_err(said)?.append(&mut delays);
    Ok(())
}

impl Delayed {
    /// Answers if that is due, and gives the delay; else checks whether a request has come.
    fn serve(&mut self, script: &[u64]) -> Option<u64> {
        let Some(arrived) = self.arrived else {
            let mut buffer = [0; 4096];
            if matches!(self.stream.read(&mut buffer), Ok(read) if read > 0) {
                self.arrived = Some(Instant::now());
            }
            return None;
        };
        let delay_ns = arrived.elapsed().as_nanos() as u64;
        if delay_ns < script[(self.random >> 33) as usize % script.len()] {
            return None;
        }
        // Knuth's MMIX, of which the upper bits are the random ones.
        self.random = self.random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.arrived = None;
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        self.stream.write_all(answer).ok().map(|()| delay_ns)
    }
}

/// 0.2 to 50 ms, most of them short, as services have them.
const SCRIPT_NS: &[u64] = &[
    200_000, 250_000, 300_000, 400_000, 500_000, 700_000, 1_000_000, 1_500_000, 2_000_000, 3_000_000,
    5_000_000, 8_000_000, 12_000_000, 20_000_000, 35_000_000, 50_000_000,
];

/// What a request takes that nobody delays: the round trip.
const NO_DELAY: &[u64] = &[0];

/// Seconds of undelayed requests, then of delayed ones, so many times.
const PERCENTILE_TURNS: usize = 6;

fn percentiles(tare: &Path) -> Result<Finding> {
    let (mut trips, mut reported, mut log) = (None, None, Vec::new());
    // Interleaved: a machine that is slow for half a minute is slow for both.
    for _ in 0..PERCENTILE_TURNS {
        let server = Delaying::start(NO_DELAY)?;
        // As often as the delayed ones come: what has not been done for milliseconds has left the caches.
        add(&mut trips, load_all(tare, "-c 4 -R 460 --poisson -d 3s --busy-poll", &server.url)?.1)?;
        server.end()?;
        let server = Delaying::start(SCRIPT_NS)?;
        add(&mut reported, load_all(tare, "-c 4 -d 3s --busy-poll", &server.url)?.1)?;
        log.append(&mut server.end()?);
    }
    let (trips, reported) = (trips.ok_or("no trips")?, reported.ok_or("no latencies")?);
    let expected = with_trips(&log, &trips);
    let (mut rows, mut holds) = (Vec::new(), log.len() > 1000);
    for percent in (1..=99).chain([999]) {
        let quantile = if percent == 999 { 0.999 } else { f64::from(percent) / 100.0 };
        let reported_ns = reported.value_at_quantile(quantile) as f64;
        let place = |quantile: f64| {
            let rank = (quantile * expected.len() as f64).ceil() as usize;
            expected[rank.clamp(1, expected.len()) - 1] as f64
        };
        let expected_ns = place(quantile);
        let (off_ns, room_ns) = (reported_ns - expected_ns, 0.01 * expected_ns + 20e3);
        // Between two delays of the script the quantile jumps: a hundredth more of long trips moves it across.
        let few = 0.01;
        let near = |quantile: f64| (place(quantile) - expected_ns).abs() < room_ns;
        let on_an_edge = !(near(quantile - few) && near(quantile + few));
        holds &= on_an_edge || off_ns.abs() <= room_ns;
        rows.push(
            json!({ "quantile": quantile, "reported_ns": reported_ns, "expected_ns": expected_ns, "off_ns": off_ns,
                          "room_ns": room_ns, "on_an_edge": on_an_edge }),
        );
    }
    let judged = rows.iter().filter(|row| row["on_an_edge"] == false);
    let worst = judged.max_by(|a, b| share(a).total_cmp(&share(b))).cloned();
    let trip_ns = |quantile| trips.value_at_quantile(quantile);
    let figures = json!({
        "requests": log.len(), "worst": worst, "quantiles": rows,
        "round_trip_ns": { "p10": trip_ns(0.1), "p50": trip_ns(0.5), "p90": trip_ns(0.9), "p99": trip_ns(0.99) },
    });
    Ok(Finding { holds, figures })
}

/// The logged delays plus the round trips, each with each, sorted.
fn with_trips(log: &[u64], trips: &Histogram<u64>) -> Vec<u64> {
    let trips: Vec<u64> = (0..100).map(|k| trips.value_at_quantile((f64::from(k) + 0.5) / 100.0)).collect();
    let mut all: Vec<u64> = log.iter().flat_map(|delay| trips.iter().map(move |trip| delay + trip)).collect();
    all.sort_unstable();
    all
}

/// How much of the room is used.
fn share(row: &Value) -> f64 {
    row["off_ns"].as_f64().unwrap_or(0.0).abs() / row["room_ns"].as_f64().unwrap_or(1.0)
}

/// Stops a process for a second from each of these instants on, counted from now; gives the lengths of the stops.
fn stops(pid: u32, at_s: &'static [f64]) -> std::thread::JoinHandle<Vec<f64>> {
    std::thread::spawn(move || {
        let begin = Instant::now();
        let until =
            |at_s: f64| std::thread::sleep(Duration::from_secs_f64(at_s).saturating_sub(begin.elapsed()));
        let mut lengths = Vec::new();
        for at_s in at_s {
            until(*at_s);
            let _ = process::kill(pid, Signal::Stop);
            let stopped = Instant::now();
            until(at_s + 1.0);
            let _ = process::kill(pid, Signal::Cont);
            lengths.push(stopped.elapsed().as_secs_f64());
        }
        lengths
    })
}

fn omission(tare: &Path) -> Result<Finding> {
    let server = Server::start(tare, &["--max-connections", "4000"])?;
    // Three whole periods of 10 s, each with a stop of 1 s in it.
    let stopper = stops(server.child.id(), &[5.0, 15.0, 25.0]);
    // Room for each request that falls due in a stop, so that all of them have been sent when it ends; on few connections, so
    // that the server has caught up within a millisecond or two: what is beyond 0.1 (1 - x) is its time for that.
    let (result, reported) = load_all(tare, "-c 64 --pipeline 20 -R 1000 -d 30s --timeout 10s", &server.url)?;
    let lengths_s = stopper.join().map_err(|_| "the stopper panicked")?;
    let stopper = stops(server.child.id(), &[1.0]);
    let closed = load(tare, "-c 16 -d 4s --timeout 10s", &server.url)?;
    stopper.join().map_err(|_| "the stopper panicked")?;
    let closed_warns = warns(&closed, "coordinated-omission");
    let (mut rows, mut holds) = (Vec::new(), closed_warns);
    for quantile in [0.92, 0.93, 0.94, 0.95, 0.96, 0.97, 0.98, 0.99, 0.995, 0.999] {
        let reported_ns = reported.value_at_quantile(quantile) as f64;
        // P(latency > x) = 0.1 (1 - x), so x = 1 - 10 (1 - q).
        let expected_ns = (1.0 - 10.0 * (1.0 - quantile)) * 1e9;
        let off = reported_ns / expected_ns - 1.0;
        holds &= off.abs() < 0.03;
        rows.push(
            json!({ "quantile": quantile, "reported_ns": reported_ns, "expected_ns": expected_ns, "off": off }),
        );
    }
    let figures = json!({
        "requests": result["requests"]["count"], "errors": result["requests"]["errors"], "stops_s": lengths_s, "quantiles": rows,
        "closed_loop": { "warns": closed_warns, "p99_ns": closed["latency_ns"]["p99"], "max_ns": closed["latency_ns"]["max"] },
    });
    Ok(Finding { holds, figures })
}

fn pipeline(tare: &Path) -> Result<Finding> {
    let server = Server::start(tare, &[])?;
    let result = load(tare, "-c 64 --pipeline 16 -d 2s", &server.url)?;
    let (p50, p99) = (number(&result, "/latency_ns/p50")?, number(&result, "/latency_ns/p99")?);
    let figures = json!({ "rate_hz": result["rate_hz"], "latency_ns": result["latency_ns"] });
    Ok(Finding { holds: p50 > 1000.0 && p99 > p50, figures })
}

fn open_fixed(tare: &Path) -> Result<Finding> {
    open(tare, "", |rate_hz, _| (rate_hz / 20e3 - 1.0).abs() < 1e-3)
}

fn open_poisson(tare: &Path) -> Result<Finding> {
    open(tare, "--poisson ", |rate_hz, count| (rate_hz / 20e3 - 1.0).abs() < 3.0 / count.sqrt())
}

/// Runs of an open loop: on a virtual machine, p99 of the lateness is as much the time that the host took as the generator's.
const RUNS: usize = 9;
/// Nobody who is stopped for longer than this sends in time.
const GAP_NS: u64 = 50_000;

/// The share of a second that a thread on the generator's CPU loses in gaps longer than [`GAP_NS`], which does nothing
/// but read the clock: where that is above 0.01, p99 of the lateness is above [`GAP_NS`] whoever sends.
fn lost_share() -> Result<f64> {
    let spin = || {
        affinity::set(0, &[1]).map_err(said)?;
        let begin_ns = monotonic_ns();
        let (mut last_ns, mut lost_ns) = (begin_ns, 0);
        while last_ns < begin_ns + 1_000_000_000 {
            let now_ns = monotonic_ns();
            lost_ns += Some(now_ns - last_ns).filter(|gap_ns| *gap_ns > GAP_NS).unwrap_or(0);
            last_ns = now_ns;
        }
        Ok(lost_ns as f64 / 1e9)
    };
    std::thread::spawn(spin).join().map_err(|_| "the spinning thread panicked")?
}

fn open(tare: &Path, gaps: &str, holds_rate: fn(f64, f64) -> bool) -> Result<Finding> {
    let server = Server::start(tare, &[])?;
    let line = format!("-c 64 -R 20000 {gaps}--busy-poll -d 2s");
    let (mut runs, mut late_ns, mut rates_hold) = (Vec::new(), Vec::new(), true);
    for _ in 0..RUNS {
        let lost = lost_share()?;
        let run = load(tare, &line, &server.url)?;
        let (rate_hz, count) = (number(&run, "/rate_hz")?, number(&run, "/requests/count")?);
        rates_hold &= holds_rate(rate_hz, count);
        late_ns.push(number(&run, "/lateness_ns/p99")?);
        runs.push(
            json!({ "rate_hz": rate_hz, "lateness_ns": run["lateness_ns"], "lost_share_before": lost }),
        );
    }
    late_ns.sort_unstable_by(f64::total_cmp);
    let sleeping = load(tare, &format!("-c 64 -R 20000 {gaps}-d 2s"), &server.url)?;
    drop(server);
    // How long a CPU takes to wake depends on how long it slept, and a closed loop lets it sleep less: so this server does not.
    let server = Server::start(tare, &["--busy-poll", "5ms"])?;
    let one = load(tare, "-c 1 --busy-poll -d 2s", &server.url)?;
    let many = load(tare, &line, &server.url)?;
    let (p50, alone) = (number(&many, "/latency_ns/p50")?, number(&one, "/latency_ns/p50")?);
    let holds = rates_hold && late_ns[RUNS / 2] < 50e3 && (p50 - alone).abs() < 10e3;
    let figures = json!({
        "runs": runs, "lateness_p99_ns_median": late_ns[RUNS / 2], "p50_ns": p50, "p50_closed_c1_ns": alone,
        "p50_without_busy_poll_ns": sleeping["latency_ns"]["p50"], "warns_of_its_wake_up": warns(&sleeping, "wake-up"),
    });
    Ok(Finding { holds, figures })
}

const CONNECTIONS: usize = 50_000;

fn connections(tare: &Path) -> Result<Finding> {
    // Of each three threads, which have files of their own where a process may not have so many.
    let server = Server::with_threads(tare, "3", &["--max-connections", "55000"])?;
    let mut command = Command::new(tare);
    command.args("load --json -q -t 3 --load-cpus 1 -R 5000 -d 8s --timeout 10s -c 50000".split(' '));
    command.arg(&server.url);
    let child = command.stdout(Stdio::piped()).spawn().map_err(said)?;
    let (load_pid, server_pid) = (child.id(), server.child.id());
    let reader = std::thread::spawn(move || child.wait_with_output());
    let (mut open, mut rss_bytes_max) = (0, 0);
    while !reader.is_finished() {
        open = open.max(sockets_of(server_pid));
        rss_bytes_max = rss_bytes_max.max(rss_bytes(server_pid) + rss_bytes(load_pid));
        std::thread::sleep(Duration::from_millis(200));
    }
    let output = reader.join().map_err(|_| "the reader panicked")?.map_err(said)?;
    let result: Value = serde_json::from_slice(&output.stdout).map_err(said)?;
    let holds = open >= CONNECTIONS && rss_bytes_max > 0 && rss_bytes_max < 2_000_000_000;
    let figures = json!({
        "open_at_once": open, "rss_bytes_both": rss_bytes_max, "requests": result["requests"],
        "p99_ns": result["latency_ns"]["p99"], "rate_hz": result["rate_hz"],
    });
    Ok(Finding { holds, figures })
}

/// Sockets among the files that a process's threads have open, in one table or in several.
fn sockets_of(pid: u32) -> usize {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return 0 };
    let files = tasks.flatten().filter_map(|task| std::fs::read_dir(task.path().join("fd")).ok());
    let links = files.flatten().flatten().filter_map(|file| std::fs::read_link(file.path()).ok());
    let sockets = links.filter(|link| link.to_string_lossy().starts_with("socket:"));
    sockets.collect::<HashSet<_>>().len()
}

fn rss_bytes(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()).unwrap_or(0) * 1024
}
