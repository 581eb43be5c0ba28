//! Moments of high latency, and what moved in the same moments.
//!
//! A slice of a trial (100 ms) is a spike where its 99th percentile stands out of the trial's: above the median by five
//! robust standard deviations of its logarithm and by half at least, or where nothing was answered at all. Every series
//! that the observers kept is compared with where the spikes are (`matching`); what is left standing with all the
//! others to choose from moved with them. That is no proof of a cause, and "nothing moved" is an answer.

mod matching;
mod windows;

use crate::accounting::Readings;
use crate::capacity::levels::Accounting;
use matching::Marks;
use std::collections::{BTreeMap, BTreeSet};
use tare_model::metric::{Descriptor, Kind, Unit};
use tare_model::metrics::{self, groups};
use tare_model::outcome::{Moved, Spike, SpikeTimeline, Spikes, ThrottleBursts};
use tare_model::trial::{Measure, Trial};
use tare_model::{Missing, Reading};
use windows::{Movement, Name, Slice, Whose};

/// Robust standard deviations above the median.
const DEVIATIONS: f64 = 5.0;
/// A median absolute deviation of normal noise is this of its standard deviation.
const MAD_OF_DEVIATION: f64 = 0.6745;
/// How much above the median a spike is at least, in ln.
const LN_MIN: f64 = 0.405;
/// Of fewer slices a trial's usual latency is not known.
const SLICES_MIN: usize = 10;
/// Of fewer spikes it cannot be known what goes with them.
const SPIKES_MIN: usize = 3;
/// Slices and series that are compared, at most; of more series those that are nearest to a cause.
const SLICES_MAX: usize = 20_000;
const SERIES_MAX: usize = 256;
/// A chance above this is no match.
const CHANCE_MAX: f64 = 0.05;
/// A match moved in at least this share of the spikes, and in at most this share of the quiet slices: two normal
/// distributions that are 1.7 standard deviations apart.
const SPIKES_WITH_MIN: f64 = 0.5;
const QUIET_WITH_MAX: f64 = 0.2;
/// A match with this share of the best one's rank sum is about as good.
const ABOUT_AS_WELL: f64 = 0.8;
/// What is listed at most.
const LISTED_MAX: usize = 12;
const TIMELINE_MAX: usize = 300;
/// R2's rule: within 200 ms a group was throttled for 50 ms more, or in 3 periods more.
const BURST_NS: u64 = 200_000_000;
const BURST_THROTTLED_NS: f64 = 5e7;
const BURST_PERIODS: f64 = 3.0;

/// One trial's slices, and what moved in them.
struct Seen {
    seq: u32,
    slices: Vec<Slice>,
    is_spike: Vec<bool>,
    movements: BTreeMap<Name, Movement>,
    /// Slices that overlap a burst of throttling.
    bursts: Option<Vec<bool>>,
}

/// The spikes of the asked level.
pub(crate) fn spikes(accounting: &Accounting) -> Reading<Spikes> {
    let seen: Vec<Seen> = accounting.asked_trials().filter_map(|trial| see(accounting, trial)).collect();
    let slices = seen.iter().map(|trial| trial.slices.len()).sum::<usize>();
    if slices == 0 {
        return Reading::missing("no trial has latencies by slices (only tare's own generator counts them)");
    }
    let is_spike: Vec<bool> = seen.iter().flat_map(|trial| trial.is_spike.iter().copied()).collect();
    let count = is_spike.iter().filter(|is_spike| **is_spike).count();
    let p99s_ns =
        |trial: &Seen| -> Vec<f64> { trial.slices.iter().filter_map(|slice| slice.p99_ns).collect() };
    let all_p99: Vec<f64> = seen.iter().flat_map(p99s_ns).collect();
    let heights = |trial: &Seen| -> Vec<Option<f64>> {
        let usual = tare_stats::median(&p99s_ns(trial));
        trial.slices.iter().map(|slice| slice.p99_ns.zip(usual).map(|(ns, usual)| ns / usual)).collect()
    };
    let marks = Marks::of(is_spike, &seen.iter().flat_map(heights).collect::<Vec<_>>());
    let Compared { names, series, left_out } = lagged(&seen);
    let matches = match count >= SPIKES_MIN && slices <= SLICES_MAX {
        true => Ok(matching::matches(&series, &marks)),
        false if count >= SPIKES_MIN => Err(Missing::new("too many slices to compare")),
        false => Err(Missing::new(format!("{count} spikes are too few to say what goes with them"))),
    };
    let known = |one: &matching::Match| {
        one.p <= CHANCE_MAX && one.spikes_with >= SPIKES_WITH_MIN && one.quiet_with <= QUIET_WITH_MAX
    };
    let moved = matches.map(|matches| {
        let best_z = matches.first().map_or(0.0, |best| best.z);
        let mut kept: Vec<matching::Match> = matches.into_iter().filter(known).collect();
        // What acts on the server comes before what shows it, where both match about as well. The sort is stable.
        kept.sort_by_key(|one| match one.z >= ABOUT_AS_WELL * best_z {
            true => standing(&names[one.series]),
            false => Standing::Far,
        });
        let kept = kept.into_iter().take(LISTED_MAX);
        kept.map(|one| describe(&names[one.series], &series[one.series], &marks, &one)).collect::<Vec<_>>()
    });
    let best = moved.as_ref().ok().and_then(|moved: &Vec<Moved>| {
        let first = moved.first()?;
        names.iter().position(|name| label(name) == first.series)
    });
    Reading::Measured(Spikes {
        slices: slices as u32,
        spikes: count as u32,
        p99_median_ns: tare_stats::median(&all_p99),
        largest: largest(&seen),
        series: names.len() as u32,
        series_left_out: left_out,
        moved: moved.into(),
        throttle_bursts: bursts(&seen),
        timeline: timeline(&seen, best.map(|at| (&names[at], &series[at]))),
    })
}

