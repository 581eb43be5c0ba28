//! Raw observations: cumulative counters with monotonic stamps, by subject. Rates and shares are derived from
//! them by `tare-explain`, so an old record can be explained again.

use crate::downstream::DownstreamSeen;
use crate::ended::Ended;
use crate::metric::{Descriptor, Subject};
pub use crate::role::Role;
use crate::schedule::Schedule;
use crate::stacks::Stacks;
use crate::{Missing, Reading};
use serde::{Deserialize, Serialize};

/// One thread that was seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Process (thread group).
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Its name (`comm`).
    pub name: String,
    /// Whose it is.
    pub role: Role,
    /// The CPUs it may run on, ascending.
    pub allowed_cpus: Reading<Vec<u32>>,
    /// It was there before the window opened.
    pub present_at_begin: bool,
    /// It was still there when the window closed.
    pub present_at_end: bool,
}

/// One stamped value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// CLOCK_MONOTONIC, nanoseconds.
    pub at_ns: u64,
    /// The value in the metric's unit. Whole numbers are exact up to 2^53 (104 days in nanoseconds).
    pub value: f64,
}

/// The samples of one metric of one subject, in time order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// [`Descriptor::id`].
    pub metric: String,
    /// What it is about.
    pub subject: Subject,
    /// Ascending in time.
    pub samples: Vec<Sample>,
}

/// A metric that could not be read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Absence {
    /// [`Descriptor::id`].
    pub metric: String,
    /// For one subject only, or for all.
    pub subject: Option<Subject>,
    /// Why, and what would help.
    pub reason: Missing,
}

/// Threads of one process that did not run in the window; only a few of many such threads are listed one by one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleThreads {
    /// The process; 0: several processes, each of which has few of them.
    pub pid: u32,
    /// The process's name (`comm`).
    pub name: String,
    /// Whose they are.
    pub role: Role,
    /// How many there are.
    pub threads: u64,
}

/// All that the observers saw in one window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// First and last stamp of the window, CLOCK_MONOTONIC nanoseconds.
    pub begin_ns: u64,
    /// See `begin_ns`.
    pub end_ns: u64,
    /// Every thread seen; columns refer to it by index.
    pub tasks: Vec<Task>,
    /// Those beside `tasks` that were there from the first to the last and did not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub idle: Vec<IdleThreads>,
    /// The SUT's control groups from its own to the root, by path; empty where the SUT is unseen.
    pub sut_groups: Vec<String>,
    /// Whether the first of `sut_groups` holds the SUT's threads and nobody else's.
    pub sut_group_is_own: bool,
    /// What was read.
    pub columns: Vec<Column>,
    /// What could not be.
    pub absences: Vec<Absence>,
    /// Which code ran and waited, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stacks: Option<Box<Stacks>>,
    /// Where the SUT's threads were when they did not run; `None` in old records and where the SUT is unseen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Box<Schedule>>,
    /// Tasks that ended and are not in `tasks`; `None` where ends are not reported, and in old records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Vec<Ended>>,
    /// Local programs that the SUT called, and those that they called; callers first. Empty in old records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub downstream: Vec<DownstreamSeen>,
}

impl Observation {
    /// Length of the window in nanoseconds.
    pub fn wall_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }

    /// The column of a metric and subject, if it was read.
    pub fn column(&self, metric: &Descriptor, subject: &Subject) -> Option<&Column> {
        self.columns.iter().find(|column| column.metric == metric.id && column.subject == *subject)
    }

    /// Growth of a counter from its first sample to its last.
    pub fn delta(&self, metric: &Descriptor, subject: &Subject) -> Reading<f64> {
        match self.column(metric, subject).map(|column| column.samples.as_slice()) {
            Some([first, .., last]) => Reading::Measured(last.value - first.value),
            Some(_) => Reading::missing(format!("{} was read fewer than twice", metric.id)),
            None => Reading::Missing(self.why_absent(metric, subject)),
        }
    }

    /// The last value of a metric.
    pub fn last(&self, metric: &Descriptor, subject: &Subject) -> Reading<f64> {
        match self.column(metric, subject).and_then(|column| column.samples.last()) {
            Some(sample) => Reading::Measured(sample.value),
            None => Reading::Missing(self.why_absent(metric, subject)),
        }
    }

    /// The reason why a metric is not there.
    pub fn why_absent(&self, metric: &Descriptor, subject: &Subject) -> Missing {
        self.absences
            .iter()
            .find(|absence| {
                absence.metric == metric.id && absence.subject.as_ref().is_none_or(|only| only == subject)
            })
            .map(|absence| absence.reason.clone())
            .unwrap_or_else(|| metric.not_observed())
    }

    /// Indices of the threads with a role.
    pub fn tasks_of(&self, role: Role) -> impl Iterator<Item = (u32, &Task)> {
        (0u32..).zip(&self.tasks).filter(move |(_, task)| task.role == role)
    }
}
