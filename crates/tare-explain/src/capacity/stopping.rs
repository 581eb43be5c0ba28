//! How well net or gross is known, and whether that is enough: asked after each trial of a session, and again whenever its record
//! is read, so that both mean the same.
//!
//! The trials are one series on one launch, each of which may depend on those before it, and they are evaluated after each:
//! [`Sequence::of_series`] has the interval. How many are planned follows from the time that the first took, which depends on none of their
//! figures. Where each block has a window in which the SUT and the reference server are interleaved, it is net that counts: a host that
//! disturbs both moves gross, and not the share that net is.

use crate::accounting::Closed;
use crate::capacity::net::{between_sessions_ln, unlike_programs_ln};
use crate::capacity::reference::cost_s;
use crate::capacity::reference_level;
use crate::capacity::results::{ByRun, is_constant, widest};
use crate::capacity::runs;
use tare_model::Record;
use tare_model::comparison::Ended;
use tare_model::outcome::{Stopped, Target};
use tare_model::plan::{Plan, Purpose, Stopping, Workload};
use tare_model::trial::{Measure, Trial, WarmUp};
use tare_stats::{Foresight, PLANNED_MAX, SERIES_MIN, Sequence};

/// Coverage of the interval.
const LEVEL: f64 = 0.95;
const ONE_PERCENT: f64 = 0.01;

/// Interim evaluations of the trials of the asked level, or of the runs of a command.
#[derive(Debug)]
pub struct Interim {
    asked: Stopping,
    of: Of,
    /// How long they may take.
    budget_s: f64,
    /// How many there may be.
    most: usize,
    /// Once it is known how many are planned.
    sequence: Option<Sequence>,
    target: Target,
    /// The accounting of the trials so far, where that is needed.
    windows: Vec<Closed>,
    /// The results that runs of a benchmark printed, where that is one.
    results: ByRun,
}

/// Whose figures count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Level(u32),
    Command(u32),
}

impl Interim {
    /// Of the runs of a command, or, of a server, of the trials of the asked level. `None` where the plan says how many there are.
    pub fn of(plan: &Plan, command: u32) -> Option<Interim> {
        let asked = plan.stopping?;
        if ![asked.budget_s, asked.precision.unwrap_or(0.0)].iter().all(|figure| figure.is_finite()) {
            return None;
        }
        let (of, most, parts) = match &plan.workload {
            Workload::Http(http) => {
                let counted = match target(plan) {
                    Target::Gross | Target::Results => Purpose::Asked,
                    Target::Net => Purpose::Saturating,
                };
                let mut levels = (0..).zip(&http.levels);
                let (index, level) = levels.find(|(_, level)| level.purpose == counted)?;
                (Of::Level(index), level.trials, 1)
            }
            Workload::Command(commands) => {
                // Interleaved, each of them has the whole time.
                let parts = if commands.interleaved { 1 } else { commands.commands.len() };
                (Of::Command(command), commands.runs, parts)
            }
        };
        let budget_s = asked.budget_s / parts.max(1) as f64;
        let target = target(plan);
        Some(Interim {
            asked,
            of,
            budget_s,
            most: most as usize,
            sequence: None,
            target,
            windows: Vec::new(),
            results: ByRun::default(),
        })
    }

    /// What is known by the trials of a record so far.
    pub fn evaluate(&mut self, record: &Record) -> Stopped {
        let mut windows = std::mem::take(&mut self.windows);
        if self.target == Target::Net {
            windows.extend(Closed::since(record, windows.len()));
        }
        let stopped = self.evaluate_on(record, &windows);
        self.windows = windows;
        stopped
    }

