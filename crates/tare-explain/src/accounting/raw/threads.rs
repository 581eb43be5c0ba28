//! What the kernel counted of every thread in one window, as differences.

use crate::accounting::raw::asleep::Asleep;
use crate::accounting::raw::readings::Readings;
use std::collections::BTreeMap;
use tare_model::metric::Subject;
use tare_model::metrics::tasks;
use tare_model::observation::{Role, Task};

/// A thread serves if it ran more than this share of its life in the window.
const SERVING_RUN_SHARE: f64 = 0.001;
/// Which thread it is.
#[derive(Debug, Clone)]
pub(crate) struct ThreadId {
    pub pid: u32,
    /// 0: several that ended unseen.
    pub tid: u32,
    pub name: String,
    pub role: Role,
    /// CPUs it may run on; empty when unknown.
    pub allowed: Vec<u32>,
}

/// Run in user and kernel mode.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Modes {
    pub user_s: f64,
    pub system_s: f64,
}

/// Context switches; `None` where they were not counted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Switched {
    pub voluntary: Option<f64>,
    pub involuntary: Option<f64>,
}

/// One thread as it was counted.
#[derive(Debug, Clone)]
pub(crate) struct CountedThread {
    pub id: ThreadId,
    /// Its place among the tasks of the observation; `None` for those that ended unseen.
    pub task: Option<u32>,
    /// How much of the window it lived.
    pub wall_s: f64,
    pub run_s: f64,
    /// Time in the run queue, of waits that ended in the window; `None` where the kernel does not count it.
    pub queue_s: Option<f64>,
    /// Wait that was open at the end less that at the beginning; 0 where it was not read.
    pub edges_s: f64,
    pub modes: Modes,
    pub switched: Switched,
    /// Samples that found it asleep, by reason.
    pub sleeps: BTreeMap<Asleep, f64>,
}

impl CountedThread {
    /// Reads all threads of a window whose run is known.
    pub fn read_all(readings: &Readings) -> Vec<CountedThread> {
        let indexed = (0u32..).zip(&readings.observation.tasks);
        indexed.filter_map(|(index, task)| CountedThread::read(readings, index, task)).collect()
    }

    fn read(readings: &Readings, index: u32, task: &Task) -> Option<CountedThread> {
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
        let samples = [
            (Asleep::Event, &tasks::SAMPLES_EVENT),
            (Asleep::Lock, &tasks::SAMPLES_LOCK),
            (Asleep::Disk, &tasks::SAMPLES_DISK),
            (Asleep::Downstream, &tasks::SAMPLES_DOWNSTREAM),
            (Asleep::Timer, &tasks::SAMPLES_TIMER),
            (Asleep::Fault, &tasks::SAMPLES_FAULT),
            (Asleep::Other, &tasks::SAMPLES_OTHER),
        ];
        Some(CountedThread {
            id: ThreadId {
                pid: task.pid,
                tid: task.tid,
                name: task.name.clone(),
                role: task.role,
                allowed: task.allowed_cpus.value().cloned().unwrap_or_default(),
            },
            task: Some(index),
            wall_s: lived_s(readings, index, task, run_s + queue_s.unwrap_or(0.0)),
            run_s,
            queue_s,
            edges_s: edges_s(readings, index),
            modes: Modes { user_s: of_run(user_ticks), system_s: of_run(system_ticks) },
            switched: Switched {
                voluntary: grown(&tasks::VOLUNTARY_SWITCHES),
                involuntary: grown(&tasks::INVOLUNTARY_SWITCHES),
            },
            sleeps: samples.into_iter().filter_map(|(why, metric)| Some((why, grown(metric)?))).collect(),
        })
    }

    /// See [`serves`].
    pub fn serves(&self) -> bool {
        serves(self.run_s, self.wall_s)
    }
}

/// Whether a thread does part of the work, and is not a master process or a helper that sleeps.
pub(crate) fn serves(run_s: f64, wall_s: f64) -> bool {
    run_s > SERVING_RUN_SHARE * wall_s
}

/// The wait that was open at the end, less that at the beginning.
fn edges_s(readings: &Readings, index: u32) -> f64 {
    match readings.samples(&tasks::OPEN_WAIT_NS, &Subject::Task(index)).as_slice() {
        [begin, .., end] => (end.value - begin.value) / 1e9,
        _ => 0.0,
    }
}

/// How much of the window the thread lived. A birth is dated back from the first sample by what the thread had
/// done until then, a death is dated at the last sample.
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
    // Never shorter than what it did: the sample that saw it last is not its end.
    (lived_ns / 1e9).max(done_s).min(readings.wall_s())
}
