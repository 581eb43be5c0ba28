//! The observation of one window while it is written.

use std::io;
use std::path::Path;
use tare_model::Missing;
use tare_model::downstream::DownstreamSeen;
use tare_model::ended::Ended;
use tare_model::metric::{Descriptor, Subject};
use tare_model::observation::{Absence, Column, IdleThreads, Observation, Sample, Task};
use tare_model::schedule::{Downstream, Schedule, ScheduleSource};
use tare_model::stacks::Stacks;

/// Takes columns and absences from the observers.
pub(crate) struct Observed {
    observation: Observation,
}

impl Observed {
    pub(crate) fn new(begin_ns: u64, end_ns: u64) -> Observed {
        Observed { observation: Observation { begin_ns, end_ns, ..Observation::default() } }
    }

    pub(crate) fn begin_ns(&self) -> u64 {
        self.observation.begin_ns
    }

    pub(crate) fn end_ns(&self) -> u64 {
        self.observation.end_ns
    }

    /// Adds a thread; columns refer to it by what this returns.
    pub(crate) fn task(&mut self, task: Task) -> Subject {
        self.observation.tasks.push(task);
        Subject::Task((self.observation.tasks.len() - 1) as u32)
    }

    /// Adds threads that did not run.
    pub(crate) fn idle(&mut self, threads: IdleThreads) {
        self.observation.idle.push(threads);
    }

    /// What columns call a thread that is listed already: this window's latest of that number.
    pub(crate) fn subject_of(&self, tid: u32) -> Option<Subject> {
        let place = self.observation.tasks.iter().rposition(|task| task.tid == tid);
        place.map(|place| Subject::Task(place as u32))
    }

    pub(crate) fn sut_groups(&mut self, groups: Vec<String>, is_own: bool) {
        self.observation.sut_groups = groups;
        self.observation.sut_group_is_own = is_own;
    }

    /// Adds a column; one without samples is not a column.
    pub(crate) fn column(&mut self, metric: &Descriptor, subject: Subject, samples: Vec<Sample>) {
        if !samples.is_empty() {
            self.observation.columns.push(Column { metric: metric.id.to_string(), subject, samples });
        }
    }

    /// Adds the call stacks of the window.
    pub(crate) fn stacks(&mut self, stacks: Stacks) {
        self.observation.stacks = Some(Box::new(stacks));
    }

    /// Tasks that are listed.
    pub(crate) fn tasks(&self) -> &[Task] {
        &self.observation.tasks
    }

    /// Ends the counters of a thread that is listed and was last seen before its end. Whether it is one.
    pub(crate) fn ended_thread(&mut self, tid: u32, at_ns: u64, values: &[(&Descriptor, u64)]) -> bool {
        let Some(subject) = self.subject_of(tid) else { return false };
        let Subject::Task(place) = subject else { return false };
        if self.observation.tasks.get(place as usize).is_none_or(|task| task.present_at_end) {
            return true;
        }
        for (metric, value) in values {
            let mut columns = self.observation.columns.iter_mut();
            let column = columns.find(|column| column.metric == metric.id && column.subject == subject);
            let last = column.as_ref().and_then(|column| column.samples.last()).copied();
            let goes_on = |last: &Sample| last.at_ns < at_ns && last.value <= *value as f64;
            if let (Some(column), true) = (column, last.as_ref().is_some_and(goes_on)) {
                column.samples.push(Sample { at_ns, value: *value as f64 });
            }
        }
        true
    }

    /// Tasks that ended and are not listed.
    pub(crate) fn ended(&mut self, ended: Vec<Ended>) {
        self.observation.ended = Some(ended);
    }

    /// Says why a metric is not there, for one subject or for all.
    pub(crate) fn absent(&mut self, metric: &Descriptor, subject: Option<Subject>, reason: Missing) {
        self.observation.absences.push(Absence { metric: metric.id.to_string(), subject, reason });
    }

    /// Who the SUT calls.
    pub(crate) fn downstream(&mut self, programs: Vec<DownstreamSeen>) {
        self.observation.downstream = programs;
    }

    /// Where the SUT's threads were, switch by switch.
    pub(crate) fn schedule(&mut self, mut schedule: Schedule) {
        // Samples are taken beside the switches.
        if let Some(sampled) = self.observation.schedule.take() {
            schedule.at_once = sampled.at_once;
        }
        self.observation.schedule = Some(Box::new(schedule));
    }

