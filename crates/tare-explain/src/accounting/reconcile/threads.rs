//! The thread accounting: for every thread, wall = run + wait + blocked (+ what was taken from it while it was
//! current, where the kernel keeps that out of run).

use crate::accounting::attribute::switches::Followed;
use crate::accounting::attribute::wait::Wait;
use crate::accounting::raw::readings::Readings;
use crate::accounting::reconcile::placement;
use std::collections::BTreeMap;
use tare_model::metric::Subject;
use tare_model::metrics::tasks;
use tare_model::observation::{Role, Task};

/// A thread serves if it ran more than this share of its life in the window.
const SERVING_RUN_SHARE: f64 = 0.001;
/// What passes at most between the end of a thread's run, as the kernel counts it, and the stamp of the switch to its sleep: 2.0 to
/// 2.8 µs were seen, in ten traced runs of 17,000 to 21,000 sleeps.
const SWITCH_S_MAX: f64 = 4e-6;
/// CPU time of a process beyond its threads that is not told from rounding: seconds, and share of the window.
const UNSEEN_MIN_S: f64 = 0.04;
const UNSEEN_MIN_SHARE: f64 = 0.02;

/// Why a thread slept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Asleep {
    Event,
    Lock,
    Disk,
    /// On another server.
    Downstream,
    Timer,
    /// For a page of memory.
    Fault,
    Other,
    /// Nobody looked.
    Unsplit,
}

impl Asleep {
    pub const SAMPLED: [Asleep; 7] = [
        Asleep::Event,
        Asleep::Lock,
        Asleep::Disk,
        Asleep::Downstream,
        Asleep::Timer,
        Asleep::Fault,
        Asleep::Other,
    ];
    /// The program's own, which stay in net.
    pub const PROGRAM: [Asleep; 5] =
        [Asleep::Lock, Asleep::Disk, Asleep::Downstream, Asleep::Timer, Asleep::Fault];

    pub fn name(self) -> &'static str {
        match self {
            Asleep::Event => "event",
            Asleep::Lock => "lock",
            Asleep::Disk => "disk",
            Asleep::Downstream => "downstream",
            Asleep::Timer => "timer",
            Asleep::Fault => "fault",
            Asleep::Other => "other",
            Asleep::Unsplit => "unsplit",
        }
    }
}

/// The accounting of one thread over one window, or over several pooled.
#[derive(Debug, Clone)]
pub(crate) struct Thread {
    pub pid: u32,
    pub tid: u32,
    pub name: String,
    pub role: Role,
    /// CPUs it may run on; empty when unknown.
    pub allowed: Vec<u32>,
    /// How much of the window it lived.
    pub wall_s: f64,
    pub run_s: f64,
    /// Time in the run queue; `None` where the kernel does not tell.
    pub queue_s: Option<f64>,
    /// What of that lay before the window, and was not told of the wait at its end: 0 where nobody looked, or the switches told.
    pub edges_s: f64,
    pub user_s: f64,
    pub system_s: f64,
    pub voluntary: Option<f64>,
    pub involuntary: Option<f64>,
    /// Run by CPU; sums to `run_s`. A CPU on which it was only seen has an entry of 0.
    pub cpu_run_s: BTreeMap<u32, f64>,
    /// The queue time by who held the CPU.
    pub wait: Wait,
    /// Stolen from it, and taken by interrupts that are not in run, while it was current.
    pub steal_s: f64,
    pub irq_s: f64,
    pub asleep_s: BTreeMap<Asleep, f64>,
    /// Asleep by the switches' own account; `None` where only looks tell.
    pub blocked_s: Option<f64>,
    /// Ready on a CPU that nobody used, by the switches' own account: a quota's doing.
    pub held_s: f64,
    /// In what proportion it slept for each reason: seconds by the switches, or looks.
    sleeps: BTreeMap<Asleep, f64>,
}

