//! What a program that ends did with its time: on a CPU, kept off one by others, and waiting, for what as far as it was seen.

use crate::accounting::{Asleep, Thread};
use crate::bottlenecks::draft::{number, percent};
use crate::capacity::levels::Accounting;
use crate::capacity::runs::{rusage_cpus, taken_cpus};
use std::collections::BTreeMap;
use tare_model::observation::Role;
use tare_model::outcome::Evidence;

/// A smaller share of the time is no part of the verdict.
const PART_MIN: f64 = 0.1;
/// What was seen of the waits names them if it is at least this share of them.
const SEEN_MIN: f64 = 0.5;

/// Shares of the runs' time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ProgramTime {
    /// On no CPU, and not kept off one by others.
    pub waiting: f64,
    /// For what, largest first; empty: not seen.
    pub what: Vec<(Asleep, f64)>,
}

impl ProgramTime {
    /// `None` where the CPU time is unknown.
    pub fn of(accounting: &Accounting) -> Option<ProgramTime> {
        let on_cpu = rusage_cpus(accounting.observed_runs())?;
        let pool = &accounting.asked.pool;
        let waiting = (1.0 - on_cpu - taken_cpus(pool).unwrap_or(0.0)).max(0.0);
        let threads: Vec<&Thread> = pool.threads_of(Role::Sut).collect();
        let shares = waits(&threads);
        Some(ProgramTime { waiting, what: named(waiting, |why| shares.get(&why).copied().unwrap_or(0.0)) })
    }

    /// Whether it is a part of the verdict.
    pub fn is_part(&self) -> bool {
        self.waiting >= PART_MIN
    }

    /// `waited 45 % of it: for the disk 40 %`.
    pub fn words(&self) -> String {
        let each = |(why, share): &(Asleep, f64)| format!("{} {}", for_what(*why), percent(*share));
        let what: Vec<String> = self.what.iter().map(each).collect();
        let what = match what.is_empty() {
            true => "for what could not be seen in so short a run".to_owned(),
            false => what.join(", "),
        };
        format!("waited {} of the time: {what}", percent(self.waiting))
    }

    pub fn evidence(&self) -> Vec<Evidence> {
        let each =
            |(why, share): &(Asleep, f64)| number(format!("waited {}", for_what(*why)), *share, "share");
        let waiting = number("waiting, share of the time", self.waiting, "share");
        std::iter::once(waiting).chain(self.what.iter().map(each)).collect()
    }
}

/// Shares of the time that the thread that ran most slept, by reason: what an idle helper thread sleeps on is no wait of the program.
///
/// A call without a name of its own is mostly `wait4`: then what the children waited for is the reason, as far as it has a name.
fn waits(threads: &[&Thread]) -> BTreeMap<Asleep, f64> {
    let ran_most = |of: &[&'_ Thread]| of.iter().copied().max_by(|a, b| a.run_s.total_cmp(&b.run_s)).cloned();
    let Some(busiest) = ran_most(threads).filter(|thread| thread.wall_s > 0.0) else {
        return BTreeMap::new();
    };
    let mut shares: BTreeMap<Asleep, f64> =
        Asleep::SAMPLED.iter().map(|why| (*why, busiest.asleep(*why) / busiest.wall_s)).collect();
    let mut processes: BTreeMap<u32, Vec<&Thread>> = BTreeMap::new();
    for thread in threads.iter().filter(|thread| thread.id.pid != busiest.id.pid) {
        processes.entry(thread.id.pid).or_default().push(thread);
    }
    let children: Vec<Thread> = processes.values().filter_map(|process| ran_most(process)).collect();
    let of_children =
        |why: &Asleep| children.iter().map(|thread| thread.asleep(*why)).sum::<f64>() / busiest.wall_s;
    let unnamed = shares.get(&Asleep::Other).copied().unwrap_or(0.0);
    let named_s: f64 = Asleep::PROGRAM.iter().map(of_children).sum();
    if unnamed > 0.0 && named_s > 0.0 {
        // Several children at once wait for longer than their parent.
        let scale = (unnamed / named_s).min(1.0);
        for why in &Asleep::PROGRAM {
            *shares.entry(*why).or_default() += scale * of_children(why);
        }
        shares.insert(Asleep::Other, unnamed - scale * named_s);
    }
    shares
}

/// The waits by reason; none where too little of them was seen to name any.
fn named(waiting: f64, share: impl Fn(Asleep) -> f64) -> Vec<(Asleep, f64)> {
    let seen = Asleep::SAMPLED.map(|why| (why, share(why)));
    let all: f64 = seen.iter().map(|(_, share)| share).sum();
    if all <= 0.0 || all < SEEN_MIN * waiting {
        return Vec::new();
    }
    // Samples are a share of the thread's sleep; together they are no more than what the program waited.
    let scale = (waiting / all).min(1.0);
    let scaled = seen.map(|(why, share)| (why, share * scale));
    let mut what: Vec<(Asleep, f64)> =
        scaled.into_iter().filter(|(_, share)| *share >= PART_MIN / 2.0).collect();
    what.sort_by(|a, b| b.1.total_cmp(&a.1));
    what
}

fn for_what(why: Asleep) -> &'static str {
    match why {
        Asleep::Event => "for an event (a pipe, a socket, a child)",
        Asleep::Lock => "for a lock",
        Asleep::Parked => "for another thread",
        Asleep::Disk => "for the disk",
        Asleep::Downstream => "for another server",
        Asleep::Timer => "for a timer",
        Asleep::Fault => "for a page of memory",
        Asleep::Other | Asleep::Unsplit => "in other calls",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_named_as_far_as_they_were_seen() {
        let disk = |why: Asleep| if why == Asleep::Disk { 0.5 } else { 0.0 };
        let what = named(0.45, disk);
        assert_eq!(what, [(Asleep::Disk, 0.45)]);
        let time = ProgramTime { waiting: 0.45, what };
        assert_eq!(time.words(), "waited 45 % of the time: for the disk 45 %");
        assert_eq!(time.evidence().len(), 2);
        // Too little was seen of it.
        let little = |why: Asleep| if why == Asleep::Disk { 0.1 } else { 0.0 };
        assert!(named(0.45, little).is_empty());
        let unseen = ProgramTime { waiting: 0.45, what: Vec::new() };
        assert!(unseen.words().ends_with("for what could not be seen in so short a run"));
        assert!(!ProgramTime { waiting: 0.05, what: Vec::new() }.is_part());
    }
}
