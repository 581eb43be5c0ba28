//! What every session has: the machine's facts, the journal, the record, the interrupt flag, progress.

use crate::enough::{self, Enough};
use crate::error::LabError;
use crate::in_step::InStep;
use crate::progress::{Event, Progress};
use crate::records;
use crate::written::Written;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tare_machine::Root;
use tare_machine::facts::{self, Reach};
use tare_machine::identity::of_processes;
use tare_machine::journal::Journal;
use tare_machine::topology;
use tare_model::Record;
use tare_model::identity::{Identity, Program};
use tare_model::intervention::Intervention;
use tare_model::machine::MachineFacts;
use tare_model::observation::Role;
use tare_model::outcome::{Outcome, Warning};
use tare_model::plan::{Level, Plan};
use tare_model::stacks::Stacks;
use tare_model::survey::Survey;
use tare_model::topology::Topology;
use tare_model::trial::{Trial, WarmUp};
use tare_store::{StoreError, Writer};

/// How often a wait shows the live rate and checks the interrupt flag.
const LIVE_EVERY: Duration = Duration::from_millis(100);
/// How often a wait checks whether what it waits for has happened.
const POLL: Duration = Duration::from_millis(2);
/// Sessions that measure at the same time wait for each other no longer than this.
const IN_STEP_WITHIN: Duration = Duration::from_secs(3600);

/// Where a session keeps its things.
#[derive(Debug, Clone)]
pub struct Session {
    /// The record's file; `None`: a fresh one below the state directory.
    pub record: Option<PathBuf>,
    /// Journals of what must be undone.
    pub state_dir: PathBuf,
    /// Records that no file was named for.
    pub records_dir: PathBuf,
    /// Set from outside to end early; what was done is kept.
    pub interrupt: Arc<AtomicBool>,
    /// With whom it measures at the same time; `None`: by itself.
    pub in_step: Option<Arc<InStep>>,
}

/// A session that is being held.
pub struct Running<'a> {
    session: &'a Session,
    /// The machine as found.
    pub facts: MachineFacts,
    /// All that was read of it.
    survey: Survey,
    /// What tare may use of the machine.
    pub topology: Topology,
    /// What was started and turned.
    pub journal: Rc<Journal>,
    /// See [`Session::interrupt`].
    pub interrupt: &'a AtomicBool,
    /// Who shows progress.
    pub progress: &'a mut dyn Progress,
    /// The load before the first trial, until that is kept.
    pub warm_up: Option<WarmUp>,
    /// What was noticed before there was a record.
    notices: Vec<Warning>,
    /// The record, once the plan is known.
    written: Option<Written>,
    enough: Enough,
    began: Instant,
}

impl<'a> Running<'a> {
    /// Deals with what killed runs left, then reads the machine. Nothing is started yet.
    pub fn begin(session: &'a Session, progress: &'a mut dyn Progress) -> Result<Self, LabError> {
        if let Some(path) = &session.record {
            check_writable(path)?;
        }
        for line in crate::recovery::recover(&session.state_dir) {
            progress.show(Event::Notice(line));
        }
        // A daemon that leaves its parent becomes our child, so that it is found and stopped.
        tare_sys::process::become_subreaper().ok();
        let journal = Journal::create(&session.state_dir, &Root::live())
            .map_err(|error| LabError::State(error.to_string()))?;
        let survey = facts::survey(&Root::live(), Reach { company: None, windows: false });
        Ok(Running {
            session,
            facts: survey.machine.clone(),
            survey,
            topology: topology::read(&Root::live(), None),
            journal: Rc::new(journal),
            interrupt: &session.interrupt,
            progress,
            warm_up: None,
            notices: Vec::new(),
            written: None,
            enough: Enough::default(),
            began: Instant::now(),
        })
    }

    /// Creates the record, now that the plan is known, and which programs take part.
    pub fn open_record(&mut self, plan: Plan, programs: Vec<Program>) -> Result<(), LabError> {
        let path = match &self.session.record {
            Some(path) => path.clone(),
            None => records::fresh_path(&self.session.records_dir, plan.started_unix_s)?,
        };
        let writer = Writer::create(&path, &self.facts, &plan)
            .map_err(|error| LabError::usage(error.to_string(), error.hint()))?;
        let identity = identity(self.survey.clone(), programs);
        let notices = std::mem::take(&mut self.notices);
        self.written = Some(Written::begin(writer, self.facts.clone(), plan, identity, notices)?);
        self.began = Instant::now();
        Ok(())
    }

