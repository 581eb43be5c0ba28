//! Every CPU: run of all tasks, idle, steal, shares, switches, and what an idle period costs.

mod btf;
mod calibrate;
mod idle_task;
mod parse;
mod sources;

use crate::idle::{IdleState, parse_timer_list};
use crate::observed::{Observed, refused};
use crate::observer::{Edge, Observer, Part};
use crate::scene::Scene;
use crate::scene::USER_TICK_NS;
use crate::tape::{Reading, Tape};
use calibrate::{Calibration, Cost};
use idle_task::IdleTask;
use parse::{CpuTimes, idle_task, parse_stat, run_ns};
use sources::{COUNTERS, IDLE_TASK, RUN, STAT, Sources, TIMERS, open_counters, open_timers, read};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use tare_machine::cgroup;
use tare_model::Missing;
use tare_model::metric::{Descriptor, Subject};
use tare_model::metrics::cpus;
use tare_model::observation::Sample;
use tare_sys::time::monotonic_ns;

/// Samples per second of run between the edges, and of `/proc/stat`, which takes long on machines with many
/// interrupts.
const RUN_HZ: f64 = 10.0;
const STAT_HZ: f64 = 5.0;
/// An edge whose files were read within this is taken; else it is read again, and the quickest counts.
const EDGE_NS_ENOUGH: u64 = 200_000;
const EDGE_ATTEMPTS: u32 = 4;
/// Costs of idle periods that are kept for the next window: the latest.
const COSTS_MAX: usize = 64;

struct Cpus {
    sources: Sources,
    /// What an idle period was found to cost since the last window; or why that is not known.
    costs: Result<Vec<calibrate::Costs>, Missing>,
    /// The calibration that is going on, or why it failed.
    calibration: Option<Result<Calibration, Missing>>,
    tape: Tape,
}

pub(crate) fn open(scene: &Scene) -> Box<dyn Observer> {
    let file = |path: &Path| {
        File::open(scene.root.path(path)).map_err(|error| refused(&path.to_string_lossy(), &error))
    };
    let run = cgroup::root_usage_per_cpu(&scene.root).and_then(|path| file(&path));
    let cpus = scene.busy_cpus();
    let idle_task = IdleTask::open(scene, cpus.clone());
    let sources = Sources {
        run: run.or_else(|missing| file("/proc/schedstat".as_ref()).map_err(|_| missing)),
        stat: file("/proc/stat".as_ref()),
        timers: open_timers(scene),
        timers_were_slow: false,
        counters: open_counters(&cpus, idle_task.is_err()),
        idle_task,
    };
    let costs = Err(Missing::new("the cost of an idle period was not calibrated"));
    Box::new(Cpus { sources, costs, calibration: None, tape: Tape::default() })
}

impl Observer for Cpus {
    fn prepare(&mut self, _scene: &Scene) {
        self.tape.clear();
    }

    fn edge(&mut self, edge: &mut Edge) {
        // Whoever reads may lose its CPU between two files, and their times then do not fit together.
        let mut quickest_ns = u64::MAX;
        let (mut best, mut attempt) = (Tape::default(), Tape::default());
        for _ in 0..EDGE_ATTEMPTS {
            attempt.clear();
            let begin_ns = monotonic_ns();
            self.sources.read_all(&mut attempt);
            let taken_ns = monotonic_ns().saturating_sub(begin_ns);
            if taken_ns < quickest_ns {
                std::mem::swap(&mut best, &mut attempt);
                (quickest_ns, edge.at_ns) = (taken_ns, begin_ns);
            }
            if quickest_ns <= EDGE_NS_ENOUGH {
                break;
            }
        }
        self.tape.append(&best);
    }

    fn sample(&mut self, scene: &Scene, tick: u64) {
        if tick.is_multiple_of(scene.every(RUN_HZ)) {
            read(&mut self.tape, RUN, &mut self.sources.run);
        }
        if tick.is_multiple_of(scene.every(STAT_HZ)) {
            read(&mut self.tape, STAT, &mut self.sources.stat);
        }
    }

    fn next(&self, scene: &Scene, tick: u64) -> u64 {
        scene.next(RUN_HZ, tick).min(scene.next(STAT_HZ, tick))
    }