    /// The same with the accounting of its trials.
    fn evaluate_on(&mut self, record: &Record, windows: &[Closed]) -> Stopped {
        let trials: Vec<&Trial> = record.trials.iter().filter(|trial| self.takes_time(trial)).collect();
        let apart = matches!(self.of, Of::Command(command) if runs::are_timed_apart(record, command));
        let counted: Vec<&Trial> = trials.iter().copied().filter(|trial| self.counts(trial, apart)).collect();
        let blocks = counted.len();
        let before_s = trials.iter().map(|trial| load_before_s(trial)).sum::<f64>();
        let period_s = span_s(&trials) / blocks.max(1) as f64;
        if self.sequence.is_none() && blocks >= SERIES_MIN {
            self.sequence = self
                .planned(&trials, apart, before_s)
                .and_then(|planned| Sequence::of_series(planned, LEVEL));
        }
        let sequence = self.sequence.as_ref();
        self.results.follow(&counted);
        let results = self.results.shares();
        let target = if results.is_some() { Target::Results } else { self.target };
        let (series, systematic_ln, unlike_ln) = match (results, self.target) {
            (Some(results), _) => (results, 0.0, 0.0),
            (None, Target::Net) => {
                let shares = Shares::of(record, windows);
                (vec![shares.ln], shares.systematic_ln, shares.unlike_ln)
            }
            (None, _) => (shares_of_mean(&counted).into_iter().collect(), 0.0, 0.0),
        };
        let analysis = sequence.and_then(|plan| widest(plan, &series));
        let elapsed_s = before_s + span_s(&trials);
        let over = blocks > 0 && elapsed_s + period_s > self.budget_s
            || sequence.is_some_and(|sequence| blocks >= sequence.planned());
        let foresight =
            sequence.zip(analysis.as_ref()).map(|(plan, analysis)| plan.foresee(analysis, blocks));
        let Foresight { detectable, one_percent_launches } =
            foresight.unwrap_or(Foresight { detectable: None, one_percent_launches: None });
        let of_analysis = analysis.map(|analysis| 0.5 * (analysis.interval.hi - analysis.interval.lo));
        let is_exact = target == Target::Results
            && sequence.is_some()
            && series.iter().all(|values| is_constant(values));
        let half = if is_exact { Some(0.0) } else { of_analysis };
        let half_ln = half.map(|half: f64| half.hypot(systematic_ln));
        let share = |share: f64| Some(share).filter(|share| share.is_finite());
        Stopped {
            target,
            precision: self.asked.precision,
            budget_s: self.budget_s,
            elapsed_s,
            trials: blocks,
            planned: sequence.map(Sequence::planned),
            ended: match half_ln.zip(self.asked.precision.map(f64::asinh)) {
                Some((half, precision)) if half <= precision => Some(Ended::Precise),
                _ => over.then_some(Ended::Budget),
            },
            reached: half_ln.map(half_width_ratio).and_then(share),
            // The difference of two such means has √2 times the standard error of either.
            detectable: detectable.and_then(|ln| share((ln * std::f64::consts::SQRT_2).exp_m1())),
            one_percent_s: one_percent_launches
                .filter(|_| unlike_ln < ONE_PERCENT)
                .map(|blocks| before_s + blocks as f64 * period_s),
            between_sessions: Some(half_width_ratio(unlike_ln)).filter(|share| *share > 0.0),
        }
    }

    /// Whether a trial is part of what the budget is for.
    fn takes_time(&self, trial: &Trial) -> bool {
        match (self.of, &trial.sample) {
            (Of::Command(command), Measure::Command(run)) => run.command == command,
            (Of::Level(_), Measure::Http(_)) => true,
            _ => false,
        }
    }

    fn counts(&self, trial: &Trial, apart: bool) -> bool {
        match (self.of, &trial.sample) {
            (Of::Level(level), _) => level == trial.level,
            (Of::Command(_), Measure::Command(run)) => runs::counts(run, apart),
            (Of::Command(_), Measure::Http(_)) => false,
        }
    }

    /// How many trials the budget has room for, by the time that the first [`SERIES_MIN`] took with those of other levels among
    /// them: there is no interval before there are so many.
    fn planned(&self, trials: &[&Trial], apart: bool, before_s: f64) -> Option<usize> {
        let mut counted = trials.iter().enumerate().filter(|(_, trial)| self.counts(trial, apart));
        let first = counted.nth(SERIES_MIN).map_or(trials, |(next, _)| &trials[..next]);
        let took_s = span_s(first);
        let more = (self.budget_s - before_s - took_s) * SERIES_MIN as f64 / took_s;
        // Of a time that is not positive, or of none, no number comes: then there are none.
        let planned = SERIES_MIN.saturating_add(more.max(0.0) as usize);
        (took_s > 0.0).then(|| planned.min(self.most).clamp(SERIES_MIN, PLANNED_MAX))
    }
}

/// How well the figure of a command, or of the asked level, is known; with the accounting of the record's trials.
pub(crate) fn stopped(record: &Record, command: u32, windows: &[Closed]) -> Option<Stopped> {
    Interim::of(&record.plan, command).map(|mut interim| interim.evaluate_on(record, windows))
}

