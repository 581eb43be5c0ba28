//! Pinning threads, with the way back kept on disk and in hand.

use super::{Entry, Id, Journal, JournalError, identity};
use crate::root::Root;
use std::io;
use tare_sys::affinity;

/// Why threads could not be pinned. Those that were pinned before are as they were.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// The way back could not be written down.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The kernel refused.
    #[error("thread {tid} cannot be pinned to CPUs {cpus}: {source}; hint: {}", hint(.source))]
    Refused {
        /// The thread.
        tid: u32,
        /// The CPUs, as a list.
        cpus: String,
        /// What the kernel said.
        source: io::Error,
    },
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "only its owner or root may",
        io::ErrorKind::InvalidInput => "a cpuset keeps it from these CPUs, or they are offline",
        _ => "it may have ended just now",
    }
}

/// Threads that were pinned. Puts them back when dropped.
#[derive(Debug)]
#[must_use = "dropping this puts the threads back"]
pub struct Pinned<'j> {
    journal: &'j Journal,
    root: Root,
    before: Vec<(Id, Vec<u32>)>,
}

/// Lets each of `tids` run on `cpus` only, until the guard is dropped. A thread that ends meanwhile is passed
/// over. When one is refused, those before it are put back.
///
/// # Errors
/// [`PinError`].
pub fn pin_tasks<'j>(
    journal: &'j Journal,
    root: &Root,
    tids: &[u32],
    cpus: &[u32],
) -> Result<Pinned<'j>, PinError> {
    // Dropped on every early return below, which puts back what was pinned so far.
    let mut pinned = Pinned { journal, root: root.clone(), before: Vec::new() };
    for &tid in tids {
        let (Ok(id), Ok(cpus_before)) = (identity(root, tid), affinity::get(tid)) else { continue };
        journal.append(&Entry::WillPin { id, cpus_before: cpus_before.clone() })?;
        match affinity::set(tid, cpus) {
            Ok(()) => pinned.before.push((id, cpus_before)),
            Err(_) if identity(root, tid).ok() != Some(id) => {}
            Err(source) => {
                return Err(PinError::Refused { tid, cpus: affinity::format_list(cpus), source });
            }
        }
    }
    Ok(pinned)
}

impl Pinned<'_> {
    /// How many threads are pinned.
    pub fn len(&self) -> usize {
        self.before.len()
    }

    /// Nothing was pinned: every thread had ended.
    pub fn is_empty(&self) -> bool {
        self.before.is_empty()
    }
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        for (id, cpus) in self.before.drain(..) {
            // What fails here stays in the journal, and the next start tries again.
            if restore(&self.root, id, &cpus).is_ok() {
                let _ = self.journal.append(&Entry::Unpinned { id });
            }
        }
    }
}

/// Puts a thread back on its CPUs if it is still the one that was moved: `true` when it was.
pub(super) fn restore(root: &Root, id: Id, cpus: &[u32]) -> io::Result<bool> {
    if identity(root, id.pid).ok() != Some(id) {
        return Ok(false);
    }
    affinity::set(id.pid, cpus).map(|()| true)
}
