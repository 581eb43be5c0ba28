//! How far accounting is from closing. Every check sets two independent measurements against each other; none
//! is a rest of its own parts.

use crate::accounting::attribute::cpus::Cpu;
use crate::accounting::attribute::thread::Thread;
use crate::accounting::raw::bounds::CHECKED_S_MIN;
use crate::accounting::raw::readings::Readings;
use std::collections::BTreeMap;
use tare_model::metric::Subject;
use tare_model::metrics::groups;
use tare_model::observation::Role;
use tare_model::trial::Measure;

/// A difference below this share of a CPU is no gap: 1 % of nearly nothing is the stamps' own error.
const FLOOR_CPUS: f64 = 0.1;

/// The check of the SUT's group, by name.
pub(crate) const GROUP: &str = "cgroup";

/// The check of a CPU, by name.
pub(crate) fn cpu_name(cpu: u32) -> String {
    format!("cpu {cpu}")
}

/// Two sides of one check, in seconds; sums over windows stay signed, so that edges cancel and gaps do not.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Balance {
    difference_s: f64,
    base_s: f64,
    /// Only a surplus is a gap: a thread whose sleep is not measured may sleep, but not do more than the window holds.
    surplus_only: bool,
}

impl Balance {
    pub fn ratio(&self) -> f64 {
        let difference = if self.surplus_only { self.difference_s.max(0.0) } else { self.difference_s.abs() };
        if self.base_s > 0.0 { difference / self.base_s } else { 0.0 }
    }

    /// How far apart the two sides are.
    pub fn gap_s(&self) -> f64 {
        self.ratio() * self.base_s
    }

    pub fn absorb(&mut self, other: &Balance) {
        self.difference_s += other.difference_s;
        self.base_s += other.base_s;
        self.surplus_only |= other.surplus_only;
    }
}

/// Every check that the window allows, by name: `cpu 0`, `nginx/4711`, `cgroup`.
pub(super) fn balances(
    readings: &Readings,
    threads: &[Thread],
    cpus: &BTreeMap<u32, Cpu>,
    workload: &Measure,
) -> BTreeMap<String, Balance> {
    let mut balances = BTreeMap::new();
    // Each run of a program has other thread numbers; its first thread is the first of every run.
    let is_run = matches!(workload, Measure::Command(_));
    let name_of = |place: usize, thread: &Thread| match is_run {
        true => format!("{}/#{place}", thread.id.name),
        false => thread.label(),
    };
    for (number, cpu) in cpus.iter().filter(|(_, cpu)| cpu.times.wall_s >= CHECKED_S_MIN) {
        let ours_s = cpu.ran_s.sut + cpu.ran_s.load;
        if let Some(difference_s) = cpu.times.imbalance_s().filter(|_| ours_s > 0.0) {
            let balance = Balance { difference_s, base_s: cpu.times.wall_s, surplus_only: false };
            balances.insert(cpu_name(*number), balance);
        }
    }
    let ours = threads.iter().filter(|thread| matches!(thread.id.role, Role::Sut | Role::Load));
    for (place, thread) in ours.enumerate() {
        let Some(queue_s) = thread.queue_s.filter(|_| thread.was_active()) else { continue };
        let balance = match thread.blocked_s.filter(|_| thread.wall_s >= CHECKED_S_MIN) {
            // Sleeps are measured on their own, from the switches; run is the kernel's account.
            Some(_) => Balance { difference_s: thread.gap_s(), base_s: thread.wall_s, surplus_only: false },
            None => Balance {
                difference_s: thread.run_s + queue_s - thread.wall_s,
                base_s: thread.wall_s,
                surplus_only: true,
            },
        };
        balances.insert(name_of(place, thread), balance);
    }
    if let Some(balance) = group_balance(readings, threads).filter(|_| readings.wall_s() >= CHECKED_S_MIN) {
        balances.insert(GROUP.to_owned(), balance);
    }
    balances
}

/// Σ run of the SUT's threads against the usage of its group, when nobody else is in the group.
fn group_balance(readings: &Readings, threads: &[Thread]) -> Option<Balance> {
    let observation = readings.observation;
    let own = observation.sut_groups.first().filter(|_| observation.sut_group_is_own)?;
    let usage_s = readings.growth_s(&groups::USAGE_NS, &Subject::Group(own.clone()))?;
    let run_s: f64 =
        threads.iter().filter(|thread| thread.id.role == Role::Sut).map(|thread| thread.run_s).sum();
    let base_s = usage_s.max(FLOOR_CPUS * readings.wall_s());
    Some(Balance { difference_s: run_s - usage_s, base_s, surplus_only: false })
}
