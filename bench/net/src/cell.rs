//! One cell: a fresh server, what is done to it, and `tare run`.

use crate::Args;
use crate::disturb::{Busy, Quota};
use crate::rows::Row;
use crate::servers::{Kind, Server};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::process::{Command, Stdio};
use tare_stats::{mean, median};
use tare_sys::process::{Confinement, spawn};

/// What came of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Cell {
    pub round: u32,
    pub server: Kind,
    pub row: Row,
    pub gross_hz: f64,
    /// As `tare run` gives it.
    pub net_hz: f64,
    /// Its interval.
    #[serde(default)]
    pub net_ci95: Option<[f64; 2]>,
    /// Net of a CPU over the reference server's of one, which was loaded interleaved with it.
    pub net_over_reference: f64,
    /// CPU time of a request, nanoseconds: at the asked level, at the level that net is taken from, of the reference.
    pub asked_ns: f64,
    pub saturating_ns: f64,
    pub reference_ns: f64,
    /// The server's own switches, and the generator's, a request of the asked level.
    pub switches: f64,
    pub peer_switches: f64,
    pub bottleneck: String,
    /// Shares of ln(net/gross).
    pub tare: BTreeMap<String, f64>,
    pub residual: f64,
    /// What a cache line took from the server's CPU to the generator's while net was measured, nanoseconds.
    #[serde(default)]
    pub transfer_ns: Option<f64>,
}

impl Cell {
    /// The largest part of the tare.
    pub fn largest(&self) -> Option<(&str, f64)> {
        let largest = self.tare.iter().max_by(|a, b| a.1.total_cmp(b.1))?;
        Some((largest.0.as_str(), *largest.1))
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (cause, ln) = self.largest().unwrap_or(("?", 0.0));
        write!(
            f,
            "{:8} {:12} gross {:7.0} net {:7.0} /ref {:.4} C {:6.0} sat {:5.0} ref {:5.0} own {:.4} peer {:.4} {} {cause} {ln:.3} res {:.4} line {:.0}",
            self.server.name(),
            format!("{:?}", self.row),
            self.gross_hz,
            self.net_hz,
            self.net_over_reference,
            self.asked_ns,
            self.saturating_ns,
            self.reference_ns,
            self.switches,
            self.peer_switches,
            self.bottleneck,
            self.residual,
            self.transfer_ns.unwrap_or(f64::NAN),
        )
    }
}

/// Measures one cell.
pub fn measure(args: &Args, round: u32, kind: Kind, row: Row) -> Result<Cell> {
    let server = Server::start(kind, &args.tare)?;
    let _busy = (row == Row::Busy).then(|| Busy::on(0)).transpose()?;
    let _quota = row.quota().map(|percent| Quota::on(&server.pids(), percent)).transpose()?;
    let folder = tempfile::tempdir()?;
    let record = folder.path().join("cell.tare");
    let mut command = Command::new(&args.tare);
    command.args(["run", "--json", "-q", "-o"]).arg(record);
    let wrk = |threads| format!("wrk -t{threads} -c64 -d2s {}", server.url);
    match row {
        Row::Weak => command.args(["--load", &wrk(1)]),
        Row::WeakThreads => command.args(["--load", &wrk(8)]),
        _ if args.long => &mut command,
        _ => {
            command.arg("-d").arg(format!("{}ms", args.trial_ms * if row.quota().is_some() { 2 } else { 1 }))
        }
    };
    if !args.long {
        command.args(["--trials", &args.trials.to_string(), "-w", "200ms"]);
    }
    command.args(["--load-cpus", if row == Row::Shared { "0" } else { "1" }]);
    match row {
        Row::Eight => command.args(["-c", "8"]),
        Row::One => command.args(["-c", "1"]),
        Row::Rate => command.args(["--rate", slow_hz(kind)]),
        _ => &mut command,
    };
    command.arg(&server.url).env("TARE_STATE_DIR", &args.state);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // It ends with us, and so does what it starts.
    let child = spawn(&mut command, &Confinement::default()).context("cannot start tare")?;
    let output = child.wait_with_output()?;
    let outcome: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("tare said: {}", String::from_utf8_lossy(&output.stderr)))?;
    read(&outcome, round, kind, row)
}

fn interval(outcome: &Value) -> Option<[f64; 2]> {
    let end = |place| outcome.pointer(&format!("/net/ci95/{place}"))?.as_f64();
    Some([end(0)?, end(1)?])
}

/// Requests per second that are a fraction of what a server can do.
fn slow_hz(kind: Kind) -> &'static str {
    match kind {
        Kind::Embedded | Kind::Nginx => "20000",
        Kind::Go => "10000",
        Kind::Node => "4000",
    }
}

fn read(outcome: &Value, round: u32, server: Kind, row: Row) -> Result<Cell> {
    let number = |pointer: &str| {
        let found = outcome.pointer(pointer).and_then(Value::as_f64);
        found.with_context(|| format!("there is no {pointer}: {}", outcome["net"]))
    };
    if outcome["valid"] != true {
        bail!("not valid: {}", outcome["warnings"]);
    }
    let trials = outcome["trials"].as_array().map(Vec::as_slice).unwrap_or_default();
    let cost_of = |level: &str| -> Option<f64> {
        let at_level = trials.iter().filter(|trial| trial["level"] == level);
        mean(&at_level.filter_map(|trial| trial["sut_cpu_ns"].as_f64()).collect::<Vec<_>>())
    };
    let interleaved = trials.iter().filter(|trial| trial["level"] != "asked");
    let transfers: Vec<f64> = interleaved.filter_map(|trial| trial["transfer_ns"].as_f64()).collect();
    let asked_ns = cost_of("asked").context("the asked level has no cost")?;
    let gross_hz = number("/gross/value")?;
    let clients = outcome.pointer("/accounting/threads").and_then(Value::as_array);
    let clients = clients.into_iter().flatten().filter(|thread| thread["role"] == "load");
    let peer_hz: f64 = clients.filter_map(|thread| thread["voluntary_hz"].as_f64()).sum();
    let parts = outcome["tare"].as_array().map(Vec::as_slice).unwrap_or_default();
    let part = |part: &Value| Some((part["cause"].as_str()?.to_owned(), part["ln_share"].as_f64()?));
    Ok(Cell {
        round,
        server,
        row,
        gross_hz,
        net_hz: number("/net/value")?,
        net_ci95: interval(outcome),
        net_over_reference: number("/net/against_reference/ratio")?,
        asked_ns,
        saturating_ns: cost_of("saturating").unwrap_or(asked_ns),
        reference_ns: number("/net/against_reference/cpu_ns_per_request")?,
        switches: number("/requests/switches_per_request/voluntary")?,
        peer_switches: peer_hz / gross_hz,
        bottleneck: outcome["bottleneck"].as_str().unwrap_or_default().to_owned(),
        tare: parts.iter().filter_map(part).collect(),
        residual: number("/accounting/residual_ratio").unwrap_or(f64::NAN),
        transfer_ns: median(&transfers),
    })
}
