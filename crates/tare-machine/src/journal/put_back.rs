//! Settings of the machine that were applied, and the way back.

use super::entry::Entry;
use super::found::{Found, Journals, Owner, journals, read};
use super::id::is_alive;
use super::left::{Left, not_put_back};
use super::lock::{Lock, LockError};
use super::value_change::{Presence, ValueChange};
use super::writer::{Journal, JournalError};
use crate::facts::boot_id;
use crate::root::Root;
use crate::value::same;
use serde::Serialize;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tare_model::tuning::{Changed, Holder, State, Tuning};

/// A setting that is as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PutBack {
    /// Its setting.
    pub setting: String,
    /// Its file.
    pub path: PathBuf,
    /// What stands there again.
    pub value: String,
}

/// What became of settings that were to be put back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// As they were; those that somebody else had put back already, or that were not reached, are not listed.
    pub put_back: Vec<PutBack>,
    /// Changed by somebody else meanwhile, and left; they can still be put back by force.
    pub changed: Vec<Changed>,
    /// What is not there any more, and what the kernel shows otherwise than it was given; in words.
    pub notes: Vec<String>,
    /// What could not be put back, in words; the next start tries again.
    pub failed: Vec<String>,
    /// How many settings were applied before the machine was last started: that has undone them.
    pub rebooted: usize,
}

impl Report {
    /// Everything that was applied is as it was.
    pub fn is_clean(&self) -> bool {
        self.changed.is_empty() && self.failed.is_empty()
    }

    /// There was nothing to put back.
    pub fn is_empty(&self) -> bool {
        *self == Report::default()
    }

    /// Adds what another journal held.
    fn add(&mut self, other: Report) {
        self.put_back.extend(other.put_back);
        self.changed.extend(other.changed);
        self.notes.extend(other.notes);
        self.failed.extend(other.failed);
        self.rebooted += other.rebooted;
    }
}

/// Puts settings back, the last applied first, and notes each in the journal. What shows neither what was there
/// before nor what tare made of it has been changed by somebody else and is left, unless `force`; where it is not
/// known what tare made of it (it was killed while it applied it), it is put back whatever it shows.
/// `after_each` is called after every effect on the machine or the disk.
pub(crate) fn put_back(
    journal: &Journal,
    settings: &[ValueChange],
    values: Option<&[(PathBuf, String)]>,
    force: bool,
    after_each: &dyn Fn(),
) -> Report {
    let mut report = Report::default();
    for change in settings.iter().rev() {
        let ValueChange { setting, path, before, moves_by_itself, .. } = change;
        let shown = path.display();
        match change.presence() {
            Presence::There => {}
            Presence::Gone => {
                report.notes.push(format!("{setting}: {shown} is gone, there is nothing to put back"));
                note(journal, path, &mut report, after_each);
                continue;
            }
            Presence::Unseen(why) => {
                report.failed.push(format!("{setting}: {shown} could not be set to '{before}' again: {why}"));
                continue;
            }
        }
        let now = change.now().ok();
        let made = values.and_then(|values| values.iter().find(|(at, _)| at == path));
        match (&now, made) {
            _ if *moves_by_itself => {}
            (Some(now), _) if same(now, before) => {
                note(journal, path, &mut report, after_each);
                continue;
            }
            (Some(now), Some((_, made))) if !force && !same(now, made) => {
                let (setting, path, before) = (setting.clone(), path.clone(), before.clone());
                report.changed.push(Changed {
                    setting,
                    path,
                    before,
                    applied: made.clone(),
                    now: now.clone(),
                });
                continue;
            }
            _ => {}
        }
        if let Err(error) = change.put_back() {
            report.failed.push(format!("{setting}: {shown} could not be set to '{before}' again: {error}"));
            continue;
        }
        after_each();
        let (setting, value) = (setting.clone(), before.clone());
        report.put_back.push(PutBack { setting, path: path.clone(), value });
        note(journal, path, &mut report, after_each);
    }
    // Only now: one setting may limit what another shows.
    for change @ ValueChange { setting, path, before, .. } in settings {
        let is_put_back = report.put_back.iter().any(|put_back| put_back.path == *path);
        let now = change.now().unwrap_or_else(|missing| missing.why);
        if is_put_back && !same(&now, before) {
            let shown = path.display();
            report.notes.push(format!("{setting}: {shown} shows '{now}' after '{before}' was written"));
        }
    }
    report
}

fn note(journal: &Journal, path: &Path, report: &mut Report, after_each: &dyn Fn()) {
    // Without the note the next start finds the value as it was, and has nothing to do.
    if let Err(error) = journal.was_put_back(path) {
        report.notes.push(error.to_string());
    }
    after_each();
}

