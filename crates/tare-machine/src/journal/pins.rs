//! Pinning threads, with the way back kept on disk and in hand.

use super::entry::{Entry, Pin};
use super::found::journals;
use super::id::{Id, identity, is_alive};
use super::left::still_pinned;
use super::writer::{Journal, JournalError};
use crate::procs;
use crate::root::Root;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use tare_model::CpuSet;
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
    /// Another run of tare has pinned it: two cannot both put it back.
    #[error("thread {tid} is pinned by another run of tare (pid {owner}); hint: wait for its end")]
    Held {
        /// The thread.
        tid: u32,
        /// The other run.
        owner: u32,
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
    before: Vec<Pin>,
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
    let held = pinned_by_others(journal.dir(), &journal.path, root);
    for &tid in tids {
        let (Ok(id), Ok(cpus_before)) = (identity(root, tid), affinity::get(tid)) else { continue };
        if let Some((_, owner)) = held.iter().find(|(other, _)| *other == id) {
            return Err(PinError::Held { tid, owner: *owner });
        }
        let pin = Pin { id, process: process_of(root, tid).unwrap_or(tid), cpus_before, cpus: cpus.to_vec() };
        journal.append(&Entry::WillPin(pin.clone()))?;
        match affinity::set(tid, cpus) {
            Ok(()) => pinned.before.push(pin),
            Err(_) if identity(root, tid).ok() != Some(id) => {}
            Err(source) => {
                return Err(PinError::Refused { tid, cpus: CpuSet::from(cpus).to_string(), source });
            }
        }
    }
    Ok(pinned)
}

/// Threads that other runs hold pinned now, and the processes that do.
fn pinned_by_others(dir: &Path, own: &Path, root: &Root) -> Vec<(Id, u32)> {
    let others = journals(dir).found.into_iter().filter(|found| found.path != own);
    let mut held = Vec::new();
    for found in others {
        if let Some(Entry::Owner { id: owner, .. }) = found.entries.first()
            && is_alive(root, *owner)
        {
            held.extend(still_pinned(&found.entries).into_iter().map(|pin| (pin.id, owner.pid)));
        }
    }
    held
}

/// The thread group of a thread.
fn process_of(root: &Root, tid: u32) -> Option<u32> {
    let status = root.text(format!("/proc/{tid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
}

/// Threads that were born of pinned ones and have inherited their CPUs, with the CPUs that they would have had:
/// those of their process's first pinned thread. One that confined itself to the very same CPUs meanwhile
/// cannot be distinguished from these.
pub(super) fn inherited(root: &Root, pinned: &[Pin]) -> Vec<(Id, Vec<u32>)> {
    let mut seen = BTreeSet::new();
    let lives = |pin: &&Pin| identity(root, pin.id.pid).ok() == Some(pin.id);
    let of_living: Vec<&Pin> = pinned.iter().filter(lives).filter(|pin| seen.insert(pin.process)).collect();
    let mut found = Vec::new();
    for pin in of_living {
        for tid in procs::tasks_of(root, pin.process) {
            let Ok(id) = identity(root, tid) else { continue };
            let is_pinned_one = pinned.iter().any(|known| known.id == id);
            let is_younger = id.start_ticks >= pin.id.start_ticks;
            if !is_pinned_one && is_younger && affinity::get(tid).is_ok_and(|cpus| cpus == pin.cpus) {
                found.push((id, pin.cpus_before.clone()));
            }
        }
    }
    found
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
        for (id, cpus) in inherited(&self.root, &self.before) {
            // What was born under a pin is in no journal of its own: the next start finds it by its process.
            let _ = restore(&self.root, id, &cpus);
        }
        for Pin { id, cpus_before, .. } in self.before.drain(..) {
            // What fails here stays in the journal, and the next start tries again.
            if restore(&self.root, id, &cpus_before).is_ok() {
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
