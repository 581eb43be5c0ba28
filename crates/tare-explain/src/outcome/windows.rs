//! What happened while each sample of a benchmark was measured: the accounting of the program, cut at the lines that it printed.

use crate::accounting::{Readings, ratio, value_at};
use std::collections::{BTreeMap, BTreeSet};
use tare_model::metric::{Descriptor, Subject};
use tare_model::metrics::{cpus, groups, tasks};
use tare_model::observation::{Observation, Role, Sample};
use tare_model::tool::{SampleWindow, ToolMetric, ToolMetrics};
use tare_model::warning::Warning;

/// Counters are read ten times a second, and how long threads waited once: of a shorter window they say too little.
const SECONDS_MIN: f64 = 0.2;
const WAIT_SECONDS_MIN: f64 = 2.0;
/// Windows times series of a run that are read, at most.
const READ_MAX: usize = 20_000_000;
/// What takes less of the CPU time that the program could have had does not count, nor what is as little as counters are off by.
const TAKEN_SHARE_MIN: f64 = 0.05;
const TAKEN_SECONDS_MIN: f64 = 0.03;
/// Of a program that hardly runs the same as of one that uses so many CPUs.
const CPUS_MIN: f64 = 0.2;
/// Fewer of the samples than this happen to every long benchmark on an ordinary machine.
const DISTURBED_SHARE_MIN: f64 = 0.05;
/// Where more of the program's run is of processes that ended between two readings, it is not known when they ran.
const ENDED_SHARE_MAX: f64 = 0.05;

/// Reads the counters of a run in the windows of its samples.
pub(super) fn fill(run: &mut ToolMetrics, observation: &Observation) {
    let key = |window: &SampleWindow| [window.begin_s.to_bits(), window.end_s.to_bits()];
    // Metrics of one line have one window.
    let all = run.metrics.iter().flat_map(|metric| &metric.windows);
    let mut known: BTreeMap<[u64; 2], SampleWindow> = all.map(|window| (key(window), *window)).collect();
    if known.is_empty() {
        return;
    }
    let counters = Counters::of(observation);
    if known.len().saturating_mul(counters.count()) > READ_MAX {
        return;
    }
    known.values_mut().for_each(|window| *window = counters.of_window(*window));
    for window in run.metrics.iter_mut().flat_map(|metric| &mut metric.windows) {
        if let Some(read) = known.get(&key(window)) {
            *window = *read;
        }
    }
}

/// Counters of nanoseconds.
struct Counters {
    begin_ns: u64,
    run: Vec<Counter>,
    waiting: Vec<Counter>,
    throttled: Vec<Counter>,
    /// Of all tasks, of each CPU that the program may use.
    everybody: Vec<Counter>,
    /// Tare's own threads.
    own: Vec<Counter>,
    stolen: Vec<Counter>,
    /// The program's processes were all seen while they ran.
    is_whole: bool,
}

/// One of them, of a thread, a CPU or a group.
struct Counter {
    samples: Vec<Sample>,
    /// It began at 0 within the run.
    is_born: bool,
}

