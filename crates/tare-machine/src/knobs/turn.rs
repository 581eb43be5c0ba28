//! Turning: each setting is in the journal, on disk, before it is changed; one that fails undoes those before it.

use super::lock::{Lock, LockError};
use super::setting::{self, Step};
use super::{Course, Planned};
use crate::journal::{Journal, JournalError, Report, Turning, put_back};
use crate::root::Root;
use std::fmt;
use std::io;
use std::path::PathBuf;
use tare_record::Missing;

/// Why knobs could not be turned. Those that were turned before are as they were.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// Another tare holds knobs.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The way back could not be written down.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// This machine does not have the knob, or cannot turn it so.
    #[error("{knob}: {}{}; nothing was changed", .missing.why, hinted(&.missing.remedy))]
    Missing {
        /// The knob.
        knob: &'static str,
        /// Why.
        missing: Missing,
    },
    /// The kernel refused a value.
    #[error("{knob}: {} did not take '{wanted}': {source}; hint: {}; {}", path.display(), hint(.source), undone(.report))]
    Refused {
        /// The knob.
        knob: &'static str,
        /// The file.
        path: PathBuf,
        /// The value.
        wanted: String,
        /// What the kernel said.
        source: io::Error,
        /// What became of the settings that had been turned before.
        report: Box<Report>,
    },
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
        (count, true) => format!("the settings turned before it ({count}) are as they were"),
        _ => format!("not all that was turned before it is as it was: {}", report.failed.join("; ")),
    }
}

/// Knobs that are turned. Dropping this puts them back; what fails then stays in the journal for the next start.
#[must_use = "dropping this puts the knobs back"]
pub struct Turned<'j> {
    journal: &'j Journal,
    settings: Vec<Turning>,
    values: Vec<(PathBuf, String)>,
    notes: Vec<String>,
    after_each: &'j dyn Fn(),
    is_held: bool,
    _lock: Lock,
}

impl fmt::Debug for Turned<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turned").field("settings", &self.settings).field("values", &self.values).finish()
    }
}

/// Turns all knobs of a plan, in its order. `after_each` is called after every effect on the machine or the disk.
///
/// # Errors
/// [`TuneError`]; nothing is turned then.
pub fn turn<'j>(
    journal: &'j Journal,
    root: &Root,
    plan: &[Planned],
    after_each: &'j dyn Fn(),
) -> Result<Turned<'j>, TuneError> {
    let courses = courses(plan)?;
    // Dropped on every early return below, which puts back what was turned so far.
    let mut turned = Turned {
        journal,
        settings: Vec::new(),
        values: Vec::new(),
        notes: Vec::new(),
        after_each,
        is_held: true,
        _lock: Lock::take(journal.dir())?,
    };
    for (knob, course) in courses {
        for step in &course.steps {
            if let Err(failed) = turned.step(root, knob, step) {
                return Err(match failed {
                    Failed::Journal(error) => error.into(),
                    Failed::Refused(source) => {
                        let (path, wanted) = (step.path.clone(), step.wanted.clone());
                        let report = Box::new(turned.undo());
                        TuneError::Refused { knob, path, wanted, source, report }
                    }
                });
            }
        }
        turned.notes.extend(course.notes.iter().map(|note| format!("{knob}: {note}")));
    }
    turned.look();
    turned.hold(false)?;
    Ok(turned)
}

/// The courses, when every knob has one.
fn courses(plan: &[Planned]) -> Result<Vec<(&'static str, &Course)>, TuneError> {
    let course = |planned| {
        let Planned { knob, course }: &Planned = planned;
        match course {
            Ok(course) => Ok((knob.name(), course)),
            Err(missing) => Err(TuneError::Missing { knob: knob.name(), missing: missing.clone() }),
        }
    };
    plan.iter().map(course).collect()
}

enum Failed {
    Journal(JournalError),
    Refused(io::Error),
}

impl Turned<'_> {
    fn step(&mut self, root: &Root, knob: &'static str, step: &Step) -> Result<(), Failed> {
        let path = root.path(&step.path);
        let Some(before) = &step.before else {
            if root.is_live() {
                // What is not on disk yet is not dropped.
                tare_sys::file::sync();
            }
            return setting::write_file(&path, &step.wanted).map_err(Failed::Refused);
        };
        let (knob, before, wanted) = (knob.to_string(), before.clone(), step.wanted.clone());
        let setting = Turning { knob, path, before, wanted, moves_by_itself: step.moves_by_itself };
        self.journal.will_turn(&setting).map_err(Failed::Journal)?;
        (self.after_each)();
        let written = setting::write_file(&setting.path, &setting.wanted);
        (self.after_each)();
        match written {
            Err(error) if step.may_be_refused => {
                self.notes.push(format!("{}: {} stays: {error}", setting.knob, step.path.display()));
                return Ok(());
            }
            _ => self.settings.push(setting),
        }
        written.map_err(Failed::Refused)
    }

    /// What the kernel made of the settings; only when all are turned, as one may limit another.
    fn look(&mut self) {
        for Turning { knob, path, before, wanted, .. } in &self.settings {
            let Ok(now) = setting::read_file(path) else { continue };
            if setting::same(&now, before) {
                self.notes.push(format!("{knob}: {} is still '{now}'", path.display()));
            } else if !setting::same(&now, wanted) {
                self.notes.push(format!("{knob}: '{wanted}' was asked for, the kernel made it '{now}'"));
            }
            self.values.push((path.clone(), now));
        }
    }

    fn hold(&self, standing: bool) -> Result<(), JournalError> {
        self.journal.holding(standing, &self.values)?;
        (self.after_each)();
        Ok(())
    }

    /// How many settings are turned.
    pub fn len(&self) -> usize {
        self.settings.len()
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
    pub fn keep(mut self) -> Result<(), JournalError> {
        self.hold(true)?;
        self.is_held = false;
        Ok(())
    }

    /// Puts everything back and says what became of it.
    pub fn restore(mut self) -> Report {
        self.undo()
    }

    fn undo(&mut self) -> Report {
        self.is_held = false;
        // Empty while turning: then it is not known what the kernel made of them.
        let values = (!self.values.is_empty()).then_some(self.values.as_slice());
        let mut report = put_back(self.journal, &self.settings, values, false, self.after_each);
        if let Err(error) = self.journal.keep_changed(&report) {
            report.failed.push(error.to_string());
        }
        report
    }
}

impl Drop for Turned<'_> {
    fn drop(&mut self) {
        if self.is_held {
            self.undo();
        }
    }
}
