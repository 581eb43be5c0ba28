//! The counts of a server as Prometheus text, on a listener of their own.

use std::fmt::Write;
use std::net::SocketAddr;
use std::time::Duration;

use crate::config::{Config, ServerError, Timeouts};
use crate::counters::Counts;
use crate::handler::{Request, Responder};
use crate::server::{Report, Server, StopHandle};

/// A server for `/metrics`, of the server that `of` belongs to. It has a thread and an address of its own, so that
/// a busy server can still be read.
pub(crate) fn bind(address: SocketAddr, of: StopHandle) -> Result<Server, ServerError> {
    // Readers ask at once and are done: whoever is silent does not keep them out for long.
    let (short, drain) = (Duration::from_secs(2), Timeouts::default().drain);
    let timeouts = Timeouts { head: short, body: short, write: short, idle: short, linger: short, drain };
    let config = Config { connections_max: 64, backlog: 16, timeouts, ..Config::new(address) };
    Server::builder()
        .route("/metrics", move |_: &Request<'_>, answer: Responder<'_>| {
            answer.ok().content_type("text/plain; version=0.0.4").body(text(&of.report()).as_bytes())
        })
        .bind(config)
}

/// The report in the text format of Prometheus: one metric for each count, one line of it for each loop.
pub fn text(report: &Report) -> String {
    let mut out = String::new();
    for (i, (name, help, is_gauge)) in Counts::METRICS.iter().enumerate() {
        let (suffix, kind) = if *is_gauge { ("", "gauge") } else { ("_total", "counter") };
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "# HELP tare_serve_{name}{suffix} {}\n# TYPE tare_serve_{name}{suffix} {kind}",
            help.trim()
        );
        for (thread, of) in report.threads.iter().enumerate() {
            let value = of.counts.values()[i];
            let _ = writeln!(out, "tare_serve_{name}{suffix}{{thread=\"{thread}\"}} {value}");
        }
    }
    out
}
