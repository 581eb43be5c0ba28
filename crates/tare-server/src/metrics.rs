//! The counts of a server as Prometheus text, on a listener of their own.

use std::fmt::Write;
use std::net::SocketAddr;
use std::time::Duration;

use crate::config::{Config, Timeouts};
use crate::counters::Counts;
use crate::handler::{Request, Responder};
use crate::listening::Listening;
use crate::report::Report;
use crate::routes::Routes;
use crate::stop::StopHandle;

/// How the server of `/metrics` is set up. It has a thread and an address of its own, so that a busy server can still
/// be read.
pub(crate) fn config(address: SocketAddr) -> Config {
    // Readers ask at once: a silent connection must not block them for long.
    let (short, drain) = (Duration::from_secs(2), Timeouts::default().drain);
    let timeouts = Timeouts { head: short, body: short, write: short, idle: short, linger: short, drain };
    let listening = Listening { backlog: 16, ..Listening::on(address) };
    Config { listening, connections_max: 64, timeouts, ..Config::new(address) }
}

/// `/metrics` of the server that `of` belongs to.
pub(crate) fn routes(of: StopHandle) -> Routes {
    let mut routes = Routes::default();
    routes.add("/metrics", move |_: &Request<'_>, answer: Responder<'_>| {
        answer.ok().content_type("text/plain; version=0.0.4").body(text(&of.report()).as_bytes())
    });
    routes
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