impl Thread {
    /// Reads all threads of a window whose run is known; waits and sleeps are split later, when it is known who
    /// else ran.
    pub fn read_all(readings: &Readings) -> Vec<Thread> {
        let indexed = || (0u32..).zip(&readings.observation.tasks);
        let mut threads: Vec<Thread> =
            indexed().filter_map(|(index, task)| Thread::read(readings, index, task)).collect();
        let ended: Vec<Thread> =
            indexed().filter_map(|(index, task)| Thread::ended(readings, index, task, &threads)).collect();
        threads.extend(ended);
        threads
    }

    /// What a process used beyond the threads that were seen: those that came and went between two scans, as one
    /// row. How long they waited and slept is not known; they are booked as running for all their life.
    fn ended(readings: &Readings, index: u32, task: &Task, seen: &[Thread]) -> Option<Thread> {
        let seconds = |metric| readings.task_growth(metric, index, task).map(|grown_ns| grown_ns / 1e9);
        let (user_s, system_s) = (seconds(&tasks::PROCESS_USER_NS)?, seconds(&tasks::PROCESS_SYSTEM_NS)?);
        let seen_s: f64 =
            seen.iter().filter(|thread| thread.pid == task.pid).map(|thread| thread.run_s).sum();
        let run_s = user_s + system_s - seen_s;
        // The process's counters step by 10 ms, at either end and for either mode.
        if run_s <= UNSEEN_MIN_S.max(UNSEEN_MIN_SHARE * readings.wall_s()) {
            return None;
        }
        let allowed = task.allowed_cpus.value().cloned().unwrap_or_default();
        let share = |part_s: f64| run_s * part_s / (user_s + system_s);
        let even = run_s / allowed.len().max(1) as f64;
        Some(Thread {
            pid: task.pid,
            // No thread of its own: the main thread has a row already.
            tid: 0,
            name: format!("{}: ended threads", task.name),
            role: task.role,
            wall_s: run_s,
            run_s,
            queue_s: None,
            edges_s: 0.0,
            user_s: share(user_s),
            system_s: share(system_s),
            voluntary: None,
            involuntary: None,
            // Evenly for now: moved to where all tasks together ran more than was seen.
            cpu_run_s: allowed.iter().map(|cpu| (*cpu, even)).collect(),
            allowed,
            wait: Wait::default(),
            steal_s: 0.0,
            irq_s: 0.0,
            asleep_s: BTreeMap::new(),
            blocked_s: None,
            held_s: 0.0,
            sleeps: BTreeMap::new(),
        })
    }

    fn read(readings: &Readings, index: u32, task: &Task) -> Option<Thread> {
        let grown = |metric| readings.task_growth(metric, index, task);
        let seconds = |metric| grown(metric).map(|grown_ns| grown_ns / 1e9);
        let (user_ticks, system_ticks) = (seconds(&tasks::USER_NS), seconds(&tasks::SYSTEM_NS));
        // Without schedstat the ticks are all there is.
        let run_s = seconds(&tasks::RUN_NS)
            .or_else(|| user_ticks.zip(system_ticks).map(|(user, system)| user + system))?;
        let queue_s = seconds(&tasks::WAIT_NS);
        // Ticks are good for shares only; run is exact, so they divide it.
        let ticks = user_ticks.unwrap_or(0.0) + system_ticks.unwrap_or(0.0);
        let of_run = |part: Option<f64>| if ticks > 0.0 { run_s * part.unwrap_or(0.0) / ticks } else { 0.0 };
        let allowed = task.allowed_cpus.value().cloned().unwrap_or_default();
        let looks = [
            (Asleep::Event, &tasks::SAMPLES_EVENT),
            (Asleep::Lock, &tasks::SAMPLES_LOCK),
            (Asleep::Disk, &tasks::SAMPLES_DISK),
            (Asleep::Downstream, &tasks::SAMPLES_DOWNSTREAM),
            (Asleep::Timer, &tasks::SAMPLES_TIMER),
            (Asleep::Fault, &tasks::SAMPLES_FAULT),
            (Asleep::Other, &tasks::SAMPLES_OTHER),
        ];
        let looks = looks.into_iter().filter_map(|(why, metric)| Some((why, grown(metric)?))).collect();
        Some(Thread {
            pid: task.pid,
            tid: task.tid,
            name: task.name.clone(),
            role: task.role,
            wall_s: lived_s(readings, index, task, run_s + queue_s.unwrap_or(0.0)),
            run_s,
            queue_s,
            edges_s: edges_s(readings, index),
            user_s: of_run(user_ticks),
            system_s: of_run(system_ticks),
            voluntary: grown(&tasks::VOLUNTARY_SWITCHES),
            involuntary: grown(&tasks::INVOLUNTARY_SWITCHES),
            cpu_run_s: placement::run_by_cpu(readings, index, &allowed, run_s),
            allowed,
            wait: Wait::default(),
            steal_s: 0.0,
            irq_s: 0.0,
            asleep_s: BTreeMap::new(),
            blocked_s: None,
            held_s: 0.0,
            sleeps: looks,
        })
    }

