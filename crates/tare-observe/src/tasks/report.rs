//! A thread's readings, made into columns.

use super::parse::Schedstat;
use super::parse::{self, TaskStat, parse_schedstat, parse_status_switches};
use super::resting::Resting;
use super::watched::{Source, Watched};
use crate::observed::{Observed, changes, ends, refused, thinned};
use crate::scene::Scene;
use crate::sleep::Why;
use crate::tape::Reading;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use tare_model::metric::{Descriptor, Subject, Unit};
use tare_model::metrics::tasks;
use tare_model::observation::{IdleThreads, Role, Sample, Task};
use tare_model::schedule::Sleep;
use tare_sys::affinity;

/// No wait series is finer than this: waits are added when they end, and steps hide behind ticks.
const WAIT_APART_NS: u64 = 1_000_000_000;
/// Threads that rested and ran for a moment that have a row each, and processes whose idle threads have a row, at most.
const RAN_ROWS_MAX: usize = 64;
const IDLE_ROWS_MAX: usize = 64;

/// Makes a thread's readings into columns. One that started in the window, at `origin_ns`, had used nothing
/// then.
pub(super) fn report_watched<'t>(
    watched: &Watched,
    origin_ns: Option<u64>,
    of: &dyn Fn(Source) -> &'t [Reading<'t>],
    series: bool,
    open_waits_ns: Option<[u64; 2]>,
    observed: &mut Observed,
) {
    let stats: Vec<(u64, TaskStat)> = parsed(of(Source::Stat), parse::parse_stat);
    let name = stats.last().map(|(_, stat)| stat.name.clone());
    let subject = observed.task(watched.task(name, origin_ns.is_none()));
    let from_origin = |samples: Vec<Sample>| {
        let first_ns = samples.first().map_or(0, |sample| sample.at_ns);
        let origin_ns = origin_ns.filter(|_| !samples.is_empty());
        let zero = origin_ns.map(|at_ns| Sample { at_ns: at_ns.min(first_ns), value: 0.0 });
        zero.into_iter().chain(samples).collect::<Vec<_>>()
    };
    let schedstat = parsed(of(Source::Schedstat), parse_schedstat);
    let run = from_origin(column(&schedstat, |(run, _)| *run));
    let wait = from_origin(column(&schedstat, |(_, wait)| *wait));
    let apart_ns = if series { WAIT_APART_NS } else { u64::MAX };
    observed.column(&tasks::RUN_NS, subject.clone(), if series { run } else { ends(run) });
    if let ([first, .., last], Some([begin_ns, end_ns])) = (wait.as_slice(), open_waits_ns) {
        let open = [(first.at_ns, begin_ns), (last.at_ns, end_ns)];
        let open = open.map(|(at_ns, ns)| Sample { at_ns, value: ns as f64 });
        observed.column(&tasks::OPEN_WAIT_NS, subject.clone(), open.to_vec());
    }
    observed.column(&tasks::WAIT_NS, subject.clone(), thinned(wait, apart_ns));
    let has_slept = origin_ns.is_none() && !watched.gone && watched.state_samples.has_only_slept();
    type Field = fn(&TaskStat) -> u64;
    let counters: [(&Descriptor, Field); 4] = [
        (&tasks::USER_NS, |stat| stat.user_ns),
        (&tasks::SYSTEM_NS, |stat| stat.system_ns),
        (&tasks::MINOR_FAULTS, |stat| stat.minor_faults),
        (&tasks::MAJOR_FAULTS, |stat| stat.major_faults),
    ];
    // Of one that did not run these are what they were.
    for (metric, field) in counters.into_iter().filter(|_| !has_slept) {
        let counts = from_origin(column(&stats, field));
        // Faults are a series; the modes' shares are good over the whole window only.
        let is_count = series && metric.unit == Unit::Count;
        observed.column(metric, subject.clone(), if is_count { changes(counts) } else { ends(counts) });
    }
    let process = parsed(of(Source::Process), parse::parse_stat);
    for (metric, field) in [
        (&tasks::PROCESS_USER_NS, (|stat| stat.user_ns) as Field),
        (&tasks::PROCESS_SYSTEM_NS, |stat| stat.system_ns),
    ] {
        observed.column(metric, subject.clone(), ends(from_origin(column(&process, field))));
    }
    for (metric, field) in [
        (&tasks::CHILDREN_USER_NS, (|stat| stat.children_user_ns) as Field),
        (&tasks::CHILDREN_SYSTEM_NS, |stat| stat.children_system_ns),
    ] {
        let reaped = from_origin(column(&process, field));
        if reaped.last().is_some_and(|last| last.value > 0.0) {
            observed.column(metric, subject.clone(), ends(reaped));
        }
    }
    let last_cpu = changes(column(&stats, |stat| stat.last_cpu));
    let last_cpu = if has_slept { last_cpu.into_iter().take(1).collect() } else { last_cpu };
    observed.column(&tasks::LAST_CPU, subject.clone(), last_cpu);
    if has_slept {
        return report_states(watched, subject, true, observed);
    }
    let switches = parsed(of(Source::Status), parse_status_switches);
    let voluntary = from_origin(column(&switches, |(voluntary, _)| *voluntary));
    let involuntary = from_origin(column(&switches, |(_, involuntary)| *involuntary));
    let kept = |switches: Vec<Sample>| if series { switches } else { ends(switches) };
    observed.column(&tasks::VOLUNTARY_SWITCHES, subject.clone(), kept(voluntary));
    observed.column(&tasks::INVOLUNTARY_SWITCHES, subject.clone(), kept(involuntary));
    report_states(watched, subject, false, observed);
}

