//! Stolen and interrupt time of CPUs, put down to the threads that were current.

use crate::accounting::reconcile::cpus::Cpu;
use crate::accounting::reconcile::threads::Thread;
use std::collections::BTreeMap;

/// Where the kernel keeps stolen and interrupt time out of run, a thread that was current then shows it neither
/// as run nor as wait. It is divided over a CPU's threads by their run, and never exceeds what a thread's accounting
/// leave open.
pub(crate) fn attribute(threads: &mut [Thread], cpus: &BTreeMap<u32, Cpu>) {
    for thread in threads {
        let known_s = thread.run_s + thread.queue_s.unwrap_or(0.0) + thread.blocked_s.unwrap_or(0.0);
        let open_s = (thread.wall_s - known_s).max(0.0);
        let (mut steal_s, mut irq_s) = (0.0, 0.0);
        for (cpu, run_s) in &thread.cpu_run_s {
            let Some(accounting) = cpus.get(cpu) else { continue };
            let ran_s = accounting.ran_s.sum();
            if ran_s > 0.0 {
                let share = (run_s / ran_s).min(1.0);
                steal_s += if accounting.steal_in_run { 0.0 } else { accounting.steal_s * share };
                irq_s += accounting.interrupts_s * share;
            }
        }
        let taken_s = steal_s + irq_s;
        let fit = if taken_s > open_s { open_s / taken_s } else { 1.0 };
        thread.steal_s = steal_s * fit;
        thread.irq_s = irq_s * fit;
    }
}