fn see(accounting: &Accounting, trial: &Trial) -> Option<Seen> {
    let Measure::Http(sample) = &trial.sample else { return None };
    let readings = Readings::new(&trial.observation);
    let series = &sample.detail.as_ref()?.series;
    let slices = windows::slices(series, &trial.observation);
    let answers: Vec<f64> = series.iter().map(|slice| slice.requests as f64).collect();
    let is_busy = tare_stats::median(&answers).is_some_and(|usual| usual >= ANSWERS_MIN);
    let is_spike = stand_out(&slices, is_busy)?;
    let movements = windows::movements(&readings, &accounting.record.plan, &slices);
    let bursts = throttled(&readings, &slices);
    Some(Seen { seq: trial.seq, slices, is_spike, movements, bursts })
}

/// A slice without an answer stands out where slices have this many: by chance 0.7 % of them would have none.
const ANSWERS_MIN: f64 = 5.0;

/// Which slices stand out of their trial; `None` for a trial that is too short to say.
fn stand_out(slices: &[Slice], is_busy: bool) -> Option<Vec<bool>> {
    let logs: Vec<f64> =
        slices.iter().filter_map(|slice| slice.p99_ns).filter(|ns| *ns > 0.0).map(f64::ln).collect();
    if logs.len() < SLICES_MIN {
        return None;
    }
    let median = tare_stats::median(&logs)?;
    let distances: Vec<f64> = logs.iter().map(|log| (log - median).abs()).collect();
    let deviation = tare_stats::median(&distances)? / MAD_OF_DEVIATION;
    let threshold = median + (DEVIATIONS * deviation).max(LN_MIN);
    Some(slices.iter().map(|slice| slice.p99_ns.map_or(is_busy, |ns| ns.ln() > threshold)).collect())
}

/// The series that are compared with the spikes: a name and a value in each slice.
#[derive(Default)]
struct Compared {
    names: Vec<Name>,
    series: Vec<Vec<f64>>,
    /// Others that moved.
    left_out: u32,
}

/// Every series over all trials that is not the same all along. A series that a trial lacks was as usual in it.
fn lagged(seen: &[Seen]) -> Compared {
    let names: BTreeSet<&Name> = seen.iter().flat_map(|trial| trial.movements.keys()).collect();
    let mut names: Vec<&Name> = names.into_iter().collect();
    names.sort_by_key(|name| standing(name));
    let mut compared = Compared::default();
    for name in names {
        let values = lagged_one(seen, name);
        let known: Vec<f64> = values.iter().copied().flatten().collect();
        let moves = known.first().is_some_and(|first| known.iter().any(|value| value != first));
        match tare_stats::median(&known).filter(|_| moves && 2 * known.len() >= values.len()) {
            Some(_) if compared.names.len() >= SERIES_MAX => compared.left_out += 1,
            Some(usual) => {
                compared.names.push(name.clone());
                compared.series.push(values.into_iter().map(|value| value.unwrap_or(usual)).collect());
            }
            None => {}
        }
    }
    compared
}

/// In each slice the most of this one and the one before, as what delays a request is over before it is answered.
/// Larger is worse.
fn lagged_one(seen: &[Seen], name: &Name) -> Vec<Option<f64>> {
    let sign = metrics::by_id(name.metric).map_or(1.0, worse);
    let mut values = Vec::new();
    for trial in seen {
        let movement = trial.movements.get(name);
        let of = |at: usize| movement?.get(at).copied().flatten().map(|value| sign * value);
        values.extend((0..trial.slices.len()).map(|at| {
            let before = at.checked_sub(1).and_then(of);
            of(at).into_iter().chain(before).max_by(f64::total_cmp)
        }));
    }
    values
}

