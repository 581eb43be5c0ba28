//! What is known about the load generator of another project while it runs.

use crate::format::Format;
use crate::result::short;
use std::time::Duration;

/// One load generator.
#[derive(Debug, Clone, Copy)]
pub struct Generator {
    /// The name of its program; empty where it stands for any that is not known.
    pub program: &'static str,
    /// Which of its threads send.
    pub senders: Senders,
    /// When it has been set up.
    pub set_up: SetUp,
    /// The options that give it a rate (`-R 300`, `--rate=300`); empty: it has none, or it is not known.
    pub rate_options: &'static [&'static str],
    /// Starts of lines on standard error that are its usual progress, and no complaint.
    pub chatter: &'static [&'static str],
    /// How it prints its result, where nothing in the text says so; `None`: unknown.
    pub format: Option<&'static Format>,
}

/// Which threads of a process make the load. That one of them is busy all the time makes the generator the bottleneck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Senders {
    /// Any.
    All,
    /// The first one only where it is alone: otherwise it waits for the others.
    Workers,
}

/// When the set-up of a generator is over: its connections are open, as many as there will be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetUp {
    /// It has connections, and their greatest number has not grown for so long.
    pub steady_for: Duration,
    /// So long after its first connection at the latest, for it may open more of them all the time; and so long after its start
    /// where it has none.
    pub at_most: Duration,
}

/// Most characters of complaints that are kept.
const COMPLAINTS_CHARS_MAX: usize = 2000;

impl Generator {
    /// What of its standard error is not its usual progress, the first lines.
    pub fn complaints(&self, stderr: &str) -> String {
        let is_chatter = |line: &str| self.chatter.iter().any(|start| line.starts_with(start));
        // A progress line is often written over with carriage returns.
        let lines = stderr.split(['\n', '\r']).map(str::trim);
        let kept: Vec<String> =
            lines.filter(|line| !line.is_empty() && !is_chatter(line)).map(short).collect();
        kept.join("\n").chars().take(COMPLAINTS_CHARS_MAX).collect()
    }

    /// Operations per second that its command line asks for; `None` where it asks for no rate.
    pub fn rate_hz(&self, words: &[String]) -> Option<f64> {
        let value = |at: usize, option: &str| {
            let rest = words.get(at)?.strip_prefix(option)?;
            match rest.strip_prefix('=') {
                Some(value) => Some(value),
                None if rest.is_empty() => words.get(at + 1).map(String::as_str),
                // A short option may have its value behind it, a long one may not.
                None => (!option.starts_with("--")).then_some(rest),
            }
        };
        let given = self
            .rate_options
            .iter()
            .flat_map(|option| (0..words.len()).filter_map(move |at| value(at, option)));
        given
            .filter_map(|value| value.parse::<f64>().ok())
            .rfind(|rate_hz| rate_hz.is_finite() && *rate_hz > 0.0)
    }
}

impl Senders {
    /// Whether a thread sends: the first of its process or another, of a process with so many threads.
    pub fn include(self, is_first: bool, threads: usize) -> bool {
        match self {
            Senders::All => true,
            Senders::Workers => !is_first || threads == 1,
        }
    }
}
