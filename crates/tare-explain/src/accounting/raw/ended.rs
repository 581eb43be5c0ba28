//! The work of those that ended between two samples: of the tree that started them. By what the kernel reported at each end, else by
//! what it reported to their parents when they waited for them, else by the usage of the SUT's group, else by what is left of the CPUs' time.

use crate::accounting::raw::bounds::UNCLAIMED_CPUS;
use crate::accounting::raw::cpus::CpuTimes;
use crate::accounting::raw::ratio::ratio;
use crate::accounting::raw::readings::Readings;
use crate::accounting::raw::threads::{CountedThread, Modes, Switched, ThreadId};
use std::collections::{BTreeMap, BTreeSet};
use tare_model::ended::Ended;
use tare_model::metric::{Descriptor, Subject};
use tare_model::metrics::{groups, tasks};
use tare_model::observation::{Role, Task};
use tare_model::trial::Measure;

/// CPU time beyond the threads that were seen which cannot be distinguished from rounding: seconds, and share of the window.
const UNSEEN_MIN_S: f64 = 0.04;
const UNSEEN_MIN_SHARE: f64 = 0.02;
/// The same of a program, whose usage is known to the microsecond: share of it.
const OF_USAGE_MIN: f64 = 0.02;
/// The kernel counts at each tick, of which there are 250 a second on most machines: one that ended ran for no longer since.
const LAST_SLICE_S: f64 = 0.004;
/// A parent that waits knows all that its children ran.
const WAITED_MIN: f64 = 0.5;
/// So many bytes of a name the kernel keeps: one as long may be cut.
const NAME_BYTES_MAX: usize = 15;

/// What ended is called in a row of all of one name.
pub(crate) const CHILDREN: &str = "children that ended";

/// Rows for those that ended, beside the threads that were seen.
pub(super) fn rows(readings: &Readings, measure: &Measure, seen: &[CountedThread]) -> Vec<CountedThread> {
    if let Some(ended) = &readings.observation.ended {
        let mut rows: Vec<CountedThread> =
            ended.iter().filter(|ended| ended.run_ns > 0).map(|one| known(readings, one, seen)).collect();
        let more = [Role::Sut, Role::Load].map(|role| last_slices(readings, measure, role, seen, &rows));
        rows.extend(more.into_iter().flatten());
        return rows;
    }
    let tasks = (0u32..).zip(&readings.observation.tasks);
    let mut rows: Vec<CountedThread> =
        tasks.filter_map(|(index, task)| threads_of(readings, index, task, seen)).collect();
    for role in [Role::Sut, Role::Load] {
        let known_s = ran_s(seen, role) + ran_s(&rows, role);
        let found = match (measure, role) {
            (Measure::Command(run), Role::Sut) => {
                let usage_s = (run.user_ns as f64 + run.system_ns as f64) / 1e9;
                // Where not even the program itself was seen, nothing is known of whose it is.
                Some(usage_s - known_s).filter(|unseen_s| known_s > 0.0 && *unseen_s > OF_USAGE_MIN * usage_s)
            }
            _ => reaped_s(readings, role)
                .filter(|run_s| *run_s > least_s(readings))
                .or_else(|| group_s(readings, role, known_s).filter(|run_s| *run_s > least_s(readings))),
        };
        rows.extend(found.map(|run_s| children(readings, role, run_s, seen)));
    }
    rows
}

/// What those that ended ran after the kernel last counted it: it reports at an end what was counted at the last switch or tick, and a
/// process that lives for 3 ms may have none. Whoever waited for them knows all of it.
fn last_slices(
    readings: &Readings,
    measure: &Measure,
    role: Role,
    seen: &[CountedThread],
    ended: &[CountedThread],
) -> Option<CountedThread> {
    let reported_s = ran_s(ended, role);
    let (whole_s, least_s) = match (measure, role) {
        (Measure::Command(run), Role::Sut) => {
            let usage_s = (run.user_ns as f64 + run.system_ns as f64) / 1e9;
            (usage_s - ran_s(seen, role), OF_USAGE_MIN * usage_s)
        }
        _ => (reaped_s(readings, role)?, least_s(readings)),
    };
    let more_s = whole_s - reported_s;
    (more_s > least_s).then(|| children(readings, role, more_s, seen))
}

