//! Everybody else on the machine: who ran, and on which CPU last.
//!
//! Of each process the run of all its threads is asked; threads are read one by one only where others than the main thread run.

use super::parse::{TaskStat, parse_schedstat, parse_stat};
use crate::census::{PROCESSES_MAX, Used};
use crate::observed::{Observed, refused};
use crate::scene::Scene;
use std::collections::{BTreeMap, BTreeSet};
use tare_machine::procs;
use tare_model::Missing;
use tare_model::metric::Subject;
use tare_model::metrics::tasks;
use tare_model::observation::{Role, Sample, Task};
use tare_sys::affinity;
use tare_sys::time::monotonic_ns;

/// Threads of processes whose threads run, that are looked at one by one, at most.
const THREADS_MAX: usize = 4096;
/// Threads that are reported, at most: those that ran most.
const REPORTED_MAX: usize = 64;
/// Share of the window that a thread must have run to be reported.
const RUN_SHARE_MIN: f64 = 0.001;
/// Run of other threads than the main one since the sample before that makes it worth to look at each.
const THREADS_RUN_NS_MIN: u64 = 1_000_000;

/// A thread at one edge.
#[derive(Debug, Clone, Copy)]
struct Seen {
    at_ns: u64,
    run_ns: u64,
    /// `None` for all threads of a process together.
    wait_ns: Option<u64>,
}

/// A process at the beginning of a window.
#[derive(Debug, Clone)]
struct Began {
    start_ticks: u64,
    used: Used,
    /// Its threads, where they were looked at.
    threads: Option<BTreeMap<u32, Seen>>,
}

/// All processes at the beginning of a window.
#[derive(Default)]
pub(super) struct Others {
    begin: BTreeMap<u32, Began>,
    /// There were more processes than are looked at.
    too_many: bool,
}

/// A thread that ran in the window, or all threads of a process.
struct Ran {
    pid: u32,
    tid: u32,
    first: Seen,
    last: Seen,
    present_at_begin: bool,
}

impl Ran {
    fn run_ns(&self) -> u64 {
        self.last.run_ns.saturating_sub(self.first.run_ns)
    }
}

impl Others {
    /// Looks at all processes but those in `known`.
    pub(super) fn begin(&mut self, scene: &Scene, known: &BTreeSet<u32>) {
        let before = std::mem::take(&mut self.begin);
        let census = scene.census.borrow();
        self.too_many = census.too_many();
        let mut threads_left = THREADS_MAX;
        for (pid, process) in census.processes().filter(|(pid, _)| !known.contains(pid)) {
            let mut began = Began { start_ticks: process.start_ticks, used: process.used, threads: None };
            // What its other threads did since the last window, or in all their life.
            let before = before.get(&pid).filter(|before| before.start_ticks == began.start_ticks);
            let before_ns = before.map_or(0, |before| before.used.by_other_threads_ns());
            let threads_ran_ns = began.used.by_other_threads_ns().saturating_sub(before_ns);
            if threads_ran_ns >= THREADS_RUN_NS_MIN && threads_left > 0 {
                let threads = threads_of(scene, pid, threads_left);
                threads_left -= threads.len();
                began.threads = Some(threads);
            }
            self.begin.insert(pid, began);
        }
    }

    /// Looks again and reports who ran.
    pub(super) fn report(&self, scene: &Scene, known: &BTreeSet<u32>, observed: &mut Observed) {
        let least_ns = (observed.end_ns().saturating_sub(observed.begin_ns()) as f64 * RUN_SHARE_MIN) as u64;
        let mut ran: Vec<Ran> = Vec::new();
        // What is not reported one by one: too little each.
        let mut little_ns = 0u64;
        let mut too_many = self.too_many;
        {
            let census = scene.census.borrow();
            too_many |= census.too_many();
            for (pid, process) in census.processes().filter(|(pid, _)| !known.contains(pid)) {
                let began = self.begin.get(&pid).filter(|began| began.start_ticks == process.start_ticks);
                let of_process = who_ran(scene, pid, began, &process.used, observed.begin_ns(), least_ns);
                let reported_ns = of_process.iter().map(Ran::run_ns).sum();
                little_ns += grown_ns(began, &process.used).saturating_sub(reported_ns);
                ran.extend(of_process);
            }
        }
        if too_many {
            let reason = format!("more than {PROCESSES_MAX} processes: not all of the others were looked at");
            observed.absent(&tasks::RUN_NS, None, Missing::new(reason));
        }
        ran.sort_unstable_by_key(|ran| (std::cmp::Reverse(ran.run_ns()), ran.tid));
        little_ns += ran.iter().skip(REPORTED_MAX).map(Ran::run_ns).sum::<u64>();
        let little = [(observed.begin_ns(), 0), (observed.end_ns(), little_ns)];
        let little = little.map(|(at_ns, ns)| Sample { at_ns, value: ns as f64 });
        observed.column(&tasks::OTHERS_RUN_NS, Subject::Machine, little.to_vec());
        for ran in ran.into_iter().take(REPORTED_MAX) {
            report_one(scene, &ran, observed);
        }
    }
}

