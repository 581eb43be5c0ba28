//! What a cell is measured with beside its load: settings of the machine, and a command that runs meanwhile.

use crate::error::LabError;
use crate::process::{Launch, Output, Started};
use crate::progress::{Event, Progress};
use crate::running::Held;
use crate::treatment::{Switch, Treatment};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;
use std::rc::Rc;
use tare_machine::Root;
use tare_machine::journal::Journal;

/// What all cells have around them.
pub(super) struct Surroundings(Option<Ground>);

struct Ground {
    journal: Rc<Journal>,
    switch: Switch,
    /// The command beside each cell; empty: none.
    besides: Vec<String>,
    /// Notes that were shown.
    said: RefCell<BTreeSet<String>>,
}

/// Shows what a session shows, and looks meanwhile whether the command beside it still runs.
struct Watched<'p> {
    within: &'p mut dyn Progress,
    beside: Option<&'p Started>,
    has_ended: bool,
}

impl Progress for Watched<'_> {
    fn show(&mut self, event: Event) {
        // It is live while there is load; afterwards all that was started is ended.
        if matches!(event, Event::Live { .. }) {
            self.has_ended |= self.beside.is_some_and(Started::has_ended);
        }
        self.within.show(event);
    }
}

impl Surroundings {
    /// Judges the settings of all cells, and applies each once to know that it can be. `treatments` and `besides`: one for each cell, or none.
    pub fn of(
        treatments: &[Treatment],
        besides: Vec<String>,
        state_dir: &Path,
        progress: &mut dyn Progress,
    ) -> Result<Surroundings, LabError> {
        if treatments.iter().all(Treatment::is_empty) && besides.iter().all(String::is_empty) {
            return Ok(Surroundings(None));
        }
        // Before the settings are read: what a killed run has left of them is not how they stood.
        for line in crate::recovery::recover(state_dir) {
            progress.show(Event::Notice(line));
        }
        let journal = Journal::create(state_dir, &Root::live());
        let journal = Rc::new(journal.map_err(|error| LabError::State(error.to_string()))?);
        let ground = Switch::of(treatments, Rc::clone(&journal), state_dir);
        let ground = ground.map(|switch| Ground {
            journal: Rc::clone(&journal),
            switch,
            besides,
            said: RefCell::default(),
        });
        match ground.and_then(|ground| ground.switch.rehearse().map(|()| ground)) {
            Ok(ground) => Ok(Surroundings(Some(ground))),
            Err(error) => {
                finish(journal)?;
                Err(error)
            }
        }
    }

    /// Measures a cell with what is around it; what was applied is put back, and what was started ended, whatever comes of it. Beside what was
    /// measured stands whether all could be put back.
    pub fn with(
        &self,
        (cell, name): (usize, &str),
        measure: impl FnOnce(&mut dyn Progress) -> Held,
        progress: &mut dyn Progress,
    ) -> Result<(Held, Result<(), LabError>), LabError> {
        let Some(ground) = &self.0 else { return Ok((measure(progress), Ok(()))) };
        let standing = ground.switch.on(cell)?;
        // What the kernel made of values is the same in every block: it is said once.
        for note in standing.notes() {
            let note = format!("{name}: {note}");
            if ground.said.borrow_mut().insert(note.clone()) {
                progress.show(Event::Notice(note));
            }
        }
        let command = ground.besides.get(cell).map_or("", String::as_str);
        let mut beside = start(command, &ground.journal)?;
        let mut watched = Watched { within: progress, beside: beside.as_ref(), has_ended: false };
        let held = measure(&mut watched);
        let has_ended = watched.has_ended;
        let printed = beside.as_mut().map(|beside| {
            let how = beside.exit_description();
            let lines = if has_ended { beside.output() } else { String::new() };
            beside.stop();
            (how, lines)
        });
        let put_back = standing.end().map(|_| ());
        match printed {
            Some((how, lines)) if has_ended && held.end.is_ok() => {
                put_back.and(Err(ended_early(name, &how, &lines)))
            }
            _ => Ok((held, put_back)),
        }
    }

