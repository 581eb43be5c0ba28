//! The level of the reference server from session to session: looked up as one begins, kept as it ends.

use crate::error::LabError;
use crate::loads::drive::Drive;
use crate::own_program;
use crate::running::Running;
use std::path::PathBuf;
use tare_explain::reference_level as levels;
use tare_model::machine::MachineFacts;
use tare_model::plan::Purpose;
use tare_model::reference_level::{KnownReference, ReferenceHistory};

/// Its file in the state directory.
const FILE: &str = "reference.json";

/// The reference of a session, and what was known of it as that began.
pub(crate) struct Reference {
    history: ReferenceHistory,
    path: PathBuf,
}

impl Reference {
    /// `None` where no level is for it. A file that cannot be read is as none.
    pub fn of(drive: &Drive<'_>, running: &Running<'_>) -> Option<Reference> {
        let key = key(drive, &running.facts)?;
        let path = running.state_dir().join(FILE);
        let nothing = |_| ReferenceHistory { key: key.clone(), ..ReferenceHistory::default() };
        let history = tare_store::reference::read(&path, &key).unwrap_or_else(nothing);
        Some(Reference { history, path })
    }

    /// As the record keeps it.
    pub fn known(&self) -> KnownReference {
        KnownReference { level: self.history.level }
    }

    /// Keeps what the session found. That it cannot be kept is a warning: the session's own figures stand.
    pub fn keep(self, running: &mut Running<'_>) -> Result<(), LabError> {
        let blocks = running.record().map(levels::blocks).unwrap_or_default();
        if blocks.is_empty() {
            return Ok(());
        }
        match tare_store::reference::keep(&self.path, &levels::kept(self.history, blocks)) {
            Ok(()) => Ok(()),
            Err(error) => running.notice(
                "reference-not-kept",
                &format!("what the reference server does on this machine could not be kept: {error}"),
                "make the state directory writable: later runs then know their nets better",
            ),
        }
    }
}

/// What a level holds for: a boot of a machine, the reference's own build and how it is loaded.
fn key(drive: &Drive<'_>, facts: &MachineFacts) -> Option<String> {
    let level = drive.levels.iter().find(|level| level.purpose == Purpose::Reference)?;
    let boot = facts.boot_id.value()?;
    let placement = drive.placement;
    Some(format!(
        "boot {boot}, {}, {} connections, {} in flight, server on {:?}, {} generator threads on {:?}{}, stacks {:?}, trace {}",
        own_program::build(&drive.request.embedded_program),
        level.connections,
        level.pipeline,
        placement.sut_cpus,
        drive.threads.min(placement.load_cpus.len().max(1) as u32),
        placement.load_cpus,
        if drive.may_poll { " that poll" } else { "" },
        drive.request.watch.stacks,
        drive.request.watch.trace,
    ))
}
