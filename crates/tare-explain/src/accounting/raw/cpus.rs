//! What was counted of every CPU in one window: each part on its own, so that their sum can be wrong and be seen to be.

use crate::accounting::raw::idle_periods::IdlePeriodCost;
use crate::accounting::raw::ratio::sum;
use crate::accounting::raw::readings::Readings;
use std::collections::{BTreeMap, BTreeSet};
use tare_model::machine::Regime;
use tare_model::metric::Subject;
use tare_model::metrics::cpus;

/// Busy time by mode.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BusyModes {
    pub user_s: f64,
    pub system_s: f64,
    pub softirq_s: f64,
}

/// How far the idle task's time is not known, in seconds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Unseen {
    /// It may have run for so much more.
    pub lacking_s: f64,
    /// So much of it is there because the CPU counts as idle then; a task may have been charged with it too.
    pub assumed_s: f64,
}

impl Unseen {
    pub fn absorb(&mut self, other: Unseen) {
        self.lacking_s += other.lacking_s;
        self.assumed_s += other.assumed_s;
    }
}

/// The times of one CPU, in seconds.
#[derive(Debug, Clone, Default)]
pub(crate) struct CpuTimes {
    pub wall_s: f64,
    /// Run of all tasks; `None` where the kernel does not count it.
    pub task_run_s: Option<f64>,
    /// Idle, throttled time included, of which no task was charged; `None` where it was not read.
    pub idle_s: Option<f64>,
    pub steal_s: f64,
    /// Whether stolen time is part of the tasks' run.
    pub steal_in_run: bool,
    /// Interrupts that the kernel accounts apart from run.
    pub interrupts_s: f64,
    /// Interrupt and idle-loop time around idle periods: what the idle task had beyond idle time, or what that is predicted to be.
    pub idle_exits_s: f64,
    /// How well that is predicted, either way: two standard deviations; 0 where it was measured, and where it is not known how well. Of several windows the errors
    /// are independent.
    pub idle_exits_error_s: f64,
    /// Where a kernel hides that a task gave the CPU to the idle task.
    pub idle_unseen: Unseen,
    pub modes: BusyModes,
}

impl CpuTimes {
    /// Reads every CPU that has columns.
    pub fn read_all(
        readings: &Readings,
        regime: &Regime,
        costs: &BTreeMap<u32, IdlePeriodCost>,
    ) -> BTreeMap<u32, CpuTimes> {
        let seen: BTreeSet<u32> = readings
            .observation
            .columns
            .iter()
            .filter_map(|column| match column.subject {
                Subject::Cpu(cpu) => Some(cpu),
                _ => None,
            })
            .collect();
        let cost_of = |cpu| costs.get(&cpu).copied().unwrap_or_default();
        seen.into_iter().map(|cpu| (cpu, CpuTimes::read(readings, cpu, regime, cost_of(cpu)))).collect()
    }

    fn read(readings: &Readings, cpu: u32, regime: &Regime, cost: IdlePeriodCost) -> CpuTimes {
        let seconds = |metric| readings.growth_s(metric, &Subject::Cpu(cpu));
        // With IRQ_TIME_ACCOUNTING off, interrupts are inside the run of whom they interrupted.
        let interrupts_apart = regime.irq_time_accounting.value() == Some(&true);
        let interrupts_s = if interrupts_apart {
            seconds(&cpus::IRQ_NS).unwrap_or(0.0) + seconds(&cpus::SOFTIRQ_NS).unwrap_or(0.0)
        } else {
            0.0
        };
        let (idle_s, idle_task_s) = (seconds(&cpus::IDLE_NS), seconds(&cpus::IDLE_TASK_NS));
        let idle_exits = readings.growth(&cpus::IDLE_EXITS, &Subject::Cpu(cpu)).unwrap_or(0.0);
        // Where interrupts are accounted apart, what woke the CPU is among them.
        let predicted_s = |each_ns: f64| if interrupts_apart { 0.0 } else { idle_exits * each_ns / 1e9 };
        let (idle_s, idle_exits_s, idle_exits_error_s, idle_unseen) = match (idle_task_s, idle_s) {
            (Some(idle_task_s), Some(idle_s)) => {
                let unseen_s = seconds(&cpus::IDLE_TASK_UNSEEN_NS).unwrap_or(0.0);
                let (idle_s, idle_exits_s, idle_unseen) = of_idle_task(idle_task_s, unseen_s, idle_s);
                (Some(idle_s), idle_exits_s, 0.0, idle_unseen)
            }
            _ => (idle_s, predicted_s(cost.each_ns), predicted_s(cost.error_ns), Unseen::default()),
        };
        let mut times = CpuTimes {
            wall_s: readings.wall_s(),
            task_run_s: seconds(&cpus::TASK_RUN_NS),
            idle_s,
            steal_s: seconds(&cpus::STEAL_NS).unwrap_or(0.0),
            steal_in_run: regime.paravirt_time_accounting.value() == Some(&false),
            interrupts_s,
            idle_exits_s,
            idle_exits_error_s,
            idle_unseen,
            modes: BusyModes::default(),
        };
        times.split_modes(seconds(&cpus::USER_NS), seconds(&cpus::SYSTEM_NS), seconds(&cpus::SOFTIRQ_NS));
        times
    }