    /// The file that the user named for what is measured.
    pub fn record_path(&self) -> Option<&'a Path> {
        self.session.record.as_deref()
    }

    /// All that was read of the machine as the session began.
    pub(crate) fn survey(&self) -> &Survey {
        &self.survey
    }

    /// Where journals are, and the lock of settings.
    pub fn state_dir(&self) -> &'a Path {
        &self.session.state_dir
    }

    /// What the trials so far come to; `None` before the plan is known.
    pub fn explained(&self) -> Option<Outcome> {
        self.record().map(tare_explain::explain)
    }

    /// The trials so far; `None` before the plan is known.
    pub fn record(&self) -> Option<&Record> {
        self.written.as_ref().map(Written::record)
    }

    fn plan(&self) -> Option<&Plan> {
        self.written.as_ref().map(Written::plan)
    }

    /// Puts on disk what was tried on the bottleneck.
    pub fn keep_intervention(&mut self, tried: Intervention) -> Result<(), LabError> {
        if let Some(written) = &mut self.written {
            written.intervention(tried)?;
        }
        Ok(())
    }

    /// Keeps a warning of the run itself.
    pub fn notice(&mut self, id: &str, text: &str, hint: &str) -> Result<(), LabError> {
        let warning = Warning { id: id.into(), text: text.into(), hint: hint.into() };
        self.progress.show(Event::Notice(format!("{text} ({hint})")));
        match &mut self.written {
            Some(written) => written.notice(warning)?,
            None => self.notices.push(warning),
        }
        Ok(())
    }

    /// Whether a notice of that kind was given already.
    pub(crate) fn has_notice(&self, id: &str) -> bool {
        let notices = self.record().map_or(&self.notices, |record| &record.notices);
        notices.iter().any(|notice| notice.id == id)
    }

    /// The unit of what is measured; empty before the plan is known.
    pub fn unit(&self) -> &'static str {
        self.plan().map_or("", |plan| plan.workload.unit())
    }

    /// Whether a level is the one that was asked for.
    pub fn is_asked(&self, level: u32) -> bool {
        self.written.as_ref().is_some_and(|written| written.is_asked(level))
    }

    /// How many levels share the time of this one's trials.
    pub fn arms(&self, level: u32) -> u32 {
        self.written.as_ref().map_or(1, |written| written.arms(level))
    }

    /// Puts into the journal that a command is about to be started, once or more often.
    pub fn will_start(&self, command: &str) -> Result<(), LabError> {
        self.journal.will_start(command).map_err(|error| LabError::State(error.to_string()))
    }

    /// Number of the next trial.
    pub fn next_seq(&self) -> u32 {
        self.record().map_or(0, |record| record.trials.len() as u32)
    }

    /// Puts a finished trial on disk.
    pub fn keep(&mut self, trial: Trial) -> Result<(), LabError> {
        if let Some(written) = &mut self.written {
            written.trial(trial)?;
        }
        Ok(())
    }

    /// Puts the windows of the profile on disk. What was to be measured is there by now: where the disk refuses them, the result has them
    /// all the same, and says so.
    pub fn keep_profile(&mut self, windows: Vec<Stacks>) {
        let Some(Err(error)) = self.written.as_mut().map(|written| written.profile(windows)) else { return };
        let text = format!("the record lacks the call stacks: {error}");
        self.progress.show(Event::Notice(format!("{text} ({})", error.hint())));
        if let Some(written) = &mut self.written {
            written.remark(Warning { id: "profile-not-kept".into(), text, hint: error.hint().into() });
        }
    }

    /// Whether no further trial of the asked level, or of a command, is needed or fits, where that is not a matter of their number.
    pub fn is_enough(&mut self, command: u32) -> bool {
        self.written.as_ref().is_some_and(|written| self.enough.is_reached(written.record(), command))
    }

    /// How well net or gross is known by now, as a part of a line of progress; empty where nobody asked, or it is not yet.
    pub fn known(&self) -> String {
        self.enough.known()
    }

    /// The figure that the trials are to make known.
    pub fn target(&self) -> &'static str {
        enough::target(self.plan())
    }

    /// Which trial of a level it is, and of how many as far as that is known.
    pub fn nth(&self, trial: u32, level: &Level) -> String {
        self.enough.nth(trial, level, self.plan())
    }

    /// Waits until the sessions that measure at the same time are ready too; at once where there are none, and after the first time.
    pub fn begin_in_step(&mut self) -> Result<(), LabError> {
        let Some(step) = self.session.in_step.clone() else { return Ok(()) };
        step.ready();
        self.wait_until(IN_STEP_WITHIN, "waiting for the other instances", || step.may_begin())?;
        if step.may_begin() {
            return Ok(());
        }
        Err(LabError::Observe("the other instances were not ready within an hour".to_owned()))
    }

    /// Whether what is measured as often as was asked for may end: not before those that are measured at the same time may.
    pub fn may_end(&self) -> bool {
        self.session.in_step.as_ref().is_none_or(|step| step.may_end())
    }

    /// Waits, showing the rate that `rate` gives for each stretch of so many seconds.
    pub fn wait(
        &mut self,
        length: Duration,
        phase: &str,
        mut rate: impl FnMut(f64) -> Option<f64>,
    ) -> Result<(), LabError> {
        let end = Instant::now() + length;
        let mut last = Instant::now();
        loop {
            self.check_interrupt()?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(LIVE_EVERY));
            let rate_hz = rate(last.elapsed().as_secs_f64());
            last = Instant::now();
            self.live(phase, rate_hz);
        }
    }

    /// Waits until `done`, at most `longest`.
    pub fn wait_until(
        &mut self,
        longest: Duration,
        phase: &str,
        mut done: impl FnMut() -> bool,
    ) -> Result<(), LabError> {
        let end = Instant::now() + longest;
        let mut next_live = Instant::now();
        while !done() && Instant::now() < end {
            self.check_interrupt()?;
            if Instant::now() >= next_live {
                next_live = Instant::now() + LIVE_EVERY;
                self.live(phase, None);
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    /// Shows what is being done.
    pub fn live(&mut self, phase: &str, rate_hz: Option<f64>) {
        let elapsed_s = self.began.elapsed().as_secs_f64();
        self.progress.show(Event::Live { elapsed_s, rate_hz, phase: phase.to_string() });
    }

    /// An error once the user has asked to end.
    pub fn check_interrupt(&self) -> Result<(), LabError> {
        if self.interrupt.load(Ordering::Relaxed) { Err(LabError::Interrupted) } else { Ok(()) }
    }

    /// Closes the record and the journal; everything that was started has been stopped by now.
    pub fn end(self, end: Result<(), LabError>) -> Held {
        // Whoever left the process group of what was started is still a descendant of ours.
        crate::process::stop_orphans();
        let Running { journal, written, .. } = self;
        let mut end = end;
        let record = written.map(|written| {
            let was_interrupted = matches!(end, Err(LabError::Interrupted));
            let (mut record, closed) = written.end(was_interrupted.then(interrupted));
            if let (Ok(()), Err(error)) = (&end, closed) {
                end = Err(error.into());
            }
            if let Err(LabError::Store(error)) = &end {
                record.notices.push(not_kept(error));
            }
            record
        });
        // Somebody who still holds the journal has not undone everything: it stays for the next start.
        if let (Ok(()), Some(Err(error))) = (&end, Rc::into_inner(journal).map(Journal::finish)) {
            end = Err(LabError::State(error.to_string()));
        }
        Held { record, end }
    }
}

/// Who takes part, with tare's own program, whose threads make the load and watch.
fn identity(survey: Survey, mut programs: Vec<Program>) -> Identity {
    programs.extend(of_processes(&Root::live(), Role::Tare, &[std::process::id()]));
    Identity { tare: env!("CARGO_PKG_VERSION").to_owned(), survey, programs }
}

/// Of a result that is shown and is not on disk as a whole.
fn not_kept(error: &StoreError) -> Warning {
    Warning {
        id: "record-not-kept".into(),
        text: format!("the record could not be written to its end: {error}"),
        hint: "what was measured until then is shown here; free space, or name another file with -o, and run again"
            .into(),
    }
}

fn interrupted() -> Warning {
    Warning {
        id: "interrupted".into(),
        text: "the session was interrupted: fewer trials than planned".into(),
        hint: "let it run to its end, or plan fewer trials (--trials)".into(),
    }
}

/// How a session ended, and what there is of it.
#[derive(Debug)]
pub struct Held {
    /// The trials that were finished; `None` when the session failed before its first.
    pub record: Option<Record>,
    /// Whether it went to its end.
    pub end: Result<(), LabError>,
}

/// Finds out before anything is started that a record cannot be written there. Leaves no file behind.
fn check_writable(path: &Path) -> Result<(), LabError> {
    // To open one waits for its reader, perhaps for ever.
    if std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo()) {
        let what =
            format!("cannot write {}: it is a pipe, and results are written more than once", path.display());
        return Err(LabError::usage(what, "name a file with -o"));
    }
    let existed = path.exists();
    std::fs::OpenOptions::new().append(true).create(true).open(path).map_err(|error| {
        LabError::usage(format!("cannot write {}: {error}", path.display()), "name another file with -o")
    })?;
    if !existed {
        std::fs::remove_file(path).ok();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nobody is at its other end: to open it would wait for ever.
    #[test]
    fn a_record_is_no_pipe() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
        assert!(made.success());
        let text = check_writable(&pipe).expect_err("a pipe").to_string();
        assert!(text.contains("is a pipe") && text.contains("hint: "), "{text}");
        assert!(check_writable(&folder.path().join("record")).is_ok());
    }
}
