//! The figures that a plan can expect something of.

use tare_model::observation::Role;
use tare_model::outcome::{NetOrMissing, Outcome};
use tare_model::schedule::{ScheduleSource, SwitchAccounting};
use tare_model::study::Unit;

/// Threads below this share of the window serve nothing: a main thread that waits for its workers.
const SERVING_RUN: f64 = 0.001;
/// On a CPU where it had less of the window the server was a guest.
const SERVER_RAN: f64 = 0.01;

/// A figure of a result.
#[derive(Debug)]
pub struct Figure {
    /// As a plan names it.
    pub name: &'static str,
    /// What it is counted in.
    pub unit: Unit,
    /// This much is as good as nothing, and as good as equal.
    pub negligible: f64,
    /// Whether only scheduler tracepoints tell it.
    pub traced: bool,
    /// Its value; `None`: missing.
    pub value: fn(&Outcome) -> Option<f64>,
}

/// What every run has.
const fn plain(
    name: &'static str,
    unit: Unit,
    negligible: f64,
    value: fn(&Outcome) -> Option<f64>,
) -> Figure {
    Figure { name, unit, negligible, traced: false, value }
}

/// All of them. Switches are per second and thread, of threads that serve, as `pidstat -wt` shows them.
pub static FIGURES: [Figure; 20] = [
    plain("throughput", Unit::Rate, 0.0, |of| of.figures.gross.value()),
    plain("net", Unit::Rate, 0.0, net),
    plain("cpu_per_request", Unit::Time, 0.0, |of| {
        Some(of.answers.requests.as_ref()?.cpu_ns_per_request.sut? / 1e9)
    }),
    plain("load.cpu_per_request", Unit::Time, 0.0, |of| {
        Some(of.answers.requests.as_ref()?.cpu_ns_per_request.load? / 1e9)
    }),
    plain("p50", Unit::Time, 0.0, |of| ns(of.answers.latency_ns?.p50)),
    plain("p90", Unit::Time, 0.0, |of| ns(of.answers.latency_ns?.p90)),
    plain("p99", Unit::Time, 0.0, |of| ns(of.answers.latency_ns?.p99)),
    plain("p99.9", Unit::Time, 0.0, |of| ns(of.answers.latency_ns?.p99_9)),
    plain("p99.99", Unit::Time, 0.0, |of| ns(of.answers.latency_ns?.p99_99)),
    plain("mean", Unit::Time, 0.0, |of| ns(of.answers.latency_ns?.mean)),
    plain("max", Unit::Time, 0.0, |of| ns(of.answers.latency_ns?.max)),
    plain("sut.voluntary_switches", Unit::Rate, 1.0, |of| switches(of, Role::Sut, |hz| hz.0)),
    plain("sut.involuntary_switches", Unit::Rate, 1.0, |of| switches(of, Role::Sut, |hz| hz.1)),
    plain("load.voluntary_switches", Unit::Rate, 1.0, |of| switches(of, Role::Load, |hz| hz.0)),
    plain("load.involuntary_switches", Unit::Rate, 1.0, |of| switches(of, Role::Load, |hz| hz.1)),
    plain("sut.busy", Unit::Cpus, 0.01, |of| Some(of.accounting.sut.as_ref()?.busy_cpus)),
    plain("load.busy", Unit::Cpus, 0.01, |of| Some(of.accounting.load.as_ref()?.busy_cpus)),
    plain("sut.softirq", Unit::Share, 0.01, softirq),
    Figure {
        name: "sut.lock_contention",
        unit: Unit::Share,
        negligible: 0.01,
        traced: true,
        value: |of| Some(traced(of)?.kernel_locks.iter().map(|lock| lock.share).sum()),
    },
    Figure {
        name: "sut.cross_cpu_wakeups",
        unit: Unit::Rate,
        negligible: 1.0,
        traced: true,
        value: |of| Some(traced(of)?.woken_hz?.cross_cpu),
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
    match &of.figures.net {
        NetOrMissing::Net(net) => Some(net.value),
        NetOrMissing::Missing(_) => None,
    }
}

/// Soft interrupts' share of the busy time of the CPUs that the server ran on.
fn softirq(of: &Outcome) -> Option<f64> {
    let used = || of.accounting.cpus.iter().filter(|cpu| cpu.sut > SERVER_RAN);
    let busy: f64 = used().map(|cpu| cpu.share.user + cpu.share.system + cpu.share.softirq).sum();
    (busy > 0.0).then(|| used().map(|cpu| cpu.share.softirq).sum::<f64>() / busy)
}

/// What the switches show, where they were traced.
fn traced(of: &Outcome) -> Option<&SwitchAccounting> {
    let accounting = of.accounting.switches.as_ref()?;
    (accounting.blocked_source == Some(ScheduleSource::Tracepoints)).then_some(accounting)
}

/// Mean over the threads that serve, of voluntary and involuntary switches.
fn switches(of: &Outcome, role: Role, which: fn((f64, f64)) -> f64) -> Option<f64> {
    let threads = of.accounting.threads_of(role);
    let serving = threads.iter().filter(|thread| thread.run >= SERVING_RUN);
    let all: Vec<f64> = serving.map(|thread| which((thread.voluntary_hz, thread.involuntary_hz))).collect();
    tare_stats::mean(&all)
}
