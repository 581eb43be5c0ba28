//! Tare's own generator.
//!
//! One level alone is driven on the same connections from its first trial to its last. Several are driven in blocks,
//! one trial of each in an order drawn at random, so that the machine's interference is the same for all of them; then each
//! trial opens connections of its own ([`super::staged`]: a pass over all stages does). The SUT and the reference server are interleaved, a few milliseconds each, within the
//! same trial.

use super::drive::{Drive, Stand, sample_idle};
use super::interleaved::interleaved;
use super::load::{Driven, Load};
use super::open::{Open, counted};
use super::profile::profile;
use super::staged::Pass;
use super::warmup;
use crate::blocks::Stint;
use crate::error::LabError;
use crate::levels::calibration;
use crate::running::Running;
use crate::subjects::sut::Sut;
use std::time::Duration;
use tare_model::stacks::Stacks;
use tare_model::trial::WarmUp;

/// Tare's own generator.
pub(crate) struct Builtin<'d> {
    drive: &'d Drive<'d>,
    /// Who answers where a level's purpose is that.
    reference: Option<Sut>,
    /// What goes on from one trial to the next.
    open: Option<Open>,
    /// Stages are driven in passes.
    pass: Option<Pass>,
}

impl<'d> Builtin<'d> {
    pub fn new(drive: &'d Drive<'d>, reference: Option<Sut>) -> Self {
        Builtin { drive, reference, open: None, pass: None }
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
        if level.stage.is_none() {
            return Ok(vec![self.steady(&stand, trial, sut, running)?]);
        }
        let (driven, pass) = Pass::next(self.pass.take(), (&stand, trial), sut, running)?;
        self.pass = pass;
        Ok(vec![driven])
    }

    fn profile(&mut self, sut: &mut Sut, running: &mut Running<'_>) -> Vec<Stacks> {
        let Some(level) = self.drive.profile.filter(|_| !sut.pids.is_empty()) else { return Vec::new() };
        profile(&self.drive.stand(0, level), self.open.as_ref(), sut, running)
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
        // Under load already: what begins at the same time is the trial alone.
        running.begin_in_step()?;
        let length = Duration::from_nanos(stand.level.trial_ns);
        let (_, driven) = counted((stand, trial), || length, &mut open, sut, running)?;
        match self.drive.levels.len() {
            1 => self.open = Some(open),
            _ => open.close()?,
        }
        Ok(driven)
    }
}
