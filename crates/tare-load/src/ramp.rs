//! Waiting until the connections of a load are open.

use crate::error::LoadError;
use crate::shared::Shared;
use crate::spec::{LoadSpec, Protocol};
use crate::way::Way;
use crate::worker::Settled;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Longest that is waited for connections; those that come later join in then.
const RAMP_MAX: Duration = Duration::from_secs(5);
const RAMP_PER_CONNECTION: Duration = Duration::from_micros(200);
/// Longest that a Unix socket's queue may be full: as long as a first request waits for it.
const FULL_MAX: Duration = Duration::from_secs(2);
/// How soon the user who has had enough is heard, and a full queue is looked after.
const SLICE: Duration = Duration::from_millis(20);

/// The connections of a load's threads, on their way.
pub(crate) struct Ramp<'a> {
    pub(crate) spec: &'a LoadSpec,
    pub(crate) way: &'a Way,
    pub(crate) threads: Vec<Arc<Shared>>,
    pub(crate) interrupt: &'a AtomicBool,
}

impl Ramp<'_> {
    /// Waits until every thread has tried all of its connections, within a bound; at least one must be open then.
    pub(crate) fn wait(&self, reports: &Receiver<Settled>) -> Result<(), LoadError> {
        let begun = Instant::now();
        let deadline = begun + RAMP_MAX + RAMP_PER_CONNECTION * self.spec.connections;
        let (mut settled, mut open, mut why) = (0, 0, None);
        while settled < self.threads.len() && Instant::now() < deadline {
            self.look()?;
            let left = deadline.saturating_duration_since(Instant::now());
            match reports.recv_timeout(left.min(SLICE)) {
                Ok(report) => {
                    settled += 1;
                    open += report.open;
                    why = report.why.or(why);
                }
                Err(RecvTimeoutError::Timeout) => {}
                // Threads that ended report nothing.
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        // A full queue is no failure: it is tried again until somebody accepts.
        let is_full =
            |why: &Option<io::Error>| why.as_ref().is_some_and(|why| why.kind() == io::ErrorKind::WouldBlock);
        while open == 0 && is_full(&why) && !self.ever_opened() && begun.elapsed() < FULL_MAX {
            self.look()?;
            std::thread::sleep(SLICE);
        }
        // A thread that is still trying has not reported, but what it opened is known.
        let tried = settled == self.threads.len() && !is_full(&why);
        if if tried { open > 0 } else { self.ever_opened() } {
            return Ok(());
        }
        Err(self.failure(why))
    }

    fn look(&self) -> Result<(), LoadError> {
        if self.interrupt.load(Ordering::Relaxed) { Err(LoadError::Interrupted) } else { Ok(()) }
    }

    fn ever_opened(&self) -> bool {
        self.threads.iter().any(|thread| thread.ever_opened() > 0)
    }

    /// Not one connection could be opened.
    fn failure(&self, why: Option<io::Error>) -> LoadError {
        let endpoint = &self.way.endpoint;
        let timed_out = |why: &str| io::Error::new(io::ErrorKind::TimedOut, why);
        let why = why.unwrap_or_else(|| io::ErrorKind::TimedOut.into());
        match why.kind() {
            io::ErrorKind::WouldBlock => {
                let why = timed_out("its queue of connections stayed full, so nobody accepts them");
                LoadError::refused(endpoint, why)
            }
            // The connection is there, and nobody at its other end says what it is to begin with.
            io::ErrorKind::TimedOut if self.threads.iter().any(|thread| thread.was_reached()) => {
                let why = match self.way.tls.is_some() {
                    true => "the TLS handshake was not answered",
                    false if self.spec.protocol == Protocol::Http2 => {
                        "nothing came, not even how HTTP/2 begins"
                    }
                    false => "nothing came",
                };
                LoadError::NoAnswer { address: endpoint.to_string(), why: timed_out(why) }
            }
            _ => LoadError::refused(endpoint, why),
        }
    }
}
