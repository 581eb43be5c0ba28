//! What it costs a program to come back to a CPU that another had meanwhile: CPU time of an access to working sets of several
//! sizes, alone and beside a busy loop that touches no memory, in pairs. Where the two differ, the set was not there any more.
//!
//! `cargo run --release -p bench-machine --bin absence`; with longer slices for both,
//! `tare tune --base-slice 80ms --apply -- target/release/absence`
#![allow(clippy::print_stdout)] // a program of its own, not a room

use anyhow::{Context, Result};
use bench_machine::{Busy, median, write};
use clap::Parser;
use serde_json::{Value, json};
use std::path::PathBuf;
use tare_sys::time::{monotonic_ns, thread_cpu_ns};

/// Bytes that the caches are filled with and asked for by.
const LINE_BYTES: usize = 64;
/// Accesses between two looks at the clock.
const ACCESSES: u64 = 20_000;

/// What is measured, for how long.
#[derive(Debug, Parser)]
struct Args {
    /// Pairs for each size.
    #[arg(long, default_value_t = 10)]
    pairs: u32,
    /// CPU time of a measurement, milliseconds.
    #[arg(long, default_value_t = 500)]
    cpu_ms: u64,
    /// Sizes of the working set, KiB.
    #[arg(long, value_delimiter = ',', default_value = "16,256,512,1024,2048,4096")]
    kib: Vec<usize>,
    /// The CPU for both.
    #[arg(long, default_value_t = 0)]
    cpu: u32,
    /// Where the result goes.
    #[arg(long)]
    out: Option<PathBuf>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    tare_sys::affinity::set(0, &[args.cpu]).with_context(|| format!("cannot run on CPU {}", args.cpu))?;
    let mut rows = Vec::new();
    println!("working set    ns alone   beside a busy loop, over alone (95 %)");
    for &kib in &args.kib {
        let mut set = vec![0_u8; kib.max(1) * 1024];
        let (mut alone_ns, mut ratios) = (Vec::new(), Vec::new());
        for pair in 0..args.pairs {
            let alone = |set: &mut [u8]| access_ns(set, args.cpu_ms);
            let beside = |set: &mut [u8]| {
                let _busy = Busy::start(args.cpu);
                access_ns(set, args.cpu_ms)
            };
            // Who is first alternates: what changes evenly meets both alike.
            let (one, other) = if pair % 2 == 0 {
                (alone(&mut set), beside(&mut set))
            } else {
                let other = beside(&mut set);
                (alone(&mut set), other)
            };
            alone_ns.push(one);
            ratios.push(other / one);
        }
        rows.push(row(kib, &alone_ns, &ratios)?);
    }
    if let Some(path) = &args.out {
        write(
            path,
            "cargo run --release -p bench-machine --bin absence",
            &json!({ "pairs": args.pairs, "sets": rows }),
        )?;
    }
    Ok(())
}

fn row(kib: usize, alone_ns: &[f64], ratios: &[f64]) -> Result<Value> {
    let [ratio, low, high] = median(ratios).context("no pairs")?;
    let [alone, ..] = median(alone_ns).context("no pairs")?;
    println!("{kib:7} KiB {alone:10.2}   {ratio:.3} ({low:.3} to {high:.3})");
    Ok(json!({ "kib": kib, "alone_ns": alone, "ratio": ratio, "ratio_ci95": [low, high] }))
}

/// CPU time of an access, nanoseconds, to lines of `set` in an order that no prefetcher knows.
fn access_ns(set: &mut [u8], cpu_ms: u64) -> f64 {
    let lines = (set.len() / LINE_BYTES).max(1) as u64;
    let mut random = monotonic_ns() | 1;
    let (begin_ns, mut accesses) = (thread_cpu_ns(), 0);
    loop {
        for _ in 0..ACCESSES {
            // xorshift64.
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            if let Some(byte) = set.get_mut((random % lines) as usize * LINE_BYTES) {
                *byte = byte.wrapping_add(1);
            }
        }
        accesses += ACCESSES;
        let spent_ns = thread_cpu_ns().saturating_sub(begin_ns);
        if spent_ns >= cpu_ms * 1_000_000 {
            return spent_ns as f64 / accesses as f64;
        }
    }
}
