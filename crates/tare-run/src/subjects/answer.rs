//! Asking a server as the load will, and whose processes answer.

use crate::error::LabError;
use crate::process::{alive, descendants};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use tare_load::{LoadError, LoadSpec, Preflight, Target};
use tare_machine::namespaces::{self, Server};
use tare_machine::{Root, sockets};

/// How long one attempt to get an answer may take, at least and at most: else as long as the load's own timeout.
const ATTEMPT_MIN: Duration = Duration::from_secs(2);
const ATTEMPT_MAX: Duration = Duration::from_secs(30);
/// How often an attempt looks whether the user has had enough.
const POLL: Duration = Duration::from_millis(20);
/// How long a listener may take to accept; the kernel does so for it.
const ACCEPT_WITHIN: Duration = Duration::from_millis(200);

/// Asks once as the load will; a load with patience has it here too.
///
/// # Errors
/// What the attempt came to, or [`LabError::Interrupted`]: what still waits for an answer then ends by its own time limit.
pub(super) fn preflight(
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
    thread.map_err(|error| LabError::Observe(format!("no thread could be started: {error}")))?;
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

/// The same, where it must be answered.
pub(super) fn reach(load: &LoadSpec, interrupt: &AtomicBool) -> Result<Preflight, LabError> {
    preflight(load, interrupt)?.map_err(|error| match error {
        LoadError::NoConnection { why, .. } => LabError::usage(
            format!("nothing answers at {}: {why}", load.route.target),
            "start the server, or have it started with --sut 'COMMAND'",
        ),
        LoadError::NoAnswer { .. } => LabError::usage(
            format!("nothing answers at {}: {error}", load.route.target),
            "is this its address? one that is slow to answer needs a longer --timeout",
        ),
        // Something is there: what is wrong with it says what to do.
        error => LabError::usage(format!("nothing answers at {}: {error}", load.route.target), ""),
    })
}

/// The processes that answered, and whether they are in our own network namespace.
pub(super) fn find_server(preflight: &Preflight) -> Result<Server, sockets::NotFound> {
    if let Some(listener) = preflight.peer_pid {
        return of_unix_socket(listener).map(|pids| Server { pids, same_namespace: true });
    }
    let (Some(local), Some(peer)) = (preflight.local_addr, preflight.peer_addr) else {
        return Err(sockets::NotFound::OtherHost);
    };
    namespaces::find_server(&Root::live(), local, peer, &[std::process::id()])
}

/// Who made a Unix socket listen, and what descends from it.
fn of_unix_socket(listener: u32) -> Result<Vec<u32>, sockets::NotFound> {
    // PID 1 hands sockets on to others that it starts.
    if listener == 1 || !alive(listener) {
        return Err(sockets::NotFound::Nobody);
    }
    Ok(descendants(listener))
}

/// Whether somebody listens where this leads, be it that nobody answers there.
pub(crate) fn is_taken(target: &Target) -> bool {
    let addresses = target.resolve().unwrap_or_default();
    addresses.iter().any(|address| TcpStream::connect_timeout(address, ACCEPT_WITHIN).is_ok())
}