    /// Modes are sampled at ticks and good for shares only; they divide the exact busy time.
    fn split_modes(&mut self, user: Option<f64>, system: Option<f64>, softirq: Option<f64>) {
        let ticks = [user, system, softirq].into_iter().flatten().sum::<f64>();
        let busy_s = self.task_run_s.unwrap_or(ticks) + self.interrupts_s;
        let of_busy =
            |part: Option<f64>| if ticks > 0.0 { busy_s * part.unwrap_or(0.0) / ticks } else { 0.0 };
        self.modes =
            BusyModes { user_s: of_busy(user), system_s: of_busy(system), softirq_s: of_busy(softirq) };
    }

    pub fn irq_s(&self) -> f64 {
        self.interrupts_s + self.idle_exits_s
    }

    /// Stolen time that is not inside the tasks' run.
    pub fn steal_apart_s(&self) -> f64 {
        if self.steal_in_run { 0.0 } else { self.steal_s }
    }

    /// Run of all tasks + idle + steal and interrupts that are not in run, minus wall, and how much of it is
    /// stolen time counted twice; `None` unless run and idle were both read.
    ///
    /// A guest's idle time ends when its CPU runs again, not when it should have: what the hypervisor takes at a
    /// wake-up is in idle and in steal. So a surplus up to the steal is that, and no gap.
    pub fn surplus_s(&self) -> Option<(f64, f64)> {
        let idle_s = self.idle_s?;
        let surplus_s = self.task_run_s? + idle_s + self.steal_apart_s() + self.irq_s() - self.wall_s;
        Some((surplus_s, surplus_s.clamp(0.0, self.steal_apart_s().min(idle_s))))
    }

    /// How far the identity of this CPU is from closing, signed; `None` where it cannot be checked.
    pub fn imbalance_s(&self) -> Option<f64> {
        self.surplus_s().map(|(surplus_s, twice_s)| surplus_s - twice_s)
    }

    pub fn absorb(&mut self, other: &CpuTimes) {
        self.wall_s += other.wall_s;
        self.task_run_s = sum(self.task_run_s, other.task_run_s);
        self.idle_s = sum(self.idle_s, other.idle_s);
        self.steal_s += other.steal_s;
        self.interrupts_s += other.interrupts_s;
        self.idle_exits_s += other.idle_exits_s;
        self.idle_exits_error_s = self.idle_exits_error_s.hypot(other.idle_exits_error_s);
        self.idle_unseen.absorb(other.idle_unseen);
        self.modes.user_s += other.modes.user_s;
        self.modes.system_s += other.modes.system_s;
        self.modes.softirq_s += other.modes.softirq_s;
    }
}

/// Idle time, and what the idle task had beyond it, of the time that the idle task was seen to run and may have run unseen, and of the
/// time that counts as idle.
fn of_idle_task(seen_s: f64, unseen_s: f64, idle_s: f64) -> (f64, f64, Unseen) {
    let most_s = seen_s + unseen_s;
    let idle_task_s = seen_s.max(idle_s.min(most_s));
    // A CPU that was hardly idle lacks hardly anything: what lies between two idle periods is mostly run of others.
    let lacking_s = (most_s - idle_task_s).min(idle_s);
    // A task that was woken from another CPU is charged while its own still counts as idle.
    let idle_s = idle_s.min(idle_task_s);
    (idle_s, idle_task_s - idle_s, Unseen { lacking_s, assumed_s: idle_task_s - seen_s })
}
