//! Where a thread's time went: wall = run + wait + blocked (+ what was taken from it while it was current, where the kernel keeps
//! that out of run).

use crate::accounting::attribute::taken::Taken;
use crate::accounting::attribute::wait::Wait;
use crate::accounting::attribute::waited::Waited;
use crate::accounting::raw::asleep::Asleep;
use crate::accounting::raw::ratio::sum;
use crate::accounting::raw::threads::{Modes, Switched, ThreadId, serves};
use crate::accounting::reconcile::placement::{PlacedThread, share_on};
use std::collections::BTreeMap;

/// The times of one thread over one window, or over several pooled.
#[derive(Debug, Clone)]
pub(crate) struct Thread {
    pub id: ThreadId,
    /// How much of the window it lived.
    pub wall_s: f64,
    pub run_s: f64,
    /// Time in the run queue; `None` where the kernel does not count it.
    pub queue_s: Option<f64>,
    /// Run by CPU; sums to `run_s`. A CPU on which it was only seen has an entry of 0.
    pub cpu_run_s: BTreeMap<u32, f64>,
    /// The queue time by who held the CPU.
    pub wait: Wait,
    pub taken: Taken,
    pub asleep_s: BTreeMap<Asleep, f64>,
    /// Asleep by the switches' own account; `None` where samples are all there is.
    pub blocked_s: Option<f64>,
    pub modes: Modes,
    pub switched: Switched,
}

impl Thread {
    /// What is neither run, wait nor taken is split by how it was found asleep. Where sleep was measured this differs from
    /// that by the residual.
    pub(super) fn of(waited: Waited, wait: Wait, taken: Taken) -> Thread {
        let Waited { placed: PlacedThread { counted, cpu_run_s }, queue_s, sleeps, traced, .. } = waited;
        let known_s = counted.run_s + queue_s.unwrap_or(0.0) + taken.steal_s + taken.irq_s;
        let slept_s = (counted.wall_s - known_s).max(0.0);
        let found: f64 = sleeps.values().sum();
        let asleep_s = if found > 0.0 && queue_s.is_some() {
            sleeps.iter().map(|(why, part)| (*why, slept_s * part / found)).collect()
        } else {
            BTreeMap::from([(Asleep::Unsplit, slept_s)])
        };
        Thread {
            id: counted.id,
            wall_s: counted.wall_s,
            run_s: counted.run_s,
            queue_s,
            cpu_run_s,
            wait,
            taken,
            asleep_s,
            blocked_s: traced.map(|traced| traced.blocked_s),
            modes: counted.modes,
            switched: counted.switched,
        }
    }

    /// Run, wait, sleep and what was taken from it, minus its life: the gap of its accounting where sleep was measured.
    /// Negative where too little is known.
    pub fn gap_s(&self) -> f64 {
        let known_s = self.run_s + self.queue_s.unwrap_or(0.0) + self.blocked_s.unwrap_or(0.0);
        known_s + self.taken.steal_s + self.taken.irq_s - self.wall_s
    }

    /// See [`serves`].
    pub fn serves(&self) -> bool {
        serves(self.run_s, self.wall_s)
    }

    /// Whether this is one thread, and not what those together took that came and went unseen.
    pub fn is_one(&self) -> bool {
        self.id.tid != 0
    }

    /// `name/tid`, or the name of several that ended, as in the residuals and the evidence.
    pub fn label(&self) -> String {
        match self.is_one() {
            true => format!("{}/{}", self.id.name, self.id.tid),
            false => self.id.name.clone(),
        }
    }

    /// See [`share_on`].
    pub fn share_on(&self, cpu: u32) -> f64 {
        share_on(&self.cpu_run_s, self.run_s, cpu)
    }

    pub fn asleep(&self, why: Asleep) -> f64 {
        self.asleep_s.get(&why).copied().unwrap_or(0.0)
    }

    /// Adds the same thread's times of another window.
    pub fn absorb(&mut self, other: &Thread) {
        self.wall_s += other.wall_s;
        self.run_s += other.run_s;
        self.queue_s = sum(self.queue_s, other.queue_s);
        self.modes.user_s += other.modes.user_s;
        self.modes.system_s += other.modes.system_s;
        self.switched.voluntary = sum(self.switched.voluntary, other.switched.voluntary);
        self.switched.involuntary = sum(self.switched.involuntary, other.switched.involuntary);
        self.wait.absorb(&other.wait);
        self.blocked_s = sum(self.blocked_s, other.blocked_s);
        self.taken.absorb(&other.taken);
        for (cpu, run_s) in &other.cpu_run_s {
            *self.cpu_run_s.entry(*cpu).or_default() += run_s;
        }
        for (why, asleep_s) in &other.asleep_s {
            *self.asleep_s.entry(*why).or_default() += asleep_s;
        }
    }
}
