//! Our wake-up probe against `cyclictest` (Debian's rt-tests): the same CPU, policy, timer slack, idle setting and
//! interval, in pairs whose order is drawn at random. What is compared is the median wake-up of a run.
//!
//! `bench/machine/wakeup`
#![allow(clippy::print_stdout)] // a program of its own, not a room

use anyhow::{Context, Result, bail, ensure};
use bench_machine::{median, write};
use clap::Parser;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tare_machine::probes::wakeup::{INTERVAL_NS, run};
use tare_model::probes::{Policy, WakeupSetting};

/// Longer wake-ups are counted by `cyclictest` without their length; no median is as long.
const LONGEST_NS: u64 = 400_000;
/// What a thread has whose slack nobody set, as those of `cyclictest`.
const USUAL_SLACK_NS: u64 = 50_000;
const SETTINGS: [(&str, WakeupSetting); 4] = [
    ("SCHED_FIFO 80, idle states held off", setting(Policy::Fifo(80), true)),
    ("SCHED_OTHER, idle states held off", setting(Policy::Other, true)),
    ("SCHED_FIFO 80, idle states allowed", setting(Policy::Fifo(80), false)),
    ("SCHED_OTHER, idle states allowed", setting(Policy::Other, false)),
];

const fn setting(policy: Policy, idle_held: bool) -> WakeupSetting {
    WakeupSetting { policy, slack_ns: USUAL_SLACK_NS, idle_held }
}

/// How long it takes.
#[derive(Debug, Parser)]
struct Args {
    /// Pairs of runs for each setting.
    #[arg(long, default_value_t = 12)]
    pairs: u32,
    /// Wake-ups of a run.
    #[arg(long, default_value_t = 500)]
    loops: u32,
    /// Settings whose name holds this text alone.
    #[arg(long, default_value = "")]
    only: String,
    /// The CPU.
    #[arg(long, default_value_t = 1)]
    cpu: u32,
    /// Where the result goes.
    #[arg(long)]
    out: Option<PathBuf>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64 ^ u64::from(std::process::id());
    let settings: Vec<_> = SETTINGS.iter().filter(|(name, _)| name.contains(&args.only)).collect();
    let mut runs = vec![(Vec::new(), Vec::new()); settings.len()];
    // All settings in each round: what the machine does to one round, it does to all of them.
    for _ in 0..args.pairs {
        for ((_, setting), (ours, theirs)) in settings.iter().zip(&mut runs) {
            // xorshift64: one bit decides who goes first.
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            for which in if seed & 1 == 0 { [true, false] } else { [false, true] } {
                if which {
                    ours.push(ours_ns(&args, *setting)?);
                } else {
                    theirs.push(cyclictest_ns(&args, *setting)?);
                }
            }
        }
    }
    let found = settings.iter().zip(&runs).map(|((name, _), (ours, theirs))| report(name, ours, theirs));
    let found: Vec<Value> = found.collect::<Result<_>>()?;
    if let Some(path) = &args.out {
        let command = format!("bench/machine/wakeup --pairs {} --loops {}", args.pairs, args.loops);
        write(path, &command, &json!({ "cpu": args.cpu, "interval_ns": INTERVAL_NS, "settings": found }))?;
    }
    Ok(())
}

fn report(name: &str, ours: &[f64], theirs: &[f64]) -> Result<Value> {
    let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
    let few = "no pair ran";
    let [ratio, low, high] = median(&ratios).context(few)?;
    let (our_median, their_median) = (median(ours).context(few)?, median(theirs).context(few)?);
    println!(
        "{name:36} ours {:6.1} µs, cyclictest {:6.1} µs, ratio {ratio:.3} (95 % interval {low:.3} to {high:.3})",
        our_median[0] / 1e3,
        their_median[0] / 1e3
    );
    Ok(json!({
        "setting": name,
        "ours_p50_ns": ours,
        "cyclictest_p50_ns": theirs,
        "ours_median_ns": our_median[0],
        "cyclictest_median_ns": their_median[0],
        "ratio": ratio,
        "ratio_ci95": [low, high],
    }))
}

fn ours_ns(args: &Args, setting: WakeupSetting) -> Result<f64> {
    let wakeup = run(args.cpu, setting, INTERVAL_NS, u64::from(args.loops) * INTERVAL_NS);
    Ok(wakeup.late.ok()?.latency.p50_ns)
}

/// A CPU for the main thread of `cyclictest`, which otherwise wakes every 10 ms on the one that is measured and keeps
/// it from idling deeply: with it there, `cyclictest` itself reads a seventh less where idle states are allowed.
fn elsewhere(cpu: u32) -> Option<u32> {
    tare_sys::affinity::get(0).ok()?.into_iter().find(|&other| other != cpu)
}

/// The median of its histogram in nanoseconds.
fn cyclictest_ns(args: &Args, setting: WakeupSetting) -> Result<f64> {
    let json = std::env::temp_dir().join(format!("bench-wakeup-{}.json", std::process::id()));
    let policy = match setting.policy {
        Policy::Other => "--policy=other".to_string(),
        Policy::Fifo(priority) => format!("--priority={priority}"),
    };
    let mut command = Command::new("cyclictest");
    command.args(["-q", "-m", "-N", "-t", "1", "-a", &args.cpu.to_string(), &policy]);
    command.args(["-i", &(INTERVAL_NS / 1000).to_string(), "-l", &args.loops.to_string()]);
    if let Some(elsewhere) = elsewhere(args.cpu) {
        command.arg(format!("--mainaffinity={elsewhere}"));
    }
    command.args(["-h", &LONGEST_NS.to_string(), &format!("--json={}", json.display())]);
    if !setting.idle_held {
        command.arg("--default-system");
    }
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    let status = status.context("cyclictest cannot be started: apt-get install rt-tests")?;
    ensure!(status.success(), "cyclictest failed: run as root");
    let text = std::fs::read_to_string(&json).context("cyclictest wrote no result")?;
    std::fs::remove_file(&json)?;
    let result: Value = serde_json::from_str(&text)?;
    let histogram = result["thread"]["0"]["histogram"].as_object().context("no histogram in the result")?;
    let counts: BTreeMap<u64, u64> = histogram
        .iter()
        .map(|(ns, count)| Ok((ns.parse()?, count.as_u64().context("a count is no number")?)))
        .collect::<Result<_>>()?;
    let mut left = u64::from(args.loops).div_ceil(2);
    for (ns, count) in counts {
        left = left.saturating_sub(count);
        if left == 0 {
            return Ok(ns as f64);
        }
    }
    bail!("half of the wake-ups took longer than {LONGEST_NS} ns")
}
