//! What a session reports to whoever shows its progress.

/// Something worth showing.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A step began: one line.
    Step(String),
    /// The whole session's expected length became known.
    Expected {
        /// Seconds.
        total_s: f64,
    },
    /// Load is running.
    Live {
        /// Seconds since the session's first load.
        elapsed_s: f64,
        /// Requests per second in the last moment; `None` where they cannot be counted yet.
        rate_hz: Option<f64>,
        /// What is being done: `warm-up`, `trial 2/5`, …
        phase: String,
    },
    /// A trial is on disk.
    TrialDone {
        /// Position in the session.
        seq: u32,
        /// req/s, or seconds for a command; `None` when requests could not be counted.
        value: Option<f64>,
        /// `req/s` or `s`.
        unit: &'static str,
    },
    /// Something the user should know at once.
    Notice(String),
}

/// Shows events. Called from the session's own thread; must not block.
pub trait Progress {
    /// Shows one event.
    fn show(&mut self, event: Event);
}

/// Shows nothing.
pub struct Silent;

impl Progress for Silent {
    fn show(&mut self, _event: Event) {}
}
