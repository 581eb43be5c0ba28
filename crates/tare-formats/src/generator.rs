//! What is known about the load generator of another project while it runs.

use crate::format::Format;
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
    /// So long after its start at the latest: a generator may have no connections, or open more of them all the time.
    pub at_most: Duration,
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
