//! What a role's threads executed: hardware events of each thread, summed and put to the requests.
//!
//! A group of events that took turns on the PMU was counted for a part of the time only; its counts are stretched to
//! the whole of it, which holds as far as the thread did the same all along. Without a PMU, cycles are CPU time × the
//! effective clock, and what needs instructions is missing.

use crate::accounting::close::window::Window;
use crate::accounting::raw::readings::Readings;
use crate::accounting::reconcile::threads::Thread;
use std::collections::BTreeMap;
use tare_model::metric::{Descriptor, Subject};
use tare_model::metrics::{clock, pmu};
use tare_model::observation::Role;
use tare_model::outcome::{CyclesFrom, Execution};
use tare_model::{Missing, Reading};

/// Less of the run counted than this says too little about the rest.
const COUNTED_SHARE_MIN: f64 = 0.9;
/// A step of the series with less run than this is too short for a clock.
const CLOCK_STEP_NS_MIN: f64 = 2e7;

/// Hardware events of a role in one window, or in several.
#[derive(Debug, Clone, Default)]
pub(crate) struct Events {
    /// By metric, stretched to the time for which they should have been counted.
    counts: BTreeMap<&'static str, f64>,
    /// By the group's time: seconds for which it should have been counted, and for which it was.
    times_s: BTreeMap<&'static str, (f64, f64)>,
    /// Run of the role's threads.
    run_s: f64,
}

/// What a role's threads did in the time for which they were counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Core {
    pub instructions: f64,
    pub cycles: f64,
    /// Run that was counted.
    pub counted_s: f64,
}

impl Events {
    /// `None` where nothing of the role was counted.
    pub fn read(readings: &Readings, threads: &[Thread], role: Role) -> Option<Events> {
        let run_s = threads.iter().filter(|thread| thread.role == role).map(|thread| thread.run_s).sum();
        let mut events = Events { run_s, ..Events::default() };
        for (index, task) in readings.observation.tasks_of(role) {
            let grown = |metric: &Descriptor| readings.task_growth(metric, index, task);
            for group in pmu::GROUPS {
                let times = grown(group.enabled_ns).zip(grown(group.running_ns));
                let Some((enabled_ns, running_ns)) = times.filter(|times| times.1 > 0.0) else { continue };
                let sums = events.times_s.entry(group.enabled_ns.id).or_default();
                *sums = (sums.0 + enabled_ns / 1e9, sums.1 + running_ns / 1e9);
                for metric in group.events {
                    if let Some(count) = grown(metric) {
                        *events.counts.entry(metric.id).or_default() +=
                            count * (enabled_ns / running_ns).max(1.0);
                    }
                }
            }
        }
        (!events.counts.is_empty()).then_some(events)
    }

    /// Adds those of another window.
    pub fn absorb(&mut self, other: &Events) {
        self.run_s += other.run_s;
        for (metric, count) in &other.counts {
            *self.counts.entry(metric).or_default() += count;
        }
        for (group, (enabled_s, running_s)) in &other.times_s {
            let sums = self.times_s.entry(group).or_default();
            *sums = (sums.0 + enabled_s, sums.1 + running_s);
        }
    }

    fn count(&self, metric: &Descriptor) -> Option<f64> {
        self.counts.get(metric.id).copied()
    }

    /// How much of the role's run was counted, 0..=1.
    fn counted(&self) -> f64 {
        let (enabled_s, _) = self.times_s.get(pmu::CORE_ENABLED_NS.id).copied().unwrap_or_default();
        if self.run_s > 0.0 { (enabled_s / self.run_s).min(1.0) } else { 0.0 }
    }

    /// Instructions and cycles, where enough of the run was counted to stand for it.
    pub fn core(&self) -> Option<Core> {
        let (counted_s, _) = self.times_s.get(pmu::CORE_ENABLED_NS.id).copied()?;
        let (instructions, cycles) = (self.count(&pmu::INSTRUCTIONS)?, self.count(&pmu::CYCLES)?);
        let core = Core { instructions, cycles, counted_s };
        (self.counted() >= COUNTED_SHARE_MIN && instructions > 0.0 && cycles > 0.0).then_some(core)
    }

    /// Instructions per cycle.
    fn ipc(&self) -> Option<f64> {
        let (instructions, cycles) = (self.count(&pmu::INSTRUCTIONS)?, self.count(&pmu::CYCLES)?);
        (cycles > 0.0 && instructions > 0.0).then(|| instructions / cycles)
    }

    /// Smallest share of its time for which a group was on the PMU.
    fn on_pmu(&self) -> Option<f64> {
        let shares = self.times_s.values().filter(|times| times.0 > 0.0).map(|times| times.1 / times.0);
        shares.map(|share| share.min(1.0)).min_by(f64::total_cmp)
    }
}