impl Counters {
    fn of(observation: &Observation) -> Counters {
        let readings = Readings::new(observation);
        let of = |metric: &Descriptor, subject: Subject, is_born| {
            let samples = readings.samples(metric, &subject);
            (!samples.is_empty()).then_some(Counter { samples, is_born })
        };
        let threads = |metric: &Descriptor, role: Role| -> Vec<Counter> {
            let all = observation.tasks.iter().zip(0u32..).filter(|(task, _)| task.role == role);
            all.filter_map(|(task, index)| of(metric, Subject::Task(index), !task.present_at_begin)).collect()
        };
        let usable = usable(observation);
        let of_cpus = |metric: &Descriptor| -> Vec<Counter> {
            let columns = observation.columns.iter().filter(|column| column.metric == metric.id);
            let is_usable = |subject: &Subject| match subject {
                Subject::Cpu(cpu) => usable.as_ref().is_some_and(|usable| usable.contains(cpu)),
                _ => false,
            };
            let subjects = columns.map(|column| column.subject.clone()).filter(is_usable);
            subjects.filter_map(|subject| of(metric, subject, false)).collect()
        };
        let group = |path: &String| of(&groups::THROTTLED_NS, Subject::Group(path.clone()), false);
        let run = threads(&tasks::RUN_NS, Role::Sut);
        let ended = observation.ended.iter().flatten().filter(|ended| ended.role == Role::Sut);
        let ended_ns: f64 = ended.map(|ended| ended.run_ns as f64).sum();
        let seen_ns: f64 = run.iter().map(|counter| counter.grown_ns([0, u64::MAX])).sum();
        Counters {
            begin_ns: observation.begin_ns,
            run,
            waiting: threads(&tasks::WAIT_NS, Role::Sut),
            throttled: observation.sut_groups.first().and_then(group).into_iter().collect(),
            everybody: of_cpus(&cpus::TASK_RUN_NS),
            own: threads(&tasks::RUN_NS, Role::Tare),
            stolen: of_cpus(&cpus::STEAL_NS),
            is_whole: ended_ns <= ENDED_SHARE_MAX * (seen_ns + ended_ns),
        }
    }

    fn count(&self) -> usize {
        let all = [&self.run, &self.waiting, &self.throttled, &self.everybody, &self.own, &self.stolen];
        all.iter().map(|counters| counters.len()).sum()
    }

    fn of_window(&self, window: SampleWindow) -> SampleWindow {
        let SampleWindow { begin_s, end_s, .. } = window;
        let seconds = end_s - begin_s;
        if seconds < SECONDS_MIN || !self.is_whole {
            return window;
        }
        let stamp = |s: f64| self.begin_ns.saturating_add((s * 1e9) as u64);
        let between = [stamp(begin_s), stamp(end_s)];
        let cpus = |counters: &[Counter]| grown_ns(counters, between).map(|ns| ns / 1e9 / seconds);
        let (on_cpu, everybody) = (cpus(&self.run), cpus(&self.everybody));
        let own = cpus(&self.own).unwrap_or(0.0);
        let others = everybody.zip(on_cpu).map(|(everybody, on_cpu)| (everybody - on_cpu - own).max(0.0));
        // The host takes from everybody on these CPUs: the program's part is as large as its part of their run.
        let part = on_cpu.zip(everybody).map(|(on_cpu, everybody)| ratio(on_cpu, everybody).min(1.0));
        SampleWindow {
            on_cpu,
            waiting: cpus(&self.waiting).filter(|_| seconds >= WAIT_SECONDS_MIN),
            throttled: cpus(&self.throttled),
            others,
            stolen: cpus(&self.stolen).zip(part).map(|(stolen, part)| stolen * part),
            ..window
        }
    }
}

/// The CPUs that the program's threads may use; `None`: not known of all of them.
fn usable(observation: &Observation) -> Option<BTreeSet<u32>> {
    let own = observation.tasks.iter().filter(|task| task.role == Role::Sut);
    let mut sets = own.map(|task| task.allowed_cpus.value());
    sets.try_fold(BTreeSet::new(), |mut all, cpus| {
        all.extend(cpus?);
        Some(all)
    })
}

/// By how much they grew together between two stamps; `None` where they were read at the edges of the run alone, which are the same for
/// every window.
fn grown_ns(counters: &[Counter], between: [u64; 2]) -> Option<f64> {
    let is_read = counters.iter().any(|counter| counter.samples.len() > 2);
    is_read.then(|| counters.iter().map(|counter| counter.grown_ns(between)).sum())
}

impl Counter {
    fn grown_ns(&self, between: [u64; 2]) -> f64 {
        let value = |at_ns: u64| match self.samples.first() {
            Some(first) if self.is_born && at_ns < first.at_ns => 0.0,
            _ => value_at(&self.samples, at_ns).unwrap_or(0.0),
        };
        let [begin, end] = between.map(value);
        (end - begin).max(0.0)
    }
}

