//! How well the probes repeat: rounds of all of them, and the effective clock of a CPU alone and beside a busy loop,
//! interleaved.
//!
//! `bench/machine/repeat`
#![allow(clippy::print_stdout)] // a program of its own, not a room

use anyhow::{Context, Result};
use bench_machine::{Busy, median, write};
use clap::Parser;
use serde_json::{Value, json};
use std::path::PathBuf;
use tare_machine::{Root, facts, probes};
use tare_model::probes::{MemoryPlace, Probes};

/// How long it takes.
#[derive(Debug, Parser)]
struct Args {
    /// Rounds of all probes.
    #[arg(long, default_value_t = 10)]
    rounds: u32,
    /// How long the probes of a round may take together, seconds.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Readings of the clock alone and beside a busy loop, each.
    #[arg(long, default_value_t = 20)]
    clocks: u32,
    /// Length of such a reading, milliseconds.
    #[arg(long, default_value_t = 300)]
    clock_ms: u64,
    /// The CPU of these readings.
    #[arg(long, default_value_t = 1)]
    cpu: u32,
    /// Where the result goes.
    #[arg(long)]
    out: Option<PathBuf>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let root = Root::live();
    let cpus = facts::read(&root).cpus;
    let options =
        probes::Options { duration_ns: (args.seconds.max(0.0) * 1e9) as u64, ..probes::Options::default() };
    let mut table: Vec<(String, Vec<f64>)> = Vec::new();
    let mut add = |name: String, value: f64| match table.iter_mut().find(|(known, _)| *known == name) {
        Some((_, values)) => values.push(value),
        None => table.push((name, vec![value])),
    };
    for _ in 0..args.rounds {
        figures(&probes::run(&root, &cpus, &options, &mut |_| {}), &mut add);
    }
    for _ in 0..args.clocks {
        let hz = || probes::clock::run(args.cpu, args.clock_ms * 1_000_000).map(|clock| clock.hz.median);
        add("clock alone, GHz".into(), hz()? / 1e9);
        let busy = Busy::start(args.cpu);
        add("clock beside a busy loop, GHz".into(), hz()? / 1e9);
        drop(busy);
    }
    let rows: Vec<Value> = table.iter().map(|(name, values)| row(name, values)).collect::<Result<_>>()?;
    if let Some(path) = &args.out {
        write(path, "bench/machine/repeat", &json!({ "rounds": args.rounds, "figures": rows }))?;
    }
    Ok(())
}

/// The figures of a round that are shown to people.
fn figures(probes: &Probes, add: &mut impl FnMut(String, f64)) {
    for clock in probes.clock.found.value().into_iter().flatten() {
        if let Some(found) = clock.found.value() {
            add(format!("clock of CPU {} in a round, GHz", clock.cpu), found.hz.median / 1e9);
        }
    }
    for wakeup in probes.wakeup.found.value().into_iter().flatten() {
        if let Some(late) = wakeup.late.value() {
            let policy = wakeup.setting.policy;
            add(format!("wake-up p50, {policy:?}, µs"), late.latency.p50_ns / 1e3);
            add(format!("wake-up p99, {policy:?}, µs"), late.latency.p99_ns / 1e3);
            add(format!("timer jitter, {policy:?}, µs"), late.jitter_ns / 1e3);
        }
    }
    for gaps in probes.gaps.found.value().into_iter().flatten() {
        if let Some(found) = gaps.found.value() {
            add(format!("lost without a switch, CPU {}, %", gaps.cpu), found.unseen.lost_ratio * 100.0);
        }
    }
    for level in probes.memory.found.value().into_iter().flatten() {
        let place = match level.place {
            MemoryPlace::Cache(level) => format!("cache level {level}"),
            MemoryPlace::Memory => "memory".into(),
        };
        if let Some(load_ns) = level.load_ns.value() {
            add(format!("load from {place}, ns"), load_ns.median);
        }
    }
    for (name, handover) in
        [("context switch", &probes.switch), ("wake-up of another CPU", &probes.cross_wakeup)]
    {
        if let Some(found) = handover.found.value() {
            add(format!("{name}, µs"), found.switch_ns / 1e3);
        }
    }
    if let Some(exit) = probes.exit.found.value() {
        add("hypervisor exit p50, µs".into(), exit.latency.p50_ns / 1e3);
    }
    if let Some(transfer) = probes.transfer.found.value() {
        add("line to another CPU, ns".into(), transfer.transfer_ns.median);
    }
    if let Some(company) = probes.company.found.value() {
        add("core shared, % of the time".into(), company.oversubscribed_ratio * 100.0);
    }
    if let Some(syscall) = probes.syscall.found.value() {
        add("system call, ns".into(), syscall.call_ns.median);
    }
    if let Some(hz) = probes.clock_audit.found.value().and_then(|audit| audit.tsc_hz.value()) {
        add("time stamp counter, GHz".into(), hz / 1e9);
    }
    add("round, s".into(), probes.took_ns as f64 / 1e9);
}

/// Median and lowest and highest, and how many lie within 1 % of the median.
fn row(name: &str, values: &[f64]) -> Result<Value> {
    let [middle, low, high] = median(values).context("no values")?;
    let off = |value: &f64| (value / middle - 1.0).abs();
    let within = values.iter().filter(|value| off(value) <= 0.01).count();
    let furthest = values.iter().map(off).fold(0.0, f64::max);
    println!(
        "{name:42} {middle:10.4}  95 % {low:.4} to {high:.4}  furthest {:5.1} %  {within}/{} within 1 %",
        furthest * 100.0,
        values.len()
    );
    Ok(json!({
        "figure": name,
        "median": middle,
        "ci95": [low, high],
        "furthest_off_ratio": furthest,
        "within_1_percent": within,
        "values": values,
    }))
}
