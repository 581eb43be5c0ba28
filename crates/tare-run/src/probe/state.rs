//! The command of a state: started, watched, ended with all that it started.

use crate::error::LabError;
use crate::process::{Launch, Output, Started};
use std::time::Instant;
use tare_machine::journal::Journal;
use tare_model::probing::ProbingPlan;

/// What stands for the seconds that a state needs.
pub(super) const SECONDS: &str = "{seconds}";
/// Longer than the state is needed: until a load has started.
const START_S: f64 = 1.0;

/// A state that holds.
pub(super) struct Loaded {
    started: Option<Started>,
    ended_early: bool,
}

impl Loaded {
    /// Starts its command, if it has one.
    pub fn begin(command: Option<&str>, plan: &ProbingPlan, journal: &Journal) -> Result<Loaded, LabError> {
        let Some(command) = command else { return Ok(Loaded { started: None, ended_early: false }) };
        let launch = Launch {
            what: "the load",
            words: words(command, plan)?,
            cpus: Vec::new(),
            groups: Vec::new(),
            environment: Vec::new(),
            output: Output::Keep,
        };
        Ok(Loaded { started: Some(Started::launch(&launch, journal)?), ended_early: false })
    }

    /// Whether the command ended before this instant. To be called often.
    pub fn has_ended_early(&mut self, needed_until: Instant) -> bool {
        if Instant::now() < needed_until && self.started.as_ref().is_some_and(Started::has_ended) {
            self.ended_early = true;
        }
        self.ended_early
    }

    /// Ends it. What went wrong with it, and what it printed last.
    pub fn end(mut self) -> Option<(String, String)> {
        let started = self.started.as_mut()?;
        if !self.ended_early {
            started.stop();
            return None;
        }
        let output = started.output();
        let how = started.exit_description();
        started.stop();
        let what = format!(
            "its command ended before the window did: {how} (hint: {SECONDS} in it stands for the seconds that it is needed)"
        );
        Some((what, output))
    }
}

/// Program and arguments.
pub(super) fn words(command: &str, plan: &ProbingPlan) -> Result<Vec<String>, LabError> {
    // Connections are opened and the last requests answered within the time limit each.
    let seconds = (plan.settle_s + plan.window_s + 2.0 * plan.timeout_s + START_S).ceil();
    let command = command.replace(SECONDS, &format!("{seconds}"));
    shell_words::split(&command).map_err(|error| {
        LabError::usage(format!("'{command}' is no command line: {error}"), "close its quotes")
    })
}
