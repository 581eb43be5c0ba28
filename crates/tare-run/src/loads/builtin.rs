//! Tare's own generator.
//!
//! One level alone is driven on the same connections from its first trial to its last. Several are driven in blocks,
//! one trial of each in an order drawn at random, so that the machine's interference is the same for all of them; then each
//! trial opens connections of its own. The SUT and the reference server are interleaved, a few milliseconds each, within the
//! same trial.

use super::drive::{Drive, Stand, live_rate, observe, sample_idle, start};
use super::interleaved::interleaved;
use super::load::{Counted, Driven, Load};
use super::warmup;
use crate::blocks::Stint;
use crate::error::LabError;
use crate::generate::load_failed;
use crate::levels::{CALIBRATION, SETTLE, calibration, nanoseconds};
use crate::running::Running;
use crate::subjects::sut::Sut;
use std::time::{Duration, Instant};
use tare_load::{Gaps, Generator, Pacing, Stage};
use tare_model::plan::Purpose;
use tare_model::trial::WarmUp;
use tare_observe::{LoadWatch, Observers};

/// Before a timeline of rates: the observers start and idle periods are found out meanwhile.
const LEAD_IN: Duration = Duration::from_secs(1);

/// Tare's own generator.
pub(crate) struct Builtin<'d> {
    drive: &'d Drive<'d>,
    /// Who answers where a level's purpose is that.
    reference: Option<Sut>,
    /// What goes on from one trial to the next.
    open: Option<Open>,
}

/// A generator at work, and who watches.
struct Open {
    generator: Generator,
    observers: Observers,
}

impl<'d> Builtin<'d> {
    pub fn new(drive: &'d Drive<'d>, reference: Option<Sut>) -> Self {
        Builtin { drive, reference, open: None }
    }
}

impl Load for Builtin<'_> {
    fn warm_up(&mut self, sut: &mut Sut, running: &mut Running<'_>) -> Result<Option<WarmUp>, LabError> {
        warmup::warm_up(self.drive, sut, running)
    }

    fn drive(
        &mut self,
        stint: &Stint,
        sut: &mut Sut,
        running: &mut Running<'_>,
    ) -> Result<Vec<Driven>, LabError> {
        let drive = self.drive;
        let (index, trial) = match (&stint[..], &mut self.reference) {
            ([one], _) => *one,
            (_, Some(reference)) => return interleaved(drive, stint, sut, reference, running),
            (_, None) => {
                return Err(LabError::Observe(
                    "levels are interleaved, and there is no reference server".into(),
                ));
            }
        };
        let Some(level) = drive.levels.get(index) else { return Ok(Vec::new()) };
        let stand = drive.stand(index as u32, level);
        let driven = match (&drive.request.traffic.pacing, level.purpose) {
            (Pacing::Stages { stages, gaps }, Purpose::Asked) => {
                timeline(&stand, trial, stages, *gaps, sut, running)?
            }
            _ => self.steady(&stand, trial, sut, running)?,
        };
        Ok(vec![driven])
    }

    fn end(&mut self, _running: &mut Running<'_>) -> Result<(), LabError> {
        if let Some(reference) = &mut self.reference {
            reference.stop();
        }
        self.open.take().map_or(Ok(()), Open::close)
    }
}

impl Builtin<'_> {
    /// A trial; where no other level comes between, it is on the connections of the one before.
    fn steady(
        &mut self,
        stand: &Stand<'_>,
        trial: u32,
        sut: &mut Sut,
        running: &mut Running<'_>,
    ) -> Result<Driven, LabError> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => Open::new(stand, trial == 0, sut, running)?,
        };
        sample_idle(&open.observers, calibration(stand.level));
        let driven = counted(stand, trial, &mut open.generator, &open.observers, sut, running)?;
        match self.drive.levels.len() {
            1 => self.open = Some(open),
            _ => open.close()?,
        }
        Ok(driven)
    }
}

impl Open {
    fn new(
        stand: &Stand<'_>,
        first: bool,
        sut: &mut Sut,
        running: &mut Running<'_>,
    ) -> Result<Open, LabError> {
        let request = stand.drive.request;
        let pacing = match stand.level.purpose {
            Purpose::Asked => request.traffic.pacing.clone(),
            Purpose::Saturating | Purpose::Reference => Pacing::Closed,
        };
        let generator = start(&stand.spec(pacing, sut), sut)?;
        let observers = observe(stand.watch(sut, LoadWatch::Threads(generator.thread_ids())))?;
        let mut answered = 0;
        let is_cold = request.trials.warmup.at_most().is_zero();
        // Who wants it cold gets no more load than the sample of idle periods takes.
        if !(first && is_cold) {
            let rate = |seconds| Some(live_rate(&generator, seconds, &mut answered));
            running.wait(SETTLE, "warm-up", rate)?;
        }
        // The first trial has none before it whose samples are near.
        if first && !is_cold {
            sample_idle(&observers, calibration(stand.level));
        }
        Ok(Open { generator, observers })
    }

    fn close(self) -> Result<(), LabError> {
        self.observers.stop();
        self.generator.stop().map_err(load_failed)
    }
}

/// A rate that changes: each trial is the whole timeline, after a lead-in at the rate that it begins with, so that
/// trials are alike.
fn timeline(
    stand: &Stand<'_>,
    trial: u32,
    stages: &[Stage],
    gaps: Gaps,
    sut: &mut Sut,
    running: &mut Running<'_>,
) -> Result<Driven, LabError> {
    let warmup = Duration::from_nanos(if trial == 0 { stand.level.warmup_ns } else { 0 });
    let lead_in = LEAD_IN + warmup;
    let begin_hz = stages.first().map_or(0.0, |first| first.from_hz);
    let before = Stage { from_hz: begin_hz, to_hz: begin_hz, for_ns: nanoseconds(lead_in) };
    let stages = std::iter::once(before).chain(stages.iter().copied()).collect();
    let mut generator = start(&stand.spec(Pacing::Stages { stages, gaps }, sut), sut)?;
    let begun = Instant::now();
    let observers = observe(stand.watch(sut, LoadWatch::Threads(generator.thread_ids())))?;
    observers.calibrate_idle(CALIBRATION);
    running.wait(lead_in.saturating_sub(begun.elapsed()), "warm-up", |_| None)?;
    let driven = counted(stand, trial, &mut generator, &observers, sut, running)?;
    Open { generator, observers }.close()?;
    Ok(driven)
}

/// Counts and watches for the length of a trial.
fn counted(
    stand: &Stand<'_>,
    trial: u32,
    generator: &mut Generator,
    observers: &Observers,
    sut: &mut Sut,
    running: &mut Running<'_>,
) -> Result<Driven, LabError> {
    let phase = stand.phase(trial, &format!("at {} connections", stand.level.connections), running);
    // The requests are counted inside the observers' window: reading everybody else on the machine,
    // which takes milliseconds before the window opens and after it has closed, is in no rate.
    observers.begin();
    generator.cut();
    let mut answered = generator.live().answers;
    running.wait(Duration::from_nanos(stand.level.trial_ns), &phase, |seconds| {
        Some(live_rate(generator, seconds, &mut answered))
    })?;
    let sample = generator.cut();
    let observation = observers.end();
    sut.check_alive()?;
    Ok(Driven { level: stand.index, counted: Counted::Requests(Box::new(sample)), observation })
}