    /// What samples of the SUT's threads found beside the columns.
    pub(crate) fn sampled(&mut self, downstream: Vec<Downstream>, at_once: Vec<u64>) {
        self.observation.schedule = Some(Box::new(Schedule {
            source: ScheduleSource::Samples,
            not_traced: None,
            events_lost: 0,
            events: 0,
            threads: Vec::new(),
            held: Vec::new(),
            locks: Vec::new(),
            kernel_locks: Vec::new(),
            locks_not_traced: None,
            downstream,
            at_once,
        }));
    }

    /// Why samples are all there is.
    pub(crate) fn not_traced(&mut self, reason: Missing) {
        if let Some(schedule) = &mut self.observation.schedule {
            schedule.not_traced = Some(reason);
        }
    }

    pub(crate) fn close(self) -> Observation {
        self.observation
    }
}

/// Only the first and the last sample: what a difference needs.
pub(crate) fn ends(mut samples: Vec<Sample>) -> Vec<Sample> {
    if samples.len() > 2 {
        let last = samples[samples.len() - 1];
        samples.truncate(1);
        samples.push(last);
    }
    samples
}

/// First and last sample, and between them at most one in `apart_ns`.
pub(crate) fn thinned(samples: Vec<Sample>, apart_ns: u64) -> Vec<Sample> {
    let Some(&last) = samples.last() else { return samples };
    let mut kept: Vec<Sample> = Vec::new();
    for sample in samples {
        let far_enough = |previous: &Sample| {
            sample.at_ns >= previous.at_ns.saturating_add(apart_ns)
                && last.at_ns >= sample.at_ns.saturating_add(apart_ns)
        };
        if kept.last().is_none_or(far_enough) {
            kept.push(sample);
        }
    }
    if kept.last() != Some(&last) {
        kept.push(last);
    }
    kept
}

/// First and last sample, and both ends of every change between them: a straight line from each to the next goes
/// where the counter went.
pub(crate) fn changes(samples: Vec<Sample>) -> Vec<Sample> {
    let differs = |one: usize, other: usize| match (samples.get(one), samples.get(other)) {
        (Some(one), Some(other)) => one.value != other.value,
        _ => true,
    };
    let is_corner =
        |at: &usize| at.checked_sub(1).is_none_or(|before| differs(before, *at)) || differs(*at, *at + 1);
    (0..samples.len()).filter(is_corner).filter_map(|at| samples.get(at).copied()).collect()
}

/// Why a system call or an open failed, and what would help.
pub(crate) fn refused(what: &str, error: &io::Error) -> Missing {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            Missing::with_remedy(format!("{what}: not permitted"), "run tare as root")
        }
        _ => tare_machine::root::unreadable(Path::new(what), error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: &[(u64, f64)]) -> Vec<Sample> {
        values.iter().map(|&(at_ns, value)| Sample { at_ns, value }).collect()
    }

    #[test]
    fn series_are_thinned_without_losing_their_ends() {
        let all = samples(&[(0, 1.0), (5, 1.0), (10, 2.0), (12, 2.0), (15, 2.0)]);
        assert_eq!(ends(all.clone()), samples(&[(0, 1.0), (15, 2.0)]));
        assert_eq!(thinned(all.clone(), 5), samples(&[(0, 1.0), (5, 1.0), (10, 2.0), (15, 2.0)]));
        assert_eq!(thinned(all.clone(), 100), samples(&[(0, 1.0), (15, 2.0)]));
        assert_eq!(changes(all), samples(&[(0, 1.0), (5, 1.0), (10, 2.0), (15, 2.0)]));
        let flat = samples(&[(0, 1.0), (5, 1.0), (10, 1.0)]);
        assert_eq!(changes(flat), samples(&[(0, 1.0), (10, 1.0)]));
        for thin in [ends, changes] {
            assert_eq!(thin(vec![]), vec![]);
            assert_eq!(thin(samples(&[(1, 1.0)])), samples(&[(1, 1.0)]));
        }
        assert_eq!(thinned(samples(&[(1, 1.0)]), 5), samples(&[(1, 1.0)]));
    }
}
