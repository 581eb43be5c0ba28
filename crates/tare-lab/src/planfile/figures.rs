//! The figures that a plan can expect something of.

use tare_record::outcome::{NetOrMissing, Outcome, RoleLedger};
use tare_record::study::Unit;

/// Threads below this share of the window serve nothing: a main thread that waits for its workers.
const SERVING_RUN: f64 = 0.001;

/// A figure of a result.
#[derive(Debug)]
pub struct Figure {
    /// As a plan names it.
    pub name: &'static str,
    /// What it is counted in.
    pub unit: Unit,
    /// This much is as good as nothing, and as good as equal.
    pub negligible: f64,
    /// Its value; `None`: missing.
    pub value: fn(&Outcome) -> Option<f64>,
}

/// All of them. Switches are per second and thread, of threads that serve, as `pidstat -wt` shows them.
pub static FIGURES: [Figure; 17] = [
    Figure { name: "throughput", unit: Unit::Rate, negligible: 0.0, value: |of| of.gross.value() },
    Figure { name: "net", unit: Unit::Rate, negligible: 0.0, value: net },
    Figure {
        name: "cpu_per_request",
        unit: Unit::Time,
        negligible: 0.0,
        value: |of| Some(of.requests.as_ref()?.cpu_ns_per_request.sut? / 1e9),
    },
    Figure {
        name: "load.cpu_per_request",
        unit: Unit::Time,
        negligible: 0.0,
        value: |of| Some(of.requests.as_ref()?.cpu_ns_per_request.load? / 1e9),
    },
    Figure { name: "p50", unit: Unit::Time, negligible: 0.0, value: |of| ns(of.latency_ns?.p50) },
    Figure { name: "p90", unit: Unit::Time, negligible: 0.0, value: |of| ns(of.latency_ns?.p90) },
    Figure { name: "p99", unit: Unit::Time, negligible: 0.0, value: |of| ns(of.latency_ns?.p99) },
    Figure { name: "p99.9", unit: Unit::Time, negligible: 0.0, value: |of| ns(of.latency_ns?.p99_9) },
    Figure { name: "p99.99", unit: Unit::Time, negligible: 0.0, value: |of| ns(of.latency_ns?.p99_99) },
    Figure { name: "mean", unit: Unit::Time, negligible: 0.0, value: |of| ns(of.latency_ns?.mean) },
    Figure { name: "max", unit: Unit::Time, negligible: 0.0, value: |of| ns(of.latency_ns?.max) },
    Figure {
        name: "sut.voluntary_switches",
        unit: Unit::Rate,
        negligible: 1.0,
        value: |of| switches(of.ledger.sut.as_ref()?, |hz| hz.0),
    },
    Figure {
        name: "sut.involuntary_switches",
        unit: Unit::Rate,
        negligible: 1.0,
        value: |of| switches(of.ledger.sut.as_ref()?, |hz| hz.1),
    },
    Figure {
        name: "load.voluntary_switches",
        unit: Unit::Rate,
        negligible: 1.0,
        value: |of| switches(of.ledger.load.as_ref()?, |hz| hz.0),
    },
    Figure {
        name: "load.involuntary_switches",
        unit: Unit::Rate,
        negligible: 1.0,
        value: |of| switches(of.ledger.load.as_ref()?, |hz| hz.1),
    },
    Figure {
        name: "sut.busy",
        unit: Unit::Cpus,
        negligible: 0.01,
        value: |of| Some(of.ledger.sut.as_ref()?.busy_cpus),
    },
    Figure {
        name: "load.busy",
        unit: Unit::Cpus,
        negligible: 0.01,
        value: |of| Some(of.ledger.load.as_ref()?.busy_cpus),
    },
];

/// The figure of this name.
pub fn find(name: &str) -> Option<&'static Figure> {
    FIGURES.iter().find(|figure| figure.name == name)
}

fn ns(value: Option<f64>) -> Option<f64> {
    value.map(|ns| ns / 1e9)
}

fn net(of: &Outcome) -> Option<f64> {
    match &of.net {
        NetOrMissing::Net(net) => Some(net.value),
        NetOrMissing::Missing(_) => None,
    }
}

/// Mean over the threads that serve, of voluntary and involuntary switches.
fn switches(role: &RoleLedger, which: fn((f64, f64)) -> f64) -> Option<f64> {
    let serving = role.threads.iter().filter(|thread| thread.run >= SERVING_RUN);
    let all: Vec<f64> = serving.map(|thread| which((thread.voluntary_hz, thread.involuntary_hz))).collect();
    tare_stats::mean(&all)
}
