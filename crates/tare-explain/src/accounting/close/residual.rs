//! How far accounting is from closing. Every check sets two independent measurements against each other; none
//! is a rest of its own parts. Where one of them is known with an error, only what is beyond the error is open.

use crate::accounting::attribute::cpus::Cpu;
use crate::accounting::attribute::thread::Thread;
use crate::accounting::raw::bounds::CHECKED_S_MIN;
use crate::accounting::raw::cpus::Unseen;
use crate::accounting::raw::ratio::ratio;
use crate::accounting::raw::readings::Readings;
use std::collections::BTreeMap;
use tare_model::metric::Subject;
use tare_model::metrics::groups;
use tare_model::observation::Role;
use tare_model::trial::Measure;

/// A difference below this share of a CPU is no gap: 1 % of nearly nothing is the stamps' own error.
const FLOOR_CPUS: f64 = 0.1;

/// An error above this share of a CPU excuses no more: what scatters so is no measure, and the gap is to be seen.
const ERROR_MAX: f64 = 0.03;

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
    /// How well the difference is known, either way; sums over windows are of independent errors.
    error_s: f64,
    /// What may be lacking or too much beside the error; of several windows it goes one way in all of them.
    unseen: Unseen,
    /// Only a surplus is a gap: a thread whose sleep is not measured may sleep, but not do more than the window holds.
    surplus_only: bool,
}

impl Balance {
    /// How far apart the two sides are beyond the error, as a share.
    pub fn ratio(&self) -> f64 {
        let unseen_s = if self.difference_s < 0.0 { self.unseen.lacking_s } else { self.unseen.assumed_s };
        let open_s = self.gap_s() - (self.error_s + unseen_s).min(ERROR_MAX * self.base_s);
        ratio(open_s.max(0.0), self.base_s)
    }

    /// How far apart the two sides are, as a share.
    pub fn gap_share(&self) -> f64 {
        ratio(self.gap_s(), self.base_s)
    }

    /// How far apart the two sides are.
    pub fn gap_s(&self) -> f64 {
        if self.surplus_only { self.difference_s.max(0.0) } else { self.difference_s.abs() }
    }

    pub fn absorb(&mut self, other: &Balance) {
        self.difference_s += other.difference_s;
        self.base_s += other.base_s;
        self.error_s = self.error_s.hypot(other.error_s);
        self.unseen.absorb(other.unseen);
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
            let (base_s, error_s) = (cpu.times.wall_s, cpu.times.idle_exits_error_s);
            let unseen = cpu.times.idle_unseen;
            let balance = Balance { difference_s, base_s, error_s, unseen, surplus_only: false };
            balances.insert(cpu_name(*number), balance);
        }
    }
    let ours = threads.iter().filter(|thread| matches!(thread.id.role, Role::Sut | Role::Load));
    for (place, thread) in ours.enumerate() {
        let Some(queue_s) = thread.queue_s.filter(|_| thread.was_active()) else { continue };
        let balance = match thread.blocked_s.filter(|_| thread.wall_s >= CHECKED_S_MIN) {
            // Sleeps are measured on their own, from the switches; run is the kernel's account.
            Some(_) => Balance {
                difference_s: thread.gap_s(),
                base_s: thread.wall_s,
                error_s: 0.0,
                unseen: Unseen::default(),
                surplus_only: false,
            },
            None => Balance {
                difference_s: thread.run_s + queue_s - thread.wall_s,
                base_s: thread.wall_s,
                error_s: 0.0,
                unseen: Unseen::default(),
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
    let unseen = Unseen::default();
    Some(Balance { difference_s: run_s - usage_s, base_s, error_s: 0.0, unseen, surplus_only: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn balance(difference_s: f64, error_s: f64) -> Balance {
        Balance { difference_s, base_s: 2.0, error_s, unseen: Unseen::default(), surplus_only: false }
    }

    #[test]
    fn only_what_is_beyond_the_error_is_open() {
        for (difference_s, error_s, open) in
            [(0.03, 0.0, 0.015), (-0.03, 0.02, 0.005), (0.01, 0.02, 0.0), (0.0, 0.02, 0.0)]
        {
            let found = balance(difference_s, error_s);
            assert!((found.ratio() - open).abs() < 1e-12, "{found:?}");
            assert_eq!(found.gap_s(), difference_s.abs());
        }
        let surplus_only = Balance { surplus_only: true, ..balance(-0.5, 0.0) };
        assert_eq!((surplus_only.ratio(), surplus_only.gap_s()), (0.0, 0.0));
    }

    #[test]
    fn a_wide_error_excuses_three_hundredths() {
        assert!((balance(0.2, 1.0).ratio() - (0.1 - ERROR_MAX)).abs() < 1e-12);
    }

    #[test]
    fn what_was_not_seen_excuses_one_way_and_is_seen_where_the_whole_gap_is_asked_for() {
        let unseen = Unseen { lacking_s: 0.04, assumed_s: 0.01 };
        let found = |difference_s: f64| Balance { unseen, ..balance(difference_s, 0.0) };
        for (difference_s, open) in [(-0.04, 0.0), (-0.05, 0.005), (0.01, 0.0), (0.05, 0.02)] {
            assert!((found(difference_s).ratio() - open).abs() < 1e-12, "{difference_s}");
            assert_eq!(found(difference_s).gap_s(), difference_s.abs());
        }
        // Noise of the edges cancels before anything is excused, and no sum excuses more than one window.
        let sum_of = |differences_s: [f64; 4]| {
            let mut sum = Balance::default();
            differences_s.iter().for_each(|difference_s| sum.absorb(&found(*difference_s)));
            sum.ratio()
        };
        assert_eq!(sum_of([0.04, -0.04, 0.04, -0.04]), 0.0);
        assert!((sum_of([-0.1; 4]) - 0.03).abs() < 1e-12);
    }

    #[test]
    fn a_gap_that_each_trial_might_excuse_shows_in_all_of_them() {
        let sum_of = |differences_s: [f64; 12]| {
            let mut sum = Balance::default();
            differences_s.iter().for_each(|difference_s| sum.absorb(&balance(*difference_s, 0.04)));
            sum.ratio()
        };
        assert_eq!(balance(0.03, 0.04).ratio(), 0.0);
        assert!(sum_of([0.03; 12]) > 0.009, "{}", sum_of([0.03; 12]));
        assert_eq!(
            sum_of([0.03, -0.03, 0.03, -0.03, 0.03, -0.03, 0.03, -0.03, 0.03, -0.03, 0.03, -0.03]),
            0.0
        );
    }
}
