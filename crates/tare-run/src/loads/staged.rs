//! A rate that changes: a pass drives all stages on the same connections, and each stage is a trial of its own.
//!
//! Before each stage its load runs at the rate that it begins with, uncounted: the trial before goes to disk meanwhile, and idle periods
//! are found out under this load.

use super::drive::{Stand, observe, start};
use super::load::{Counted, Driven};
use super::open::{Open, counted};
use crate::error::LabError;
use crate::levels::{BETWEEN_STAGES, CALIBRATION, LEAD_IN, nanoseconds};
use crate::running::Running;
use crate::subjects::sut::Sut;
use std::time::{Duration, Instant};
use tare_load::{Gaps, Pacing, Stage};
use tare_model::plan::{Level, PlannedStage};
use tare_model::trial::{HttpSample, Unsent};
use tare_observe::LoadWatch;

/// A thread that learns late that a window is over closes it under the same load.
const HELD: Duration = Duration::from_millis(50);

/// One pass, of which some stages are over.
pub(super) struct Pass {
    open: Open,
    begun: Instant,
    /// Requests that were due and had no connection as the stage before ended.
    left: u64,
}

impl Pass {
    /// Drives the next stage of a pass, of none its first; the pass, where more stages follow.
    pub fn next(
        pass: Option<Pass>,
        (stand, trial): (&Stand<'_>, u32),
        sut: &mut Sut,
        running: &mut Running<'_>,
    ) -> Result<(Driven, Option<Pass>), LabError> {
        let spans = spans(stand.drive.levels, trial);
        let Some(&(lead, begin, end)) = spans.get(stand.index as usize) else {
            return Err(LabError::Observe("a stage was to be driven that is none".into()));
        };
        let mut pass = match pass {
            Some(pass) => pass,
            None => Pass::begin((stand, &spans), sut, running)?,
        };
        // What is read of an idle period takes as long as it takes: half of the lead-in is there for the disk before it.
        pass.open.observers.calibrate_idle(CALIBRATION.min(lead / 2));
        let phase = if stand.index == 0 { "warm-up" } else { "between stages" };
        running.wait(begin.saturating_sub(pass.begun.elapsed()), phase, |_| None)?;
        let begun = pass.begun;
        let left = || end.saturating_sub(begun.elapsed());
        let (before, mut driven) = counted((stand, trial), left, &mut pass.open, sut, running)?;
        if let Counted::Requests(sample) = &mut driven.counted {
            let at_end = unsent(sample, stand.level);
            let unsent = Unsent { left_before: pass.left, at_begin: unsent(&before, stand.level), at_end };
            pass.left = at_end;
            if let Some(detail) = &mut sample.detail {
                detail.unsent = Some(unsent);
            }
        }
        if spans.len() > stand.index as usize + 1 {
            return Ok((driven, Some(pass)));
        }
        pass.open.close()?;
        Ok((driven, None))
    }

    fn begin(
        (stand, spans): (&Stand<'_>, &[Span]),
        sut: &mut Sut,
        running: &mut Running<'_>,
    ) -> Result<Pass, LabError> {
        let gaps = match &stand.drive.request.traffic.pacing {
            Pacing::Stages { gaps, .. } => *gaps,
            _ => Gaps::Fixed,
        };
        let pacing = Pacing::Stages { stages: rates(stand.drive.levels, spans), gaps };
        let generator = start(&stand.spec(pacing, sut), sut, running.interrupt)?;
        let begun = Instant::now();
        let observers = observe(stand.watch(sut, LoadWatch::Threads(generator.thread_ids())))?;
        running.check_interrupt()?;
        Ok(Pass { open: Open { generator, observers }, begun, left: 0 })
    }
}

/// The lead-in of a stage, and its begin and its end after the pass has begun.
type Span = (Duration, Duration, Duration);

fn spans(levels: &[Level], trial: u32) -> Vec<Span> {
    let mut at = Duration::ZERO;
    let span = |(index, (level, _)): (usize, (&Level, PlannedStage))| {
        let warmup = if trial == 0 { level.warmup_ns } else { 0 };
        let lead = if index == 0 { LEAD_IN + Duration::from_nanos(warmup) } else { BETWEEN_STAGES };
        let begin = at + lead;
        at = begin + Duration::from_nanos(level.trial_ns);
        (lead, begin, at)
    };
    stages_of(levels).enumerate().map(span).collect()
}

/// The rates of a pass: of each stage its lead-in, itself, and its last rate for a moment longer.
fn rates(levels: &[Level], spans: &[Span]) -> Vec<Stage> {
    let mut held = Duration::ZERO;
    let stages = stages_of(levels).zip(spans).flat_map(|((level, stage), (lead, _, _))| {
        let PlannedStage { from_hz, to_hz } = stage;
        let lead = lead.saturating_sub(std::mem::replace(&mut held, HELD));
        let at = |hz, length| Stage { from_hz: hz, to_hz: hz, for_ns: nanoseconds(length) };
        [at(from_hz, lead), Stage { from_hz, to_hz, for_ns: level.trial_ns }, at(to_hz, HELD)]
    });
    stages.collect()
}

/// They come before all other levels.
fn stages_of(levels: &[Level]) -> impl Iterator<Item = (&Level, PlannedStage)> {
    levels.iter().map_while(|level| Some((level, level.stage?)))
}

/// What was due at the end of a window, and was on no connection.
fn unsent(sample: &HttpSample, level: &Level) -> u64 {
    let detail = sample.detail.as_deref();
    let depth = detail.and_then(|detail| detail.streams_allowed).unwrap_or(level.pipeline);
    let carried = u64::from(level.connections) * u64::from(depth.min(level.pipeline));
    sample.in_flight.value().map_or(0, |in_flight| in_flight.saturating_sub(carried))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::plan::Purpose;

    #[test]
    fn stages_follow_each_other_with_a_lead_in_before_each() {
        let stage = |seconds: u64, warmup_ns| Level {
            purpose: Purpose::Asked,
            connections: 8,
            rate_hz: Some(1.0),
            pipeline: 1,
            trial_ns: seconds * 1_000_000_000,
            warmup_ns,
            trials: 2,
            arms: 1,
            stage: Some(PlannedStage { from_hz: 1.0, to_hz: 1.0 }),
        };
        let beside = Level { stage: None, ..stage(5, 0) };
        let levels = [stage(1, 2_000_000_000), stage(3, 0), beside];
        let of = |trial| -> Vec<[f64; 3]> {
            let spans = spans(&levels, trial).into_iter();
            spans.map(|(lead, begin, end)| [lead, begin, end].map(|at| at.as_secs_f64())).collect()
        };
        assert_eq!(of(0), [[3.0, 3.0, 4.0], [0.5, 4.5, 7.5]]);
        assert_eq!(of(1), [[1.0, 1.0, 2.0], [0.5, 2.5, 5.5]], "only the first pass warms up");
        let rates = rates(&levels, &spans(&levels, 0));
        let lengths_ms: Vec<u64> = rates.iter().map(|rate| rate.for_ns / 1_000_000).collect();
        assert_eq!(lengths_ms, [3000, 1000, 50, 450, 3000, 50]);
    }
}
