//! How long each thread waited and slept: by its switches where they were traced and account for its life, else by the kernel's
//! count of waits and by samples of its sleep.

use crate::accounting::attribute::taken::Taken;
use crate::accounting::attribute::wait::Wait;
use crate::accounting::raw::asleep::Asleep;
use crate::accounting::raw::bounds::NO_VERDICT;
use crate::accounting::reconcile::cpus::OccupiedCpu;
use crate::accounting::reconcile::placement::PlacedThread;
use std::collections::BTreeMap;
use tare_model::observation::{Observation, Role};
use tare_model::schedule::{Schedule, ScheduleSource, Sleep, ThreadSchedule};

/// What passes at most between the end of a thread's run, as the kernel counts it, and the stamp of the switch to its sleep: 2.0 to
/// 2.8 µs were seen, in ten traced runs of 17,000 to 21,000 sleeps.
const SWITCH_S_MAX: f64 = 4e-6;

/// A thread whose wait in all, and sleep in all, are known as well as they can be.
#[derive(Debug)]
pub(crate) struct Waited {
    pub placed: PlacedThread,
    /// Time in the run queue within the window; `None` where the kernel does not count it.
    pub queue_s: Option<f64>,
    /// What was added to the kernel's count for the waits that were open at the edges; 0 where switches are the source.
    pub edges_s: f64,
    /// In what proportion it slept for each reason: seconds by the switches, or samples.
    pub sleeps: BTreeMap<Asleep, f64>,
    /// What the switches measured of it; `None` where samples are all there is.
    pub traced: Option<Traced>,
}

/// Waits and sleeps that were measured switch by switch, in seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Traced {
    /// Behind whom, and on a free CPU.
    pub wait: Wait,
    /// Ready on a CPU that nobody used while a quota could have been in force.
    pub held_s: f64,
    pub blocked_s: f64,
}

/// Of how much of the serving threads' lives switches are the source, and of how much samples, seconds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sources {
    pub switches_s: f64,
    pub samples_s: f64,
}

/// Finds waits and sleeps of all threads. The SUT's are taken from their switches, one by one where the times of that thread then
/// close. Where they do not (events were lost, it came and went, another namespace has other numbers) the samples stand:
/// a thread is never worse off for having been traced.
pub(super) fn follow(
    threads: Vec<PlacedThread>,
    cpus: &BTreeMap<u32, OccupiedCpu>,
    observation: &Observation,
) -> (Vec<Waited>, Sources) {
    let mut sources = Sources::default();
    let schedule = observation.schedule.as_ref().filter(|one| one.source == ScheduleSource::Tracepoints);
    let follow_one = |placed: PlacedThread| {
        let Some(schedule) = schedule.filter(|_| placed.counted.id.role == Role::Sut) else {
            return Waited::by_samples(placed);
        };
        let found = Waited::by_switches(&placed, schedule, cpus);
        if placed.counted.was_active() {
            *(if found.is_some() { &mut sources.switches_s } else { &mut sources.samples_s }) +=
                placed.counted.wall_s;
        }
        found.unwrap_or_else(|| Waited::by_samples(placed))
    };
    let threads = threads.into_iter().map(follow_one).collect();
    (threads, sources)
}

impl Waited {
    /// The kernel counts waits when they are over: those that were open at the edges are put right by what of them lay in the window.
    fn by_samples(placed: PlacedThread) -> Waited {
        let edges_s = placed.counted.edges_s;
        let queue_s = placed.counted.queue_s.map(|queue_s| (queue_s + edges_s).max(0.0));
        Waited { queue_s, edges_s, sleeps: placed.counted.sleeps.clone(), traced: None, placed }
    }

