//! Undoing what a run that was killed left behind.

use super::found::{Found, Journals, journals};
use super::tuning::{self, Report};
use super::{Entry, Id, Pin, RUN_VARIABLE, groups, identity, undo};
use crate::facts::boot_id;
use crate::knobs::Lock;
use crate::procs;
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
    pub knobs: Report,
    /// What could not be undone, in words; its journal is kept.
    pub failed: Vec<String>,
}

impl Recovery {
    /// Nothing is left that should have been undone.
    pub fn is_clean(&self) -> bool {
        self.knobs.is_clean() && self.failed.is_empty()
    }
}

/// Undoes what journals in `dir` say whose owner is dead: kills what it started and what carries its run id,
/// removes its control groups, puts pinned threads and turned settings back, and deletes the journal. Never touches what a live owner has,
/// what was turned to stay until it is asked back, nor anything after
/// a reboot. A folder that is not there means that nothing was left; one that others may write to is not followed.
pub fn recover(dir: &Path, root: &Root) -> Recovery {
    recover_with(None, dir, root)
}

/// The same for one that holds the knobs already: what it reads of them afterwards is nobody's that was killed.
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
    let turned = tuning::turned(&found.entries);
    if owner.boot_id != boot_now {
        recovery.knobs.rebooted += turned.settings.len();
        let _ = fs::remove_file(&found.path);
        return;
    }
    if is_alive(root, owner.id) || turned.standing {
        return;
    }
    let failures = recovery.failed.len();
    stop_left(root, &found.entries, &owner.run, recovery);
    groups::remove_left(&found.entries, &mut recovery.groups, &mut recovery.failed);
    unpin_left(root, &found.entries, recovery);
    let is_done = tuning::put_back_left(&found.path, &turned, lock, &mut recovery.knobs);
    if is_done && recovery.failed.len() == failures {
        found.retire(&mut recovery.failed);
    }
}

/// A zombie is dead: it is only not reaped yet.
pub(super) fn is_alive(root: &Root, id: Id) -> bool {
    procs::stat(root, id.pid)
        .is_ok_and(|stat| stat.start_ticks == id.start_ticks && !matches!(stat.state, 'Z' | 'X'))
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

/// What a dead run started and is still there: the leaders, their groups, and whoever carries the run id.
pub(super) fn left_running(root: &Root, leaders: &[(Id, u32)], run: &str) -> Vec<procs::Stat> {
    let alive = |process: &procs::Stat| !matches!(process.state, 'Z' | 'X') && process.id > 1;
    let mark = format!("{RUN_VARIABLE}={run}");
    let carries_mark = |pid: u32| {
        let environ = root.bytes(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|&byte| byte == 0).any(|variable| variable == mark.as_bytes())
    };
    let is_left = |process: &procs::Stat| {
        let is_leader = |(id, _): &(Id, u32)| id.pid == process.id && id.start_ticks == process.start_ticks;
        // A group's number cannot be given out again while it has members; one that is older than its
        // leader's start has been.
        let is_member = |(id, pgid): &(Id, u32)| {
            *pgid == process.pgid && process.start_ticks >= id.start_ticks && group_is_ours(root, *id)
        };
        process.id != std::process::id()
            && (leaders.iter().any(|leader| is_leader(leader) || is_member(leader))
                || carries_mark(process.id))
    };
    procs::all(root).unwrap_or_default().into_iter().filter(alive).filter(is_left).collect()
}

/// Whether the group that `leader` led can still be the one it made: nobody else has its number now.
fn group_is_ours(root: &Root, leader: Id) -> bool {
    identity(root, leader.pid).map_or(true, |now| now == leader)
}

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

/// Threads that other runs hold pinned now, and the processes that do.
pub(super) fn pinned_by_others(dir: &Path, own: &Path, root: &Root) -> Vec<(Id, u32)> {
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

fn unpin_left(root: &Root, entries: &[Entry], recovery: &mut Recovery) {
    let pinned = still_pinned(entries);
    let inherited = undo::inherited(root, &pinned);
    for (id, cpus) in pinned.into_iter().map(|pin| (pin.id, pin.cpus_before)).chain(inherited) {
        match undo::restore(root, id, &cpus) {
            Ok(true) => recovery.restored.push(Restored { tid: id.pid, cpus }),
            Ok(false) => {}
            Err(error) => recovery.failed.push(format!("thread {} was left pinned: {error}", id.pid)),
        }
    }
}
