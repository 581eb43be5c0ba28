//! The figures that a plan can expect something of.

use std::sync::LazyLock;
use tare_model::figure::{Description, Figure as Compared, Unit};
use tare_model::observation::Role;
use tare_model::outcome::{LatencyOf, LatencySummary, Outcome};
use tare_model::schedule::{ScheduleSource, SwitchAccounting};

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
    of: Of,
}

/// Where a result has it.
#[derive(Debug)]
enum Of {
    /// One that every comparison is about.
    Compared(Compared),
    Latency(LatencyOf),
    Other(fn(&Outcome) -> Option<f64>),
}

impl Figure {
    /// Its value, base units; `None`: missing.
    pub fn value(&self, outcome: &Outcome) -> Option<f64> {
        match self.of {
            Of::Compared(figure) => outcome.figure(figure),
            Of::Latency(of) => of(outcome.answers.latency_ns.as_ref()?).map(|ns| ns / 1e9),
            Of::Other(of) => of(outcome),
        }
    }

    fn of(name: &'static str, unit: Unit, of: Of) -> Figure {
        Figure { name, unit, negligible: 0.0, traced: false, of }
    }

    fn other(name: &'static str, unit: Unit, negligible: f64, of: fn(&Outcome) -> Option<f64>) -> Figure {
        Figure { negligible, ..Figure::of(name, unit, Of::Other(of)) }
    }
}

/// All of them: those that are compared, the other latencies, and what the servers' and generators' threads did.
pub fn all() -> &'static [Figure] {
    static ALL: LazyLock<Vec<Figure>> = LazyLock::new(|| {
        let compared = Compared::of_servers().map(|figure| {
            let Description { name, unit, .. } = *figure.describe();
            Figure::of(name, unit, Of::Compared(figure))
        });
        let is_compared = |name: &str| Compared::of_servers().any(|figure| figure.name() == name);
        let latencies = LatencySummary::NAMED.into_iter().filter(|(name, _)| !is_compared(name));
        let latencies = latencies.map(|(name, of)| Figure::of(name, Unit::Time, Of::Latency(of)));
        compared.chain(latencies).chain(of_threads()).collect()
    });
    &ALL
}

/// Switches are per second and thread, of threads that serve, as `pidstat -wt` shows them.
fn of_threads() -> [Figure; 10] {
    let traced = |figure: Figure| Figure { traced: true, ..figure };
    [
        Figure::other("load.cpu_per_request", Unit::Time, 0.0, |of| {
            Some(of.answers.requests.as_ref()?.cpu_ns_per_request.load? / 1e9)
        }),
        Figure::other("sut.voluntary_switches", Unit::Rate, 1.0, |of| switches(of, Role::Sut, |hz| hz.0)),
        Figure::other("sut.involuntary_switches", Unit::Rate, 1.0, |of| switches(of, Role::Sut, |hz| hz.1)),
        Figure::other("load.voluntary_switches", Unit::Rate, 1.0, |of| switches(of, Role::Load, |hz| hz.0)),
        Figure::other("load.involuntary_switches", Unit::Rate, 1.0, |of| switches(of, Role::Load, |hz| hz.1)),
        Figure::other("sut.busy", Unit::Cpus, 0.01, |of| Some(of.accounting.sut.as_ref()?.busy_cpus)),
        Figure::other("load.busy", Unit::Cpus, 0.01, |of| Some(of.accounting.load.as_ref()?.busy_cpus)),
        Figure::other("sut.softirq", Unit::Share, 0.01, softirq),
        traced(Figure::other("sut.lock_contention", Unit::Share, 0.01, |of| {
            Some(switches_of(of)?.kernel_locks.iter().map(|lock| lock.share).sum())
        })),
        traced(Figure::other("sut.cross_cpu_wakeups", Unit::Rate, 1.0, |of| {
            Some(switches_of(of)?.woken_hz?.cross_cpu)
        })),
    ]
}

/// The figure of this name.
pub fn find(name: &str) -> Option<&'static Figure> {
    all().iter().find(|figure| figure.name == name)
}

/// Soft interrupts' share of the busy time of the CPUs that the server ran on.
fn softirq(of: &Outcome) -> Option<f64> {
    let used = || of.accounting.cpus.iter().filter(|cpu| cpu.sut > SERVER_RAN);
    let busy: f64 = used().map(|cpu| cpu.share.user + cpu.share.system + cpu.share.softirq).sum();
    (busy > 0.0).then(|| used().map(|cpu| cpu.share.softirq).sum::<f64>() / busy)
}

/// What the switches show, where they were traced.
fn switches_of(of: &Outcome) -> Option<&SwitchAccounting> {
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
