//! Somebody else's generator that runs already: what it has done cannot be counted.

use super::connections;
use super::drive::{Drive, observe};
use super::load::{Counted, Driven, Load};
use crate::blocks::Stint;
use crate::error::LabError;
use crate::levels::CALIBRATION;
use crate::running::Running;
use crate::subjects::sut::Sut;
use std::time::Duration;
use tare_observe::{LoadWatch, Observers};

/// A generator's process.
pub(crate) struct Attached<'d> {
    drive: &'d Drive<'d>,
    pid: u32,
    observers: Option<Observers>,
}

impl<'d> Attached<'d> {
    pub fn new(drive: &'d Drive<'d>, pid: u32) -> Self {
        Attached { drive, pid, observers: None }
    }
}

/// Has its connections show the SUT.
pub(super) fn shown(pid: u32, sut: &mut Sut, running: &mut Running<'_>) -> Result<(), LabError> {
    connections::show(pid, sut, running)
}

impl Load for Attached<'_> {
    fn drive(
        &mut self,
        stint: &Stint,
        sut: &mut Sut,
        running: &mut Running<'_>,
    ) -> Result<Vec<Driven>, LabError> {
        let Some((index, trial)) = stint.first().copied() else { return Ok(Vec::new()) };
        let Some(level) = self.drive.levels.get(index) else { return Ok(Vec::new()) };
        let stand = self.drive.stand(index as u32, level);
        let phase = stand.phase(trial, &format!("of pid {}", self.pid), running);
        let observers = match self.observers.take() {
            Some(observers) => observers,
            None => observe(stand.watch(sut, LoadWatch::Process(vec![self.pid])))?,
        };
        observers.calibrate_idle(CALIBRATION);
        observers.begin();
        running.wait(Duration::from_nanos(level.trial_ns), &phase, |_| None)?;
        let observation = observers.end();
        self.observers = Some(observers);
        sut.check_alive()?;
        let counted = Counted::Nothing {
            why: "the generator was started by somebody else; only it knows its requests",
            elapsed_ns: observation.wall_ns(),
        };
        Ok(vec![Driven { level: stand.index, counted, observation }])
    }

    fn end(&mut self, _running: &mut Running<'_>) -> Result<(), LabError> {
        if let Some(observers) = self.observers.take() {
            observers.stop();
        }
        Ok(())
    }
}
