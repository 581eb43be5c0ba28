//! Settings of the machine that were turned, and the way back.

use super::recover::{is_alive, journals, read};
use super::{Entry, Journal, JournalError};
use crate::facts::boot_id;
use crate::knobs::{Holder, Lock, LockError, read_file, same, write_file};
use crate::root::Root;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// A setting that is about to be changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Turning {
    /// Whose setting it is.
    pub knob: String,
    /// The file, on this system.
    pub path: PathBuf,
    /// What stood there, as it can be written again.
    pub before: String,
    /// What shall stand there.
    pub wanted: String,
    /// What stands there may change without anybody's doing.
    #[serde(default)]
    pub moves_by_itself: bool,
}

/// What a journal says of settings that were not put back yet, in the order in which they were turned.
pub(super) struct Left {
    pub settings: Vec<Turning>,
    /// What the kernel made of them; not known while they were being turned.
    pub values: Option<Vec<(PathBuf, String)>>,
    /// They are to stay until they are asked back.
    pub standing: bool,
}

pub(super) fn turned(entries: &[Entry]) -> Left {
    let mut left = Left { settings: Vec::new(), values: None, standing: false };
    for entry in entries {
        match entry {
            Entry::WillTurn(setting) => left.settings.push(setting.clone()),
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

/// A setting that is as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PutBack {
    /// Its knob.
    pub knob: String,
    /// Its file.
    pub path: PathBuf,
    /// What stands there again.
    pub value: String,
}

/// A setting that somebody else has changed since; it was left as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// Its knob.
    pub knob: String,
    /// Its file.
    pub path: PathBuf,
    /// What stood there before tare turned it.
    pub before: String,
    /// What tare made of it.
    pub turned: String,
    /// What stands there now.
    pub now: String,
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
    /// How many settings were turned before the machine was last started: that has undone them.
    pub rebooted: usize,
}

impl Report {
    /// Everything that was turned is as it was.
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

/// Puts settings back, the last turned first, and notes each in the journal. What shows neither what was there
/// before nor what tare made of it has been changed by somebody else and is left, unless `force`; where it is not
/// known what tare made of it (it was killed while turning), it is put back whatever it shows.
/// `after_each` is called after every effect on the machine or the disk.
pub(crate) fn put_back(
    journal: &Journal,
    settings: &[Turning],
    values: Option<&[(PathBuf, String)]>,
    force: bool,
    after_each: &dyn Fn(),
) -> Report {
    let mut report = Report::default();
    for Turning { knob, path, before, moves_by_itself, .. } in settings.iter().rev() {
        if !path.exists() {
            report.notes.push(format!("{knob}: {} is gone, there is nothing to put back", path.display()));
            note(journal, path, &mut report, after_each);
            continue;
        }
        let now = read_file(path).ok();
        let made = values.and_then(|values| values.iter().find(|(at, _)| at == path));
        match (&now, made) {
            _ if *moves_by_itself => {}
            (Some(now), _) if same(now, before) => {
                note(journal, path, &mut report, after_each);
                continue;
            }
            (Some(now), Some((_, made))) if !force && !same(now, made) => {
                let (knob, path, before) = (knob.clone(), path.clone(), before.clone());
                report.changed.push(Changed { knob, path, before, turned: made.clone(), now: now.clone() });
                continue;
            }
            _ => {}
        }
        if let Err(error) = write_file(path, before) {
            let shown = path.display();
            report.failed.push(format!("{knob}: {shown} could not be set to '{before}' again: {error}"));
            continue;
        }
        after_each();
        let (knob, value) = (knob.clone(), before.clone());
        report.put_back.push(PutBack { knob, path: path.clone(), value });
        note(journal, path, &mut report, after_each);
    }
    // Only now: one setting may limit what another shows.
    for PutBack { knob, path, value } in &report.put_back {
        let now = read_file(path).unwrap_or_else(|missing| missing.why);
        if !same(&now, value) {
            report
                .notes
                .push(format!("{knob}: {} shows '{now}' after '{value}' was written", path.display()));
        }
    }
    report
}

fn note(journal: &Journal, path: &Path, report: &mut Report, after_each: &dyn Fn()) {
    // Without the note the next start finds the value as it was, and has nothing to do.
    if let Err(error) = journal.append(&Entry::PutBack { path: path.to_path_buf() }) {
        report.notes.push(error.to_string());
    }
    after_each();
}

/// For a journal whose owner is dead: puts back what it had turned. Whether the journal has no more use.
pub(super) fn put_back_left(path: &Path, left: &Left, report: &mut Report) -> bool {
    if left.settings.is_empty() {
        return true;
    }
    let dir = path.parent().unwrap_or(Path::new("."));
    // Somebody else is at it, who did this or will.
    let Ok(_lock) = Lock::take(dir) else { return false };
    match finish(path, left, false, &|| ()) {
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
    journal.keep_changed(&report)?;
    after_each();
    Ok(report)
}

impl Journal {
    /// To be called before a setting is changed.
    pub(crate) fn will_turn(&self, setting: &Turning) -> Result<(), JournalError> {
        self.append(&Entry::WillTurn(setting.clone()))
    }

    /// To be called when all settings are changed.
    pub(crate) fn holding(&self, standing: bool, values: &[(PathBuf, String)]) -> Result<(), JournalError> {
        self.append(&Entry::Holding { standing, values: values.to_vec() })
    }

    /// What somebody else has changed waits in the journal until it is asked back by force.
    pub(crate) fn keep_changed(&self, report: &Report) -> Result<(), JournalError> {
        if report.changed.is_empty() || !report.failed.is_empty() {
            return Ok(());
        }
        let values = report.changed.iter().map(|changed| (changed.path.clone(), changed.turned.clone()));
        self.holding(true, &values.collect::<Vec<_>>())
    }
}

/// Puts back every standing tuning, the newest first. What killed processes left is [`super::recover`]'s.
/// `after_each` is called after every effect on the machine or the disk.
///
/// # Errors
/// Another tare holds knobs now.
pub fn restore(dir: &Path, root: &Root, force: bool, after_each: &dyn Fn()) -> Result<Report, LockError> {
    let mut report = Report::default();
    let standing = |path: &PathBuf| turned(&read(path).unwrap_or_default()).standing;
    let standing: Vec<PathBuf> = journals(dir).into_iter().filter(standing).collect();
    let _lock = Lock::take(dir)?;
    let boot_now = boot_id(root).unwrap_or_default();
    for path in standing {
        let entries = read(&path).unwrap_or_default();
        let left = turned(&entries);
        if !matches!(entries.first(), Some(Entry::Owner { boot_id, .. }) if *boot_id == boot_now) {
            report.rebooted += left.settings.len();
            let _ = fs::remove_file(&path);
            continue;
        }
        match finish(&path, &left, force, after_each) {
            Ok(done) => {
                if done.is_clean() {
                    let _ = fs::remove_file(&path);
                    after_each();
                }
                report.add(done);
            }
            Err(error) => report.failed.push(error.to_string()),
        }
    }
    Ok(report)
}

/// Who holds what is turned now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// A process, which puts it back when it ends.
    Held,
    /// Nobody: it stays until it is asked back.
    Standing,
    /// A process that was killed: the next start puts it back.
    Left,
}

/// Settings that one call of tare has turned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tuning {
    /// Who did it.
    pub by: Holder,
    /// Who holds it now.
    pub state: State,
    /// The settings, with what stood there and what tare made of it.
    pub settings: Vec<Changed>,
}

/// What tare has turned on this machine and not put back yet, the newest first. Changes nothing.
pub fn tunings(dir: &Path, root: &Root) -> Vec<Tuning> {
    let boot_now = boot_id(root).unwrap_or_default();
    let tuning = |path: PathBuf| {
        let entries = read(&path)?;
        let left = turned(&entries);
        let Some(Entry::Owner { id, boot_id, command, since_unix_ns, .. }) = entries.first() else {
            return None;
        };
        if *boot_id != boot_now || left.settings.is_empty() {
            return None;
        }
        let state = match (left.standing, is_alive(root, *id)) {
            (true, _) => State::Standing,
            (false, true) => State::Held,
            (false, false) => State::Left,
        };
        let by =
            Holder { pid: id.pid, command: command.clone(), since_unix_s: since_unix_ns / 1_000_000_000 };
        Some(Tuning { by, state, settings: shown(left) })
    };
    journals(dir).into_iter().filter_map(tuning).collect()
}

fn shown(left: Left) -> Vec<Changed> {
    let values = left.values.unwrap_or_default();
    let shown = |Turning { knob, path, before, wanted, .. }: Turning| {
        let made = values.iter().find(|(at, _)| *at == path).map(|(_, value)| value.clone());
        let now = read_file(&path).unwrap_or_else(|missing| missing.why);
        Changed { knob, path, before, turned: made.unwrap_or(wanted), now }
    };
    left.settings.into_iter().map(shown).collect()
}