/// Clock of a thread's cycles over its run, step by step: of all threads of the SUT that were counted.
pub(crate) fn clocks_hz(readings: &Readings) -> Vec<f64> {
    let mut clocks = Vec::new();
    for (index, _) in readings.observation.tasks_of(Role::Sut) {
        let subject = Subject::Task(index);
        let cycles = readings.samples(&pmu::CYCLES, &subject);
        let running = readings.samples(&pmu::CORE_RUNNING_NS, &subject);
        let mut steps = cycles.iter().zip(&running);
        let Some(mut from) = steps.next() else { continue };
        for to in steps {
            let ran_ns = to.1.value - from.1.value;
            if ran_ns >= CLOCK_STEP_NS_MIN {
                clocks.push((to.0.value - from.0.value) / ran_ns * 1e9);
                from = to;
            }
        }
    }
    clocks
}

/// Clock of CPUs by APERF and MPERF, step by step: the fixed clock × the ratio of the two.
pub(crate) fn aperf_hz(readings: &Readings, cpus: &[u32]) -> Vec<f64> {
    let mut clocks = Vec::new();
    for cpu in cpus {
        let of = |metric| readings.samples(metric, &Subject::Cpu(*cpu));
        let (aperf, mperf, tsc) = (of(&clock::APERF), of(&clock::MPERF), of(&clock::TSC));
        let all: Vec<_> = aperf.iter().zip(&mperf).zip(&tsc).collect();
        for step in all.windows(2) {
            let [((a0, m0), t0), ((a1, m1), t1)] = step else { continue };
            let seconds = t1.at_ns.saturating_sub(t0.at_ns) as f64 / 1e9;
            let (aperf, mperf, tsc) = (a1.value - a0.value, m1.value - m0.value, t1.value - t0.value);
            // A CPU that hardly ran has no clock to speak of.
            if seconds > 0.0 && aperf > 0.0 && tsc > 0.0 && mperf > 0.01 * tsc {
                clocks.push(aperf / mperf * tsc / seconds);
            }
        }
    }
    clocks
}

/// What a role executed in a window, and what each request took of it.
pub(crate) fn of(window: &Window, role: Role) -> Execution {
    let events = match role {
        Role::Sut => window.sut_events.as_ref(),
        Role::Load => window.load_events.as_ref(),
        Role::Tare | Role::Other => None,
    };
    let Some(events) = events else { return without_pmu(window, role) };
    let counted = events.counted();
    let per_request = |count: f64| -> Reading<f64> {
        if counted < COUNTED_SHARE_MIN {
            return Reading::missing(format!("only {:.0} % of its run was counted", 100.0 * counted));
        }
        window.per_request(count / counted).ok_or_else(no_requests).into()
    };
    let core = [&pmu::CYCLES, &pmu::INSTRUCTIONS];
    let of_metric = |metric: &Descriptor| match events.count(metric) {
        Some(count) => per_request(count),
        None => Reading::missing(format!("{} were not counted", metric.id.trim_start_matches("pmu."))),
    };
    let others = events.counts.iter().filter(|(metric, _)| core.iter().all(|core| core.id != **metric));
    let other = |(metric, count): (&&str, &f64)| {
        let name = metric.trim_start_matches("pmu.").to_owned();
        per_request(*count).ok().ok().map(|count| (name, count))
    };
    Execution {
        ipc: events.ipc().ok_or_else(|| Missing::new("cycles and instructions were not both counted")).into(),
        instructions_per_request: of_metric(&pmu::INSTRUCTIONS),
        cycles_per_request: of_metric(&pmu::CYCLES),
        cycles_from: CyclesFrom::Pmu,
        on_pmu: events.on_pmu(),
        events_per_request: others.filter_map(other).collect(),
    }
}

/// Cycles are what is left: run × clock, where the clock of the role's CPUs was measured.
fn without_pmu(window: &Window, role: Role) -> Execution {
    let unknown = || Missing::new("no hardware event was counted");
    let reason = || window.no_events.clone().unwrap_or_else(unknown);
    let run_s = window.sut.as_ref().filter(|_| role == Role::Sut).map(|sut| sut.run_s);
    let cycles = match (run_s, window.clock_hz()) {
        (Some(run_s), Some(clock_hz)) => window.per_request(run_s * clock_hz).ok_or_else(no_requests),
        (None, _) => Err(Missing::new("the clock is measured on the server's CPUs alone")),
        (_, None) => Err(reason()),
    };
    Execution {
        ipc: Reading::Missing(reason()),
        instructions_per_request: Reading::Missing(reason()),
        cycles_per_request: cycles.into(),
        cycles_from: CyclesFrom::Clock,
        on_pmu: None,
        events_per_request: BTreeMap::new(),
    }
}

fn no_requests() -> Missing {
    Missing::new("the requests could not be counted")
}