/// Net, where the SUT and the reference are interleaved at least as often as the asked load is driven, and what they are stated at is
/// known.
pub fn target(plan: &Plan) -> Target {
    let Workload::Http(http) = &plan.workload else { return Target::Gross };
    let trials = |purpose| {
        let level = http.levels.iter().find(|level| level.purpose == purpose);
        level.filter(|level| purpose == Purpose::Asked || level.arms > 1).map(|level| level.trials)
    };
    let all = [Purpose::Asked, Purpose::Saturating, Purpose::Reference].map(trials);
    let often = all[0].is_some() && all.iter().all(|trials| *trials >= all[0]);
    if often && http.reference.is_some() { Target::Net } else { Target::Gross }
}

/// What the SUT does over what the reference does, window by window.
struct Shares {
    ln: Vec<f64>,
    /// How far off all of them together may be.
    systematic_ln: f64,
    /// The part of it that is the same for every session on this machine, however long.
    unlike_ln: f64,
}

impl Shares {
    fn of(record: &Record, windows: &[Closed]) -> Shares {
        let Workload::Http(http) = &record.plan.workload else {
            return Shares { ln: Vec::new(), systematic_ln: 0.0, unlike_ln: 0.0 };
        };
        let costs = |purpose: Purpose| -> Vec<Option<f64>> {
            let trials = record.trials.iter().zip(windows).filter(|(trial, _)| {
                let level = http.levels.get(trial.level as usize);
                level.is_some_and(|level| level.purpose == purpose && level.arms > 1)
            });
            trials.map(|(_, window)| cost_s(window)).collect()
        };
        let (suts, references) = (costs(Purpose::Saturating), costs(Purpose::Reference));
        let pairs = suts.into_iter().zip(&references);
        let ln = pairs.filter_map(|(sut, reference)| Some(((*reference)? / sut?).ln())).collect();
        let seen: Vec<f64> = references.iter().copied().flatten().collect();
        let level = reference_level::stated(record, http, windows);
        let level = level.as_ref();
        let systematic_ln = level.map_or(0.0, |level| between_sessions_ln(level, tare_stats::median(&seen)));
        Shares { ln, systematic_ln, unlike_ln: level.map_or(0.0, unlike_programs_ln) }
    }
}

/// Half of an interval that reaches so far on the log, relative to its middle: the figure that stands behind gross.
pub(crate) fn half_width_ratio(half_ln: f64) -> f64 {
    half_ln.sinh()
}

/// The load before a trial.
pub(crate) fn warm_up(trial: &Trial) -> Option<&WarmUp> {
    let Measure::Http(sample) = &trial.sample else { return None };
    sample.detail.as_ref()?.warm_up.as_ref()
}

/// From the beginning of the first to the end of the last.
fn span_s(trials: &[&Trial]) -> f64 {
    let ends = trials.first().zip(trials.last());
    ends.map_or(0.0, |(first, last)| {
        last.observation.end_ns.saturating_sub(first.observation.begin_ns) as f64 / 1e9
    })
}

fn load_before_s(trial: &Trial) -> f64 {
    let slices = |warm_up: &WarmUp| warm_up.slice_ns as f64 * warm_up.answers.len() as f64;
    warm_up(trial).map_or(0.0, |warm_up| slices(warm_up) / 1e9)
}

/// Rates or times over their mean: half of an interval of these is, to first order, half of that of the mean's logarithm. Not their
/// logarithms, since gross is the mean, and a trial that nearly stalled would rule them.
fn shares_of_mean(trials: &[&Trial]) -> Option<Vec<f64>> {
    let values: Vec<f64> = trials.iter().map(|trial| value(trial)).collect::<Option<_>>()?;
    let mean = tare_stats::mean(&values).filter(|mean| *mean > 0.0)?;
    Some(values.iter().map(|value| value / mean).collect())
}

/// Answers per second, or seconds of a run.
fn value(trial: &Trial) -> Option<f64> {
    match &trial.sample {
        Measure::Http(sample) => {
            let elapsed_s = Some(sample.elapsed_ns as f64 / 1e9).filter(|elapsed_s| *elapsed_s > 0.0)?;
            Some(*sample.requests.value()? as f64 / elapsed_s)
        }
        Measure::Command(run) => Some(run.wall_ns as f64 / 1e9),
    }
}