    fn report(&mut self, scene: &Scene, observed: &mut Observed) {
        let online = tare_machine::facts::online_cpus(&scene.root).unwrap_or_default();
        self.report_run(&online, observed);
        self.report_stat(&online, observed);
        self.report_counters(observed);
        self.report_idle_task(&scene.busy_cpus(), observed);
        self.report_idle_exit_cost(&scene.busy_cpus(), observed);
    }

    fn set_active(&mut self, active: bool) {
        if let Ok(Err(reason)) = self.sources.idle_task.as_mut().map(|idle_task| idle_task.set_active(active))
        {
            self.sources.idle_task = Err(reason);
        }
        for counters in self.sources.counters.iter().flatten() {
            // A counter that cannot be stopped goes on counting: its cost stays, its value is right.
            let _ = counters.switches.enable(active);
            let _ = counters.idle_exits.as_ref().map(|counter| counter.enable(active));
        }
    }

    fn has_to_calibrate(&self) -> bool {
        self.sources.idle_task.is_err()
    }

    fn calibrate(&mut self, scene: &Scene, part: Part) {
        let cpus = scene.busy_cpus();
        let outcome = match (part, self.calibration.take()) {
            (Part::Begin, _) => Calibration::begin(&mut self.sources, &cpus).map(Some),
            (Part::Stretch, Some(Ok(mut calibration))) => {
                calibration.visit(&mut self.sources, &cpus).map(|()| Some(calibration))
            }
            (Part::End, Some(Ok(calibration))) => return self.keep(Ok(calibration.costs())),
            (Part::End, Some(Err(reason))) => return self.keep(Err(reason)),
            (Part::Stretch | Part::End, unfinished) => return self.calibration = unfinished,
        };
        self.calibration = outcome.transpose();
    }
}

impl Cpus {
    fn keep(&mut self, outcome: Result<Vec<calibrate::Costs>, Missing>) {
        match (outcome, &mut self.costs) {
            (Ok(new), Ok(costs)) => {
                costs.extend(new);
                costs.drain(..costs.len().saturating_sub(COSTS_MAX));
            }
            (Ok(new), costs) => *costs = Ok(new),
            (Err(_), Ok(costs)) if !costs.is_empty() => {}
            (Err(reason), costs) => *costs = Err(reason),
        }
    }

