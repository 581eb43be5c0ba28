//! Stolen and interrupt time of CPUs, put down to the threads that were current.

use crate::accounting::reconcile::cpus::OccupiedCpu;
use crate::accounting::reconcile::placement::PlacedThread;
use std::collections::BTreeMap;

/// What was taken from a thread while it was current, where it is not in its run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Taken {
    pub steal_s: f64,
    pub irq_s: f64,
}

impl Taken {
    /// Where the kernel keeps stolen and interrupt time out of run, a thread that was current then shows it neither
    /// as run nor as wait. It is divided over a CPU's threads by their run, and never exceeds what run, wait
    /// and measured sleep leave open of the thread's life.
    pub fn from(
        thread: &PlacedThread,
        queue_s: Option<f64>,
        blocked_s: Option<f64>,
        cpus: &BTreeMap<u32, OccupiedCpu>,
    ) -> Taken {
        let counted = &thread.counted;
        let known_s = counted.run_s + queue_s.unwrap_or(0.0) + blocked_s.unwrap_or(0.0);
        let open_s = (counted.wall_s - known_s).max(0.0);
        let (mut steal_s, mut irq_s) = (0.0, 0.0);
        for (cpu, run_s) in &thread.cpu_run_s {
            let Some(cpu) = cpus.get(cpu) else { continue };
            let ran_s = cpu.ran_s.sum();
            if ran_s > 0.0 {
                let share = (run_s / ran_s).min(1.0);
                steal_s += if cpu.times.steal_in_run { 0.0 } else { cpu.times.steal_s * share };
                irq_s += cpu.times.interrupts_s * share;
            }
        }
        let taken_s = steal_s + irq_s;
        let fit = if taken_s > open_s { open_s / taken_s } else { 1.0 };
        Taken { steal_s: steal_s * fit, irq_s: irq_s * fit }
    }

    pub fn absorb(&mut self, other: &Taken) {
        self.steal_s += other.steal_s;
        self.irq_s += other.irq_s;
    }
}
