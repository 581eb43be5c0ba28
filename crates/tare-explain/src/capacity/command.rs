//! Programs that run and end: gross is the wall time of a run, net is what would be left of it with nothing in
//! the way at the reference clock, and the tare parts sum to ln(gross / net).

use crate::accounting::Closed;
use crate::accounting::ratio;
use crate::capacity::estimate::{self, estimate};
use crate::capacity::level::Level;
use crate::capacity::net::NetEstimate;
use crate::capacity::runs::{are_timed_apart, counts, mean_s, runs_of, rusage_cpus, timed_runs_of};
use crate::capacity::stopping;
use std::collections::BTreeMap;
use tare_model::outcome::{CommandSummary, Net, NetOrMissing, TareCause};
use tare_model::plan::CommandWorkload;
use tare_model::trial::{CommandSample, Measure};
use tare_model::{Missing, Record};
use tare_stats::{Interval, log_mean};

/// Waits of threads that were seen stand for a run if those threads did this share of its work.
const SEEN_SHARE_MIN: f64 = 0.8;

/// The runs of one command that were observed: where its time went.
pub(crate) fn level(record: &Record, windows: &[Closed], command: u32) -> Level {
    level_of(record, windows, command, |run| !run.unobserved)
}

/// Those whose times count: gross.
pub(crate) fn timed_level(record: &Record, windows: &[Closed], command: u32) -> Level {
    let apart = are_timed_apart(record, command);
    level_of(record, windows, command, |run| counts(run, apart))
}

fn level_of(
    record: &Record,
    windows: &[Closed],
    command: u32,
    belongs: impl Fn(&CommandSample) -> bool,
) -> Level {
    let mine = record.trials.iter().zip(windows).filter(|(trial, _)| match &trial.sample {
        Measure::Command(run) => run.command == command && belongs(run),
        Measure::Http(_) => false,
    });
    Level::new(mine.map(|(_, window)| window.clone()).collect())
}

/// A run's time without what others took, part by part.
struct Chain {
    net_s: f64,
    /// What it is at least, if no two threads waited at once and each wait kept all others from the end; never less than its CPU time on all
    /// CPUs.
    least_s: f64,
    parts: BTreeMap<TareCause, f64>,
}

/// What follows from the run's own accounting: its threads' waits for others, stolen time, and the clock.
///
/// A second of waiting delays the end by a second only where one thread is at work; where several are, it is
/// divided by how many are running or ready on average. That is right where they wait alike; where one waits for the other at the end of a
/// part (a merge of two sorted halves), each wait may have delayed the end by all of it.
fn chain(window: &Closed, reference_hz: Option<f64>) -> Option<Chain> {
    let gross_s = mean_s(window)?;
    let sut = window.sut.as_ref()?;
    let threads = || window.threads_of(tare_model::observation::Role::Sut);
    let queue_s: f64 = threads().map(|thread| thread.queue_s.unwrap_or(0.0)).sum();
    let at_work = ratio(sut.run_s + queue_s, sut.wall_s).max(1.0);
    let runs = f64::from(window.span.trials);
    let delay = |seconds: f64| seconds / at_work / runs;
    let sum = |of: fn(&crate::accounting::Thread) -> f64| delay(threads().map(of).sum::<f64>());
    let delays = [
        (TareCause::Throttled, sum(|thread| thread.wait.throttled_s)),
        (TareCause::Preempted, sum(|thread| thread.wait.behind_s.other)),
        (TareCause::Placement, sum(|thread| thread.wait.behind_s.load + thread.wait.behind_s.tare)),
        (TareCause::Scheduler, sum(|thread| thread.wait.scheduler_s)),
        (TareCause::Steal, sum(|thread| thread.taken.steal_s)),
        (TareCause::Irq, sum(|thread| thread.taken.irq_s)),
    ];
    let taken_s: f64 = delays.iter().map(|(_, delay)| delay).sum();
    // The window may be a hair longer than the run: never take all of it.
    let fit = if taken_s > 0.99 * gross_s { 0.99 * gross_s / taken_s } else { 1.0 };
    let undisturbed_s = gross_s - taken_s * fit;
    let mean = log_mean(gross_s, undisturbed_s)?;
    let mut parts: BTreeMap<TareCause, f64> = delays
        .into_iter()
        .filter(|(_, delay)| *delay > 0.0)
        .map(|(cause, delay)| (cause, delay * fit / mean))
        .collect();
    let mut net_s = undisturbed_s;
    if let (Some(reference), Some(clock)) = (reference_hz, window.clock_hz()) {
        // Only time on a CPU follows the clock; sleep does not.
        let on_cpu_s = delay(sut.run_s).min(undisturbed_s);
        net_s = undisturbed_s - on_cpu_s + on_cpu_s * clock / reference;
        parts.insert(TareCause::Clock, (undisturbed_s / net_s).ln());
    }
    let cpu_s = ratio(sut.run_s, sut.usable.len().max(1) as f64 * runs);
    let least_s = (gross_s - taken_s * at_work).max(cpu_s).min(undisturbed_s) * net_s / undisturbed_s;
    let whole = net_s.is_finite() && net_s > 0.0 && parts.values().all(|part| part.is_finite());
    whole.then_some(Chain { net_s, least_s, parts })
}

