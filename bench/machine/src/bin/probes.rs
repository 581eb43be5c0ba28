//! One round of all probes of this machine, as JSON.
//!
//! `cargo run --release -p bench-machine --bin probes`
#![allow(clippy::print_stdout, clippy::print_stderr)] // a program of its own, not a room

use anyhow::Result;
use clap::Parser;
use tare_machine::{Root, facts, probes};

/// What is probed.
#[derive(Debug, Parser)]
struct Args {
    /// How long the probes may take together, seconds.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// CPUs to probe one by one; otherwise some are chosen.
    #[arg(long, value_delimiter = ',')]
    cpus: Vec<u32>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let root = Root::live();
    let options = probes::Options {
        duration_ns: (args.seconds.max(0.0) * 1e9) as u64,
        cpus: args.cpus,
        ..probes::Options::default()
    };
    let found = probes::run(&root, &facts::read(&root).cpus, &options, &mut |step| {
        eprintln!("{:3.0} % {}", step.done_ratio * 100.0, step.probe);
    });
    println!("{}", serde_json::to_string_pretty(&found)?);
    Ok(())
}
