//! Everybody else on the machine: who ran, and on which CPU last.

use super::parse::{TaskStat, parse_schedstat, parse_stat};
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

/// Threads that are looked at, at most.
const SCANNED_MAX: usize = 20_000;
/// Threads that are reported, at most: those that ran most.
const REPORTED_MAX: usize = 64;
/// Share of the window that a thread must have run to be reported.
const RUN_SHARE_MIN: f64 = 0.001;

/// A thread at one edge.
#[derive(Debug, Clone, Copy)]
struct Seen {
    pid: u32,
    at_ns: u64,
    run_ns: u64,
    wait_ns: u64,
}

/// All threads at the beginning of a window.
#[derive(Default)]
pub(super) struct Others {
    begin: BTreeMap<u32, Seen>,
    /// There were more threads than are looked at.
    too_many: bool,
}

impl Others {
    /// Looks at all threads but those in `known`.
    pub(super) fn begin(&mut self, scene: &Scene, known: &BTreeSet<u32>) {
        (self.begin, self.too_many) = scan(scene, known);
    }

    /// Looks again and reports who ran.
    pub(super) fn report(&self, scene: &Scene, known: &BTreeSet<u32>, observed: &mut Observed) {
        let (end, too_many) = scan(scene, known);
        if self.too_many || too_many {
            let reason = format!("more than {SCANNED_MAX} threads: not all of the others were looked at");
            observed.absent(&tasks::RUN_NS, None, Missing::new(reason));
        }
        let least_ns = (observed.end_ns().saturating_sub(observed.begin_ns()) as f64 * RUN_SHARE_MIN) as u64;
        let mut ran: Vec<(u64, u32, Seen, Seen)> = Vec::new();
        let mut little_ns = 0;
        for (tid, last) in end {
            // One that is not in the first scan is new and had used nothing.
            let zero = Seen { at_ns: observed.begin_ns(), run_ns: 0, wait_ns: 0, ..last };
            let first = self.begin.get(&tid).filter(|first| first.run_ns <= last.run_ns).copied();
            let first = first.unwrap_or(zero);
            let run_ns = last.run_ns.saturating_sub(first.run_ns);
            if run_ns > least_ns {
                ran.push((run_ns, tid, first, last));
            } else {
                little_ns += run_ns;
            }
        }
        ran.sort_unstable_by_key(|&(run_ns, tid, ..)| (std::cmp::Reverse(run_ns), tid));
        little_ns += ran.iter().skip(REPORTED_MAX).map(|(run_ns, ..)| run_ns).sum::<u64>();
        let little = [(observed.begin_ns(), 0), (observed.end_ns(), little_ns)];
        let little = little.map(|(at_ns, ns)| Sample { at_ns, value: ns as f64 });
        observed.column(&tasks::OTHERS_RUN_NS, Subject::Machine, little.to_vec());
        for (_, tid, first, last) in ran.into_iter().take(REPORTED_MAX) {
            self.report_one(scene, tid, first, last, observed);
        }
    }

    fn report_one(&self, scene: &Scene, tid: u32, first: Seen, last: Seen, observed: &mut Observed) {
        let text = scene.root.text(format!("/proc/{}/task/{tid}/stat", last.pid)).unwrap_or_default();
        let stat: Option<TaskStat> = parse_stat(&text);
        let allowed = affinity::get(tid).map_err(|error| refused("the thread's affinity", &error));
        let subject = observed.task(Task {
            pid: last.pid,
            tid,
            name: stat.as_ref().map_or_else(|| "?".to_string(), |stat| stat.name.clone()),
            role: Role::Other,
            allowed_cpus: allowed.into(),
            present_at_begin: self.begin.contains_key(&tid),
            present_at_end: stat.is_some(),
        });
        let pair = |value: fn(&Seen) -> u64| {
            [first, last].iter().map(|seen| Sample { at_ns: seen.at_ns, value: value(seen) as f64 }).collect()
        };
        observed.column(&tasks::RUN_NS, subject.clone(), pair(|seen| seen.run_ns));
        observed.column(&tasks::WAIT_NS, subject.clone(), pair(|seen| seen.wait_ns));
        if let Some(stat) = stat {
            let sample = Sample { at_ns: last.at_ns, value: stat.last_cpu as f64 };
            observed.column(&tasks::LAST_CPU, subject, vec![sample]);
        }
    }
}

fn scan(scene: &Scene, known: &BTreeSet<u32>) -> (BTreeMap<u32, Seen>, bool) {
    let mut found = BTreeMap::new();
    let mut looked_at = 0;
    for pid in scene.root.numbers("/proc").unwrap_or_default() {
        for tid in procs::tasks_of(&scene.root, pid) {
            if looked_at >= SCANNED_MAX {
                return (found, true);
            }
            if known.contains(&tid) {
                continue;
            }
            looked_at += 1;
            let text = scene.root.text(format!("/proc/{pid}/task/{tid}/schedstat")).unwrap_or_default();
            if let Some((run_ns, wait_ns)) = parse_schedstat(&text) {
                found.insert(tid, Seen { pid, at_ns: monotonic_ns(), run_ns, wait_ns });
            }
        }
    }
    (found, false)
}