/// Who took CPU time from the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Taker {
    Quota,
    Others,
    Host,
}

impl Taker {
    fn words(self) -> &'static str {
        match self {
            Taker::Quota => "a quota",
            Taker::Others => "others on its CPUs",
            Taker::Host => "the host",
        }
    }
}

/// Who took most in a window, and which share of the CPU time that the program could have had.
fn taken(window: &SampleWindow) -> Option<(Taker, f64)> {
    let on_cpu = window.on_cpu?;
    // Threads that wait for threads of their own program are not disturbed: no more counts than others used. Whoever is held back by a quota
    // waits as well, and others use the CPUs meanwhile.
    let held_back = window.throttled.unwrap_or(0.0);
    let behind_others = window.waiting.zip(window.others);
    let behind_others = behind_others.map(|(waiting, others)| (waiting.min(others) - held_back).max(0.0));
    let of = [(Taker::Quota, window.throttled), (Taker::Others, behind_others), (Taker::Host, window.stolen)];
    let known = of.into_iter().filter_map(|(taker, cpus)| Some((taker, cpus?)));
    let (taker, cpus) = known.max_by(|one, other| one.1.total_cmp(&other.1))?;
    let share = cpus / (on_cpu + cpus).max(CPUS_MIN);
    let seconds = cpus * (window.end_s - window.begin_s);
    (share >= TAKEN_SHARE_MIN && seconds >= TAKEN_SECONDS_MIN).then_some((taker, share))
}

