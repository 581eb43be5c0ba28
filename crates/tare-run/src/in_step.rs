//! Sessions that measure at the same time, each in a process of its own: each says that it is ready, and begins when whoever started it says so;
//! a program is run again and again until all have run often enough. Words are lines of text.

use crate::error::{LabError, THREADS_HINT};
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Said by a session: what it measures is up and under load.
pub(crate) const READY: &str = "ready";
/// Said by a session: it has measured as much as it was asked to.
pub(crate) const ENOUGH: &str = "enough";
/// Heard by a session: all are ready.
pub(crate) const GO: &str = "go";
/// Heard by a session: all have measured enough.
pub(crate) const END: &str = "end";

/// A session's side.
pub struct InStep {
    heard: Arc<Heard>,
    say: Mutex<Box<dyn Write + Send>>,
    said_ready: AtomicBool,
    said_enough: AtomicBool,
}

#[derive(Debug, Default)]
struct Heard {
    go: AtomicBool,
    end: AtomicBool,
}

impl std::fmt::Debug for InStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InStep").field("heard", &self.heard).finish_non_exhaustive()
    }
}

impl InStep {
    /// Hears and says by these. Where nobody speaks any more `interrupt` is set: whoever started the session is gone.
    ///
    /// # Errors
    /// The thread that listens cannot be started.
    pub fn new(
        hear: impl Read + Send + 'static,
        say: impl Write + Send + 'static,
        interrupt: Arc<AtomicBool>,
    ) -> Result<Arc<InStep>, LabError> {
        let heard = Arc::new(Heard::default());
        let listener = heard.clone();
        let listen = move || {
            for line in BufReader::new(hear).lines() {
                match line.as_deref().map(str::trim) {
                    Ok(GO) => listener.go.store(true, Ordering::Relaxed),
                    Ok(END) => listener.end.store(true, Ordering::Relaxed),
                    Ok(_) => {}
                    Err(_) => break,
                }
            }
            interrupt.store(true, Ordering::Relaxed);
        };
        std::thread::Builder::new()
            .name("tare-in-step".into())
            .spawn(listen)
            .map_err(|error| LabError::State(format!("cannot start a thread: {error} ({THREADS_HINT})")))?;
        Ok(Arc::new(InStep {
            heard,
            say: Mutex::new(Box::new(say)),
            said_ready: AtomicBool::new(false),
            said_enough: AtomicBool::new(false),
        }))
    }

    /// Says, the first time, that it is ready.
    pub(crate) fn ready(&self) {
        if !self.said_ready.swap(true, Ordering::Relaxed) {
            self.say(READY);
        }
    }

    /// Whether all are ready.
    pub(crate) fn may_begin(&self) -> bool {
        self.heard.go.load(Ordering::Relaxed)
    }

    /// Whether all have measured enough; says, the first time, that this one has.
    pub(crate) fn may_end(&self) -> bool {
        if !self.said_enough.swap(true, Ordering::Relaxed) {
            self.say(ENOUGH);
        }
        self.heard.end.load(Ordering::Relaxed)
    }

    /// Who cannot be heard is interrupted soon: its reader has ended, and the other pipe with it.
    fn say(&self, word: &str) {
        let mut say = self.say.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        writeln!(say, "{word}").and_then(|()| say.flush()).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    /// What was said, to be read from outside.
    #[derive(Clone, Default)]
    struct Said(Arc<Mutex<Vec<u8>>>);

    impl Write for Said {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn eventually(what: impl Fn() -> bool) -> bool {
        let end = Instant::now() + Duration::from_secs(10);
        while !what() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        what()
    }

    #[test]
    fn begins_and_ends_when_it_hears_so_and_is_interrupted_by_silence() {
        let (hear, mut speak) = std::io::pipe().unwrap();
        let (said, interrupt) = (Said::default(), Arc::new(AtomicBool::new(false)));
        let step = InStep::new(hear, said.clone(), interrupt.clone()).unwrap();
        step.ready();
        step.ready();
        assert!(!step.may_begin() && !interrupt.load(Ordering::Relaxed));
        writeln!(speak, "go").unwrap();
        assert!(eventually(|| step.may_begin()));
        assert!(!step.may_end() && !step.may_end());
        writeln!(speak, "another word\nend").unwrap();
        assert!(eventually(|| step.may_end()));
        assert_eq!(String::from_utf8(said.0.lock().unwrap().clone()).unwrap(), "ready\nenough\n");
        drop(speak);
        assert!(eventually(|| interrupt.load(Ordering::Relaxed)));
    }
}
