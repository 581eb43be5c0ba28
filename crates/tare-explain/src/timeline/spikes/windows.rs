//! Latencies by slices, and what every series did in each slice.

use crate::accounting::{Readings, value_at};
use std::collections::{BTreeMap, BTreeSet};
use tare_model::metric::{Descriptor, Kind, Subject, Unit};
use tare_model::metrics::{self, clock, cpus, groups, tasks};
use tare_model::observation::{Observation, Role, Sample};
use tare_model::plan::Plan;
use tare_model::trial::SeriesSlice;

/// What is no cause whatever it does: how fine waits are counted is bounded, idle time is what the rest leaves, and a
/// mode's share is sampled.
static LEFT_OUT: &[&Descriptor] = &[
    &tasks::WAIT_NS,
    &tasks::LAST_CPU,
    &cpus::IDLE_NS,
    &cpus::USER_NS,
    &cpus::SYSTEM_NS,
    &cpus::IDLE_TASK_NS,
    &cpus::IDLE_TASK_UNSEEN_NS,
    &cpus::IDLE_EXIT_COST_NS,
    &cpus::IDLE_EXITS_SAMPLED,
    &groups::QUOTA_NS,
    &groups::PERIOD_NS,
    &groups::USAGE_NS,
    &clock::APERF,
    &clock::MPERF,
    &clock::TSC,
];

/// A slice of a trial.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slice {
    pub begin_ns: u64,
    pub end_ns: u64,
    /// `None`: nothing was answered.
    pub p99_ns: Option<f64>,
}

impl Slice {
    pub fn seconds(&self) -> f64 {
        self.end_ns.saturating_sub(self.begin_ns) as f64 / 1e9
    }
}

/// The slices that the observers saw whole.
pub(super) fn slices(series: &[SeriesSlice], seen: &Observation) -> Vec<Slice> {
    let mut begin_ns = seen.begin_ns;
    let mut slices = Vec::new();
    for slice in series {
        if slice.end_ns > begin_ns && slice.end_ns <= seen.end_ns.saturating_add(1_000_000) {
            let p99_ns = slice.p99_ns.map(|ns| ns as f64);
            slices.push(Slice { begin_ns, end_ns: slice.end_ns, p99_ns });
        }
        begin_ns = begin_ns.max(slice.end_ns);
    }
    slices
}

/// What was watched: a metric, and of whom.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    pub metric: &'static str,
    pub whose: Whose,
}

/// Of whom a series is the sum.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Whose {
    Server,
    Generator,
    /// Everybody but the server on the CPUs that it may use.
    OthersOnServersCpus,
    ServersCpus,
    GeneratorsCpus,
    Machine,
    Group(String),
    Device(String),
}

/// What a series did in each slice: growth per second of a counter, level of a gauge; `None` where it was not read.
pub(super) type Movement = Vec<Option<f64>>;

/// Every series of a trial that has readings between its edges.
pub(super) fn movements(readings: &Readings, plan: &Plan, slices: &[Slice]) -> BTreeMap<Name, Movement> {
    let seen = readings.observation;
    let mut all: BTreeMap<Name, Movement> = BTreeMap::new();
    let left_out: BTreeSet<&str> = LEFT_OUT.iter().map(|metric| metric.id).collect();
    for column in &seen.columns {
        let metric = metrics::by_id(&column.metric).filter(|metric| !left_out.contains(metric.id));
        let Some(metric) = metric else { continue };
        let samples = readings.samples(metric, &column.subject);
        if samples.len() <= 2
            && samples.first().map(|first| first.value) != samples.last().map(|last| last.value)
        {
            continue;
        }
        for whose in whose(seen, plan, &column.subject) {
            let movement = slices.iter().map(|slice| moved(metric, &samples, slice)).collect();
            add(&mut all, Name { metric: metric.id, whose }, movement);
        }
    }
    others_on_servers_cpus(&mut all);
    all
}

fn whose(seen: &Observation, plan: &Plan, subject: &Subject) -> Vec<Whose> {
    match subject {
        Subject::Machine => vec![Whose::Machine],
        Subject::Group(path) => vec![Whose::Group(path.clone())],
        Subject::Device(name) => vec![Whose::Device(name.clone())],
        Subject::Cpu(cpu) => {
            let servers = plan.sut_cpus.contains(cpu).then_some(Whose::ServersCpus);
            servers.into_iter().chain(plan.load_cpus.contains(cpu).then_some(Whose::GeneratorsCpus)).collect()
        }
        Subject::Task(index) => match seen.tasks.get(*index as usize).map(|task| task.role) {
            Some(Role::Sut) => vec![Whose::Server],
            Some(Role::Load) => vec![Whose::Generator],
            _ => Vec::new(),
        },
    }
}

fn add(all: &mut BTreeMap<Name, Movement>, name: Name, movement: Movement) {
    match all.get_mut(&name) {
        Some(sum) => {
            for (sum, more) in sum.iter_mut().zip(movement) {
                *sum = sum.zip(more).map(|(sum, more)| sum + more);
            }
        }
        None => {
            all.insert(name, movement);
        }
    }
}

/// Run of all tasks of the server's CPUs less its own: whoever else ran there.
fn others_on_servers_cpus(all: &mut BTreeMap<Name, Movement>) {
    let of = |metric: &Descriptor, whose| all.get(&Name { metric: metric.id, whose }).cloned();
    let run = of(&cpus::TASK_RUN_NS, Whose::ServersCpus).zip(of(&tasks::RUN_NS, Whose::Server));
    if let Some((everybody, server)) = run {
        let others =
            everybody.iter().zip(&server).map(|(all, own)| Some((all.as_ref()? - own.as_ref()?).max(0.0)));
        let name = Name { metric: cpus::TASK_RUN_NS.id, whose: Whose::OthersOnServersCpus };
        all.insert(name, others.collect());
    }
    // The two above show it better.
    all.remove(&Name { metric: cpus::TASK_RUN_NS.id, whose: Whose::ServersCpus });
}

/// What one metric did in one slice, larger where it is worse.
fn moved(metric: &Descriptor, samples: &[Sample], slice: &Slice) -> Option<f64> {
    match (metric.kind, metric.unit) {
        (Kind::Counter, _) => {
            let grown = value_at(samples, slice.end_ns)? - value_at(samples, slice.begin_ns)?;
            let seconds = slice.seconds();
            (seconds > 0.0).then(|| grown.max(0.0) / seconds)
        }
        (Kind::Gauge, Unit::Index) => None,
        (Kind::Gauge, _) => value_at(samples, slice.end_ns),
    }
}
