//! The reference server as a child process.

use crate::subjects::embedded;
use crate::subjects::sut::Sut;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use tare_load::Target;
use tare_machine::journal::Journal;
use tare_model::Missing;

/// The reference server, running; stopped when this goes.
pub(super) struct Reference {
    /// Where it answers.
    pub target: Target,
    sut: Sut,
}

impl Reference {
    /// On these CPUs.
    ///
    /// # Errors
    /// Why it could not be started.
    pub fn start(
        program: &Path,
        cpus: &[u32],
        journal: &Journal,
        interrupt: &AtomicBool,
    ) -> Result<Reference, Missing> {
        let sut = embedded::embedded(program, cpus, &[], journal, interrupt);
        let sut =
            sut.map_err(|error| Missing::new(format!("the reference server cannot be started: {error}")))?;
        let target = sut.target.clone().ok_or_else(|| Missing::new("the reference server has no address"))?;
        Ok(Reference { target, sut })
    }

    /// Its processes.
    pub fn pids(&self) -> &[u32] {
        &self.sut.pids
    }

    /// Whether it is still there.
    ///
    /// # Errors
    /// It has ended.
    pub fn is_running(&self) -> Result<(), Missing> {
        let is_alive = self.sut.pids.iter().all(|pid| crate::process::alive(*pid));
        if is_alive { Ok(()) } else { Err(Missing::new("the reference server has ended")) }
    }
}