/// The same where nobody waited for them, as for the children of a parent that ignores SIGCHLD. Every task that was there was counted and
/// every end was reported: what is left of the run of all CPUs is of those that ended, by how many of each side there were, and less what the
/// others can have run.
pub(super) fn unreported(
    readings: &Readings,
    measure: &Measure,
    threads: &[CountedThread],
    cpus: &BTreeMap<u32, CpuTimes>,
) -> Vec<CountedThread> {
    let ended = readings.observation.ended.as_ref().filter(|_| matches!(measure, Measure::Http(_)));
    let all_s: Option<f64> = cpus.values().map(|cpu| cpu.task_run_s).sum();
    let left_s = left_s(readings, all_s, threads.iter().map(|thread| thread.run_s).sum());
    let (Some(ended), Some(left_s)) = (ended, left_s) else { return Vec::new() };
    let count = |role: Option<Role>| -> f64 {
        let mine = ended.iter().filter(|ended| role.is_none_or(|role| role == ended.role));
        mine.map(|ended| ended.count as f64).sum()
    };
    let reported_s = |role: Role| -> f64 {
        let mine = ended.iter().filter(|ended| ended.role == role);
        mine.map(|ended| ended.run_ns as f64 / 1e9).sum()
    };
    let given = |role: Role| {
        let (mine, all) = (count(Some(role)), count(None));
        let others_s = (all - mine) * LAST_SLICE_S;
        let run_s = (left_s * ratio(mine, all)).min(left_s - others_s).min(mine * LAST_SLICE_S);
        let whole_s = reported_s(role) + run_s;
        let nobody_waited = reaped_s(readings, role).is_none_or(|reaped_s| reaped_s < WAITED_MIN * whole_s);
        (nobody_waited && run_s > UNCLAIMED_CPUS * readings.wall_s()).then_some((role, run_s))
    };
    let more = [Role::Sut, Role::Load].into_iter().filter_map(given);
    more.map(|(role, run_s)| children(readings, role, run_s, threads)).collect()
}

/// Run of all tasks less that of those in a row.
pub(in crate::accounting) fn left_s(readings: &Readings, all_s: Option<f64>, claimed_s: f64) -> Option<f64> {
    let little_s = readings.samples(&tasks::OTHERS_RUN_NS, &Subject::Machine).last()?.value / 1e9;
    Some(all_s? - claimed_s - little_s)
}

/// What strangers that ended, as the processes of a build, ran after the kernel last counted them, at most: of each a slice, and no more than
/// it had time for. 0 where others ended too: it may be theirs.
pub(in crate::accounting) fn slices_of_strangers_s(readings: &Readings) -> f64 {
    let ended: Vec<&Ended> = readings.observation.ended.iter().flatten().collect();
    if ended.iter().any(|ended| !matches!(ended.role, Role::Other | Role::Tare)) {
        return 0.0;
    }
    let slices_s = |ended: &&Ended| {
        let idle_s = ended.life_ns.saturating_sub(ended.run_ns) as f64 / 1e9;
        idle_s.min(ended.count as f64 * LAST_SLICE_S)
    };
    ended.iter().map(slices_s).sum()
}

fn ran_s(threads: &[CountedThread], role: Role) -> f64 {
    threads.iter().filter(|thread| thread.id.role == role).map(|thread| thread.run_s).sum()
}

fn least_s(readings: &Readings) -> f64 {
    UNSEEN_MIN_S.max(UNSEEN_MIN_SHARE * readings.wall_s())
}

/// All of one name, as the kernel reported each.
fn known(readings: &Readings, ended: &Ended, seen: &[CountedThread]) -> CountedThread {
    let (run_s, wait_s) = (ended.run_ns as f64 / 1e9, ended.wait_ns as f64 / 1e9);
    let ticks = (ended.user_ns as f64 + ended.system_ns as f64).max(1.0);
    let share = |part: u64| run_s * part as f64 / ticks;
    let name = match ended.name.as_str() {
        "" => "others".to_owned(),
        cut if cut.len() >= NAME_BYTES_MAX => format!("{cut}…"),
        name => name.to_owned(),
    };
    CountedThread {
        // Never shorter than what they did.
        wall_s: (ended.life_ns as f64 / 1e9).max(run_s + wait_s),
        queue_s: Some(wait_s),
        modes: Modes { user_s: share(ended.user_ns), system_s: share(ended.system_ns) },
        ..row(format!("{name}: ended threads"), 0, ended.role, run_s, allowed(readings, ended.role, seen))
    }
}

