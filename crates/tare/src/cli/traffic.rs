//! The load that tare's own generator makes: the same arguments in `tare load` and `tare run`.

use super::values;
use clap::{Args, ValueEnum};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Every argument here, for those that exclude them all: somebody else's generator, a program.
pub const ALL: [&str; 17] = [
    "connections",
    "threads",
    "rate",
    "steps",
    "poisson",
    "think",
    "pipeline",
    "timeout",
    "no_keepalive",
    "busy_poll",
    "engine",
    "local_addr",
    "unix",
    "method",
    "headers",
    "body",
    "body_file",
];

/// What is sent, how and from where.
#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub struct TrafficArgs {
    /// Open connections.
    #[arg(short = 'c', long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub connections: u32,
    /// Generator threads [default: one for each CPU it is given].
    #[arg(short = 't', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Requests per second, timed from when each was due (open loop); without it, closed loop.
    #[arg(short = 'R', long, value_name = "PER_SECOND", allow_negative_numbers = true, value_parser = values::rate_hz)]
    pub rate: Option<f64>,
    /// Rates one after the other, as RATE:TIME or FROM-TO:TIME (a ramp): 1k:5s,1k-10k:20s,10k:5s.
    #[arg(long, value_name = "STAGES", value_parser = values::stages, conflicts_with_all = ["rate", "think"])]
    pub steps: Option<values::Stages>,
    /// Random gaps between requests, as of many independent users (with --rate, --steps or --think).
    #[arg(long)]
    pub poisson: bool,
    /// Pause after each answer, as a user does (closed loop).
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration, conflicts_with = "rate")]
    pub think: Option<Duration>,
    /// Requests in flight on each connection.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub pipeline: u32,
    /// Give up on an answer after this.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = values::positive_duration)]
    pub timeout: Duration,
    /// A connection for each request.
    #[arg(long)]
    pub no_keepalive: bool,
    /// Spin instead of sleeping: no wake-up in the latencies; each thread takes a whole CPU.
    #[arg(long)]
    pub busy_poll: bool,
    /// What moves the bytes.
    #[arg(long, value_name = "NAME", value_enum, default_value_t = Engine::Auto)]
    pub engine: Engine,
    /// Connect from these addresses in turn (each has ports for about 28,000 connections to one server).
    #[arg(long, value_name = "ADDR", value_delimiter = ',')]
    pub local_addr: Vec<IpAddr>,
    /// Connect to this Unix socket instead of the URL's host and port.
    #[arg(long, value_name = "PATH")]
    pub unix: Option<PathBuf>,

    #[command(flatten)]
    pub message: MessageArgs,
}

/// What moves the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// The faster one that this kernel has.
    Auto,
    /// Readiness by epoll.
    Epoll,
    /// Batched submission by io_uring.
    IoUring,
}

/// What is asked and what must be answered.
#[derive(Debug, Args)]
#[command(next_help_heading = "Requests")]
pub struct MessageArgs {
    /// Method.
    #[arg(short = 'm', long, value_name = "METHOD", default_value = "GET")]
    pub method: String,
    /// Add a header, 'Name: value'; may be given several times.
    #[arg(short = 'H', long = "header", value_name = "HEADER")]
    pub headers: Vec<String>,
    /// Send this body.
    #[arg(long, value_name = "TEXT", conflicts_with = "body_file")]
    pub body: Option<String>,
    /// Send this file as the body.
    #[arg(long, value_name = "FILE")]
    pub body_file: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_listed() {
        let command = TrafficArgs::augment_args(clap::Command::new("x"));
        let ids: Vec<&str> = command.get_arguments().map(|argument| argument.get_id().as_str()).collect();
        assert_eq!(ids, ALL);
    }
}