    /// Nothing is left to be put back.
    pub fn end(self) -> Result<(), LabError> {
        let Some(Ground { journal, switch, .. }) = self.0 else { return Ok(()) };
        drop(switch);
        finish(journal)
    }
}

/// Who still has the journal has not undone everything: it stays for the next start.
fn finish(journal: Rc<Journal>) -> Result<(), LabError> {
    match Rc::into_inner(journal).map(Journal::finish) {
        Some(Err(error)) => Err(LabError::State(error.to_string())),
        _ => Ok(()),
    }
}

fn start(command: &str, journal: &Journal) -> Result<Option<Started>, LabError> {
    if command.is_empty() {
        return Ok(None);
    }
    let launch = Launch {
        what: "the command beside",
        words: ["sh", "-c", command].map(String::from).to_vec(),
        cpus: Vec::new(),
        groups: Vec::new(),
        environment: Vec::new(),
        output: Output::Keep,
    };
    Started::launch(&launch, journal).map(Some)
}

fn ended_early(name: &str, how: &str, printed: &str) -> LabError {
    let lines: Vec<&str> = printed.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines.get(lines.len().saturating_sub(1)..).unwrap_or_default().concat();
    let last = if last.is_empty() { last } else { format!(" ({last})") };
    LabError::usage(
        format!("{name}: the command beside it ended before the launch did: {how}{last}"),
        "have it run until it is ended, as 'while true; do …; done'",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Silent;
    use std::time::{Duration, Instant};

    fn around(besides: &[&str], state: &Path) -> Result<Surroundings, LabError> {
        let besides = besides.iter().map(|text| (*text).to_owned()).collect();
        Surroundings::of(&[], besides, state, &mut Silent)
    }

    fn nothing() -> Held {
        Held { record: None, end: Ok(()) }
    }

    /// Load that goes on until somebody has ended, or for a moment.
    fn live(progress: &mut dyn Progress, length: Duration) -> Held {
        let end = Instant::now() + length;
        while Instant::now() < end {
            progress.show(Event::Live { elapsed_s: 0.0, rate_hz: None, phase: String::new() });
            std::thread::sleep(Duration::from_millis(10));
        }
        nothing()
    }

    #[test]
    fn a_command_runs_beside_its_cell_and_no_longer() {
        let state = tempfile::tempdir().unwrap();
        let file = state.path().join("began");
        let command = format!("echo > {}; exec sleep 1000", file.display());
        let all = around(&["", &command], state.path()).unwrap();
        let alone = all.with((0, "alone"), |_| nothing(), &mut Silent);
        assert!(alone.is_ok() && !file.exists());
        let beside = |progress: &mut dyn Progress| {
            let end = Instant::now() + Duration::from_secs(20);
            while !file.exists() && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(5));
            }
            live(progress, Duration::from_millis(30))
        };
        assert!(all.with((1, "beside"), beside, &mut Silent).is_ok() && file.exists());
        all.end().unwrap();
        let journals = std::fs::read_dir(state.path()).unwrap().flatten();
        assert_eq!(
            journals.filter(|file| file.path().extension().is_some_and(|end| end == "journal")).count(),
            0
        );
    }

    #[test]
    fn a_command_that_ends_before_is_named_with_what_it_said() {
        let state = tempfile::tempdir().unwrap();
        let all = around(&["echo nobody there >&2; exit 3"], state.path()).unwrap();
        let measure = |progress: &mut dyn Progress| live(progress, Duration::from_secs(2));
        let error = all.with((0, "loaded"), measure, &mut Silent).unwrap_err().to_string();
        assert!(
            error.contains(
                "loaded: the command beside it ended before the launch did: exit status 3 (nobody there)"
            ),
            "{error}"
        );
        all.end().unwrap();
    }

    #[test]
    fn without_either_nothing_is_written() {
        let state = tempfile::tempdir().unwrap();
        let all = around(&["", ""], state.path()).unwrap();
        assert!(all.with((1, "all"), |_| nothing(), &mut Silent).is_ok());
        all.end().unwrap();
        assert_eq!(std::fs::read_dir(state.path()).unwrap().count(), 0);
    }
}