    /// Takes sleeps as the switches tell them, and how waits are split; whether they are of this world.
    ///
    /// How long it waited in all is the kernel's own count where the edges of the window are known, which ends where its
    /// run begins. The switches are stamped up to an interrupt's way later, which would be in both.
    pub fn follow(&mut self, followed: Followed) -> bool {
        let Followed { wait, held_s, wait_edges_s, sleeps, .. } = followed;
        let (told_s, blocked_s) = (wait.sum() + held_s, sleeps.values().sum::<f64>());
        let counted_s = self.queue_s.zip(wait_edges_s).map(|(counted_s, edges_s)| counted_s + edges_s);
        let queue_s = counted_s.filter(|_| told_s > 0.0).unwrap_or(told_s).max(0.0);
        let share = if told_s > 0.0 { queue_s / told_s } else { 0.0 };
        (self.queue_s, self.blocked_s, self.edges_s) = (Some(queue_s), Some(blocked_s), 0.0);
        (self.wait, self.held_s, self.sleeps) = (wait.scaled(share), held_s * share, sleeps);
        (queue_s + blocked_s).is_finite()
    }

    /// Takes waits that were open at the edges for what of them lay in the window; the switches have done that.
    pub fn close_waits(&mut self) {
        self.queue_s = self.queue_s.map(|queue_s| (queue_s + self.edges_s).max(0.0));
    }

    /// For the kernel a thread's run is over when it goes to sleep; the switch is stamped later (when its CPU has looked for something
    /// else to do, most likely). `run_s` is its run up to there, in `slept` sleeps: the difference, but for what was taken from it meanwhile, is sleep.
    pub fn sleep_from_the_end_of_runs(&mut self, run_s: f64, slept: f64) {
        let between_s = run_s - self.run_s - self.steal_s - self.irq_s;
        if let Some(blocked_s) = &mut self.blocked_s {
            *blocked_s += between_s.clamp(0.0, SWITCH_S_MAX * slept);
        }
    }

    /// Run, wait, sleep and what was taken from it, minus its life: the gap of its accounting where sleep was measured.
    /// Negative where too little is told.
    pub fn gap_s(&self) -> f64 {
        let known_s = self.run_s + self.queue_s.unwrap_or(0.0) + self.blocked_s.unwrap_or(0.0);
        known_s + self.steal_s + self.irq_s - self.wall_s
    }

    /// Whether it does part of the work, and is not a master process or a helper that sleeps.
    pub fn serves(&self) -> bool {
        self.run_s > SERVING_RUN_SHARE * self.wall_s
    }

    /// Whether this is one thread, and not what those together took that came and went unseen.
    pub fn is_one(&self) -> bool {
        self.tid != 0
    }

