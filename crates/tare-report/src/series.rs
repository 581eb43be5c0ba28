//! How rate and busy CPUs went over time, from a record's slices and counters.

use tare_model::Record;
use tare_model::metric::{Descriptor, Subject};
use tare_model::metrics;
use tare_model::observation::{Column, Observation, Role, Sample};
use tare_model::trial::{Measure, Trial};

/// Counters of a running thread step at ticks, and a wait is added when it ends: finer steps would show that.
const STEP_NS_MIN: u64 = 250_000_000;
/// Steps of a whole record at most, shared among its trials.
const STEPS_MAX: u64 = 2400;

/// A value that held over a stretch of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stretch {
    /// Seconds since the first trial began.
    pub begin_s: f64,
    pub end_s: f64,
    pub value: f64,
}

/// One trial's series.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Timeline {
    /// Requests per second.
    pub rate_hz: Vec<Stretch>,
    /// CPUs that the SUT's threads kept busy.
    pub sut_cpus: Vec<Stretch>,
    /// CPUs that the generator's threads kept busy.
    pub load_cpus: Vec<Stretch>,
    /// CPUs that anybody kept busy.
    pub all_cpus: Vec<Stretch>,
}

/// The timeline of every trial, in the order in which they ran.
pub(crate) fn timelines(record: &Record) -> Vec<Timeline> {
    let origin_ns = record.trials.iter().map(|trial| trial.observation.begin_ns).min().unwrap_or(0);
    let steps_max = (STEPS_MAX / record.trials.len().max(1) as u64).max(1);
    record.trials.iter().map(|trial| timeline(trial, origin_ns, steps_max)).collect()
}

fn timeline(trial: &Trial, origin_ns: u64, steps_max: u64) -> Timeline {
    let seen = &trial.observation;
    let rate_hz = match &trial.sample {
        Measure::Http(sample) => rate(&sample.slices, seen.begin_ns, origin_ns, steps_max),
        Measure::Command(_) => Vec::new(),
    };
    let of_role = |role: Role| -> Vec<&Column> {
        let subjects = seen.tasks_of(role).map(|(index, _)| Subject::Task(index));
        subjects.filter_map(|subject| seen.column(&metrics::tasks::RUN_NS, &subject)).collect()
    };
    let every_cpu = of_metric(seen, &metrics::cpus::TASK_RUN_NS);
    let busy = |columns: Vec<&Column>| busy(&columns, origin_ns, steps_max);
    Timeline {
        rate_hz,
        sut_cpus: busy(of_role(Role::Sut)),
        load_cpus: busy(of_role(Role::Load)),
        all_cpus: busy(every_cpu),
    }
}

fn of_metric<'a>(seen: &'a Observation, metric: &Descriptor) -> Vec<&'a Column> {
    seen.columns.iter().filter(|column| column.metric == metric.id).collect()
}

/// Slices joined until each is long enough to be drawn.
fn rate(slices: &[(u64, u64)], begin_ns: u64, origin_ns: u64, steps_max: u64) -> Vec<Stretch> {
    let end_ns = slices.last().map_or(begin_ns, |(end_ns, _)| *end_ns);
    let step_ns = end_ns.saturating_sub(begin_ns) / steps_max;
    let mut stretches = Vec::new();
    let (mut from_ns, mut requests) = (begin_ns, 0u64);
    for &(end_ns, count) in slices {
        requests = requests.saturating_add(count);
        if end_ns <= from_ns || end_ns - from_ns < step_ns {
            continue;
        }
        let value = requests as f64 / (end_ns - from_ns) as f64 * 1e9;
        stretches.push(stretch(from_ns, end_ns, origin_ns, value));
        (from_ns, requests) = (end_ns, 0);
    }
    stretches
}