/// Threads that rested when the window ended: those that ran for a moment, most first, and how many did not run.
pub(super) fn report_resting<'t>(
    scene: &Scene,
    threads: impl Iterator<Item = &'t Resting>,
    observed: &mut Observed,
) {
    let mut idle: BTreeMap<(u32, Role), u64> = BTreeMap::new();
    let mut ran: Vec<&Resting> = Vec::new();
    for thread in threads {
        match thread.has_run() {
            true => ran.push(thread),
            false => *idle.entry((thread.pid, thread.role)).or_default() += 1,
        }
    }
    ran.sort_unstable_by_key(|thread| (Reverse(thread.ran_ns()), thread.tid));
    let few = ran.len().min(RAN_ROWS_MAX);
    let (one_by_one, rest) = ran.split_at(few);
    one_by_one.iter().for_each(|thread| report_ran(scene, thread, observed));
    let mut together: BTreeMap<(u32, Role), Vec<&Resting>> = BTreeMap::new();
    for thread in rest {
        together.entry((thread.pid, thread.role)).or_default().push(thread);
    }
    together.iter().for_each(|(&(pid, role), threads)| report_together(scene, pid, role, threads, observed));
    report_idle(scene, idle, observed);
}

fn report_ran(scene: &Scene, thread: &Resting, observed: &mut Observed) {
    let Resting { pid, tid, role, before, last, .. } = *thread;
    let text = scene.root.text(format!("/proc/{pid}/task/{tid}/stat")).unwrap_or_default();
    let stat = parse::parse_stat(&text);
    let allowed = affinity::get(tid).map_err(|error| refused("the thread's affinity", &error));
    let subject = observed.task(Task {
        pid,
        tid,
        name: stat.as_ref().map_or_else(|| "?".to_owned(), |stat| stat.name.clone()),
        role,
        allowed_cpus: allowed.into(),
        present_at_begin: true,
        present_at_end: stat.is_some(),
    });
    let ends = |value: fn(Schedstat) -> u64| {
        [before, last].map(|seen| Sample { at_ns: seen.at_ns, value: value(seen) as f64 }).to_vec()
    };
    observed.column(&tasks::RUN_NS, subject.clone(), ends(|seen| seen.run_ns));
    observed.column(&tasks::WAIT_NS, subject.clone(), ends(|seen| seen.wait_ns));
    if let Some(stat) = stat {
        observed.column(
            &tasks::LAST_CPU,
            subject,
            vec![Sample { at_ns: last.at_ns, value: stat.last_cpu as f64 }],
        );
    }
}