/// How near to a cause a series is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    /// It is done to the server from outside.
    Cause,
    /// It may be either.
    Either,
    /// It is what one sees of the rest: switches, run, pressure on the CPU, soft interrupts.
    Sign,
    /// Whatever it is, others match far better.
    Far,
}

fn standing(name: &Name) -> Standing {
    let is = |metrics: &[&Descriptor]| metrics.iter().any(|metric| metric.id == name.metric);
    if name.whose == Whose::OthersOnServersCpus
        || is(&[&groups::THROTTLED_NS, &groups::THROTTLED_PERIODS])
        || is(&[&metrics::cpus::STEAL_NS, &metrics::clock::EFFECTIVE_HZ])
    {
        return Standing::Cause;
    }
    let observer = name.metric.split_once('.').map_or("", |(observer, _)| observer);
    let faults = [&metrics::tasks::MAJOR_FAULTS, &metrics::tasks::MINOR_FAULTS];
    match observer {
        "tasks" if !is(&faults) => Standing::Sign,
        "cpus" | "softirqs" | "pmu" | "energy" => Standing::Sign,
        "pressure" if is(&[&metrics::pressure::CPU_SOME_NS]) => Standing::Sign,
        _ => Standing::Either,
    }
}

/// A clock is worse when it is lower.
fn worse(metric: &Descriptor) -> f64 {
    if metric.kind == Kind::Gauge && metric.unit == Unit::Hertz { -1.0 } else { 1.0 }
}

fn describe(name: &Name, values: &[f64], marks: &Marks, found: &matching::Match) -> Moved {
    let sign = metrics::by_id(name.metric).map_or(1.0, worse);
    let median = |marks: &[bool]| sign * tare_stats::median(&matching::marked(values, marks)).unwrap_or(0.0);
    let (in_spikes, in_quiet) = (median(&marks.is_spike), median(&marks.is_quiet));
    let scale = scale(name);
    Moved {
        series: label(name),
        metric: name.metric.to_owned(),
        unit: unit(name).to_owned(),
        in_spikes: scale * in_spikes,
        in_quiet: scale * in_quiet,
        spikes_with: found.spikes_with,
        quiet_with: found.quiet_with,
        chance: found.p,
    }
}

/// Time per time is a share, or CPUs.
fn scale(name: &Name) -> f64 {
    match metrics::by_id(name.metric).map(|metric| metric.unit) {
        Some(Unit::Nanosecond) => 1e-9,
        _ => 1.0,
    }
}

fn unit(name: &Name) -> &'static str {
    let Some(metric) = metrics::by_id(name.metric) else { return "" };
    match (metric.unit, metric.kind) {
        (Unit::Nanosecond, Kind::Counter) => "s/s",
        (Unit::Nanosecond, Kind::Gauge) => "s",
        (Unit::Count, Kind::Counter) => "/s",
        (Unit::Byte, _) => "B",
        (Unit::Hertz, _) => "Hz",
        (Unit::Celsius, _) => "°C",
        (Unit::Microjoule, _) => "µJ/s",
        _ => "",
    }
}

/// What a series is called: whose, and what.
fn label(name: &Name) -> String {
    let what = match name.metric {
        id if id == groups::THROTTLED_NS.id => "held back by a quota",
        id if id == groups::THROTTLED_PERIODS.id => "periods in which the quota ran out",
        id if id == metrics::tasks::RUN_NS.id => "on a CPU",
        id if id == metrics::cpus::TASK_RUN_NS.id && name.whose == Whose::OthersOnServersCpus => "on a CPU",
        id => id.split_once('.').map_or(id, |(_, what)| what),
    };
    let what = what.trim_end_matches("_ns").replace('_', " ");
    match &name.whose {
        Whose::Server => format!("server: {what}"),
        Whose::Generator => format!("load generator: {what}"),
        Whose::OthersOnServersCpus => format!("others on the server's CPUs: {what}"),
        Whose::ServersCpus => format!("server's CPUs: {}", with_observer(name, &what)),
        Whose::GeneratorsCpus => format!("generator's CPUs: {}", with_observer(name, &what)),
        Whose::Machine => format!("machine: {}", with_observer(name, &what)),
        Whose::Group(path) => format!("group {path}: {}", with_observer(name, &what)),
        Whose::Device(device) => format!("{device}: {what}"),
    }
}

/// `pressure: cpu some` says more than `cpu some`.
fn with_observer(name: &Name, what: &str) -> String {
    match name.metric.split_once('.').map(|(observer, _)| observer) {
        Some(observer @ ("pressure" | "softirqs")) => format!("{observer} {what}"),
        _ => what.to_owned(),
    }
}