/// Growth of run counters over steps of the time in which they were read, in CPUs.
fn busy(columns: &[&Column], origin_ns: u64, steps_max: u64) -> Vec<Stretch> {
    let ends = columns.iter().filter_map(|column| Some((column.samples.first()?, column.samples.last()?)));
    let ends = ends.map(|(first, last)| (first.at_ns, last.at_ns));
    let span = ends.reduce(|(first, last), (a, b)| (first.min(a), last.max(b)));
    let samples = columns.iter().map(|column| column.samples.len() as u64).max().unwrap_or(0);
    let Some((begin_ns, end_ns)) = span.filter(|(begin_ns, end_ns)| samples > 1 && begin_ns < end_ns) else {
        return Vec::new();
    };
    // No finer than the counters were read.
    let wall_ns = end_ns - begin_ns;
    let steps = (wall_ns / STEP_NS_MIN).min(samples - 1).clamp(1, steps_max);
    let edge = |at: u64| begin_ns + (u128::from(wall_ns) * u128::from(at) / u128::from(steps)) as u64;
    let edges: Vec<u64> = (0..=steps).map(edge).collect();
    let mut grown_ns = vec![0.0; edges.len()];
    for column in columns {
        for (sum, &edge) in grown_ns.iter_mut().zip(&edges) {
            *sum += at(&column.samples, edge).unwrap_or(0.0);
        }
    }
    let steps = edges.windows(2).zip(grown_ns.windows(2));
    steps
        .map(|(edge, grown)| {
            let value = (grown[1] - grown[0]) / (edge[1] - edge[0]) as f64;
            stretch(edge[0], edge[1], origin_ns, value)
        })
        .filter(|stretch| stretch.value.is_finite())
        .collect()
}

/// A counter's growth since its first sample, between its samples in a straight line.
fn at(samples: &[Sample], at_ns: u64) -> Option<f64> {
    let first = samples.first()?;
    let next = samples.partition_point(|sample| sample.at_ns <= at_ns);
    let value = match (next.checked_sub(1).and_then(|last| samples.get(last)), samples.get(next)) {
        (Some(before), Some(after)) => {
            let since = |stamp: u64| stamp as f64 - before.at_ns as f64;
            let share = since(at_ns) / since(after.at_ns);
            before.value + share * (after.value - before.value)
        }
        (Some(before), None) => before.value,
        (None, _) => first.value,
    };
    Some(value - first.value)
}

fn stretch(begin_ns: u64, end_ns: u64, origin_ns: u64, value: f64) -> Stretch {
    let since_origin = |at_ns: u64| at_ns.saturating_sub(origin_ns) as f64 / 1e9;
    Stretch { begin_s: since_origin(begin_ns), end_s: since_origin(end_ns), value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn samples(values: &[(u64, f64)]) -> Vec<Sample> {
        values.iter().map(|&(at_ns, value)| Sample { at_ns, value }).collect()
    }

    #[test]
    fn a_counter_is_a_straight_line_between_its_samples() {
        let counter = samples(&[(10, 5.0), (20, 25.0)]);
        let grown = [0, 10, 15, 20, 99].map(|at_ns| at(&counter, at_ns));
        assert_eq!(grown, [0.0, 0.0, 10.0, 20.0, 20.0].map(Some));
        assert_eq!(at(&[], 3), None);
    }

    #[test]
    fn slices_become_rates() {
        let rates =
            rate(&[(1_100_000_000, 50), (1_200_000_000, 70), (1_200_000_000, 5)], 1_000_000_000, 0, 240);
        let values: Vec<f64> = rates.iter().map(|stretch| stretch.value.round()).collect();
        assert_eq!(values, [500.0, 700.0]);
    }

    #[test]
    fn half_a_cpu_is_half_a_cpu() {
        let run = Column {
            metric: metrics::tasks::RUN_NS.id.into(),
            subject: Subject::Task(0),
            samples: samples(&(0..=20).map(|n| (n * 100_000_000, n as f64 * 5e7)).collect::<Vec<_>>()),
        };
        let busy = busy(&[&run], 0, 240);
        assert_eq!(busy.len(), 8, "steps are a quarter of a second");
        assert!(busy.iter().all(|stretch| (stretch.value - 0.5).abs() < 1e-9), "{busy:?}");
    }

    proptest! {
        #[test]
        fn no_counter_breaks_it(
            values in prop::collection::vec((any::<u64>(), prop::num::f64::ANY), 0..20),
            begin_ns: u64,
        ) {
            let column = Column { metric: "m".into(), subject: Subject::Machine, samples: samples(&values) };
            prop_assert!(busy(&[&column], 0, 7).len() <= 7);
            let slices: Vec<(u64, u64)> = values.iter().map(|(at, value)| (*at, *value as u64)).collect();
            rate(&slices, begin_ns, 0, 7);
        }
    }
}
