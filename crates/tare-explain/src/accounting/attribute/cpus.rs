//! Where a CPU's time went: every second of it is run by somebody, idle, throttled, stolen or spent on interrupts.

use crate::accounting::raw::by_role::{ByRole, ROLES};
use crate::accounting::raw::cpus::CpuTimes;
use crate::accounting::reconcile::cpus::OccupiedCpu;

/// The times of one CPU over one window, or over several pooled.
#[derive(Debug, Clone)]
pub(crate) struct Cpu {
    pub times: CpuTimes,
    /// Who ran.
    pub ran_s: ByRole,
    /// Idle though the SUT was ready, because a quota held it back.
    pub throttled_s: f64,
}

impl Cpu {
    /// `held_s`: how long the SUT's run queue on it was throttled.
    pub(super) fn of(occupied: OccupiedCpu, held_s: Option<f64>) -> Cpu {
        let OccupiedCpu { times, ran_s } = occupied;
        let throttled_s = held_s.map_or(0.0, |held_s| held_s.min(times.idle_s.unwrap_or(held_s)));
        Cpu { times, ran_s, throttled_s }
    }

    /// Idle time that was neither a quota's nor the hypervisor's doing; `None` where idle was not read.
    pub fn free_s(&self) -> Option<f64> {
        let twice_s = self.times.surplus_s().map_or(0.0, |(_, twice_s)| twice_s);
        Some((self.times.idle_s? - self.throttled_s - twice_s).max(0.0))
    }

    /// Whether there was hardly any time left on this CPU; `None` when idle was not read.
    pub fn is_full(&self) -> Option<bool> {
        Some(self.free_s()? < 0.08 * self.times.wall_s)
    }

    /// Stolen time taken out of who ran, where the kernel leaves it in: then the parts of a CPU sum to one.
    pub(in crate::accounting) fn without_steal(mut self) -> Cpu {
        let ran_s = self.ran_s.sum();
        if self.times.steal_in_run && self.times.steal_s > 0.0 && ran_s > 0.0 {
            let kept = (1.0 - self.times.steal_s / ran_s).max(0.0);
            for role in ROLES {
                *self.ran_s.of_mut(role) *= kept;
            }
        }
        self
    }

    pub fn absorb(&mut self, other: &Cpu) {
        self.times.absorb(&other.times);
        self.ran_s.absorb(&other.ran_s);
        self.throttled_s += other.throttled_s;
    }
}