/// A row of several that are known by their run alone; they count as running for all their life.
fn row(name: String, pid: u32, role: Role, run_s: f64, allowed: Vec<u32>) -> CountedThread {
    CountedThread {
        // No thread of its own: the main thread has a row already.
        id: ThreadId { pid, tid: 0, name, role, allowed },
        task: None,
        wall_s: run_s,
        run_s,
        queue_s: None,
        edges_s: 0.0,
        modes: Modes::default(),
        switched: Switched::default(),
        sleeps: BTreeMap::new(),
    }
}

fn children(readings: &Readings, role: Role, run_s: f64, seen: &[CountedThread]) -> CountedThread {
    row(CHILDREN.to_owned(), 0, role, run_s, allowed(readings, role, seen))
}

/// The CPUs of those that started them; anybody's are all.
fn allowed(readings: &Readings, role: Role, seen: &[CountedThread]) -> Vec<u32> {
    let of_role = seen.iter().filter(|thread| thread.id.role == role && role != Role::Other);
    let mut cpus: BTreeSet<u32> = of_role.flat_map(|thread| thread.id.allowed.iter().copied()).collect();
    if cpus.is_empty() {
        let columns = readings.observation.columns.iter();
        cpus.extend(columns.filter_map(|column| match column.subject {
            Subject::Cpu(cpu) => Some(cpu),
            _ => None,
        }));
    }
    cpus.into_iter().collect()
}

/// What a process used beyond its threads that were seen: those that came and went between two scans, as one row.
fn threads_of(readings: &Readings, index: u32, task: &Task, seen: &[CountedThread]) -> Option<CountedThread> {
    let seconds = |metric| readings.task_growth(metric, index, task).map(|grown_ns| grown_ns / 1e9);
    let (user_s, system_s) = (seconds(&tasks::PROCESS_USER_NS)?, seconds(&tasks::PROCESS_SYSTEM_NS)?);
    let seen_s: f64 = seen.iter().filter(|thread| thread.id.pid == task.pid).map(|thread| thread.run_s).sum();
    let run_s = user_s + system_s - seen_s;
    // The process's counters step by 10 ms, at either end and for either mode.
    if run_s <= least_s(readings) {
        return None;
    }
    let share = |part_s: f64| run_s * part_s / (user_s + system_s);
    let allowed = task.allowed_cpus.value().cloned().unwrap_or_default();
    Some(CountedThread {
        modes: Modes { user_s: share(user_s), system_s: share(system_s) },
        ..row(format!("{}: ended threads", task.name), task.pid, task.role, run_s, allowed)
    })
}

/// Time of children that no sample met. What a child used goes over to its parent when that waits for it, with what the child's own
/// children used: so the sum of these counters over a tree grows by the lives of all that ended in it, and the lives of those that
/// were seen are known.
fn reaped_s(readings: &Readings, role: Role) -> Option<f64> {
    let of_role = || readings.observation.tasks_of(role);
    let mains = || of_role().filter(|(_, task)| task.tid == task.pid);
    let gone: BTreeSet<u32> =
        mains().filter(|(_, task)| !task.present_at_end).map(|(_, task)| task.pid).collect();
    let reaped = [&tasks::CHILDREN_USER_NS, &tasks::CHILDREN_SYSTEM_NS];
    let mut any = false;
    let mut sum_ns = 0.0;
    for (index, task) in mains() {
        for samples in reaped.map(|metric: &Descriptor| readings.samples(metric, &Subject::Task(index))) {
            let (Some(first), Some(last)) = (samples.first(), samples.last()) else { continue };
            any = true;
            sum_ns += if task.present_at_end { last.value } else { 0.0 };
            sum_ns -= if task.present_at_begin { first.value } else { 0.0 };
        }
    }
    let lives_ns: f64 = of_role()
        .filter(|(_, task)| gone.contains(&task.pid))
        .filter_map(|(index, _)| readings.samples(&tasks::RUN_NS, &Subject::Task(index)).last().copied())
        .map(|last| last.value)
        .sum();
    any.then_some((sum_ns - lives_ns) / 1e9)
}

/// What the SUT's group used beyond its threads that were seen, where nobody else is in it.
fn group_s(readings: &Readings, role: Role, known_s: f64) -> Option<f64> {
    let observation = readings.observation;
    let is_own = role == Role::Sut && observation.sut_group_is_own;
    let group = observation.sut_groups.first().filter(|_| is_own)?;
    let usage_s = readings.growth_s(&groups::USAGE_NS, &Subject::Group(group.clone()))?;
    Some(usage_s - known_s)
}
