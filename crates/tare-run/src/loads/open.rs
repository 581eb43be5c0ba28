//! Tare's own generator at work, and a trial that is counted and watched with it.

use super::drive::{Stand, live_rate, observe, sample_idle, start};
use super::load::{Counted, Driven};
use crate::error::LabError;
use crate::generate::load_failed;
use crate::levels::{SETTLE_NEW, calibration};
use crate::running::Running;
use crate::subjects::sut::Sut;
use std::time::Duration;
use tare_load::{Generator, Pacing};
use tare_model::plan::Purpose;
use tare_model::trial::HttpSample;
use tare_observe::{LoadWatch, Observers};

/// Load on new connections until as many answers came as there are connections, at most.
const SETTLE_SLOW_MAX: Duration = Duration::from_secs(1);

/// A generator at work, and who watches.
pub(super) struct Open {
    pub generator: Generator,
    pub observers: Observers,
}

impl Open {
    pub fn new(
        stand: &Stand<'_>,
        first: bool,
        sut: &mut Sut,
        running: &mut Running<'_>,
    ) -> Result<Open, LabError> {
        let request = stand.drive.request;
        let pacing = match stand.level.purpose {
            Purpose::Asked | Purpose::Profile => request.traffic.pacing.clone(),
            Purpose::Saturating | Purpose::Reference => Pacing::Closed,
        };
        let is_closed = matches!(pacing, Pacing::Closed);
        let generator = start(&stand.spec(pacing, sut), sut, running.interrupt)?;
        let observers = observe(stand.watch(sut, LoadWatch::Threads(generator.thread_ids())))?;
        let mut answered = 0;
        let is_cold = request.trials.warmup.at_most().is_zero();
        // Who wants it cold gets no more load than a sample of idle periods takes, where that is needed.
        if !(first && is_cold) {
            let rate = |seconds| Some(live_rate(&generator, seconds, &mut answered));
            running.wait(SETTLE_NEW, "warm-up", rate)?;
            // The first answers of a slow server found no queue before them.
            let is_ramp = || {
                let live = generator.live();
                is_closed && live.errors == 0 && live.answers < u64::from(stand.level.connections)
            };
            let mut waited = SETTLE_NEW;
            while is_ramp() && waited < SETTLE_SLOW_MAX {
                running.wait(SETTLE_NEW, "warm-up", |_| None)?;
                waited += SETTLE_NEW;
            }
        }
        // The first trial has none before it whose samples are near.
        if first && !is_cold {
            sample_idle(&observers, calibration(stand.level));
        }
        Ok(Open { generator, observers })
    }

    pub fn close(self) -> Result<(), LabError> {
        self.observers.stop();
        self.generator.stop().map_err(load_failed)
    }
}

/// Counts and watches for as long as `length` says once it has begun; what was counted before that, since the last time, comes first.
pub(super) fn counted(
    (stand, trial): (&Stand<'_>, u32),
    length: impl FnOnce() -> Duration,
    Open { generator, observers }: &mut Open,
    sut: &mut Sut,
    running: &mut Running<'_>,
) -> Result<(HttpSample, Driven), LabError> {
    let phase = stand.phase(trial, &format!("at {} connections", stand.level.connections), running);
    // The requests are counted inside the observers' window: reading everybody else on the machine,
    // which takes milliseconds before the window opens and after it has closed, is in no rate.
    observers.begin();
    let before = generator.cut();
    let mut answered = generator.live().answers;
    running.wait(length(), &phase, |seconds| Some(live_rate(generator, seconds, &mut answered)))?;
    let sample = generator.cut();
    let observation = observers.end();
    sut.check_alive()?;
    Ok((before, Driven { level: stand.index, counted: Counted::Requests(Box::new(sample)), observation }))
}
