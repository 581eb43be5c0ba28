//! What a session reports to whoever shows its progress.

use std::time::Instant;

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

/// Shows a part of something longer, of which the whole length is known: time counts from the beginning of the whole.
pub(crate) struct Part<'a> {
    pub within: &'a mut dyn Progress,
    pub begun: Instant,
}

impl Progress for Part<'_> {
    fn show(&mut self, event: Event) {
        let event = match event {
            Event::Expected { .. } => return,
            Event::Live { rate_hz, phase, .. } => {
                Event::Live { elapsed_s: self.begun.elapsed().as_secs_f64(), rate_hz, phase }
            }
            other => other,
        };
        self.within.show(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[derive(Default)]
    struct Seen(Vec<Event>);

    impl Progress for Seen {
        fn show(&mut self, event: Event) {
            self.0.push(event);
        }
    }

    #[test]
    fn a_part_counts_from_the_beginning_of_the_whole() {
        let mut seen = Seen::default();
        let begun = Instant::now().checked_sub(Duration::from_secs(5)).expect("5 s of uptime");
        let mut part = Part { within: &mut seen, begun };
        part.show(Event::Expected { total_s: 1.0 });
        part.show(Event::Live { elapsed_s: 0.1, rate_hz: None, phase: "load".into() });
        part.show(Event::Step("next".into()));
        assert!(
            matches!(&seen.0[..], [Event::Live { elapsed_s, .. }, Event::Step(_)] if *elapsed_s >= 5.0),
            "{:?}",
            seen.0
        );
    }
}
