//! How a run of many goes on.

use crate::progress::{Event, Progress};
use std::time::Instant;

/// Shows what is live, and of which run; a session's own steps are too many.
pub(super) struct Live<'a> {
    pub within: &'a mut dyn Progress,
    pub begun: Instant,
    pub of: String,
}

impl Progress for Live<'_> {
    fn show(&mut self, event: Event) {
        if let Event::Live { rate_hz, phase, .. } = event {
            let elapsed_s = self.begun.elapsed().as_secs_f64();
            self.within.show(Event::Live { elapsed_s, rate_hz, phase: format!("{}: {phase}", self.of) });
        }
    }
}
