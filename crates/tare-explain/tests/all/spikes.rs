//! Spikes of latency are found, and so is what moved with them; and when nothing did, that is the answer.

use crate::support::{Scene, asked};
use tare_model::metric::{Descriptor, Subject};
use tare_model::metrics::{clock, cpus, energy, groups, network, pressure, tasks};
use tare_model::observation::{Column, Sample};
use tare_model::outcome::{Outcome, Spikes};
use tare_model::trial::{HttpDetail, Measure, SeriesSlice};
use tare_model::{Reading, Record};

const SLICES: usize = 100;
const SLICE_NS: u64 = 100_000_000;
const BEGIN_NS: u64 = 1_000_000_000;

/// Three trials of ten seconds, in which every slice of `spikes` is eight times as slow; `None` answers nothing.
fn record(spikes: &[usize]) -> Record {
    let mut record = asked(&Scene { seconds: 10.0, ..Scene::default() });
    for (seq, trial) in record.trials.iter_mut().enumerate() {
        let Measure::Http(sample) = &mut trial.sample else { continue };
        let slice = |at: usize| {
            // No two slices are quite alike.
            let usual = 1_000_000 + (at * 7_919 + seq * 104_729) as u64 % 90_000;
            let p99_ns = if spikes.contains(&at) { 8 * usual } else { usual };
            SeriesSlice {
                end_ns: BEGIN_NS + (at as u64 + 1) * SLICE_NS,
                requests: 10_000,
                p50_ns: Some(p99_ns / 3),
                p99_ns: Some(p99_ns),
            }
        };
        let detail = HttpDetail { series: (0..SLICES).map(slice).collect(), ..HttpDetail::default() };
        sample.detail = Some(Box::new(detail));
    }
    record
}

/// Adds a counter that grows by `usual` in every slice, and by `more` in those of `when`.
fn grow(record: &mut Record, metric: &Descriptor, subject: Subject, when: &[usize], usual: f64, more: f64) {
    for (seq, trial) in record.trials.iter_mut().enumerate() {
        trial.observation.columns.retain(|one| one.metric != metric.id || one.subject != subject);
        let mut value = 5e9;
        let mut samples = vec![Sample { at_ns: BEGIN_NS, value }];
        for at in 0..SLICES {
            let noise = ((at * 31 + seq * 17) % 11) as f64 / 11.0;
            value += usual * (0.5 + noise) + if when.contains(&at) { more } else { 0.0 };
            samples.push(Sample { at_ns: BEGIN_NS + (at as u64 + 1) * SLICE_NS, value });
        }
        trial.observation.columns.push(Column {
            metric: metric.id.into(),
            subject: subject.clone(),
            samples,
        });
    }
}

fn own_group() -> Subject {
    Subject::Group("/sut".into())
}

fn outcome(record: &Record) -> Outcome {
    tare_explain::explain(record)
}

fn spikes(record: &Record) -> Spikes {
    outcome(record).over_time.spikes.ok().unwrap()
}

/// Background: series that have nothing to do with the spikes.
fn interference(record: &mut Record) {
    grow(record, &network::RETRANSMITS, Subject::Machine, &[3, 44, 71], 0.0, 5.0);
    grow(record, &pressure::CPU_SOME_NS, Subject::Machine, &[], 3e6, 0.0);
    grow(record, &tasks::INVOLUNTARY_SWITCHES, Subject::Task(0), &[8, 9], 40.0, 10.0);
    grow(record, &cpus::STEAL_NS, Subject::Cpu(0), &[15, 55], 0.0, 2e7);
}

const SPIKES: [usize; 6] = [12, 27, 41, 58, 76, 90];

#[test]
fn of_more_series_than_are_compared_those_near_a_cause_stay() {
    let mut record = record(&SPIKES);
    interference(&mut record);
    grow(&mut record, &groups::THROTTLED_NS, own_group(), &SPIKES, 0.0, 8e7);
    for disk in 0..300 {
        let device = Subject::Device(format!("a{disk:03}"));
        grow(&mut record, &energy::ENERGY_UJ, device, &[disk as usize % SLICES], 1.0, 5.0);
    }
    let found = spikes(&record);
    assert_eq!(found.series, 256);
    assert!(found.series_left_out >= 44, "{}", found.series_left_out);
    assert_eq!(found.moved.ok().unwrap()[0].series, "group /sut: held back by a quota");
}

#[test]
fn throttling_in_bursts_is_named() {
    let mut record = record(&SPIKES);
    interference(&mut record);
    grow(&mut record, &groups::THROTTLED_NS, own_group(), &SPIKES, 0.0, 8e7);
    let found = spikes(&record);
    assert_eq!((found.slices, found.spikes), (300, 18));
    let moved = found.moved.value().unwrap();
    let best = moved.first().unwrap();
    assert_eq!(best.series, "group /sut: held back by a quota");
    assert!(best.chance <= 0.01 && best.spikes_with > 0.9 && best.quiet_with < 0.1, "{best:?}");
    assert!((best.in_spikes - 0.8).abs() < 0.05 && best.in_quiet < 0.01 && best.unit == "s/s", "{best:?}");
    assert_eq!(moved.len(), 1, "{moved:?}");
    let bursts = found.throttle_bursts.value().unwrap();
    assert!(bursts.with_spike == 18 && bursts.slices < 100, "{bursts:?}");
    let timeline = found.timeline.unwrap();
    assert_eq!(timeline.series.as_deref(), Some("group /sut: held back by a quota"));
    assert_eq!((timeline.p99_ns.len(), timeline.values.len()), (SLICES, SLICES));
    assert_eq!(timeline.is_spike.iter().filter(|is| **is).count(), SPIKES.len());
}

