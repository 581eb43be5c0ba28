//! How well gross is known, and whether that is enough: asked after each trial of a session, and again whenever its record
//! is read, so that both mean the same.
//!
//! The trials are one series on one launch, each of which may depend on those before it, and they are evaluated after each:
//! [`Sequence::of_series`] has the interval. How many are planned follows from the time that the first took, which depends on none of their
//! figures.

use tare_model::Record;
use tare_model::comparison::Ended;
use tare_model::outcome::Stopped;
use tare_model::plan::{Plan, Purpose, Stopping, Workload};
use tare_model::trial::{Measure, Trial, WarmUp};
use tare_stats::{Foresight, PLANNED_MAX, SERIES_MIN, Sequence};

/// Coverage of the interval.
const LEVEL: f64 = 0.95;

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
                let mut levels = (0..).zip(&http.levels);
                let (index, level) = levels.find(|(_, level)| level.purpose == Purpose::Asked)?;
                (Of::Level(index), level.trials, 1)
            }
            Workload::Command(commands) => {
                // Interleaved, each of them has the whole time.
                let parts = if commands.interleaved { 1 } else { commands.commands.len() };
                (Of::Command(command), commands.runs, parts)
            }
        };
        let budget_s = asked.budget_s / parts.max(1) as f64;
        Some(Interim { asked, of, budget_s, most: most as usize, sequence: None })
    }

    /// What is known by the trials so far.
    pub fn evaluate(&mut self, trials: &[Trial]) -> Stopped {
        let trials: Vec<&Trial> = trials.iter().filter(|trial| self.takes_time(trial)).collect();
        let counted: Vec<&Trial> = trials.iter().copied().filter(|trial| self.counts(trial)).collect();
        let blocks = counted.len();
        let before_s = trials.iter().map(|trial| load_before_s(trial)).sum::<f64>();
        let period_s = span_s(&trials) / blocks.max(1) as f64;
        if self.sequence.is_none() && blocks >= SERIES_MIN {
            self.sequence =
                self.planned(&trials, before_s).and_then(|planned| Sequence::of_series(planned, LEVEL));
        }
        let sequence = self.sequence.as_ref();
        let analysis =
            shares_of_mean(&counted).zip(sequence).and_then(|(values, plan)| plan.analyse(&[&values]));
        let precision = self.asked.precision.map(f64::asinh);
        let elapsed_s = before_s + span_s(&trials);
        let over = blocks > 0 && elapsed_s + period_s > self.budget_s
            || sequence.is_some_and(|sequence| blocks >= sequence.planned());
        let foresight =
            sequence.zip(analysis.as_ref()).map(|(plan, analysis)| plan.foresee(analysis, blocks));
        let Foresight { detectable, one_percent_launches } =
            foresight.unwrap_or(Foresight { detectable: None, one_percent_launches: None });
        let half_ln = analysis.map(|analysis| 0.5 * (analysis.interval.hi - analysis.interval.lo));
        let share = |share: f64| Some(share).filter(|share| share.is_finite());
        Stopped {
            precision: self.asked.precision,
            budget_s: self.budget_s,
            elapsed_s,
            trials: blocks,
            planned: sequence.map(Sequence::planned),
            ended: match half_ln.zip(precision) {
                Some((half, precision)) if half <= precision => Some(Ended::Precise),
                _ => over.then_some(Ended::Budget),
            },
            reached: half_ln.map(half_width_ratio).and_then(share),
            // The difference of two such means has √2 times the standard error of either.
            detectable: detectable.and_then(|ln| share((ln * std::f64::consts::SQRT_2).exp_m1())),
            one_percent_s: one_percent_launches.map(|blocks| before_s + blocks as f64 * period_s),
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

    fn counts(&self, trial: &Trial) -> bool {
        !matches!(self.of, Of::Level(level) if level != trial.level)
    }

    /// How many trials the budget has room for, by the time that the first [`SERIES_MIN`] took with those of other levels among
    /// them: there is no interval before there are so many.
    fn planned(&self, trials: &[&Trial], before_s: f64) -> Option<usize> {
        let mut counted = trials.iter().enumerate().filter(|(_, trial)| self.counts(trial));
        let first = counted.nth(SERIES_MIN).map_or(trials, |(next, _)| &trials[..next]);
        let took_s = span_s(first);
        let more = (self.budget_s - before_s - took_s) * SERIES_MIN as f64 / took_s;
        // Of a time that is not positive, or of none, no number comes: then there are none.
        let planned = SERIES_MIN.saturating_add(more.max(0.0) as usize);
        (took_s > 0.0).then(|| planned.min(self.most).clamp(SERIES_MIN, PLANNED_MAX))
    }
}

/// How well the figure of a command, or of the asked level, is known.
pub(crate) fn stopped(record: &Record, command: u32) -> Option<Stopped> {
    Interim::of(&record.plan, command).map(|mut interim| interim.evaluate(&record.trials))
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