/// Many threads of a process as one row, with the run of all; their waits overlap, so that no sum of them is a thread's.
fn report_together(scene: &Scene, pid: u32, role: Role, threads: &[&Resting], observed: &mut Observed) {
    let run_ns = threads.iter().map(|thread| thread.ran_ns()).sum::<u64>() as f64;
    let allowed = affinity::get(pid).map_err(|error| refused("the thread's affinity", &error));
    let subject = observed.task(Task {
        pid,
        tid: 0,
        name: format!("{}: {} threads", name_of(scene, pid), threads.len()),
        role,
        allowed_cpus: allowed.into(),
        present_at_begin: true,
        present_at_end: true,
    });
    let (begin_ns, end_ns) = (observed.begin_ns(), observed.end_ns());
    let run = [(begin_ns, 0.0), (end_ns, run_ns)].map(|(at_ns, value)| Sample { at_ns, value });
    observed.column(&tasks::RUN_NS, subject, run.to_vec());
}

/// How many did not run, by process; of many processes those with the most.
fn report_idle(scene: &Scene, idle: BTreeMap<(u32, Role), u64>, observed: &mut Observed) {
    let mut idle: Vec<((u32, Role), u64)> = idle.into_iter().collect();
    idle.sort_unstable_by_key(|&((pid, _), threads)| (Reverse(threads), pid));
    let named = idle.len().min(IDLE_ROWS_MAX);
    for ((pid, role), threads) in idle.drain(..named) {
        observed.idle(IdleThreads { pid, name: name_of(scene, pid), role, threads });
    }
    let mut others: BTreeMap<Role, u64> = BTreeMap::new();
    idle.into_iter().for_each(|((_, role), threads)| *others.entry(role).or_default() += threads);
    for (role, threads) in others {
        observed.idle(IdleThreads { pid: 0, name: "other processes".to_owned(), role, threads });
    }
}

fn name_of(scene: &Scene, pid: u32) -> String {
    let comm = scene.root.text(format!("/proc/{pid}/comm")).unwrap_or_default();
    if comm.trim().is_empty() { "?".to_owned() } else { comm.trim().to_owned() }
}

/// What the samples found the thread doing.
fn report_states(watched: &Watched, subject: Subject, has_slept: bool, observed: &mut Observed) {
    if watched.state_samples.is_empty() {
        return;
    }
    let mut report = |metric: &Descriptor, counted: &dyn Fn(Option<Why>) -> bool| {
        let counts = watched.state_samples.counts().filter(|(why, _)| counted(*why));
        let count: u64 = counts.map(|(_, count)| count).sum();
        // What a sleeper was never found in needs no column.
        if has_slept && count == 0 {
            return;
        }
        let begin = Sample { at_ns: observed.begin_ns(), value: 0.0 };
        let end = Sample { at_ns: observed.end_ns(), value: count as f64 };
        observed.column(metric, subject.clone(), vec![begin, end]);
    };
    report(&tasks::SAMPLES, &|_| true);
    report(&tasks::SAMPLES_RUNNABLE, &|why| why.is_none());
    for (metric, sleep) in SLEEPS {
        report(metric, &|why| why.is_some_and(|why| why.sleep == sleep));
    }
}

static SLEEPS: [(&Descriptor, Sleep); 8] = [
    (&tasks::SAMPLES_EVENT, Sleep::Event),
    (&tasks::SAMPLES_LOCK, Sleep::Lock),
    (&tasks::SAMPLES_PARKED, Sleep::Parked),
    (&tasks::SAMPLES_DISK, Sleep::Disk),
    (&tasks::SAMPLES_DOWNSTREAM, Sleep::Downstream),
    (&tasks::SAMPLES_TIMER, Sleep::Timer),
    (&tasks::SAMPLES_FAULT, Sleep::Fault),
    (&tasks::SAMPLES_OTHER, Sleep::Other),
];

fn parsed<T>(readings: &[Reading], parse: impl Fn(&str) -> Option<T>) -> Vec<(u64, T)> {
    readings.iter().filter_map(|reading| Some((reading.at_ns, parse(reading.text())?))).collect()
}

fn column<T>(readings: &[(u64, T)], value: impl Fn(&T) -> u64) -> Vec<Sample> {
    readings.iter().map(|(at_ns, read)| Sample { at_ns: *at_ns, value: value(read) as f64 }).collect()
}