/// Gross → tare → net of one command.
pub(crate) fn estimate_net(
    record: &Record,
    command: u32,
    level: &Level,
    windows: &[Closed],
) -> Result<NetEstimate, Missing> {
    if level.trials.is_empty() {
        return Err(Missing::new("the command was not run"));
    }
    let clocks: Vec<f64> =
        windows.iter().flat_map(|window| window.hardware.clocks_hz.iter().copied()).collect();
    let given = record.plan.ref_clock_hz.filter(|hz| hz.is_finite() && *hz > 0.0);
    let reference_hz = given.or_else(|| tare_stats::quantile(&clocks, 0.95));
    // Children that ended unseen ran, and may have waited for long.
    let threads = level.pool.threads_of(tare_model::observation::Role::Sut);
    let run_s: f64 = threads.filter(|thread| thread.queue_s.is_some()).map(|thread| thread.run_s).sum();
    let cpu_s = rusage_cpus(runs_of(record, command).filter(|run| !run.unobserved)).unwrap_or(0.0)
        * level.pool.answered.elapsed_s;
    let seen = run_s > 0.0 && run_s >= SEEN_SHARE_MIN * cpu_s;
    let pooled = chain(&level.pool, reference_hz).filter(|_| seen).ok_or_else(|| {
        Missing::with_remedy(
            "most of the program's CPU time was in threads that were not seen long enough to say what they waited for",
            "measure a longer run of it",
        )
    })?;
    let causes: Vec<TareCause> = pooled.parts.keys().copied().collect();
    // What observers make a run longer by is no part of what it would take undisturbed: from runs that were observed comes only what
    // share of a run the rest is.
    let timed = are_timed_apart(record, command).then(|| timed_level(record, windows, command));
    let longer = |window: &Closed| timed.as_ref().map_or(Some(1.0), |_| mean_s(window));
    let spread = level.spread(|window| {
        let chain = chain(window, reference_hz)?;
        let parts = causes.iter().map(|cause| chain.parts.get(cause).copied().unwrap_or(0.0));
        Some(std::iter::once((chain.net_s / longer(window)?).ln()).chain(parts).collect())
    });
    let ci = |place: usize| -> Option<Interval> { spread.as_ref()?.get(place)?.ci95() };
    let of_observed = ci(0).and_then(|interval| interval.map(f64::exp));
    let (net, net_ci95) = match timed.as_ref().and_then(|timed| estimate(timed, "s", mean_s)) {
        Some(gross) => {
            let share = pooled.net_s / mean_s(&level.pool).unwrap_or(gross.value);
            let halves = [gross.ci95, of_observed.map(|interval| [interval.lo, interval.hi])];
            let half = |[lo, hi]: [f64; 2]| 0.5 * (hi / lo).ln();
            let half = halves[0].map(half).zip(halves[1].map(half)).map(|(gross, share)| gross.hypot(share));
            let net = gross.value * share;
            (net, half.and_then(|half| Interval::new(net * (-half).exp(), net * half.exp())))
        }
        None => (pooled.net_s, of_observed),
    };
    let parts = pooled
        .parts
        .iter()
        .enumerate()
        .map(|(place, (cause, part))| (*cause, *part, ci(place + 1)))
        .collect();
    let clocked = pooled.parts.contains_key(&TareCause::Clock);
    let lower = ratio(pooled.least_s, pooled.net_s).clamp(f64::MIN_POSITIVE, 1.0);
    Ok(NetEstimate {
        net,
        net_ci95: net_ci95.and_then(|interval| Interval::new(interval.lo * lower, interval.hi)),
        net_of_trials: net_ci95,
        parts,
        reference_hz: reference_hz.filter(|_| clocked),
        entitled: level.pool.sut.as_ref().map_or(0.0, |sut| sut.cpus()),
        choice: None,
        against: None,
    })
}

