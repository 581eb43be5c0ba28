//! Tare's own server, as a child; or another program that says on which address it listens.

use super::started::{StartLimit, wait};
use super::subject::Subject;
use super::sut::Sut;
use crate::error::LabError;
use crate::place;
use crate::plan::Resolved;
use crate::process::{Launch, Output, Started};
use crate::progress::Event;
use crate::request::SutRequest;
use crate::running::Running;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use tare_load::Target;
use tare_machine::journal::Journal;
use tare_model::plan;

/// Tare's own server.
pub(super) struct Embedded;

impl Subject for Embedded {
    fn is_asked(&self, resolved: &Resolved) -> bool {
        resolved.request.sut == SutRequest::Embedded
    }

    fn why(&self) -> &'static str {
        "no server was named, so it is the built-in one"
    }

    fn open(&self, resolved: &Resolved, running: &mut Running<'_>) -> Result<Sut, LabError> {
        let cpus = place::started_on(&resolved.request, &running.topology)?;
        running.progress.show(Event::Step("starting the built-in server".into()));
        let program = &resolved.request.embedded_program;
        embedded(program, &cpus, &[], &running.journal, running.interrupt)
    }
}

/// Starts the embedded server on a free loopback port, in control groups.
pub(crate) fn embedded(
    program: &std::path::Path,
    cpus: &[u32],
    groups: &[PathBuf],
    journal: &Journal,
    interrupt: &AtomicBool,
) -> Result<Sut, LabError> {
    let mut words =
        [program.display().to_string(), "serve".into(), "--listen".into(), "127.0.0.1:0".into()].to_vec();
    if !cpus.is_empty() {
        words.extend(["--cpus".into(), tare_model::CpuSet::from(cpus).to_string()]);
        words.extend(["--threads".into(), cpus.len().to_string()]);
    }
    listening(words, cpus, groups, journal, interrupt)
}

/// Starts a server that says on which address it listens in its first line, as the embedded one does, in control groups.
pub(crate) fn listening(
    words: Vec<String>,
    cpus: &[u32],
    groups: &[PathBuf],
    journal: &Journal,
    interrupt: &AtomicBool,
) -> Result<Sut, LabError> {
    let launch = Launch {
        what: "a server that says where it listens",
        words,
        cpus: cpus.to_vec(),
        groups: groups.to_vec(),
        environment: Vec::new(),
        output: Output::Keep,
    };
    let mut started = Started::launch(&launch, journal)?;
    let limit = StartLimit::of_embedded();
    let address = loop {
        if let Some(address) = listening_address(&started.output_so_far()) {
            break address;
        }
        wait(&mut started, &[], limit, "answer", interrupt)?;
    };
    let target = Target::parse(&format!("http://{address}/plaintext")).map_err(|error| LabError::Sut {
        what: format!("gave an odd address: {error}"),
        last_output: started.output(),
    })?;
    let pids = vec![started.pid()];
    Ok(Sut::answering(target, pids, plan::Sut::Embedded).with(started))
}

/// The address in the server's first line, `listening on 127.0.0.1:40001`.
fn listening_address(output: &str) -> Option<std::net::SocketAddr> {
    let (_, rest) = output.split_once("listening on ")?;
    let (address, _) = rest.split_once('\n')?;
    address.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_embedded_servers_address() {
        assert_eq!(listening_address("x\nlistening on 127.0.0.1:4711\n"), "127.0.0.1:4711".parse().ok());
        assert_eq!(listening_address("listening on 127.0.0.1:47"), None, "the line may not be whole yet");
        assert_eq!(listening_address("listening on nowhere\n"), None);
    }
}
