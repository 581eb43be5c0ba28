//! What sections work from, and what they are made into.

use crate::block::Block;
use tare_model::Record;
use tare_model::observation::Role;
use tare_model::outcome::{Outcome, ThreadRow};
use tare_model::plan::{HttpWorkload, Sut, Workload};

/// What sections work from.
pub(crate) struct Source<'a> {
    pub record: &'a Record,
    pub outcome: &'a Outcome,
}

/// What a report is shown on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Medium {
    Terminal,
    Markdown,
    Page,
}

/// A part of a report.
pub(crate) struct Section {
    /// Its heading; empty for parts that speak for themselves.
    pub title: &'static str,
    /// Where it is shown.
    pub media: &'static [Medium],
    /// Its blocks; none where there is nothing to say.
    pub build: fn(&Source) -> Vec<Block>,
}

/// A section that had something to say.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Part {
    pub title: &'static str,
    pub blocks: Vec<Block>,
}

impl Part {
    /// Of these blocks; `None` where there are none.
    pub fn of(title: &'static str, blocks: Vec<Block>) -> Option<Part> {
        (!blocks.is_empty()).then_some(Part { title, blocks })
    }
}

impl Source<'_> {
    /// A title that says what was counted.
    pub fn counted(&self, title: &'static str) -> &'static str {
        match title {
            "Requests" if self.counts_operations() => "Operations",
            title => title,
        }
    }

    /// Whether operations of another protocol than HTTP were counted.
    pub fn counts_operations(&self) -> bool {
        self.outcome.figures.gross.unit() == "op/s"
    }

    /// The HTTP workload of the plan.
    pub fn http(&self) -> Option<&HttpWorkload> {
        match &self.record.plan.workload {
            Workload::Http(http) => Some(http),
            Workload::Command(_) => None,
        }
    }

    /// What to call the SUT: its busiest thread's process name, or what was started.
    pub fn sut_name(&self) -> String {
        let threads = self.outcome.accounting.threads_of(Role::Sut);
        // The busiest process is called what its main thread is: others have names of their own.
        let busiest = threads.first().copied();
        let is_main =
            |thread: &&ThreadRow| busiest.is_some_and(|one| [thread.pid, thread.tid] == [one.pid; 2]);
        let seen = threads.iter().copied().find(is_main).or(busiest);
        match (self.http().map(|http| &http.sut), seen) {
            (Some(Sut::Embedded), _) => "the built-in server".into(),
            (_, Some(thread)) if !thread.name.is_empty() => thread.name.clone(),
            (Some(Sut::Started { command }), _) => program(command),
            (None, _) => "the program".into(),
            _ => "the server".into(),
        }
    }
}

/// The program's name in a command line.
fn program(command: &str) -> String {
    let path = command.split_whitespace().next().unwrap_or("the program");
    path.rsplit('/').next().unwrap_or(path).into()
}