    /// `name/tid`, as in the residuals and the evidence.
    pub fn label(&self) -> String {
        format!("{}/{}", self.name, self.tid)
    }

    /// The share of its run on a CPU; where it did not run, evenly over the CPUs it was seen on.
    pub fn share_on(&self, cpu: u32) -> f64 {
        match self.cpu_run_s.get(&cpu) {
            None => 0.0,
            Some(run_s) if self.run_s > 0.0 => run_s / self.run_s,
            Some(_) => 1.0 / self.cpu_run_s.len() as f64,
        }
    }

    /// Splits what is neither run, wait nor taken by how it was found asleep. Where sleep was measured this differs from
    /// that by the residual.
    pub fn split_sleep(&mut self) {
        let known_s = self.run_s + self.queue_s.unwrap_or(0.0) + self.steal_s + self.irq_s;
        let asleep_s = (self.wall_s - known_s).max(0.0);
        let found: f64 = self.sleeps.values().sum();
        self.asleep_s = if found > 0.0 && self.queue_s.is_some() {
            self.sleeps.iter().map(|(why, part)| (*why, asleep_s * part / found)).collect()
        } else {
            BTreeMap::from([(Asleep::Unsplit, asleep_s)])
        };
    }

    pub fn asleep(&self, why: Asleep) -> f64 {
        self.asleep_s.get(&why).copied().unwrap_or(0.0)
    }

    /// Adds the same thread's accounting of another window.
    pub fn absorb(&mut self, other: &Thread) {
        self.wall_s += other.wall_s;
        self.run_s += other.run_s;
        self.queue_s = self.queue_s.zip(other.queue_s).map(|(a, b)| a + b);
        self.user_s += other.user_s;
        self.system_s += other.system_s;
        self.voluntary = self.voluntary.zip(other.voluntary).map(|(a, b)| a + b);
        self.involuntary = self.involuntary.zip(other.involuntary).map(|(a, b)| a + b);
        self.wait.absorb(&other.wait);
        self.blocked_s = self.blocked_s.zip(other.blocked_s).map(|(a, b)| a + b);
        self.held_s += other.held_s;
        self.steal_s += other.steal_s;
        self.irq_s += other.irq_s;
        for (cpu, run_s) in &other.cpu_run_s {
            *self.cpu_run_s.entry(*cpu).or_default() += run_s;
        }
        for (why, asleep_s) in &other.asleep_s {
            *self.asleep_s.entry(*why).or_default() += asleep_s;
        }
    }
}

/// The wait that was open at the end, less that at the beginning.
fn edges_s(readings: &Readings, index: u32) -> f64 {
    match readings.samples(&tasks::OPEN_WAIT_NS, &Subject::Task(index)).as_slice() {
        [begin, .., end] => (end.value - begin.value) / 1e9,
        _ => 0.0,
    }
}

/// How much of the window the thread lived. A birth is dated back from the first look by what the thread had
/// done until then, a death is dated at the last look.
fn lived_s(readings: &Readings, index: u32, task: &Task, done_s: f64) -> f64 {
    let observation = readings.observation;
    if task.present_at_begin && task.present_at_end {
        return readings.wall_s();
    }
    let subject = Subject::Task(index);
    let samples = readings.samples(&tasks::RUN_NS, &subject);
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else { return readings.wall_s() };
    let waited_ns = readings.samples(&tasks::WAIT_NS, &subject).first().map_or(0.0, |sample| sample.value);
    let born_ns = first.at_ns as f64 - first.value - waited_ns;
    let begin_ns = if task.present_at_begin { observation.begin_ns as f64 } else { born_ns };
    let end_ns = if task.present_at_end { observation.end_ns } else { last.at_ns } as f64;
    let lived_ns = end_ns.min(observation.end_ns as f64) - begin_ns.max(observation.begin_ns as f64);
    // Never shorter than what it did: the look that saw it last is not its end.
    (lived_ns / 1e9).max(done_s).min(readings.wall_s())
}
