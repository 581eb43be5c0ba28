//! Undoing what a run that was killed left behind.

use super::entry::Entry;
use super::found::{Found, Journals, journals};
use super::id::{Id, is_alive};
use super::left::{not_put_back, still_pinned};
use super::lock::Lock;
use super::put_back::{Report, put_back_left};
use super::running::left_running;
use super::{groups, pins};
use crate::facts::boot_id;
use crate::root::Root;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tare_sys::process::{Signal, kill};

/// How long killed processes are given to be gone.
const PATIENCE: Duration = Duration::from_secs(2);

/// A process that was left running and is stopped now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// Its pid.
    pub pid: u32,
    /// Its name.
    pub name: String,
}

/// A thread that was left pinned and is back where it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The thread.
    pub tid: u32,
    /// The CPUs that it may use again.
    pub cpus: Vec<u32>,
}

/// What was undone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Processes stopped.
    pub stopped: Vec<Stopped>,
    /// Threads put back.
    pub restored: Vec<Restored>,
    /// Control groups removed.
    pub groups: Vec<PathBuf>,
    /// Settings of the machine put back.
    pub settings: Report,
    /// What could not be undone, in words; its journal is kept.
    pub failed: Vec<String>,
}

impl Recovery {
    /// Nothing is left that should have been undone.
    pub fn is_clean(&self) -> bool {
        self.settings.is_clean() && self.failed.is_empty()
    }
}

/// Undoes what journals in `dir` say whose owner is dead: kills what it started and what carries its run id,
/// removes its control groups, puts pinned threads and applied settings back, and deletes the journal. Never touches what a live owner has,
/// what was applied to stay until it is asked back, nor anything after
/// a reboot. A folder that is not there means that nothing was left; one that others may write to is not followed.
pub fn recover(dir: &Path, root: &Root) -> Recovery {
    recover_with(None, dir, root)
}

/// The same for one that holds the settings already: what it reads of them afterwards is nobody's that was killed.
pub fn recover_holding(lock: &Lock, dir: &Path, root: &Root) -> Recovery {
    recover_with(Some(lock), dir, root)
}

fn recover_with(lock: Option<&Lock>, dir: &Path, root: &Root) -> Recovery {
    let mut recovery = Recovery::default();
    let Ok(boot_id) = boot_id(root) else { return recovery };
    let Journals { found, refused } = journals(dir);
    recovery.failed = refused;
    for journal in found {
        recover_one(&journal, lock, root, &boot_id, &mut recovery);
    }
    recovery
}

fn recover_one(found: &Found, lock: Option<&Lock>, root: &Root, boot_now: &str, recovery: &mut Recovery) {
    let Some(owner) = found.owner(boot_now) else {
        if !found.lives_by_name(root) {
            found.retire(&mut recovery.failed);
        }
        return;
    };
    let left = not_put_back(&found.entries);
    if owner.boot_id != boot_now {
        recovery.settings.rebooted += left.settings.len();
        let _ = fs::remove_file(&found.path);
        return;
    }
    if is_alive(root, owner.id) || left.standing {
        return;
    }
    let failures = recovery.failed.len();
    stop_left(root, &found.entries, &owner.run, recovery);
    groups::remove_left(&found.entries, &mut recovery.groups, &mut recovery.failed);
    unpin_left(root, &found.entries, recovery);
    let is_done = put_back_left(&found.path, &left, lock, &mut recovery.settings);
    if is_done && recovery.failed.len() == failures {
        found.retire(&mut recovery.failed);
    }
}

fn stop_left(root: &Root, entries: &[Entry], run: &str, recovery: &mut Recovery) {
    let mut leaders: Vec<(Id, u32)> = Vec::new();
    let mut any_started = false;
    for entry in entries {
        match entry {
            Entry::WillStart { .. } => any_started = true,
            Entry::Started { id, pgid } => leaders.push((*id, *pgid)),
            Entry::Stopped { pid } => leaders.retain(|(id, _)| id.pid != *pid),
            _ => {}
        }
    }
    if !any_started {
        return;
    }
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left = left_running(root, &leaders, run);
        let mut refused = None;
        for process in &left {
            let stopped = Stopped { pid: process.id, name: process.name.clone() };
            if !recovery.stopped.contains(&stopped) {
                recovery.stopped.push(stopped);
            }
            if let Err(error) = kill(process.id, Signal::Kill) {
                refused =
                    Some(format!("process {} ({}) was left running: {error}", process.id, process.name));
            }
        }
        match refused {
            _ if left.is_empty() => return,
            Some(failed) if Instant::now() > deadline => {
                recovery.stopped.retain(|stopped| !left.iter().any(|process| process.id == stopped.pid));
                recovery.failed.push(failed);
                return;
            }
            None if Instant::now() > deadline => return,
            _ => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

fn unpin_left(root: &Root, entries: &[Entry], recovery: &mut Recovery) {
    let pinned = still_pinned(entries);
    let inherited = pins::inherited(root, &pinned);
    for (id, cpus) in pinned.into_iter().map(|pin| (pin.id, pin.cpus_before)).chain(inherited) {
        match pins::restore(root, id, &cpus) {
            Ok(true) => recovery.restored.push(Restored { tid: id.pid, cpus }),
            Ok(false) => {}
            Err(error) => recovery.failed.push(format!("thread {} was left pinned: {error}", id.pid)),
        }
    }
}