/// Net as data.
pub(crate) fn net(net_estimate: &Result<NetEstimate, Missing>) -> NetOrMissing {
    match net_estimate {
        Ok(net_estimate) => NetOrMissing::Net(Net {
            value: net_estimate.net,
            unit: "s".to_owned(),
            ci95: net_estimate.net_ci95.map(|interval| [interval.lo, interval.hi]),
            transport: "none".to_owned(),
            cpus: net_estimate.entitled,
            ref_clock_hz: net_estimate.reference_hz,
            against_reference: None,
        }),
        Err(missing) => NetOrMissing::Missing(missing.clone()),
    }
}

/// Every command of the workload, summed up as users of benchmark runners know it.
pub(crate) fn summaries(
    record: &Record,
    commands: &CommandWorkload,
    windows: &[Closed],
) -> Vec<CommandSummary> {
    let indexed = (0u32..).zip(&commands.commands);
    indexed.filter_map(|(index, text)| summed_up(record, windows, index, text)).collect()
}

fn summed_up(record: &Record, windows: &[Closed], index: u32, text: &str) -> Option<CommandSummary> {
    let level = level(record, windows, index);
    let timed = timed_level(record, windows, index);
    let samples: Vec<&CommandSample> = timed_runs_of(record, index).collect();
    let times_s: Vec<f64> = samples.iter().map(|sample| sample.wall_ns as f64 / 1e9).collect();
    let mean_of = |of: fn(&CommandSample) -> u64| {
        let seconds: Vec<f64> = samples.iter().map(|sample| of(sample) as f64 / 1e9).collect();
        tare_stats::mean(&seconds)
    };
    let stopping = stopping::stopped(record, index, windows);
    Some(CommandSummary {
        command: text.to_owned(),
        gross: estimate::stopped(estimate(&timed, "s", mean_s)?, stopping.as_ref()),
        stopping,
        net: net(&estimate_net(record, index, &level, windows)),
        stdev_s: tare_stats::stdev(&times_s),
        median_s: tare_stats::median(&times_s)?,
        min_s: tare_stats::quantile(&times_s, 0.0)?,
        max_s: tare_stats::quantile(&times_s, 1.0)?,
        user_s: mean_of(|sample| sample.user_ns)?,
        system_s: mean_of(|sample| sample.system_ns)?,
        runs: samples.len().try_into().unwrap_or(u32::MAX),
        exit_codes: samples.iter().map(|sample| sample.exit_code).collect(),
        times_s,
        against_fastest: None,
        start_up: None,
    })
}
