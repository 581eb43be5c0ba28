//! What the lines of a journal say that is still to be undone.

use super::entry::{Entry, Pin};
use super::value_change::ValueChange;
use std::path::PathBuf;

/// Threads that a journal says are pinned. The first entry of a thread holds its CPUs before tare ever moved it.
pub(super) fn still_pinned(entries: &[Entry]) -> Vec<Pin> {
    let mut pinned: Vec<Pin> = Vec::new();
    for entry in entries {
        match entry {
            Entry::WillPin(pin) if !pinned.iter().any(|known| known.id == pin.id) => pinned.push(pin.clone()),
            Entry::Unpinned { id } => pinned.retain(|known| known.id != *id),
            _ => {}
        }
    }
    pinned
}

/// What a journal says of settings that were not put back yet, in the order in which they were applied.
pub(super) struct Left {
    pub settings: Vec<ValueChange>,
    /// What the kernel made of them; not known while they were being applied.
    pub values: Option<Vec<(PathBuf, String)>>,
    /// They are to stay until they are asked back.
    pub standing: bool,
}

pub(super) fn not_put_back(entries: &[Entry]) -> Left {
    let mut left = Left { settings: Vec::new(), values: None, standing: false };
    for entry in entries {
        match entry {
            Entry::WillApply(setting) => left.settings.push(setting.clone()),
            Entry::Holding { standing, values } => {
                left.standing = *standing;
                left.values = Some(values.clone());
            }
            Entry::Restoring => left.standing = false,
            Entry::PutBack { path } => left.settings.retain(|setting| setting.path != *path),
            _ => {}
        }
    }
    left
}

/// Groups that were to be made and not removed, as far as a journal says, in that order.
pub(super) fn groups(entries: &[Entry]) -> Vec<PathBuf> {
    let mut left: Vec<PathBuf> = Vec::new();
    for entry in entries {
        match entry {
            Entry::WillMakeGroup { dir } => left.push(dir.clone()),
            Entry::RemovedGroup { dir } => left.retain(|known| known != dir),
            _ => {}
        }
    }
    left
}