/// For a journal whose owner is dead: puts back what it had applied, under `lock` or one of its own. Whether the journal
/// has no more use.
pub(super) fn put_back_left(path: &Path, left: &Left, lock: Option<&Lock>, report: &mut Report) -> bool {
    if left.settings.is_empty() {
        return true;
    }
    let dir = path.parent().unwrap_or(Path::new("."));
    let _taken = match lock.map_or_else(|| Lock::take(dir).map(Some), |_| Ok(None)) {
        Ok(taken) => taken,
        Err(error) => {
            report.failed.push(format!("what a killed tare had applied is not put back yet: {error}"));
            return false;
        }
    };
    // Whoever had the lock until now may have put it back, and somebody may have applied it again since.
    let left = match read(path) {
        Ok(found) => not_put_back(&found.entries),
        Err(error) => return error.kind() == io::ErrorKind::NotFound,
    };
    match finish(path, &left, false, &|| ()) {
        Ok(done) => {
            let is_clean = done.is_clean();
            report.add(done);
            is_clean
        }
        Err(error) => {
            report.failed.push(error.to_string());
            false
        }
    }
}

fn finish(path: &Path, left: &Left, force: bool, after_each: &dyn Fn()) -> Result<Report, JournalError> {
    let journal = Journal::reopen(path)?;
    if left.standing {
        journal.append(&Entry::Restoring)?;
        after_each();
    }
    let report = put_back(&journal, &left.settings, left.values.as_deref(), force, after_each);
    keep_changed(&journal, &report)?;
    after_each();
    Ok(report)
}

/// What somebody else has changed waits in the journal until it is asked back by force.
pub(crate) fn keep_changed(journal: &Journal, report: &Report) -> Result<(), JournalError> {
    if report.changed.is_empty() || !report.failed.is_empty() {
        return Ok(());
    }
    let values = report.changed.iter().map(|changed| (changed.path.clone(), changed.applied.clone()));
    journal.holding(true, &values.collect::<Vec<_>>())
}

/// Puts back every standing tuning, the newest first. What killed processes left is [`super::recover()`]'s.
/// `after_each` is called after every effect on the machine or the disk.
///
/// # Errors
/// Another tare holds settings now.
pub fn restore(dir: &Path, root: &Root, force: bool, after_each: &dyn Fn()) -> Result<Report, LockError> {
    let _lock = Lock::take(dir)?;
    let Journals { found, refused } = journals(dir);
    let mut report = Report { failed: refused, ..Report::default() };
    let boot_now = boot_id(root).unwrap_or_default();
    for found in found {
        let left = not_put_back(&found.entries);
        if !left.standing {
            continue;
        }
        if found.owner(&boot_now).is_none_or(|owner| owner.boot_id != boot_now) {
            report.rebooted += left.settings.len();
            let _ = fs::remove_file(&found.path);
            continue;
        }
        match finish(&found.path, &left, force, after_each) {
            Ok(done) => {
                let is_clean = done.is_clean();
                report.add(done);
                if is_clean {
                    found.retire(&mut report.failed);
                    after_each();
                }
            }
            Err(error) => report.failed.push(error.to_string()),
        }
    }
    Ok(report)
}

/// What tare has applied on this machine and not put back yet, the newest first. Changes nothing.
pub fn tunings(dir: &Path, root: &Root) -> Vec<Tuning> {
    let boot_now = boot_id(root).unwrap_or_default();
    let tuning = |found: Found| {
        let left = not_put_back(&found.entries);
        let Owner { id, boot_id, command, since_unix_ns, .. } = found.owner(&boot_now)?;
        if boot_id != boot_now || left.settings.is_empty() {
            return None;
        }
        let state = match (left.standing, is_alive(root, id)) {
            (true, _) => State::Standing,
            (false, true) => State::Held,
            (false, false) => State::Left,
        };
        let by = Holder { pid: id.pid, command, since_unix_s: since_unix_ns / 1_000_000_000 };
        Some(Tuning { by, state, settings: shown(left) })
    };
    journals(dir).found.into_iter().filter_map(tuning).collect()
}

fn shown(left: Left) -> Vec<Changed> {
    let values = left.values.unwrap_or_default();
    let shown = |change: ValueChange| {
        let now = change.now().unwrap_or_else(|missing| missing.why);
        let ValueChange { setting, path, before, wanted, .. } = change;
        let made = values.iter().find(|(at, _)| *at == path).map(|(_, value)| value.clone());
        Changed { setting, path, before, applied: made.unwrap_or(wanted), now }
    };
    left.settings.into_iter().map(shown).collect()
}