/// What all threads of a process ran since the window began.
fn grown_ns(began: Option<&Began>, now: &Used) -> u64 {
    let whole_ns = |used: &Used| used.all_ns.unwrap_or(used.run_ns);
    whole_ns(now).saturating_sub(began.map_or(0, |began| whole_ns(&began.used)))
}

/// Who of a process ran for longer than `least_ns`: its threads, or all of them together where they were not looked at when the
/// window began.
fn who_ran(
    scene: &Scene,
    pid: u32,
    began: Option<&Began>,
    now: &Used,
    begin_ns: u64,
    least_ns: u64,
) -> Vec<Ran> {
    // One that is not in the first sample is new and had used nothing.
    let zero = Used { at_ns: begin_ns, run_ns: 0, wait_ns: 0, slices: 0, all_ns: now.all_ns.map(|_| 0) };
    let first = began.map_or(zero, |began| began.used);
    let present_at_begin = began.is_some();
    let all_ns = now.all_ns.zip(first.all_ns).map(|(now_ns, first_ns)| now_ns.saturating_sub(first_ns));
    let main_ns = now.run_ns.saturating_sub(first.run_ns);
    let seen = |used: &Used| Seen { at_ns: used.at_ns, run_ns: used.run_ns, wait_ns: Some(used.wait_ns) };
    let main = Ran { pid, tid: pid, first: seen(&first), last: seen(now), present_at_begin };
    let others_ns = all_ns.map_or(0, |all_ns| all_ns.saturating_sub(main_ns));
    if others_ns <= least_ns {
        return if main_ns > least_ns { vec![main] } else { Vec::new() };
    }
    let no_threads = BTreeMap::new();
    let threads = match began {
        Some(began) => began.threads.as_ref(),
        None => Some(&no_threads),
    };
    let Some(threads) = threads else {
        let whole = |used: &Used| Seen {
            at_ns: used.at_ns,
            run_ns: used.all_ns.unwrap_or(used.run_ns),
            wait_ns: None,
        };
        return vec![Ran { pid, tid: pid, first: whole(&first), last: whole(now), present_at_begin }];
    };
    let zero = Seen { at_ns: begin_ns, run_ns: 0, wait_ns: Some(0) };
    let of_thread = |(tid, last): (u32, Seen)| {
        let first = threads.get(&tid).filter(|first| first.run_ns <= last.run_ns).copied();
        Ran { pid, tid, first: first.unwrap_or(zero), last, present_at_begin: threads.contains_key(&tid) }
    };
    let now = threads_of(scene, pid, THREADS_MAX).into_iter().filter(|(tid, _)| *tid != pid).map(of_thread);
    std::iter::once(main).chain(now).filter(|ran| ran.run_ns() > least_ns).collect()
}

fn report_one(scene: &Scene, ran: &Ran, observed: &mut Observed) {
    let Ran { pid, tid, first, last, present_at_begin } = *ran;
    let text = scene.root.text(format!("/proc/{pid}/task/{tid}/stat")).unwrap_or_default();
    let stat: Option<TaskStat> = parse_stat(&text);
    let allowed = affinity::get(tid).map_err(|error| refused("the thread's affinity", &error));
    let subject = observed.task(Task {
        pid,
        tid,
        name: stat.as_ref().map_or_else(|| "?".to_string(), |stat| stat.name.clone()),
        role: Role::Other,
        allowed_cpus: allowed.into(),
        present_at_begin,
        present_at_end: stat.is_some(),
    });
    let sample = |at_ns: u64, value: u64| Sample { at_ns, value: value as f64 };
    let run = [first, last].map(|seen| sample(seen.at_ns, seen.run_ns));
    observed.column(&tasks::RUN_NS, subject.clone(), run.to_vec());
    // Where all threads are one row, neither their waits nor the CPU of the main thread are theirs.
    if let Some((first_ns, last_ns)) = first.wait_ns.zip(last.wait_ns) {
        let wait = vec![sample(first.at_ns, first_ns), sample(last.at_ns, last_ns)];
        observed.column(&tasks::WAIT_NS, subject.clone(), wait);
        if let Some(stat) = stat {
            observed.column(&tasks::LAST_CPU, subject, vec![sample(last.at_ns, stat.last_cpu)]);
        }
    }
}

fn threads_of(scene: &Scene, pid: u32, max: usize) -> BTreeMap<u32, Seen> {
    let seen = |tid: u32| {
        let text = scene.root.text(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
        let (run_ns, wait_ns) = parse_schedstat(&text)?;
        Some((tid, Seen { at_ns: monotonic_ns(), run_ns, wait_ns: Some(wait_ns) }))
    };
    procs::tasks_of(&scene.root, pid).into_iter().take(max).filter_map(seen).collect()
}
