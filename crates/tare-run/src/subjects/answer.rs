//! Asking a server as the load will, and whose processes answer.

use super::sut::Sut;
use crate::ask::{is_asked_wrongly, preflight};
use crate::error::{LOAD_HELP, LabError};
use crate::process::{alive, descendants};
use crate::progress::Event;
use crate::running::Running;
use std::net::TcpStream;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tare_load::{HostPort, LoadError, LoadSpec, Preflight, Target, Trust};
use tare_machine::namespaces::{self, Server};
use tare_machine::{Root, sockets};

/// How long a listener may take to accept; the kernel does so for it.
const ACCEPT_WITHIN: Duration = Duration::from_millis(200);

/// Asks once as the load will, where it must be answered. What was asked for wrongly is the user's to change; a server that is named and
/// does not answer has failed.
pub(super) fn reach(load: &LoadSpec, interrupt: &AtomicBool) -> Result<Preflight, LabError> {
    preflight(load, interrupt)?.map_err(|error| {
        if is_asked_wrongly(&error) {
            return LabError::usage(error.to_string(), LOAD_HELP);
        }
        let target = &load.route.target;
        let what = match &error {
            LoadError::NoConnection { why, .. } => format!(
                "is not there: nothing answers at {target}: {why} (hint: start the server, or have it started with --sut 'COMMAND')"
            ),
            LoadError::NoAnswer { .. } => format!(
                "is silent: nothing answers at {target}: {error} (hint: is this its address? one that is slow to answer needs a longer --timeout)"
            ),
            LoadError::NotTrusted { .. } => format!("cannot be asked: {error}"),
            // Something is there: what is wrong with it says what to do.
            _ => format!("cannot be asked: nothing answers at {target}: {error}"),
        };
        LabError::Sut { what, last_output: String::new() }
    })
}

/// Where the load goes after that answer. What is measured beside it was planned for the scheme that the user gave.
pub(super) fn landed(load: &LoadSpec, preflight: &Preflight) -> Result<Target, LabError> {
    let (asked, target) = (&load.route.target, &preflight.target);
    if asked.is_tls() != target.is_tls() {
        return Err(LabError::usage(
            format!("{asked} redirects to {target}, which is another protocol"),
            format!("give {target} as the URL"),
        ));
    }
    Ok(target.clone())
}

/// What to know of the way to a server whose load it is.
pub(crate) fn notes(load: &LoadSpec, sut: &Sut, running: &mut Running<'_>) -> Result<(), LabError> {
    let route = &load.route;
    let Some(target) = &sut.target else { return Ok(()) };
    if let Some(text) = sut.first_status.and_then(|status| refused(target, status, &load.expect.statuses)) {
        // Shown at once, since a run takes its time; the result has the counts.
        running.progress.show(Event::Notice(text));
    }
    if route.follow && *target != route.target {
        let text = format!("{} redirects to {target}: that is where the load goes", route.target);
        running.notice("redirects-followed", &text, "this URL can be given by itself, without --follow")?;
    }
    if route.tls.trust == Trust::Anyone && target.is_tls() {
        let text = format!("the certificate of {} was not verified (--insecure)", target.authority());
        running.notice("certificate-not-verified", &text, "--cacert FILE names an issuer to trust")?;
    }
    Ok(())
}

/// What to say at once of a first answer that is an error.
fn refused(target: &Target, status: u16, expected: &[u16]) -> Option<String> {
    let counts = if expected.is_empty() { status >= 400 } else { !expected.contains(&status) };
    counts.then(|| {
        format!(
            "the first answer of {target} has status {status}: such answers count as errors (is the path right? Ctrl-C ends this run)"
        )
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

/// Whether somebody listens there, be it that nobody answers there.
pub(crate) fn is_taken(at: &HostPort) -> bool {
    let addresses = at.resolve().unwrap_or_default();
    addresses.iter().any(|address| TcpStream::connect_timeout(address, ACCEPT_WITHIN).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_answer_that_is_an_error_is_said_at_once() {
        let target = Target::parse("http://127.0.0.1:8080/wrong").unwrap();
        let text = refused(&target, 404, &[]).unwrap();
        assert!(text.contains("/wrong has status 404") && text.contains("Ctrl-C"), "{text}");
        for status in [200, 204, 301, 304] {
            assert_eq!(refused(&target, status, &[]), None);
        }
        assert_eq!(refused(&target, 404, &[404]), None);
        assert!(refused(&target, 200, &[404]).is_some());
    }
}
