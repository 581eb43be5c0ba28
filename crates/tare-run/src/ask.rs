//! Asking a server once, as a load will, without keeping a user waiting who has had enough.

use crate::error::{LabError, THREADS_HINT};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use tare_load::{LoadError, LoadSpec, Preflight};

/// How long one attempt to get an answer may take, at least and at most: else as long as the load's own timeout.
const ATTEMPT_MIN: Duration = Duration::from_secs(2);
const ATTEMPT_MAX: Duration = Duration::from_secs(30);
/// How often an attempt looks whether the user has had enough.
const POLL: Duration = Duration::from_millis(20);

/// Asks once as the load will; a load with patience has it here too.
///
/// # Errors
/// What the attempt came to, or [`LabError::Interrupted`]: what still waits for an answer then ends by its own time limit, an upload when the
/// server takes no more of it, and both with this process.
pub(crate) fn preflight(
    load: &LoadSpec,
    interrupt: &AtomicBool,
) -> Result<Result<Preflight, LoadError>, LabError> {
    let within = Duration::from_nanos(load.timeout_ns).clamp(ATTEMPT_MIN, ATTEMPT_MAX);
    let (sender, receiver) = mpsc::sync_channel(1);
    let asked = load.clone();
    let ask = move || {
        // Nobody is there to receive it if the user had enough meanwhile.
        let _ = sender.send(tare_load::preflight(&asked, within));
    };
    let thread = std::thread::Builder::new().name("tare-preflight".into()).spawn(ask);
    thread.map_err(|error| {
        LabError::Observe(format!("no thread could be started: {error} ({THREADS_HINT})"))
    })?;
    loop {
        match receiver.recv_timeout(POLL) {
            Ok(answer) => return Ok(answer),
            Err(_) if interrupt.load(Ordering::Relaxed) => return Err(LabError::Interrupted),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(LabError::Observe("the first request was not finished".to_owned()));
            }
        }
    }
}

/// Whether another command line is what helps.
pub(crate) fn is_asked_wrongly(error: &LoadError) -> bool {
    use LoadError::{Engine, OpenFiles, Redirect, Spec, Target, TlsFiles};
    matches!(error, Spec(_) | Target(_) | TlsFiles(_) | Redirect { .. } | OpenFiles { .. } | Engine { .. })
}
