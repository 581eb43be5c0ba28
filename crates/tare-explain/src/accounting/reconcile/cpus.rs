//! The CPU accounting: every second of a CPU is run by somebody, idle, throttled, stolen or spent on interrupts.
//!
//! Each part is measured on its own, so that their sum can be wrong and be seen to be.

use crate::accounting::raw::readings::Readings;
use crate::accounting::reconcile::threads::Thread;
use std::collections::{BTreeMap, BTreeSet};
use tare_model::machine::Regime;
use tare_model::metric::Subject;
use tare_model::metrics::cpus;
use tare_model::observation::Role;

/// An amount for each role.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct ByRole {
    pub sut: f64,
    pub load: f64,
    pub tare: f64,
    pub other: f64,
}

impl ByRole {
    pub fn of(&self, role: Role) -> f64 {
        match role {
            Role::Sut => self.sut,
            Role::Load => self.load,
            Role::Tare => self.tare,
            Role::Other => self.other,
        }
    }

    pub fn of_mut(&mut self, role: Role) -> &mut f64 {
        match role {
            Role::Sut => &mut self.sut,
            Role::Load => &mut self.load,
            Role::Tare => &mut self.tare,
            Role::Other => &mut self.other,
        }
    }

    pub fn sum(&self) -> f64 {
        self.sut + self.load + self.tare + self.other
    }

    pub fn absorb(&mut self, other: &ByRole) {
        for role in ROLES {
            *self.of_mut(role) += other.of(role);
        }
    }
}

/// Every role, in the order of the accounting.
pub(crate) const ROLES: [Role; 4] = [Role::Sut, Role::Load, Role::Tare, Role::Other];

/// The accounting of one CPU, in seconds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cpu {
    pub wall_s: f64,
    /// Run of all tasks; `None` where the kernel does not tell.
    pub task_run_s: Option<f64>,
    /// Idle, throttled time included; `None` where it was not read.
    pub idle_s: Option<f64>,
    pub steal_s: f64,
    /// Whether stolen time is part of the tasks' run.
    pub steal_in_run: bool,
    /// Interrupts that the kernel accounts apart from run.
    pub interrupts_s: f64,
    /// Interrupt and idle-loop time around idle periods.
    pub idle_exits_s: f64,
    /// Who ran.
    pub ran_s: ByRole,
    /// Idle though the SUT was ready, because a quota held it back.
    pub throttled_s: f64,
    pub user_s: f64,
    pub system_s: f64,
    pub softirq_s: f64,
}

impl Cpu {
    /// Reads every CPU that has columns.
    pub fn read_all(
        readings: &Readings,
        regime: &Regime,
        idle_exit_cost_ns: &BTreeMap<u32, f64>,
    ) -> BTreeMap<u32, Cpu> {
        let seen: BTreeSet<u32> = readings
            .observation
            .columns
            .iter()
            .filter_map(|column| match column.subject {
                Subject::Cpu(cpu) => Some(cpu),
                _ => None,
            })
            .collect();
        seen.into_iter().map(|cpu| (cpu, Cpu::read(readings, cpu, regime, idle_exit_cost_ns))).collect()
    }

    fn read(readings: &Readings, cpu: u32, regime: &Regime, idle_exit_cost_ns: &BTreeMap<u32, f64>) -> Cpu {
        let seconds = |metric| readings.growth_s(metric, &Subject::Cpu(cpu));
        // With IRQ_TIME_ACCOUNTING off, interrupts are inside the run of whom they interrupted.
        let interrupts_apart = regime.irq_time_accounting.value() == Some(&true);
        let interrupts_s = if interrupts_apart {
            seconds(&cpus::IRQ_NS).unwrap_or(0.0) + seconds(&cpus::SOFTIRQ_NS).unwrap_or(0.0)
        } else {
            0.0
        };
        let idle_exits = readings.growth(&cpus::IDLE_EXITS, &Subject::Cpu(cpu)).unwrap_or(0.0);
        let idle_exit_cost_ns = idle_exit_cost_ns.get(&cpu).copied().unwrap_or(0.0);
        let mut accounting = Cpu {
            wall_s: readings.wall_s(),
            task_run_s: seconds(&cpus::TASK_RUN_NS),
            idle_s: seconds(&cpus::IDLE_NS),
            steal_s: seconds(&cpus::STEAL_NS).unwrap_or(0.0),
            steal_in_run: regime.paravirt_time_accounting.value() == Some(&false),
            interrupts_s,
            // Where interrupts are accounted apart, what woke the CPU is among them.
            idle_exits_s: if interrupts_apart { 0.0 } else { idle_exits * idle_exit_cost_ns / 1e9 },
            ..Cpu::default()
        };
        accounting.split_modes(
            seconds(&cpus::USER_NS),
            seconds(&cpus::SYSTEM_NS),
            seconds(&cpus::SOFTIRQ_NS),
        );
        accounting
    }