    fn readings(&self, source: u32) -> impl Iterator<Item = Reading<'_>> {
        self.tape.readings().filter(move |reading| reading.source == source)
    }

    fn report_run(&self, online: &[u32], observed: &mut Observed) {
        for &cpu in online {
            let sample = |reading: Reading| {
                Some(Sample { at_ns: reading.at_ns, value: run_ns(reading.text(), cpu)? as f64 })
            };
            let samples: Vec<Sample> = self.readings(RUN).filter_map(sample).collect();
            if samples.is_empty() {
                let reason = self.sources.run.as_ref().err().cloned();
                let reason = reason.unwrap_or_else(|| Missing::new("this CPU is not listed"));
                observed.absent(&cpus::TASK_RUN_NS, Some(Subject::Cpu(cpu)), reason);
            }
            observed.column(&cpus::TASK_RUN_NS, Subject::Cpu(cpu), samples);
        }
    }

    fn report_stat(&self, online: &[u32], observed: &mut Observed) {
        let timers: Vec<(u64, Vec<IdleState>)> =
            self.readings(TIMERS).map(|reading| (reading.at_ns, parse_timer_list(reading.text()))).collect();
        let times: Vec<(u64, BTreeMap<u32, CpuTimes>)> =
            self.readings(STAT).map(|reading| (reading.at_ns, parse_stat(reading.text()))).collect();
        for &cpu in online {
            let of_cpu: Vec<(u64, CpuTimes)> =
                times.iter().filter_map(|(at_ns, cpus)| Some((*at_ns, *cpus.get(&cpu)?))).collect();
            let subject = Subject::Cpu(cpu);
            for (metric, value) in STAT_METRICS {
                let samples: Vec<Sample> = of_cpu
                    .iter()
                    .map(|(at_ns, times)| Sample { at_ns: *at_ns, value: value(times) as f64 })
                    .collect();
                if samples.is_empty() {
                    let reason = self.sources.stat.as_ref().err().cloned();
                    let reason = reason.unwrap_or_else(|| Missing::new("/proc/stat does not list this CPU"));
                    observed.absent(metric, Some(subject.clone()), reason);
                }
                let is_idle = metric.id == cpus::IDLE_NS.id;
                let samples = if is_idle { refine_idle(cpu, samples, &timers) } else { samples };
                observed.column(metric, subject.clone(), samples);
            }
        }
    }

    fn report_counters(&self, observed: &mut Observed) {
        let counters = match &self.sources.counters {
            Ok(counters) => counters,
            Err(reason) => {
                observed.absent(&cpus::SWITCHES, None, reason.clone());
                if self.sources.idle_task.is_err() {
                    observed.absent(&cpus::IDLE_EXITS, None, reason.clone());
                }
                return;
            }
        };
        for (at, counter) in (0u32..).zip(counters) {
            let metrics = [Some(&cpus::SWITCHES), counter.idle_exits.as_ref().map(|_| &cpus::IDLE_EXITS)];
            for (which, metric) in (0..).zip(metrics.into_iter().flatten()) {
                let sample = |reading: Reading| {
                    let value = u64::from_ne_bytes(reading.bytes.try_into().ok()?);
                    Some(Sample { at_ns: reading.at_ns, value: value as f64 })
                };
                let samples = self.readings(COUNTERS + 2 * at + which).filter_map(sample).collect();
                observed.column(metric, Subject::Cpu(counter.cpu), samples);
            }
        }
    }

    fn report_idle_task(&self, busy: &[u32], observed: &mut Observed) {
        if let Err(reason) = &self.sources.idle_task {
            return observed.absent(&cpus::IDLE_TASK_NS, None, reason.clone());
        }
        let mut by_cpu: BTreeMap<u32, [Vec<Sample>; 3]> = BTreeMap::new();
        for reading in self.readings(IDLE_TASK) {
            for (cpu, idled) in idle_task(reading.text()) {
                let columns = by_cpu.entry(cpu).or_default();
                // What may be open at the begin is in the window's growth as soon as it turns out to have begun unseen.
                let open_ns = if columns[0].is_empty() { 0 } else { idled.unseen_open_ns };
                let values = [idled.ran_ns, idled.periods, idled.unseen_ns.saturating_add(open_ns)];
                for (samples, value) in columns.iter_mut().zip(values) {
                    samples.push(Sample { at_ns: reading.at_ns, value: value as f64 });
                }
            }
        }
        for &cpu in busy.iter().filter(|cpu| !by_cpu.contains_key(cpu)) {
            let reason = "tare may not run on this CPU, and it was not idle yet; or nobody watched";
            observed.absent(&cpus::IDLE_TASK_NS, Some(Subject::Cpu(cpu)), Missing::new(reason));
        }
        for (cpu, [ran, periods, unseen]) in by_cpu {
            observed.column(&cpus::IDLE_TASK_NS, Subject::Cpu(cpu), ran);
            observed.column(&cpus::IDLE_TASK_UNSEEN_NS, Subject::Cpu(cpu), unseen);
            observed.column(&cpus::IDLE_EXITS, Subject::Cpu(cpu), periods);
        }
    }

    fn report_idle_exit_cost(&mut self, busy: &[u32], observed: &mut Observed) {
        if self.sources.idle_task.is_ok() {
            let reason = Missing::new("the idle task's time was measured: what idle periods cost is in it");
            observed.absent(&cpus::IDLE_EXIT_COST_NS, None, reason.clone());
            return observed.absent(&cpus::IDLE_EXITS_SAMPLED, None, reason);
        }
        let costs = match &mut self.costs {
            Ok(costs) => std::mem::take(costs),
            Err(reason) => {
                observed.absent(&cpus::IDLE_EXIT_COST_NS, None, reason.clone());
                return observed.absent(&cpus::IDLE_EXITS_SAMPLED, None, reason.clone());
            }
        };
        type Value = fn(&Cost) -> f64;
        let metrics: [(_, Value); 2] = [
            (&cpus::IDLE_EXIT_COST_NS, |cost| cost.each_ns),
            (&cpus::IDLE_EXITS_SAMPLED, |cost| cost.idle_exits as f64),
        ];
        for (&cpu, (metric, value)) in busy.iter().flat_map(|cpu| metrics.map(|metric| (cpu, metric))) {
            let sample = |(at_ns, costs): &calibrate::Costs| {
                costs.get(&cpu).map(|cost| Sample { at_ns: *at_ns, value: value(cost) })
            };
            let samples: Vec<Sample> = costs.iter().filter_map(sample).collect();
            if samples.is_empty() {
                let reason =
                    "it was hardly ever idle while that was calibrated, or that was not done for this window";
                observed.absent(metric, Some(Subject::Cpu(cpu)), Missing::new(reason));
            }
            observed.column(metric, Subject::Cpu(cpu), samples);
        }
    }
}

