//! What the results of another tool come to.
//!
//! Samples of one process are not independent: its memory lies where it lies, its code is compiled once. So where a tool started several
//! processes, the median of each is one value, and the interval is that between them.

use super::windows;
use std::collections::BTreeMap;
use tare_model::format::SCHEMA;
use tare_model::outcome::{Better, Metric, Outcome};
use tare_model::plan::{Plan, Workload};
use tare_model::tool::{ToolEstimate, ToolMetric, ToolMetrics};
use tare_model::trial::{Measure, Trial};
use tare_model::warning::Warning;
use tare_stats::{median, median_interval};

/// Most things that were not understood of which the text is kept.
const SKIPPED_MAX: usize = 100;
/// The warning that intervals are of one process.
const ONE_LAUNCH: &str = "one-launch";

/// Finds the estimate of every metric, and warns where samples are of one process alone.
pub fn estimated(mut read: ToolMetrics) -> ToolMetrics {
    // Of all, where some were chosen since.
    read.warnings.retain(|warning| warning.id != ONE_LAUNCH);
    for metric in &mut read.metrics {
        metric.estimate = estimate(metric);
    }
    let of_one = |metric: &&ToolMetric| metric.samples.len() > 1 && launches(metric).len() == 1;
    let count = read.metrics.iter().filter(of_one).count();
    if count > 0 {
        let of = read.metrics.len();
        read.warnings.push(Warning {
            id: ONE_LAUNCH.into(),
            text: format!(
                "{count} of {of} metrics have all their samples from one process: their intervals do not hold what differs from one start \
                 to the next"
            ),
            hint: "start the benchmark several times (tare run --trials 5 -- BENCHMARK)".into(),
        });
    }
    read
}

/// The results that a program printed in its runs, together: each run is a launch, or several where the tool started more.
pub(crate) fn of_runs(trials: &[Trial], commands: &[String]) -> Option<ToolMetrics> {
    let printed = trials.iter().filter_map(|trial| match &trial.sample {
        Measure::Command(run) => Some((run.command, run.results.as_deref()?, &trial.observation)),
        Measure::Http(_) => None,
    });
    let mut together = joined(printed.map(|(command, run, observation)| {
        let mut run = match commands {
            [_, _, ..] => of_command(run, commands.get(command as usize)),
            _ => run.clone(),
        };
        windows::fill(&mut run, observation);
        run
    }))?;
    together.warnings.extend(windows::disturbed(&together.metrics));
    Some(estimated(together))
}

/// The results of several runs or files together, each of launches of its own; `None` of none. Their estimates are those of one of them
/// until [`estimated`] has seen all.
pub fn joined(all: impl IntoIterator<Item = ToolMetrics>) -> Option<ToolMetrics> {
    let mut launches = 0u32;
    let mut together: Option<ToolMetrics> = None;
    for run in all {
        let most = run.metrics.iter().flat_map(|metric| &metric.launches).max().copied();
        match &mut together {
            None => together = Some(run),
            Some(together) => add(together, run, launches),
        }
        launches = most.map_or(launches, |most| launches.saturating_add(most.saturating_add(1)));
    }
    together
}

/// The results of one of several commands, each under its command's name.
fn of_command(run: &ToolMetrics, command: Option<&String>) -> ToolMetrics {
    let mut run = run.clone();
    for metric in &mut run.metrics {
        let name = format!("{}: {}", command.map_or("", String::as_str), metric.benchmark);
        metric.benchmark = name.trim_end_matches(": ").to_owned();
    }
    run
}

/// Adds what another run printed, whose launches come after so many.
fn add(together: &mut ToolMetrics, run: ToolMetrics, launches: u32) {
    let key = |metric: &ToolMetric| (metric.benchmark.clone(), metric.name.clone(), metric.unit.clone());
    let mut places: BTreeMap<_, usize> = together.metrics.iter().map(key).zip(0..).collect();
    for mut later in run.metrics {
        later.launches.iter_mut().for_each(|launch| *launch = launch.saturating_add(launches));
        let Some(known) = places.get(&key(&later)).and_then(|at| together.metrics.get_mut(*at)) else {
            places.insert(key(&later), together.metrics.len());
            together.metrics.push(later);
            continue;
        };
        known.samples.append(&mut later.samples);
        known.launches.append(&mut later.launches);
        known.workers.append(&mut later.workers);
        known.at_s.append(&mut later.at_s);
        known.windows.append(&mut later.windows);
        // A list that is not of all samples is of none.
        if known.workers.len() != known.samples.len() {
            known.workers.clear();
        }
        if known.at_s.len() != known.samples.len() {
            known.at_s.clear();
        }
        if known.windows.len() != known.samples.len() {
            known.windows.clear();
        }
        // A tool's own summary is of one run.
        known.summary.clear();
    }
    let room = SKIPPED_MAX.saturating_sub(together.skipped.len());
    together.skipped.extend(run.skipped.into_iter().take(room));
    together.skipped_count = together.skipped_count.saturating_add(run.skipped_count);
    for warning in run.warnings {
        if together.warnings.iter().all(|known| known.id != warning.id) {
            together.warnings.push(warning);
        }
    }
}