/// A burst lasts longer than the spike that it makes: what waited is answered at its end.
#[test]
fn throttling_that_lasts_longer_than_the_spikes_is_named() {
    let mut record = record(&SPIKES);
    interference(&mut record);
    let bursts: Vec<usize> = SPIKES.iter().flat_map(|at| at - 3..at + 2).collect();
    grow(&mut record, &groups::THROTTLED_NS, own_group(), &bursts, 0.0, 8e7);
    let moved = spikes(&record).moved.ok().unwrap();
    let best = moved.first().unwrap();
    assert_eq!(best.series, "group /sut: held back by a quota");
    assert!(best.spikes_with > 0.9 && (0.05..0.2).contains(&best.quiet_with), "{best:?}");
}

#[test]
fn a_busy_neighbour_is_named_also_one_slice_before() {
    let mut record = record(&SPIKES);
    interference(&mut record);
    let before = SPIKES.map(|at| at - 1);
    // The server runs 97 ms of each slice, its CPU is busy all the time in the spikes.
    grow(&mut record, &tasks::RUN_NS, Subject::Task(0), &[], 5e7, 0.0);
    grow(&mut record, &cpus::TASK_RUN_NS, Subject::Cpu(0), &before, 5e7, 4.5e7);
    let found = spikes(&record);
    let best = found.moved.value().unwrap().first().unwrap().clone();
    assert_eq!(best.series, "others on the server's CPUs: on a CPU");
    assert!(best.in_spikes > 0.3 && best.in_quiet < 0.1, "{best:?}");
}

#[test]
fn a_clock_that_falls_moved_too() {
    let mut record = record(&SPIKES);
    interference(&mut record);
    for trial in &mut record.trials {
        trial.observation.columns.retain(|column| column.metric != clock::EFFECTIVE_HZ.id);
        let hz = |at: usize| if SPIKES.contains(&at) { 1.2e9 } else { 3e9 + (at % 7) as f64 * 1e6 };
        let sample = |at: usize| Sample { at_ns: BEGIN_NS + (at as u64 + 1) * SLICE_NS, value: hz(at) };
        let samples = (0..SLICES).map(sample).collect();
        let column = Column { metric: clock::EFFECTIVE_HZ.id.into(), subject: Subject::Cpu(0), samples };
        trial.observation.columns.push(column);
    }
    let best = spikes(&record).moved.value().unwrap().first().unwrap().clone();
    assert_eq!(best.series, "server's CPUs: effective hz");
    assert!(best.in_spikes < 2e9 && best.in_quiet > 2.9e9, "{best:?}");
}

#[test]
fn when_nothing_moved_that_is_the_answer() {
    let mut record = record(&SPIKES);
    interference(&mut record);
    let found = spikes(&record);
    assert_eq!(found.moved, Reading::Measured(vec![]));
    assert!(found.series >= 4, "{found:?}");
    assert!(found.timeline.unwrap().series.is_none());
}

#[test]
fn a_steady_server_has_no_spikes_and_throttling_all_the_time_is_none() {
    let mut record = record(&[]);
    let always: Vec<usize> = (0..SLICES).collect();
    grow(&mut record, &groups::THROTTLED_NS, own_group(), &always, 0.0, 7e7);
    let found = spikes(&record);
    assert_eq!(found.spikes, 0);
    assert!(found.moved.value().is_none() && found.timeline.is_none());
    let bursts = found.throttle_bursts.value().unwrap();
    assert_eq!((bursts.slices, bursts.with_spike), (300, 0));
}

#[test]
fn few_spikes_and_other_generators_are_said() {
    let mut few = record(&[50]);
    few.trials.truncate(2);
    let why = spikes(&few).moved.ok().unwrap_err().why;
    assert_eq!(why, "2 spikes are too few to say what goes with them");
    let foreign = outcome(&asked(&Scene::default())).over_time.spikes.ok().unwrap_err().why;
    assert!(foreign.contains("only tare's own generator"), "{foreign}");
}

#[test]
fn what_the_measuring_took_is_reported() {
    use crate::support::Thread;
    use tare_model::observation::Role;
    let mut scene = Scene::default();
    let cost = outcome(&asked(&scene)).conditions.own_cost.unwrap();
    // Nothing is not zero: no thread of tare's is in this record.
    assert!(
        cost.observers_cpus.value().is_none() && cost.observers_on_sut_cpus.value().is_none(),
        "{cost:?}"
    );
    assert!((cost.generator_cpus.unwrap() - 0.6).abs() < 0.01 && cost.generator_ran_on == [1], "{cost:?}");
    assert!(cost.recorded_bytes_hz > 100.0);
    scene.threads.push(Thread::new(Role::Tare, "tare-observe", 999, 0, 0.02, 0.0));
    let result = outcome(&asked(&scene));
    let cost = result.conditions.own_cost.as_ref().unwrap();
    let on_sut_cpus = *cost.observers_on_sut_cpus.value().unwrap();
    assert!((on_sut_cpus - 0.02).abs() < 1e-3 && cost.observers_ran_on == [0], "{cost:?}");
    assert!(result.verdict.warnings.iter().any(|warning| warning.id == "observers-on-sut-cpus"));
}