/// The spikes by height, those without any answer first.
fn largest(seen: &[Seen]) -> Vec<Spike> {
    let mut all = Vec::new();
    for trial in seen {
        let begin_ns = trial.slices.first().map_or(0, |slice| slice.begin_ns);
        let spikes = trial.slices.iter().zip(&trial.is_spike).filter(|(_, is_spike)| **is_spike);
        all.extend(spikes.map(|(slice, _)| Spike {
            trial: trial.seq,
            at_s: slice.begin_ns.saturating_sub(begin_ns) as f64 / 1e9,
            length_s: slice.seconds(),
            p99_ns: slice.p99_ns,
        }));
    }
    all.sort_by(|a, b| {
        let height = |spike: &Spike| spike.p99_ns.unwrap_or(f64::INFINITY);
        height(b).total_cmp(&height(a))
    });
    all.truncate(LISTED_MAX);
    all
}

/// R2's rule, on every group of the SUT: which slices overlap a burst. `None` where no group's throttling is known.
fn throttled(readings: &Readings, slices: &[Slice]) -> Option<Vec<bool>> {
    let rules = [(&groups::THROTTLED_NS, BURST_THROTTLED_NS), (&groups::THROTTLED_PERIODS, BURST_PERIODS)];
    let mut known = false;
    let mut bursts = vec![false; slices.len()];
    for (metric, least) in rules {
        for column in readings.observation.columns.iter().filter(|column| column.metric == metric.id) {
            let samples = readings.samples(metric, &column.subject);
            known |= samples.len() >= 2;
            for (at, last) in samples.iter().enumerate() {
                let first_ns = last.at_ns.saturating_sub(BURST_NS);
                let first = samples[..at].partition_point(|sample| sample.at_ns < first_ns);
                let Some(first) = samples[..at].get(first) else { continue };
                if last.value - first.value >= least {
                    let overlaps = |slice: &Slice| slice.begin_ns < last.at_ns && slice.end_ns > first.at_ns;
                    let hit = bursts.iter_mut().zip(slices).filter(|(_, slice)| overlaps(slice));
                    hit.for_each(|(burst, _)| *burst = true);
                }
            }
        }
    }
    known.then_some(bursts)
}

fn bursts(seen: &[Seen]) -> Reading<ThrottleBursts> {
    let known: Vec<&Seen> = seen.iter().filter(|trial| trial.bursts.is_some()).collect();
    if known.is_empty() {
        return Reading::missing("throttling of the server's groups was not read between the edges");
    }
    let mut found = ThrottleBursts { slices: 0, with_spike: 0 };
    for trial in known {
        let bursts = trial.bursts.as_deref().unwrap_or_default();
        found.slices += bursts.iter().filter(|burst| **burst).count() as u32;
        let both = bursts.iter().zip(&trial.is_spike).filter(|(burst, spike)| **burst && **spike);
        found.with_spike += both.count() as u32;
    }
    Reading::Measured(found)
}

/// The trial with the most spikes, with the series that matches best.
fn timeline(seen: &[Seen], best: Option<(&Name, &Vec<f64>)>) -> Option<SpikeTimeline> {
    let spikes = |trial: &Seen| trial.is_spike.iter().filter(|is_spike| **is_spike).count();
    let (place, trial) = seen.iter().enumerate().max_by_key(|(_, trial)| spikes(trial))?;
    if spikes(trial) == 0 {
        return None;
    }
    let skipped: usize = seen.iter().take(place).map(|trial| trial.slices.len()).sum();
    let length = trial.slices.len().min(TIMELINE_MAX);
    let values = best.and_then(|(name, values)| {
        let sign = metrics::by_id(name.metric).map_or(1.0, worse) * scale(name);
        let own = values.get(skipped..skipped + length)?;
        Some((name, own.iter().map(|value| sign * value).collect::<Vec<f64>>()))
    });
    let begin_ns = trial.slices.first().map_or(0, |slice| slice.begin_ns);
    let shown = trial.slices.iter().take(length);
    Some(SpikeTimeline {
        trial: trial.seq,
        ends_s: shown.clone().map(|slice| slice.end_ns.saturating_sub(begin_ns) as f64 / 1e9).collect(),
        p99_ns: shown.map(|slice| slice.p99_ns).collect(),
        is_spike: trial.is_spike.iter().take(length).copied().collect(),
        series: values.as_ref().map(|(name, _)| label(name)),
        unit: values.as_ref().map_or("", |(name, _)| unit(name)).to_owned(),
        values: values.map(|(_, values)| values).unwrap_or_default(),
    })
}