/// The metrics of a run of tare's own: those that the program printed itself, if it did. The trials of a server are of one launch; each run of a program is one.
pub fn of_outcome(plan: &Plan, outcome: &Outcome) -> ToolMetrics {
    if let Some(results) = &outcome.answers.results {
        return results.clone();
    }
    let commands = &outcome.answers.commands;
    let metrics = match (&plan.workload, commands.as_slice()) {
        (Workload::Command(_), [_, _, ..]) => {
            commands.iter().map(|command| of_times(&command.command, &command.times_s)).collect()
        }
        (Workload::Command(_), commands) => {
            let name = commands.first().map(|command| command.command.clone()).unwrap_or_default();
            outcome.figures.metrics.iter().map(|metric| of_trials(&name, metric, true)).collect()
        }
        (Workload::Http(server), _) => {
            let name = server.url.clone().unwrap_or_default();
            outcome.figures.metrics.iter().map(|metric| of_trials(&name, metric, false)).collect()
        }
    };
    // Its estimates are those of the run.
    ToolMetrics {
        schema: SCHEMA,
        format: "tare".into(),
        metrics,
        configuration: BTreeMap::new(),
        skipped: Vec::new(),
        skipped_count: 0,
        warnings: Vec::new(),
        gets_wrong: Vec::new(),
    }
}

fn of_trials(benchmark: &str, metric: &Metric, are_launches: bool) -> ToolMetric {
    let launch = |at: u32| if are_launches { at } else { 0 };
    ToolMetric {
        benchmark: benchmark.to_owned(),
        name: metric.name.clone(),
        unit: metric.unit.clone(),
        better: Some(metric.better),
        launches: (0..metric.samples.len() as u32).map(launch).collect(),
        samples: metric.samples.clone(),
        workers: Vec::new(),
        at_s: Vec::new(),
        lines: Vec::new(),
        is_target: false,
        windows: Vec::new(),
        configuration: BTreeMap::new(),
        summary: BTreeMap::new(),
        estimate: metric.estimate.map(|value| ToolEstimate {
            value,
            unit: metric.unit.clone(),
            ci95: metric.interval,
        }),
    }
}

fn of_times(command: &str, times_s: &[f64]) -> ToolMetric {
    let metric = Metric {
        name: "time".into(),
        unit: "s".into(),
        better: Better::Lower,
        samples: times_s.to_vec(),
        estimate: None,
        interval: None,
    };
    let metric = of_trials(command, &metric, true);
    ToolMetric { estimate: estimate(&metric), ..metric }
}

fn estimate(metric: &ToolMetric) -> Option<ToolEstimate> {
    let (value, interval) = median_interval(&values(metric))?;
    let ci95 = interval.map(|interval| [interval.lo, interval.hi]);
    Some(ToolEstimate { value, unit: metric.unit.clone(), ci95 })
}

/// What counts as one value each: the median of every launch, or the samples where all are of one.
fn values(metric: &ToolMetric) -> Vec<f64> {
    if has_launches(metric) { medians(metric) } else { metric.samples.clone() }
}

/// Whether it was measured in several launches.
pub(crate) fn has_launches(metric: &ToolMetric) -> bool {
    metric.launches.windows(2).any(|pair| pair[0] != pair[1])
}

/// The median of every launch.
pub(crate) fn medians(metric: &ToolMetric) -> Vec<f64> {
    launches(metric).values().filter_map(|samples| median(samples)).collect()
}

