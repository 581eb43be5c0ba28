//! Wake-ups of one thread of the SUT by another: how often work is handed over.
//!
//! The tracepoint `sched:sched_waking` fires while the waker runs. One counter on each CPU that the SUT may use
//! takes those events where waker and woken are both threads of the SUT. A packet or a timer wakes a thread too,
//! on top of whoever happens to run: while an interrupt is served nothing is counted, so that work handed over
//! through a TCP connection of the SUT's own is the network's, not a thread's. Nothing is sampled: the kernel
//! counts each wake-up on those CPUs; docs/measured/watching.md says what that costs.

use crate::observed::{Observed, refused};
use crate::observer::{Edge, Observer};
use crate::rights;
use crate::scene::Scene;
use crate::tape::Tape;
use crate::tracepoints::{FILTER_BYTES_MAX, IN_INTERRUPT, in_first_pid_namespace, one_of};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use tare_machine::{Root, procs};
use tare_model::Missing;
use tare_model::metric::Subject;
use tare_model::metrics::wakeups;
use tare_model::observation::Sample;
use tare_sys::affinity;
use tare_sys::perf::{Counter, Tracepoint};
use tare_sys::time::monotonic_ns;

/// How often new threads are looked for.
const RESCAN_HZ: f64 = 2.0;
/// Of more threads than this, their numbers are asked only where it has changed how many there are.
const LISTED_MAX: u64 = 64;
/// CPUs that are counted on, at most.
const CPUS_MAX: usize = 512;
struct Wakeups {
    waking: Result<Tracepoint, Missing>,
    /// The SUT's processes.
    pids: BTreeSet<u32>,
    /// How many threads each had when they were listed.
    counts: BTreeMap<u32, u64>,
    /// Its threads that the counters know.
    threads: BTreeSet<u32>,
    cpus: BTreeMap<u32, Count>,
    tape: Tape,
}

/// The count of one CPU over all sets of threads that were counted.
#[derive(Default)]
struct Count {
    before: u64,
    /// None while the SUT has one thread, which has no peer.
    counter: Option<Counter>,
}

impl Count {
    fn total(&self) -> io::Result<u64> {
        let now = self.counter.as_ref().map_or(Ok(0), Counter::read)?;
        Ok(self.before.saturating_add(now))
    }
}

pub(crate) fn open(scene: &Scene) -> Box<dyn Observer> {
    Box::new(Wakeups {
        waking: find(&scene.root),
        pids: BTreeSet::new(),
        counts: BTreeMap::new(),
        threads: BTreeSet::new(),
        cpus: BTreeMap::new(),
        tape: Tape::default(),
    })
}

fn find(root: &Root) -> Result<Tracepoint, Missing> {
    in_first_pid_namespace(root)?;
    Tracepoint::find("sched", "sched_waking").map_err(|error| rights::tracefs(&error))
}

impl Observer for Wakeups {
    fn prepare(&mut self, scene: &Scene) {
        self.tape.clear();
        let pids = scene.family(&scene.watch.sut_pids);
        self.pids = pids.into_iter().collect();
        self.recount(scene);
    }

    fn edge(&mut self, _edge: &mut Edge) {
        for (&cpu, count) in &self.cpus {
            match count.total() {
                Ok(total) => self.tape.put(cpu, monotonic_ns(), total),
                Err(error) => self.waking = Err(refused("the count of wake-ups", &error)),
            }
        }
    }

    fn sample(&mut self, scene: &Scene, tick: u64) {
        if self.waking.is_ok() && tick.is_multiple_of(scene.every(RESCAN_HZ)) {
            // Of many threads only the first is asked whom it started: asking each of them takes too long.
            let children = self.pids.iter().flat_map(|pid| match procs::thread_count(&scene.root, *pid) {
                Some(count) if count > LISTED_MAX => procs::children_of(&scene.root, *pid, &[*pid]),
                _ => procs::children(&scene.root, *pid),
            });
            // Those of the watch, too: a program may be started after its window was opened.
            let found: Vec<u32> = children.chain(scene.watch.sut_pids.iter().copied()).collect();
            self.pids.extend(found);
            self.recount(scene);
        }
    }

    fn next(&self, scene: &Scene, tick: u64) -> u64 {
        if self.waking.is_ok() { scene.next(RESCAN_HZ, tick) } else { u64::MAX }
    }

