//! Applying: each setting is in the journal, on disk, before it is changed; one that fails undoes those before it.

use super::setting::{Change, Planned};
use crate::journal::{Journal, JournalError, Lock, Report, ValueChange, keep_changed, put_back};
use crate::root::Root;
use crate::value::{self, Step};
use std::fmt;
use std::io;
use std::path::PathBuf;
use tare_model::Missing;

/// Why settings could not be applied. Those that were applied before are as they were.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// The way back could not be written down.
    #[error("{source}; {}", undone(.report))]
    Journal {
        /// Why not.
        source: JournalError,
        /// What became of the settings that had been applied before.
        report: Box<Report>,
    },
    /// This machine does not have the setting, or cannot change it so.
    #[error("{setting}: {}{}; nothing was changed", .missing.why, hinted(&.missing.remedy))]
    Missing {
        /// The setting.
        setting: &'static str,
        /// Why.
        missing: Missing,
    },
    /// The kernel refused a value.
    #[error("{setting}: {} did not take '{wanted}': {source}; hint: {}; {}", path.display(), hint(.source), undone(.report))]
    Refused {
        /// The setting.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// The value.
        wanted: String,
        /// What the kernel said.
        source: io::Error,
        /// What became of the settings that had been applied before.
        report: Box<Report>,
    },
}

impl TuneError {
    /// Whether everything is as it was.
    pub fn is_undone(&self) -> bool {
        match self {
            TuneError::Missing { .. } => true,
            TuneError::Journal { report, .. } | TuneError::Refused { report, .. } => report.is_clean(),
        }
    }
}

fn hinted(remedy: &str) -> String {
    if remedy.is_empty() { String::new() } else { format!("; hint: {remedy}") }
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied if !tare_sys::process::is_root() => "run tare as root",
        io::ErrorKind::PermissionDenied => "firmware, hypervisor or a locked-down kernel does not allow it",
        io::ErrorKind::ReadOnlyFilesystem => "it is read-only here; in a container: on its host",
        io::ErrorKind::InvalidInput => {
            "the kernel does not take this value here; a group above may allow less"
        }
        io::ErrorKind::ResourceBusy => "it is in use",
        _ => "look at what the kernel said (dmesg)",
    }
}

fn undone(report: &Report) -> String {
    match (report.put_back.len(), report.is_clean()) {
        (0, true) => "nothing was changed".to_string(),
        (count, true) => format!("the settings applied before it ({count}) are as they were"),
        _ => format!("not all that was applied before it is as it was: {}", report.failed.join("; ")),
    }
}

/// Settings that are applied. Dropping this puts them back; what fails then stays in the journal for the next start.
#[must_use = "dropping this puts the settings back"]
pub struct Applied<'j> {
    journal: &'j Journal,
    root: Root,
    settings: Vec<ValueChange>,
    values: Vec<(PathBuf, String)>,
    notes: Vec<String>,
    after_each: &'j dyn Fn(),
    is_held: bool,
    _lock: Lock,
}

impl fmt::Debug for Applied<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Applied").field("settings", &self.settings).field("values", &self.values).finish()
    }
}

/// Applies all settings of a plan, in its order. `lock` is held since before the plan was made: what another tare has applied
/// would be taken for what was there before. `after_each` is called after every effect on the machine or the disk.
///
/// # Errors
/// [`TuneError`]; nothing is applied then.
pub fn apply<'j>(
    journal: &'j Journal,
    lock: Lock,
    root: &Root,
    plan: &[Planned],
    after_each: &'j dyn Fn(),
) -> Result<Applied<'j>, TuneError> {
    let changes = changes(root, plan)?;
    // Dropped on every early return below, which puts back what was applied so far.
    let mut applied = Applied {
        journal,
        root: root.clone(),
        settings: Vec::new(),
        values: Vec::new(),
        notes: Vec::new(),
        after_each,
        is_held: true,
        _lock: lock,
    };
    // All are read before the first is applied: one may change what another shows.
    let mut steps = Vec::new();
    for (setting, step) in
        changes.iter().flat_map(|(setting, change)| change.steps.iter().map(|step| (*setting, step)))
    {
        match as_it_stands(root, step) {
            Ok(step) => steps.extend(step.map(|step| (setting, step))),
            Err(error) if step.may_be_refused => {
                applied.notes.push(format!("{setting}: {} stays: {error}", step.path.display()));
            }
            Err(error) => return Err(applied.failed(setting, step, Failed::Refused(error))),
        }
    }
    for (setting, step) in &steps {
        applied.step(setting, step).map_err(|failed| applied.failed(setting, step, failed))?;
    }
    for (setting, change) in changes {
        applied.notes.extend(change.notes.iter().map(|note| format!("{setting}: {note}")));
    }
    applied.look();
    match applied.hold(false) {
        Ok(()) => Ok(applied),
        Err(source) => Err(TuneError::Journal { source, report: Box::new(applied.undo()) }),
    }
}

/// The changes, when every setting has one that can be undone.
fn changes<'p>(root: &Root, plan: &'p [Planned]) -> Result<Vec<(&'static str, &'p Change)>, TuneError> {
    let change = |planned| {
        let Planned { setting, change }: &'p Planned = planned;
        let change = change.as_ref().map_err(Missing::clone);
        let change = change.and_then(|change| leads_back(root, change).map(|()| change));
        match change {
            Ok(change) => Ok((setting.name(), change)),
            Err(missing) => Err(TuneError::Missing { setting: setting.name(), missing }),
        }
    };
    plan.iter().map(change).collect()
}

