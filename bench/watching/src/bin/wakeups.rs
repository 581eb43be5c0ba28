//! What counting wake-ups costs each of them: two threads on one CPU hand a token to and fro, a counter as
//! `tare-observe/wakeups` has it over them switched on and off every slice, in pairs whose order alternates.
//!
//! `cargo run --release -p bench-watching --bin wakeups`
#![allow(clippy::print_stdout)] // a program of its own, not a room

use anyhow::{Context, Result, ensure};
use clap::Parser;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Instant;
use tare_sys::perf::{Counter, Tracepoint};
use tare_sys::{affinity, process};

/// What is measured, and for how long.
#[derive(Debug, Parser)]
struct Args {
    /// Pairs of slices, one counted and one not.
    #[arg(long, default_value_t = 200)]
    pairs: u32,
    /// Hand-overs there and back in a slice.
    #[arg(long, default_value_t = 2000)]
    rounds: u32,
    /// Threads beside the two that the filter names one by one: a server's threads with gaps between their numbers.
    #[arg(long, default_value_t = 0)]
    strangers: u32,
    /// The CPU.
    #[arg(long, default_value_t = 0)]
    cpu: u32,
}

fn main() -> Result<()> {
    let args = Args::parse();
    affinity::set(0, &[args.cpu])?;
    let (there, inbox) = sync_channel(1);
    let (outbox, back) = sync_channel(1);
    let other = std::thread::spawn(move || echo(&inbox, &outbox));
    let peer = back.recv()?;
    let waking = Tracepoint::find("sched", "sched_waking").context("no tracepoint: run as root")?;
    let filter = filter(args.strangers, [process::gettid(), peer]);
    let counter =
        Counter::tracepoint(args.cpu, &waking, &filter).context("counting wake-ups: run as root")?;
    let (mut on, mut off) = (Vec::new(), Vec::new());
    let before = counter.read()?;
    for pair in 0..args.pairs {
        for active in [pair % 2 == 0, pair % 2 == 1] {
            counter.enable(active)?;
            let ns = slice_ns(&args, &there, &back)?;
            if active { &mut on } else { &mut off }.push(ns);
        }
    }
    let counted = (counter.read()? - before) as f64 / f64::from(args.pairs);
    drop(there);
    ensure!(other.join().is_ok() && counted > 0.0, "nothing was counted");
    report(on.iter().zip(&off).map(|(on, off)| (on - off) / counted).collect(), counted);
    Ok(())
}

/// The median, which a pair that the host disturbs does not move, with the interval of the sign test.
fn report(mut costs_ns: Vec<f64>, counted: f64) {
    costs_ns.sort_by(f64::total_cmp);
    let n = costs_ns.len() as f64;
    let half = 0.98 * n.sqrt();
    let at = |rank: f64| costs_ns[(rank.max(0.0) as usize).min(costs_ns.len() - 1)];
    let (middle, low, high) = (at(n / 2.0), at((n / 2.0 - half).floor() - 1.0), at((n / 2.0 + half).ceil()));
    println!("counting costs {middle:.1} ns a wake-up, 95 % interval {low:.1} to {high:.1} ns");
    println!("median of {n} pairs of slices with {counted:.0} wake-ups");
}

/// Says its number, then gives back every token that it gets.
fn echo(inbox: &Receiver<u32>, outbox: &SyncSender<u32>) {
    let mut token = process::gettid();
    while outbox.send(token).is_ok() {
        match inbox.recv() {
            Ok(next) => token = next,
            Err(_) => return,
        }
    }
}

fn slice_ns(args: &Args, there: &SyncSender<u32>, back: &Receiver<u32>) -> Result<f64> {
    let begin = Instant::now();
    for token in 0..args.rounds {
        there.send(token)?;
        back.recv()?;
    }
    Ok(begin.elapsed().as_nanos() as f64)
}

fn filter(strangers: u32, peers: [u32; 2]) -> String {
    // Above every number that a thread can have.
    let strangers = (0..strangers).map(|number| (1 << 23) + 2 * number);
    let tids: Vec<u32> = strangers.chain(peers).collect();
    let one_of =
        |field: &str| tids.iter().map(|tid| format!("{field}=={tid}")).collect::<Vec<_>>().join("||");
    format!("!(common_flags&88)&&({})&&({})", one_of("pid"), one_of("common_pid"))
}