    fn report(&mut self, _scene: &Scene, observed: &mut Observed) {
        if let Err(reason) = &self.waking {
            return observed.absent(&wakeups::SUT, None, reason.clone());
        }
        if self.threads.is_empty() {
            return observed.absent(
                &wakeups::SUT,
                None,
                Missing::new("no thread of the SUT is seen from here"),
            );
        }
        let mut by_cpu: BTreeMap<u32, Vec<Sample>> = BTreeMap::new();
        for reading in self.tape.readings() {
            if let Ok(bytes) = reading.bytes.try_into() {
                let sample = Sample { at_ns: reading.at_ns, value: u64::from_ne_bytes(bytes) as f64 };
                by_cpu.entry(reading.source).or_default().push(sample);
            }
        }
        for (cpu, mut samples) in by_cpu {
            // Not known when the window opened: nothing had been counted on it.
            if samples.len() < 2 {
                samples.insert(0, Sample { at_ns: observed.begin_ns(), value: 0.0 });
            }
            observed.column(&wakeups::SUT, Subject::Cpu(cpu), samples);
        }
    }

    fn set_active(&mut self, active: bool) {
        for counter in self.cpus.values().filter_map(|count| count.counter.as_ref()) {
            // As with switches: one that cannot be stopped goes on counting rightly.
            let _ = counter.enable(active);
        }
    }
}

impl Wakeups {
    /// Looks who is there, and counts for those from now on if there is anybody new.
    fn recount(&mut self, scene: &Scene) {
        let Ok(waking) = self.waking else { return };
        let count = |pid: &u32| Some((*pid, procs::thread_count(&scene.root, *pid)?));
        let counts: BTreeMap<u32, u64> = self.pids.iter().filter_map(count).collect();
        // Of many threads the number tells whether there are new ones, at a small part of the cost.
        if counts.values().sum::<u64>() > LISTED_MAX && counts == self.counts {
            return;
        }
        self.counts = counts;
        let threads: BTreeSet<u32> =
            self.pids.iter().flat_map(|pid| procs::tasks_of(&scene.root, *pid)).collect();
        if threads.is_subset(&self.threads) {
            return;
        }
        match self.count_for(&waking, &threads) {
            Ok(()) => self.threads = threads,
            Err(reason) => {
                self.waking = Err(reason);
                self.cpus.clear();
            }
        }
    }

    /// A filter cannot be changed: new counters take the place of the old ones, which are read a last time.
    fn count_for(&mut self, waking: &Tracepoint, threads: &BTreeSet<u32>) -> Result<(), Missing> {
        let allowed = |tid: &u32| affinity::get(*tid).unwrap_or_default();
        let cpus: BTreeSet<u32> = threads.iter().flat_map(allowed).chain(self.cpus.keys().copied()).collect();
        if cpus.len() > CPUS_MAX {
            return Err(Missing::new(format!("the SUT may use more than {CPUS_MAX} CPUs")));
        }
        let filter = filter(threads)?;
        for cpu in cpus {
            let counter = match threads.len() {
                0 | 1 => None,
                _ => Some(Counter::tracepoint(cpu, waking, &filter)),
            };
            let counter = counter.transpose().map_err(|error| rights::perf("counting wake-ups", &error))?;
            let count = self.cpus.entry(cpu).or_default();
            count.before = count.total().map_err(|error| refused("the count of wake-ups", &error))?;
            count.counter = counter;
        }
        Ok(())
    }
}

/// The kernel's words for "a thread of these wakes a thread of these".
fn filter(threads: &BTreeSet<u32>) -> Result<String, Missing> {
    let (wakers, woken) = (one_of("common_pid", threads), one_of("pid", threads));
    // Interrupts first: most events on a server's CPUs are theirs, and the rest need not be looked at.
    let filter = format!("!(common_flags&{IN_INTERRUPT})&&({woken})&&({wakers})");
    if filter.len() > FILTER_BYTES_MAX {
        let why = format!(
            "the SUT has more threads than a filter of the kernel can name, to count them: {}",
            threads.len()
        );
        return Err(Missing::with_remedy(why, "give the SUT fewer threads"));
    }
    Ok(filter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn threads_in_a_row_are_one_range() {
        let filter = filter(&BTreeSet::from([5, 7, 8, 9])).unwrap();
        let wakers = "common_pid==5||(common_pid>=7&&common_pid<=9)";
        assert_eq!(filter, format!("!(common_flags&88)&&(pid==5||(pid>=7&&pid<=9))&&({wakers})"));
    }

    proptest! {
        #[test]
        fn the_kernel_takes_every_filter(threads in prop::collection::btree_set(1u32..4_194_304, 2..200)) {
            match (filter(&threads), Tracepoint::find("sched", "sched_waking")) {
                (Ok(filter), Ok(waking)) => {
                    let cpu = affinity::get(0).unwrap()[0];
                    if let Err(error) = Counter::tracepoint(cpu, &waking, &filter) {
                        prop_assert!(error.kind() == io::ErrorKind::PermissionDenied, "{error}: {filter}");
                    }
                }
                (Err(missing), _) => prop_assert!(threads.len() > 60, "{missing}"),
                (Ok(filter), Err(_)) => prop_assert!(filter.len() <= FILTER_BYTES_MAX),
            }
        }
    }
}