fn leads_back(root: &Root, change: &Change) -> Result<(), Missing> {
    for step in &change.steps {
        if step.before.is_none() && !root.is_live() {
            return Err(Missing::with_remedy(
                "it is done once and cannot be put back, and this is not the running system",
                "without --root",
            ));
        }
        if !(step.path.starts_with("/proc") || step.path.starts_with("/sys")) {
            return Err(Missing::with_remedy(
                format!(
                    "{} is not below /proc or /sys, where alone settings are put back",
                    step.path.display()
                ),
                "mount what it is in there",
            ));
        }
    }
    Ok(())
}

/// A step with what stands there now, which is what the way back leads to; none when it stands as wanted by now.
fn as_it_stands(root: &Root, step: &Step) -> io::Result<Option<Step>> {
    if step.before.is_none() {
        return Ok(Some(step.clone()));
    }
    let now = value::read(root, &step.path).map_err(io::Error::other)?;
    let stands = value::same(&now, &step.wanted);
    Ok((!stands).then(|| Step { before: Some(now), ..step.clone() }))
}

enum Failed {
    Journal(JournalError),
    Refused(io::Error),
}

impl Applied<'_> {
    fn step(&mut self, setting: &str, step: &Step) -> Result<(), Failed> {
        let Some(before) = &step.before else {
            // What is not on disk yet is not dropped.
            tare_sys::file::sync();
            return value::write(&self.root, &step.path, &step.wanted).map_err(Failed::Refused);
        };
        let change = ValueChange::new(&self.root, setting, step, before);
        self.journal.will_apply(&change).map_err(Failed::Journal)?;
        (self.after_each)();
        let written = value::write(&self.root, &step.path, &step.wanted);
        (self.after_each)();
        match written {
            Err(error) if step.may_be_refused => {
                self.notes.push(format!("{setting}: {} stays: {error}", step.path.display()));
                // It was never applied: whoever puts back after us must not think that it is ours.
                self.journal.was_put_back(&change.path).map_err(Failed::Journal)?;
                (self.after_each)();
                return Ok(());
            }
            _ => self.settings.push(change),
        }
        written.map_err(Failed::Refused)
    }

    /// Undoes what was applied before a step that failed.
    fn failed(&mut self, setting: &'static str, step: &Step, failed: Failed) -> TuneError {
        let report = Box::new(self.undo());
        match failed {
            Failed::Journal(source) => TuneError::Journal { source, report },
            Failed::Refused(source) => {
                let (path, wanted) = (step.path.clone(), step.wanted.clone());
                TuneError::Refused { setting, path, wanted, source, report }
            }
        }
    }

    /// What the kernel made of the settings; only when all are applied, as one may limit another.
    fn look(&mut self) {
        for change @ ValueChange { setting, path, before, wanted, .. } in &self.settings {
            let Ok(now) = change.now() else { continue };
            if value::same(&now, before) {
                self.notes.push(format!("{setting}: {} is still '{now}'", path.display()));
            } else if !value::same(&now, wanted) {
                self.notes.push(format!("{setting}: '{wanted}' was asked for, the kernel made it '{now}'"));
            }
            self.values.push((path.clone(), now));
        }
    }

    fn hold(&self, standing: bool) -> Result<(), JournalError> {
        self.journal.holding(standing, &self.values)?;
        (self.after_each)();
        Ok(())
    }

    /// How many settings are applied.
    pub fn len(&self) -> usize {
        self.settings.len()
    }

    /// What was changed: the setting's name, and in words, as `/proc/sys/vm/nr_hugepages: 0 → 512`.
    pub fn changes(&self) -> Vec<(String, String)> {
        let change = |change: &ValueChange| {
            let now = self.values.iter().find(|(path, _)| *path == change.path).map(|(_, now)| now);
            let (path, before, now) = (change.path.display(), &change.before, now.unwrap_or(&change.wanted));
            (change.setting.clone(), format!("{path}: {before} → {now}"))
        };
        self.settings.iter().map(change).collect()
    }

    /// Everything stood as wanted.
    pub fn is_empty(&self) -> bool {
        self.settings.is_empty()
    }

    /// What the user should know: what the kernel made of values, what it refused.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Lets everything stand until it is asked back ([`crate::journal::restore`]), also after this process's end.
    ///
    /// # Errors
    /// The journal cannot be written: then all is put back.
    pub fn keep(mut self) -> Result<(), TuneError> {
        if let Err(source) = self.hold(true) {
            return Err(TuneError::Journal { source, report: Box::new(self.undo()) });
        }
        self.is_held = false;
        Ok(())
    }

    /// Puts everything back and says what became of it.
    pub fn restore(mut self) -> Report {
        self.undo()
    }

    fn undo(&mut self) -> Report {
        self.is_held = false;
        // Empty while settings are being applied: then it is not known what the kernel made of them.
        let values = (!self.values.is_empty()).then_some(self.values.as_slice());
        let mut report = put_back(self.journal, &self.settings, values, false, self.after_each);
        if let Err(error) = keep_changed(self.journal, &report) {
            report.failed.push(error.to_string());
        }
        report
    }
}

impl Drop for Applied<'_> {
    fn drop(&mut self) {
        if self.is_held {
            self.undo();
        }
    }
}
