//! `tare probe`.

use super::output::OutputArgs;
use super::values;
use clap::Args;
use std::time::Duration;
use tare_load::probe::ProbeTarget;
use tare_model::probing::{Call, LoadState, Probe};
use tare_run::probe::{parse_probe, parse_state, parse_via};

/// A probe, taken apart.
#[derive(Debug, Clone)]
pub struct ProbeArg(pub Probe, pub ProbeTarget);

/// What a service calls, taken apart.
#[derive(Debug, Clone)]
pub struct ViaArg(pub String, pub Vec<Call>);

fn probe(text: &str) -> Result<ProbeArg, String> {
    parse_probe(text).map(|(probe, target)| ProbeArg(probe, target))
}

fn via(text: &str) -> Result<ViaArg, String> {
    parse_via(text).map(|(service, calls)| ViaArg(service, calls))
}

/// What is asked, and under which load.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tare probe --probe svc=http://127.0.0.1:8080/ --probe db=postgres://app@127.0.0.1/app \\
             --state idle= --state full='wrk -c64 -d{seconds}s http://127.0.0.1:8080/'
  tare probe --probe cache=redis://127.0.0.1 --probe job=command:'./job --once'
  tare probe --probe svc=http://10.0.0.7/order --probe still=http://10.0.0.7/health --via still: \\
             --probe db=mysql://app@10.0.0.9 --probe net=tcp://10.0.0.7:22 --via 'svc:db*3' \\
             --state none= --state some='ssh gen load 4' --state all='ssh gen load 16' --rounds 8")]
pub struct ProbeArgs {
    /// Ask this, as NAME=URL; may be repeated.
    ///
    /// http://HOST:PORT/PATH (a status below 400 is an answer) and https://; tcp://HOST:PORT (a connection is opened and closed: the kernels
    /// and the network alone); redis:// (PING); mysql://, mariadb:// and postgres://USER:PASSWORD@HOST:PORT/DATABASE (SELECT 1);
    /// command:PROGRAM with its arguments (until it ends with status 0). Passwords may stand in REDISCLI_AUTH, MYSQL_PWD and PGPASSWORD
    /// instead.
    #[arg(long, value_name = "NAME=URL", required = true, value_parser = probe)]
    pub probe: Vec<ProbeArg>,
    /// A state of load, as NAME=COMMAND; nothing behind the '=': no load.
    ///
    /// May be repeated; all others are held against the first. The command is started before each window and ended with all that it
    /// started after it; {seconds} in it stands for how long it is needed. It has no shell: sh -c '…' gives it one. The word tare at its
    /// beginning is this program.
    #[arg(long, value_name = "NAME=COMMAND", value_parser = parse_state)]
    pub state: Vec<LoadState>,
    /// What a service calls, as SERVICE:PROBE,PROBE; may be repeated.
    ///
    /// SERVICE:PROBE*3 where an answer takes three calls; SERVICE: where it calls nothing. Without it an HTTP probe is taken to call each
    /// database and cache that has a probe.
    #[arg(long, value_name = "SERVICE:PROBES", value_parser = via)]
    pub via: Vec<ViaArg>,
    /// Open a new connection for each request of this probe; may be repeated.
    ///
    /// Its time is in the response time. Otherwise connections are kept, four of each probe at most.
    #[arg(long, value_name = "NAME")]
    pub fresh: Vec<String>,
    /// Requests of each probe in a second.
    ///
    /// From 0.1 to 1000. The schedule does not wait for answers; each request is due at an instant drawn at random within its slot.
    #[arg(long, value_name = "RATE", default_value = "20", value_parser = values::rate_hz)]
    pub rate: f64,
    /// How often each state is measured.
    ///
    /// Each state once in each round, in an order drawn at random. 3 are the least for a verdict.
    #[arg(long, value_name = "N", default_value = "8", value_parser = values::count)]
    pub rounds: u64,
    /// How long a state is measured in each round.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = values::positive_duration)]
    pub window: Duration,
    /// How long a state lasts before it is measured.
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = values::duration)]
    pub settle: Duration,
    /// The longest that an answer may take.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = values::positive_duration)]
    pub timeout: Duration,
    /// Seed of the order and of the instants.
    ///
    /// Without it another one each time; the result has it.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub exports: OutputArgs,
    /// No progress on standard error.
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
}