/// The warning that more than a few samples were measured while somebody took CPU time.
pub(super) fn disturbed(metrics: &[ToolMetric]) -> Option<Warning> {
    // Metrics of one benchmark share their lines.
    let mut of_benchmarks: BTreeMap<&str, &ToolMetric> = BTreeMap::new();
    for metric in metrics.iter().filter(|metric| !metric.windows.is_empty()) {
        of_benchmarks.entry(&metric.benchmark).or_insert(metric);
    }
    let mut by: BTreeMap<Taker, usize> = BTreeMap::new();
    let mut worst: Option<(f64, &str, &SampleWindow)> = None;
    let (mut count, mut judged, mut short) = (0usize, 0usize, 0usize);
    for (benchmark, metric) in of_benchmarks {
        for window in &metric.windows {
            judged += usize::from(window.on_cpu.is_some());
            let Some((taker, share)) = taken(window) else {
                short += usize::from(window.on_cpu.is_some() && window.waiting.is_none());
                continue;
            };
            count += 1;
            *by.entry(taker).or_default() += 1;
            if worst.is_none_or(|(most, ..)| share > most) {
                worst = Some((share, benchmark, window));
            }
        }
    }
    let (share, benchmark, window) = worst.filter(|_| count as f64 >= DISTURBED_SHARE_MIN * judged as f64)?;
    let takers: Vec<String> =
        by.iter().map(|(taker, count)| format!("{} ({count})", taker.words())).collect();
    let unknown = match short {
        0 => String::new(),
        short => format!("; of {short} it is not known whether others took some (they are shorter than 2 s)"),
    };
    let of = if benchmark.is_empty() { String::new() } else { format!(" of {benchmark}") };
    Some(Warning {
        id: "tool-samples-disturbed".into(),
        text: format!(
            "{count} of {judged} samples were measured while something took 5 % or more of the program's CPU time: {}; most in the sample{of} \
             from {:.1} to {:.1} s of its run, {:.0} %{unknown}",
            takers.join(", "),
            window.begin_s,
            window.end_s,
            100.0 * share
        ),
        hint: "measure again without it; --json lists what happened while each sample was measured (windows)"
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::Reading;
    use tare_model::observation::{Column, Task};

    /// Readings of a counter at whole seconds.
    fn column(metric: &Descriptor, subject: Subject, seconds: &[f64]) -> Column {
        let samples = seconds.iter().zip(1u64..);
        let samples = samples.map(|(value, at)| Sample { at_ns: at * 1_000_000_000, value: value * 1e9 });
        Column { metric: metric.id.into(), subject, samples: samples.collect() }
    }

    /// One thread that works from second 1 to second 5, and half as much from 3 to 4, when its quota held it back.
    fn observation() -> Observation {
        let task = Task {
            pid: 1,
            tid: 1,
            name: "b".into(),
            role: Role::Sut,
            allowed_cpus: Reading::Measured(vec![0]),
            present_at_begin: true,
            present_at_end: true,
        };
        Observation {
            begin_ns: 1_000_000_000,
            end_ns: 5_000_000_000,
            tasks: vec![task],
            sut_groups: vec!["/g".into()],
            columns: vec![
                column(&tasks::RUN_NS, Subject::Task(0), &[10.0, 11.0, 12.0, 12.5, 13.5]),
                column(&tasks::WAIT_NS, Subject::Task(0), &[0.0, 0.0, 0.0, 0.5, 0.5]),
                column(&groups::THROTTLED_NS, Subject::Group("/g".into()), &[7.0, 7.0, 7.0, 7.5, 7.5]),
                column(&cpus::TASK_RUN_NS, Subject::Cpu(0), &[50.0, 51.0, 52.0, 52.5, 53.5]),
            ],
            ..Observation::default()
        }
    }

    fn run(ends_s: &[f64]) -> ToolMetrics {
        let mut begin_s = 0.0;
        let windows = ends_s.iter().map(|end_s| {
            let window = SampleWindow { begin_s, end_s: *end_s, ..SampleWindow::default() };
            begin_s = *end_s;
            window
        });
        let windows: Vec<SampleWindow> = windows.collect();
        let metric = ToolMetric {
            benchmark: "b".into(),
            name: "time".into(),
            unit: "s".into(),
            better: None,
            samples: ends_s.to_vec(),
            launches: vec![0; ends_s.len()],
            workers: Vec::new(),
            at_s: Vec::new(),
            lines: Vec::new(),
            is_target: false,
            windows,
            configuration: BTreeMap::new(),
            summary: BTreeMap::new(),
            estimate: None,
        };
        ToolMetrics {
            schema: 2,
            format: "f".into(),
            metrics: vec![metric],
            configuration: BTreeMap::new(),
            skipped: Vec::new(),
            skipped_count: 0,
            warnings: Vec::new(),
            gets_wrong: Vec::new(),
        }
    }

    #[test]
    fn a_sample_in_the_second_of_the_quota_is_named_and_others_are_not() {
        let mut run = run(&[1.0, 2.0, 3.0, 4.0]);
        fill(&mut run, &observation());
        let windows = &run.metrics[0].windows;
        let near = |value: Option<f64>, truth: f64| value.is_some_and(|value| (value - truth).abs() < 1e-6);
        for (at, truth) in [(0, [1.0, 0.0]), (2, [0.5, 0.5]), (3, [1.0, 0.0])] {
            let [on_cpu, throttled] = truth;
            let window = &windows[at];
            assert!(near(window.on_cpu, on_cpu) && near(window.throttled, throttled), "{at}: {window:?}");
            assert!(near(window.others, 0.0) && window.stolen.is_none(), "{at}: {window:?}");
        }
        let warning = disturbed(&run.metrics).unwrap();
        assert_eq!(
            warning.text,
            "1 of 4 samples were measured while something took 5 % or more of the program's CPU time: a quota (1); most in the sample of b \
             from 2.0 to 3.0 s of its run, 50 %; of 3 it is not known whether others took some (they are shorter than 2 s)"
        );
    }

    #[test]
    fn what_is_too_short_is_not_judged() {
        let mut run = run(&[2.1, 2.2]);
        fill(&mut run, &observation());
        assert!(run.metrics[0].windows[0].on_cpu.is_some());
        assert_eq!(run.metrics[0].windows[1].on_cpu, None);
    }

    #[test]
    fn threads_that_wait_for_their_own_are_not_disturbed() {
        let window = SampleWindow {
            end_s: 4.0,
            on_cpu: Some(2.0),
            waiting: Some(2.0),
            others: Some(0.02),
            ..SampleWindow::default()
        };
        assert_eq!(taken(&window), None);
        let beside = SampleWindow { others: Some(0.5), on_cpu: Some(1.5), ..window };
        assert_eq!(taken(&beside).map(|(taker, _)| taker), Some(Taker::Others));
    }

    #[test]
    fn who_runs_on_other_cpus_or_while_a_quota_holds_disturbs_nobody() {
        // The program may use CPU 0 alone, and a neighbour is busy on CPU 1.
        let mut seen = observation();
        seen.columns.push(column(&cpus::TASK_RUN_NS, Subject::Cpu(1), &[0.0, 1.0, 2.0, 3.0, 4.0]));
        let mut run = run(&[4.0]);
        fill(&mut run, &seen);
        assert_eq!(run.metrics[0].windows[0].others, Some(0.0));
        // Where it is not known which CPUs it may use, nobody on any of them is blamed.
        seen.tasks[0].allowed_cpus = Reading::missing("no right");
        fill(&mut run, &seen);
        assert_eq!(run.metrics[0].windows[0].others, None);
        // A neighbour that works while the quota holds the program back did not take that time.
        let held_back = SampleWindow {
            end_s: 4.0,
            on_cpu: Some(0.3),
            waiting: Some(2.8),
            throttled: Some(0.7),
            others: Some(0.7),
            ..SampleWindow::default()
        };
        assert_eq!(taken(&held_back).map(|(taker, _)| taker), Some(Taker::Quota));
    }

    #[test]
    fn a_program_that_sleeps_is_not_disturbed_by_a_tick() {
        let asleep =
            SampleWindow { end_s: 1.0, on_cpu: Some(0.02), stolen: Some(0.01), ..SampleWindow::default() };
        assert_eq!(taken(&asleep), None);
        let short =
            SampleWindow { end_s: 0.2, on_cpu: Some(0.9), stolen: Some(0.05), ..SampleWindow::default() };
        assert_eq!(taken(&short), None);
    }

    #[test]
    fn one_sample_of_many_is_no_warning() {
        let mut run = run(&[1.0, 2.0, 3.0, 4.0]);
        fill(&mut run, &observation());
        let quiet = run.metrics[0].windows[0];
        run.metrics[0].windows.extend([quiet; 40]);
        assert_eq!(disturbed(&run.metrics), None);
    }

    #[test]
    fn of_processes_that_ended_unseen_it_is_not_known_when_they_ran() {
        let mut seen = observation();
        let ended = tare_model::ended::Ended {
            name: "cc".into(),
            role: Role::Sut,
            count: 900,
            run_ns: 3_000_000_000,
            wait_ns: 0,
            life_ns: 3_000_000_000,
            user_ns: 0,
            system_ns: 0,
        };
        seen.ended = Some(vec![ended]);
        let mut run = run(&[1.0, 2.0]);
        fill(&mut run, &seen);
        assert_eq!(run.metrics[0].windows[0].on_cpu, None);
    }

    #[test]
    fn a_program_that_was_not_watched_between_its_edges_is_not_accounted() {
        let mut seen = observation();
        // Born in the run, as every program that tare starts.
        seen.tasks[0].present_at_begin = false;
        for column in &mut seen.columns {
            column.samples = vec![column.samples[0], column.samples[4]];
        }
        let mut run = run(&[1.0, 2.0]);
        fill(&mut run, &seen);
        assert_eq!(run.metrics[0].windows[0].on_cpu, None);
        assert_eq!(disturbed(&run.metrics), None);
    }
}