    /// `None` where the switches do not account for the thread's life.
    ///
    /// How long it waited in all is the kernel's own count where the edges of the window are known, which ends where its
    /// run begins. The switches are stamped up to an interrupt's way later, which would be in both. Where the edges are not known either
    /// may be wrong, by the wait at the window's begin or by all those ways: then the one that leaves less of the thread's life open.
    fn by_switches(
        placed: &PlacedThread,
        schedule: &Schedule,
        cpus: &BTreeMap<u32, OccupiedCpu>,
    ) -> Option<Waited> {
        let counted = &placed.counted;
        let switches = schedule.threads.iter().find(|thread| thread.tid == counted.id.tid)?;
        let (wait, held_s) = (wait_of(switches), seconds(switches.held_ns));
        let sleeps = without_parked(sleeps_of(switches), &counted.sleeps);
        let (stamped_s, slept_s) = (wait.sum() + held_s, sleeps.values().sum::<f64>());
        let kernel_s = counted.queue_s.filter(|_| stamped_s > 0.0);
        let with_edges_s =
            kernel_s.zip(switches.wait_edges_ns).map(|(queue_s, edges)| queue_s + edges as f64 / 1e9);
        let queues_s = match with_edges_s {
            Some(queue_s) => vec![queue_s],
            None => [Some(stamped_s), kernel_s].into_iter().flatten().collect(),
        };
        let lives =
            queues_s.into_iter().map(|queue_s| Life::of(placed, switches, queue_s.max(0.0), slept_s, cpus));
        let closest = lives.min_by(|one, other| one.gap_s.abs().total_cmp(&other.gap_s.abs()))?;
        let Life { queue_s, blocked_s, gap_s } = closest;
        let share = if stamped_s > 0.0 { queue_s / stamped_s } else { 0.0 };
        (gap_s.abs() <= NO_VERDICT * counted.wall_s).then(|| Waited {
            placed: placed.clone(),
            queue_s: Some(queue_s),
            edges_s: 0.0,
            sleeps,
            traced: Some(Traced { wait: wait.scaled(share), held_s: held_s * share, blocked_s }),
        })
    }
}

/// What is known of a thread's window, seconds.
struct Life {
    queue_s: f64,
    blocked_s: f64,
    /// Known of it more than there is; NaN where something known is no number.
    gap_s: f64,
}

impl Life {
    fn of(
        placed: &PlacedThread,
        switches: &ThreadSchedule,
        queue_s: f64,
        slept_s: f64,
        cpus: &BTreeMap<u32, OccupiedCpu>,
    ) -> Life {
        let taken = Taken::from(placed, Some(queue_s), Some(slept_s), cpus);
        let blocked_s = slept_s + after_runs_s(placed, switches, &taken);
        let known_s = placed.counted.run_s + queue_s + blocked_s;
        Life { queue_s, blocked_s, gap_s: known_s + taken.steal_s + taken.irq_s - placed.counted.wall_s }
    }
}

/// For the kernel a thread's run is over when it goes to sleep; the switch is stamped later (when its CPU has looked for something
/// else to do, most likely). The difference between the run of both, but for what was taken from it meanwhile, is sleep.
fn after_runs_s(placed: &PlacedThread, switches: &ThreadSchedule, taken: &Taken) -> f64 {
    let slept: f64 = switches.blocked.iter().map(|blocked| blocked.count as f64).sum();
    let between_s = seconds(switches.run_ns) - placed.counted.run_s - taken.steal_s - taken.irq_s;
    between_s.clamp(0.0, SWITCH_S_MAX * slept)
}

fn wait_of(switches: &ThreadSchedule) -> Wait {
    let mut wait = Wait { scheduler_s: seconds(switches.delay_ns), ..Wait::default() };
    for behind in &switches.behind {
        *wait.behind_s.of_mut(behind.role) += seconds(behind.ns);
    }
    wait
}

fn sleeps_of(switches: &ThreadSchedule) -> BTreeMap<Asleep, f64> {
    let mut sleeps: BTreeMap<Asleep, f64> = BTreeMap::new();
    for blocked in &switches.blocked {
        *sleeps.entry(asleep(blocked.why)).or_default() += seconds(blocked.ns);
    }
    sleeps
}

/// In records of 0.1.0 all sleep in futexes is a lock's: of that the samples' share was parked.
fn without_parked(
    mut sleeps: BTreeMap<Asleep, f64>,
    sampled: &BTreeMap<Asleep, f64>,
) -> BTreeMap<Asleep, f64> {
    let of = |why| sampled.get(&why).copied().unwrap_or(0.0);
    let knows_parked = sleeps.contains_key(&Asleep::Parked);
    let (locked, parked) = (of(Asleep::Lock), of(Asleep::Parked));
    if let Some(futex_s) = sleeps.get_mut(&Asleep::Lock).filter(|_| parked > 0.0 && !knows_parked) {
        let parked_s = *futex_s * parked / (locked + parked);
        *futex_s -= parked_s;
        *sleeps.entry(Asleep::Parked).or_default() += parked_s;
    }
    sleeps
}

fn asleep(why: Sleep) -> Asleep {
    match why {
        Sleep::Event => Asleep::Event,
        Sleep::Lock => Asleep::Lock,
        Sleep::Parked => Asleep::Parked,
        Sleep::Disk => Asleep::Disk,
        Sleep::Downstream => Asleep::Downstream,
        Sleep::Timer => Asleep::Timer,
        Sleep::Fault => Asleep::Fault,
        Sleep::Other => Asleep::Other,
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
