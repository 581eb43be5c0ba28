//! What the launches of a level show of where its time went.

use std::collections::BTreeMap;
use tare_model::observation::Role;
use tare_model::outcome::Cause;
use tare_model::outcome::{CommandSummary, Outcome, RoleAccounting};
use tare_model::scaling::LevelAccounting;
use tare_stats::median;

/// One launch at a level.
#[derive(Debug, Clone, Copy)]
pub struct Launch<'a> {
    /// What was measured.
    pub outcome: &'a Outcome,
    /// The figure, in the unit of the sweep.
    pub x: f64,
}

/// A level: medians over its launches.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Seen {
    /// The factor's value.
    pub n: f64,
    /// The figure.
    pub x: f64,
    /// What the figure counts: `request`, `run`, `unit`.
    pub counted: &'static str,
    /// Where time went, as it is shown.
    pub accounting: LevelAccounting,
    /// CPUs lost out of the CPU entitlement, by the names of [`RoleAccounting::losses_cpus`].
    pub losses_cpus: BTreeMap<String, f64>,
    /// CPUs that its affinity leaves it.
    pub cpus_there: Option<f64>,
    /// Share of the CPU time of a unit that is spent in the kernel.
    pub kernel_share: Option<f64>,
    /// Whether most launches say that the load generator is the bottleneck.
    pub generator_limits: bool,
    /// CPUs that the generator's threads waited for while ready.
    pub generator_waits_cpus: Option<f64>,
}

/// The level that these launches are of; `None` of none.
pub fn seen(n: f64, counted: &'static str, launches: &[Launch<'_>], cpus_there: Option<f64>) -> Option<Seen> {
    let x = tare_stats::mean(&launches.iter().map(|launch| launch.x).collect::<Vec<f64>>())?;
    let middle = |of: &dyn Fn(&Launch<'_>) -> Option<f64>| {
        let values: Vec<f64> = launches.iter().filter_map(of).filter(|value| value.is_finite()).collect();
        median(&values)
    };
    let of_sut = |of: &dyn Fn(&RoleAccounting) -> Option<f64>| middle(&|launch| of(sut(launch.outcome)?));
    let busy = middle(&|launch| busy_cpus(launch.outcome));
    let accounting = LevelAccounting {
        cpus_entitled: of_sut(&|sut| Some(sut.entitled_cpus).filter(|cpus| *cpus > 0.0)),
        cpus_busy: busy,
        cpu_s_per_unit: busy.filter(|_| x > 0.0).map(|busy| busy / x),
        cpus_waited_for: of_sut(&|sut| Some(waited_s(sut) / window_s(sut)?)),
        cpus_throttled: of_sut(&|sut| sut.losses_cpus.get("throttled").copied()),
        lock_wait_s_per_s: of_sut(&|sut| Some(sut.serving.blocked_s.get("lock")? / window_s(sut)?)),
        ipc: of_sut(&|sut| sut.execution.as_ref()?.ipc.value().copied()),
        clock_hz: middle(&|launch| clock_hz(launch.outcome)),
        generator_cpus: middle(&|launch| launch.outcome.conditions.own_cost.as_ref()?.generator_cpus),
        latency_s: middle(&|launch| Some(launch.outcome.answers.latency_ns.as_ref()?.mean? / 1e9)),
    };
    let limited = launches.iter().filter(|launch| is_limited_by_generator(launch.outcome)).count();
    Some(Seen {
        n,
        x,
        counted,
        accounting,
        losses_cpus: losses(launches),
        cpus_there,
        kernel_share: middle(&|launch| kernel_share(launch.outcome)),
        generator_limits: 2 * limited > launches.len(),
        generator_waits_cpus: middle(&|launch| {
            let load = launch.outcome.accounting.load.as_ref()?;
            Some(waited_s(load) / window_s(load)?)
        }),
    })
}

/// Whether the load generator gave out before the SUT did.
pub(super) fn is_limited_by_generator(outcome: &Outcome) -> bool {
    outcome.verdict.bottleneck == Cause::LoadGeneratorBound
}

fn sut(outcome: &Outcome) -> Option<&RoleAccounting> {
    outcome.accounting.sut.as_ref()
}

fn command(outcome: &Outcome) -> Option<&CommandSummary> {
    outcome.answers.commands.first()
}

/// Of a program what the kernel says at its end, in which children that lived for a moment are counted too.
fn busy_cpus(outcome: &Outcome) -> Option<f64> {
    let of_runs = command(outcome).map(|command| (command.user_s + command.system_s) / command.gross.value);
    of_runs.or_else(|| sut(outcome).map(|sut| sut.busy_cpus)).filter(|busy| *busy > 0.0)
}

/// Of a program what the kernel says at its end, of a server what it says of its threads.
fn kernel_share(outcome: &Outcome) -> Option<f64> {
    let (user, system) = match command(outcome) {
        Some(command) => (command.user_s, command.system_s),
        None => outcome.accounting.threads_of(Role::Sut).iter().fold((0.0, 0.0), |(user, system), thread| {
            (user + thread.user * thread.lived, system + thread.system * thread.lived)
        }),
    };
    let cpu = user + system;
    (cpu > 0.0 && cpu.is_finite()).then(|| system / cpu)
}

/// Length of the windows that the accounting is of.
fn window_s(sut: &RoleAccounting) -> Option<f64> {
    (sut.busy_cpus > 0.0).then(|| sut.run_s / sut.busy_cpus).filter(|window_s| *window_s > 0.0)
}

fn waited_s(sut: &RoleAccounting) -> f64 {
    let wait = &sut.wait_s;
    wait.throttled + wait.preempted + wait.self_contention + wait.scheduler
}

fn clock_hz(outcome: &Outcome) -> Option<f64> {
    let clocks: Vec<f64> = outcome.trials.iter().filter_map(|trial| trial.clock_hz).collect();
    median(&clocks)
}

/// The median of each loss; one that a launch does not know was nothing there.
fn losses(launches: &[Launch<'_>]) -> BTreeMap<String, f64> {
    let known: Vec<&RoleAccounting> = launches.iter().filter_map(|launch| sut(launch.outcome)).collect();
    let names = known.iter().flat_map(|sut| sut.losses_cpus.keys());
    let middle = |name: &String| {
        let values = known.iter().map(|sut| sut.losses_cpus.get(name).copied().unwrap_or(0.0));
        median(&values.collect::<Vec<f64>>())
    };
    names.filter_map(|name| Some((name.clone(), middle(name)?))).collect()
}