/// Puts the exact idle time of `/proc/timer_list` in place of the first and the last sample.
fn refine_idle(cpu: u32, mut samples: Vec<Sample>, timers: &[(u64, Vec<IdleState>)]) -> Vec<Sample> {
    let exact = |(at_ns, states): &(u64, Vec<IdleState>), coarse: &Sample| {
        let state = states.iter().find(|state| state.cpu == cpu)?;
        let value = state.idle_ns(Some(coarse.value as u64), USER_TICK_NS) as f64;
        Some(Sample { at_ns: *at_ns, value })
    };
    let ([first_timers, .., last_timers], [first, .., last]) = (timers, samples.as_mut_slice()) else {
        return samples;
    };
    if let (Some(begin), Some(end)) = (exact(first_timers, first), exact(last_timers, last)) {
        (*first, *last) = (begin, end);
        // What is between is rounded down and may stand below what is known at the beginning.
        let mut floor = begin.value;
        for sample in &mut samples {
            floor = sample.value.max(floor);
            sample.value = floor;
        }
    }
    samples
}

type StatMetric = (&'static Descriptor, fn(&CpuTimes) -> u64);

static STAT_METRICS: &[StatMetric] = &[
    (&cpus::IDLE_NS, |times| times.idle_ns),
    (&cpus::STEAL_NS, |times| times.steal_ns),
    (&cpus::USER_NS, |times| times.user_ns),
    (&cpus::SYSTEM_NS, |times| times.system_ns),
    (&cpus::IRQ_NS, |times| times.irq_ns),
    (&cpus::SOFTIRQ_NS, |times| times.softirq_ns),
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STAT_TEXT: &str =
        "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 40 5 6 7 8 0 0\ncpu12 1 1 1 1 1 1 1 1 0 0\nintr 5\n";

    #[test]
    fn stat_lines_are_read_by_cpu() {
        let times = parse_stat(STAT_TEXT);
        assert_eq!(times.keys().copied().collect::<Vec<_>>(), [0, 12]);
        let cpu0 = times[&0];
        assert_eq!((cpu0.user_ns, cpu0.idle_ns), (30_000_000, 450_000_000));
        assert_eq!((cpu0.softirq_ns, cpu0.steal_ns), (70_000_000, 80_000_000));
    }

    #[test]
    fn run_is_read_from_either_file() {
        assert_eq!(run_ns("123 456 \n", 1), Some(456));
        assert_eq!(run_ns("123 456 \n", 2), None);
        let schedstat =
            "version 15\ntimestamp 1\ncpu0 0 0 0 0 0 0 777 8 9\ndomain0 1\ncpu1 0 0 0 0 0 0 888 8 9\n";
        assert_eq!(run_ns(schedstat, 1), Some(888));
        assert_eq!(run_ns(schedstat, 7), None);
    }

    #[test]
    fn idle_is_exact_at_both_ends_and_never_falls_between() {
        let list = |now: u64, slept: u64| {
            let text = format!(
                "now at {now} nsecs\n\ncpu: 0\n .tick_stopped : 0\n .idle_entrytime : 0 nsecs\n \
                 .idle_sleeptime : {slept} nsecs\n .iowait_sleeptime: 0 nsecs\n"
            );
            (now, parse_timer_list(&text))
        };
        let sample = |at_ns, value| Sample { at_ns, value };
        let coarse = vec![sample(1, 20e6), sample(50, 20e6), sample(99, 40e6)];
        let refined = refine_idle(0, coarse.clone(), &[list(2, 27_000_000), list(98, 41_000_000)]);
        assert_eq!(refined, vec![sample(2, 27e6), sample(50, 27e6), sample(98, 41e6)]);
        assert_eq!(refine_idle(0, coarse.clone(), &[]), coarse);
        assert_eq!(refine_idle(9, coarse.clone(), &[list(2, 1), list(3, 1)]), coarse);
    }

    proptest! {
        #[test]
        fn garbage_is_no_cpu(text in "\\PC{0,100}", cut in 0..STAT_TEXT.len()) {
            parse_stat(&text);
            run_ns(&text, 0);
            prop_assert!(parse_stat(&STAT_TEXT[..cut]).len() <= 2);
        }
    }
}
