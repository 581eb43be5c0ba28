//! A thread's readings, made into columns.

use super::parse::{self, TaskStat, parse_schedstat, parse_status_switches};
use super::watched::{Source, Watched};
use crate::observed::{Observed, changes, ends, thinned};
use crate::sleep::Why;
use crate::tape::Reading;
use tare_model::metric::{Descriptor, Subject, Unit};
use tare_model::metrics::tasks;
use tare_model::observation::Sample;
use tare_model::schedule::Sleep;

/// No wait series is finer than this: waits are added when they end, and steps hide behind ticks.
const WAIT_APART_NS: u64 = 1_000_000_000;

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
    type Field = fn(&TaskStat) -> u64;
    let counters: [(&Descriptor, Field); 4] = [
        (&tasks::USER_NS, |stat| stat.user_ns),
        (&tasks::SYSTEM_NS, |stat| stat.system_ns),
        (&tasks::MINOR_FAULTS, |stat| stat.minor_faults),
        (&tasks::MAJOR_FAULTS, |stat| stat.major_faults),
    ];
    for (metric, field) in counters {
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
    observed.column(&tasks::LAST_CPU, subject.clone(), changes(column(&stats, |stat| stat.last_cpu)));
    let switches = parsed(of(Source::Status), parse_status_switches);
    let voluntary = from_origin(column(&switches, |(voluntary, _)| *voluntary));
    let involuntary = from_origin(column(&switches, |(_, involuntary)| *involuntary));
    let kept = |switches: Vec<Sample>| if series { switches } else { ends(switches) };
    observed.column(&tasks::VOLUNTARY_SWITCHES, subject.clone(), kept(voluntary));
    observed.column(&tasks::INVOLUNTARY_SWITCHES, subject.clone(), kept(involuntary));
    report_states(watched, subject, observed);
}

/// What the samples found the thread doing.
fn report_states(watched: &Watched, subject: Subject, observed: &mut Observed) {
    if watched.state_samples.is_empty() {
        return;
    }
    let mut report = |metric: &Descriptor, counted: &dyn Fn(Option<Why>) -> bool| {
        let counts = watched.state_samples.counts().filter(|(why, _)| counted(*why));
        let count: u64 = counts.map(|(_, count)| count).sum();
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

static SLEEPS: [(&Descriptor, Sleep); 7] = [
    (&tasks::SAMPLES_EVENT, Sleep::Event),
    (&tasks::SAMPLES_LOCK, Sleep::Lock),
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