    /// Modes are sampled at ticks and good for shares only; they divide the exact busy time.
    fn split_modes(&mut self, user: Option<f64>, system: Option<f64>, softirq: Option<f64>) {
        let ticks = [user, system, softirq].into_iter().flatten().sum::<f64>();
        let busy_s = self.task_run_s.unwrap_or(ticks) + self.interrupts_s;
        let of_busy =
            |part: Option<f64>| if ticks > 0.0 { busy_s * part.unwrap_or(0.0) / ticks } else { 0.0 };
        self.user_s = of_busy(user);
        self.system_s = of_busy(system);
        self.softirq_s = of_busy(softirq);
    }

    pub fn irq_s(&self) -> f64 {
        self.interrupts_s + self.idle_exits_s
    }

    /// Stolen time that is not inside the tasks' run.
    fn steal_apart_s(&self) -> f64 {
        if self.steal_in_run { 0.0 } else { self.steal_s }
    }

    /// Run of all tasks + idle + steal and interrupts that are not in run, minus wall, and how much of it is
    /// stolen time counted twice; `None` unless run and idle were both read.
    ///
    /// A guest's idle time ends when its CPU runs again, not when it should have: what the hypervisor takes at a
    /// wake-up is in idle and in steal. So a surplus up to the steal is that, and no gap.
    fn surplus_s(&self) -> Option<(f64, f64)> {
        let idle_s = self.idle_s?;
        let surplus_s = self.task_run_s? + idle_s + self.steal_apart_s() + self.irq_s() - self.wall_s;
        Some((surplus_s, surplus_s.clamp(0.0, self.steal_apart_s().min(idle_s))))
    }

    /// How far the identity of this CPU is from closing, signed; `None` where it cannot be checked.
    pub fn imbalance_s(&self) -> Option<f64> {
        self.surplus_s().map(|(surplus_s, twice_s)| surplus_s - twice_s)
    }

    /// Idle time that was neither a quota's nor the hypervisor's doing; `None` where idle was not read.
    pub fn free_s(&self) -> Option<f64> {
        let twice_s = self.surplus_s().map_or(0.0, |(_, twice_s)| twice_s);
        Some((self.idle_s? - self.throttled_s - twice_s).max(0.0))
    }

    /// Whether there was hardly any time left on this CPU; `None` when idle was not read.
    pub fn is_full(&self) -> Option<bool> {
        Some(self.free_s()? < 0.08 * self.wall_s)
    }

    pub fn absorb(&mut self, other: &Cpu) {
        self.wall_s += other.wall_s;
        self.task_run_s = self.task_run_s.zip(other.task_run_s).map(|(a, b)| a + b);
        self.idle_s = self.idle_s.zip(other.idle_s).map(|(a, b)| a + b);
        self.steal_s += other.steal_s;
        self.interrupts_s += other.interrupts_s;
        self.idle_exits_s += other.idle_exits_s;
        self.ran_s.absorb(&other.ran_s);
        self.throttled_s += other.throttled_s;
        self.user_s += other.user_s;
        self.system_s += other.system_s;
        self.softirq_s += other.softirq_s;
    }
}

/// Writes into every CPU who ran on it. What no thread that was looked at explains is somebody else's.
pub(crate) fn fill_ran(cpus: &mut BTreeMap<u32, Cpu>, threads: &[Thread], wall_s: f64) {
    for thread in threads {
        for (cpu, run_s) in &thread.cpu_run_s {
            let accounting = cpus.entry(*cpu).or_insert_with(|| Cpu { wall_s, ..Cpu::default() });
            *accounting.ran_s.of_mut(thread.role) += run_s;
        }
    }
    for accounting in cpus.values_mut() {
        let Some(all_s) = accounting.task_run_s else { continue };
        let ours_s = accounting.ran_s.sut + accounting.ran_s.load + accounting.ran_s.tare;
        accounting.ran_s.other = (all_s - ours_s).max(0.0);
    }
}

/// Takes stolen time out of who ran, where the kernel leaves it in: then the parts of a CPU still sum to one.
/// Comes last: the thread accounting works with the kernel's own figures.
pub(crate) fn take_steal_out_of_run(cpus: &mut BTreeMap<u32, Cpu>) {
    for accounting in
        cpus.values_mut().filter(|accounting| accounting.steal_in_run && accounting.steal_s > 0.0)
    {
        let ran_s = accounting.ran_s.sum();
        if ran_s > 0.0 {
            let kept = (1.0 - accounting.steal_s / ran_s).max(0.0);
            for role in ROLES {
                *accounting.ran_s.of_mut(role) *= kept;
            }
        }
    }
}