fn launches(metric: &ToolMetric) -> BTreeMap<u32, Vec<f64>> {
    let mut launches: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (launch, value) in metric.launches.iter().zip(&metric.samples) {
        launches.entry(*launch).or_default().push(*value);
    }
    launches
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::observation::Observation;
    use tare_model::trial::CommandSample;

    fn metric(samples: &[f64], launches: &[u32]) -> ToolMetric {
        ToolMetric {
            benchmark: "b".into(),
            name: "time".into(),
            unit: "s".into(),
            better: None,
            samples: samples.to_vec(),
            launches: launches.to_vec(),
            workers: Vec::new(),
            at_s: Vec::new(),
            lines: Vec::new(),
            is_target: false,
            windows: Vec::new(),
            configuration: BTreeMap::new(),
            summary: BTreeMap::new(),
            estimate: None,
        }
    }

    fn read(metrics: Vec<ToolMetric>) -> ToolMetrics {
        let none = BTreeMap::new();
        estimated(ToolMetrics {
            schema: 2,
            format: "f".into(),
            metrics,
            configuration: none,
            skipped: Vec::new(),
            skipped_count: 0,
            warnings: Vec::new(),
            gets_wrong: Vec::new(),
        })
    }

    #[test]
    fn iterations_of_one_process_are_one_value() {
        // Three processes that differ by far, each with many equal iterations.
        let samples: Vec<f64> = [1.0, 2.0, 3.0].iter().flat_map(|level| [*level; 50]).collect();
        let launches: Vec<u32> = (0..3).flat_map(|launch| [launch; 50]).collect();
        let result = read(vec![metric(&samples, &launches)]);
        let estimate = result.metrics[0].estimate.clone().unwrap();
        // Student's for (1, 2, 3): 2 ± 4.303 / √3.
        let [low, high] = estimate.ci95.unwrap();
        assert!(
            estimate.value == 2.0 && (low + 0.4841).abs() < 1e-3 && (high - 4.4841).abs() < 1e-3,
            "{estimate:?}"
        );
        assert!(result.warnings.is_empty());
    }

    #[test]
    fn samples_of_one_process_are_said_to_be() {
        let result = read(vec![metric(&[1.0, 2.0], &[0, 0]), metric(&[1.0], &[0])]);
        let ids: Vec<&str> = result.warnings.iter().map(|warning| warning.id.as_str()).collect();
        assert_eq!(ids, ["one-launch"]);
        assert!(result.warnings[0].text.starts_with("1 of 2 metrics"), "{}", result.warnings[0].text);
        assert_eq!(result.metrics[0].estimate.clone().unwrap().value, 1.5);
    }

    fn run(results: Option<ToolMetrics>) -> Trial {
        let sample = CommandSample {
            command: 0,
            wall_ns: 1,
            user_ns: 0,
            system_ns: 0,
            voluntary_switches: 0,
            involuntary_switches: 0,
            rss_bytes_max: 0,
            exit_code: Some(0),
            signal: None,
            unobserved: false,
            results: results.map(Box::new),
        };
        let observation = Observation::default();
        Trial { seq: 0, level: 0, sample: Measure::Command(sample), observation, report: None }
    }

    #[test]
    fn runs_of_a_benchmark_are_launches_of_it() {
        let one = |value: f64| read(vec![metric(&[value, value], &[0, 1])]);
        let mut other = one(3.0);
        other.metrics[0].name = "another".into();
        let together =
            of_runs(&[run(Some(one(1.0))), run(Some(one(2.0))), run(None), run(Some(other))], &[]).unwrap();
        let found: Vec<(&str, &[f64], &[u32])> =
            together.metrics.iter().map(|m| (m.name.as_str(), &m.samples[..], &m.launches[..])).collect();
        assert_eq!(
            found,
            [
                ("time", &[1.0, 1.0, 2.0, 2.0][..], &[0, 1, 2, 3][..]),
                ("another", &[3.0, 3.0][..], &[4, 5][..])
            ]
        );
        assert_eq!(of_runs(&[run(None)], &[]), None);
    }

    #[test]
    fn commands_are_kept_apart() {
        let one = |value: f64| read(vec![metric(&[value], &[0])]);
        let mut second = run(Some(one(2.0)));
        if let Measure::Command(run) = &mut second.sample {
            run.command = 1;
        }
        let together = of_runs(&[run(Some(one(1.0))), second], &["old".into(), "new".into()]).unwrap();
        let names: Vec<&str> = together.metrics.iter().map(|metric| metric.benchmark.as_str()).collect();
        assert_eq!(names, ["old: b", "new: b"]);
    }

    #[test]
    fn what_has_no_sample_has_no_estimate() {
        assert_eq!(read(vec![metric(&[], &[])]).metrics[0].estimate, None);
    }
}
