//! A server that is started through sh and stopped afterwards.

use super::answer::{find_server, is_taken, landed};
use super::fit;
use super::subject::Subject;
use super::sut::{Sut, dead};
use crate::ask::preflight;
use crate::error::LabError;
use crate::place;
use crate::plan::Resolved;
use crate::process::{Launch, Output, Started, descendants, orphans, stop_orphans};
use crate::progress::Event;
use crate::request::SutRequest;
use crate::running::Running;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tare_load::{LoadError, LoadSpec};
use tare_machine::journal::Journal;
use tare_machine::{Root, peers};
use tare_model::plan;

/// How long a started server may take until it answers or listens, where nothing else is asked for.
const START_TIMEOUT: Duration = Duration::from_secs(30);
const RETRY: Duration = Duration::from_millis(20);
/// After the first address that a server listens on, it has so long for the others.
const ALL_LISTEN: Duration = Duration::from_millis(100);

/// The command of `--sut`.
pub(super) struct Command;

impl Subject for Command {
    fn is_asked(&self, resolved: &Resolved) -> bool {
        matches!(resolved.request.sut, SutRequest::Start(_))
    }

    fn why(&self) -> &'static str {
        "--sut started it, with all that it started"
    }

    fn open(&self, resolved: &Resolved, running: &mut Running<'_>) -> Result<Sut, LabError> {
        let SutRequest::Start(command) = &resolved.request.sut else {
            return Err(LabError::usage("no command is given", "give --sut 'COMMAND'"));
        };
        running.progress.show(Event::Step(format!("starting {command}")));
        let cpus = place::started_on(&resolved.request, &running.topology)?;
        let environment = match resolved.request.place.fit_runtime {
            true => fit::environment(&cpus, &running.topology, running.progress),
            false => Vec::new(),
        };
        let with = With { environment, no_thp: false };
        let load = &resolved.request.traffic;
        let limit = resolved.request.place.start_timeout;
        if resolved.by_connections {
            return launch(command, &cpus, with, limit, &running.journal)?.listening(running.interrupt);
        }
        match preflight(load, running.interrupt)? {
            // Who refuses is there too.
            Ok(_)
            | Err(LoadError::NotTrusted { .. } | LoadError::TlsRefused { .. } | LoadError::Redirect { .. }) =>
            {
                return Err(LabError::usage(
                    format!("something answers at {} already", load.route.target),
                    "stop it first, or leave out --sut to measure it as it is",
                ));
            }
            Err(error @ LoadError::TlsFiles(_)) => {
                return Err(LabError::usage(error.to_string(), "'tare help tls' says which files"));
            }
            Err(_) => {}
        }
        // Who runs beside it is none of its descendants.
        let before = orphans();
        launch(command, &cpus, with, limit, &running.journal)?.answered(load, &before, running.interrupt)
    }

    /// Frees the port as well, where somebody has kept it who left its process group: the next launch would find it taken.
    fn close(&self, sut: &mut Sut, resolved: &Resolved, running: &mut Running<'_>) -> Result<(), LabError> {
        sut.stop();
        let route = sut.aim(&resolved.request.traffic).route;
        let at = route.goes_to();
        if sut.target.is_none() || route.unix_socket.is_some() || !is_taken(at) {
            return Ok(());
        }
        stop_orphans();
        if is_taken(at) {
            // Of somebody whom another has started, a service manager say: whoever wants the port again gets an error.
            return Ok(());
        }
        let text = format!(
            "port {} was still taken when the server had been stopped: by processes that had left its group, which were stopped as well",
            at.port()
        );
        running.notice(
            "port-kept",
            &text,
            "have its command stay in the foreground, without setsid or a daemon",
        )
    }
}

/// A SUT that was started and need not answer yet.
pub(crate) struct Starting {
    command: String,
    started: Started,
    limit: StartLimit,
}

/// Until when a started server has to be there.
#[derive(Debug, Clone, Copy)]
pub(super) struct StartLimit {
    length: Duration,
    end: Instant,
    /// What can be done where that is too short.
    hint: &'static str,
}

impl StartLimit {
    /// For tare's own server, from now on.
    pub(super) fn of_embedded() -> StartLimit {
        StartLimit { length: START_TIMEOUT, end: Instant::now() + START_TIMEOUT, hint: "" }
    }

    /// For somebody's server, from now on; `None`: as long as most need.
    fn of_command(asked: Option<Duration>) -> StartLimit {
        let length = asked.unwrap_or(START_TIMEOUT);
        let hint = " (hint: give a slow start more time with --start-timeout, in a plan with start_timeout)";
        StartLimit { length, end: Instant::now() + length, hint }
    }
}

/// What a server is started with beside what we have.
#[derive(Debug, Clone, Default)]
pub(crate) struct With {
    /// Variables of its environment.
    pub environment: Vec<(String, String)>,
    /// It gets no transparent huge pages.
    pub no_thp: bool,
}

/// Starts `command` through sh; `timeout` is how long it may take until it answers or listens (`None`: 30 s).
pub(crate) fn launch(
    command: &str,
    cpus: &[u32],
    with: With,
    timeout: Option<Duration>,
    journal: &Journal,
) -> Result<Starting, LabError> {
    let words = ["sh", "-c", command].map(String::from).to_vec();
    let launch = Launch {
        what: "the system under test",
        words,
        cpus: cpus.to_vec(),
        groups: Vec::new(),
        environment: with.environment,
        output: Output::Keep,
    };
    let started = Started::launch_with(&launch, with.no_thp, journal)?;
    Ok(Starting { command: command.to_string(), started, limit: StartLimit::of_command(timeout) })
}

impl Starting {
    /// The process that was started, which may have handed over to others.
    pub fn pid(&self) -> u32 {
        self.started.pid()
    }

    /// Waits until it answers what the load asks; `others` were started too, and what descends from them is none of its own.
    pub fn answered(
        mut self,
        load: &LoadSpec,
        others: &[u32],
        interrupt: &AtomicBool,
    ) -> Result<Sut, LabError> {
        let preflight = loop {
            match preflight(load, interrupt)? {
                Ok(preflight) => break preflight,
                // It answers, and time will not change this.
                Err(
                    error @ (LoadError::NotTrusted { .. }
                    | LoadError::TlsRefused { .. }
                    | LoadError::TlsFiles(_)
                    | LoadError::Redirect { .. }),
                ) => {
                    let last_output = self.started.output_so_far();
                    return Err(LabError::Sut { what: format!("cannot be asked: {error}"), last_output });
                }
                Err(_) => wait(&mut self.started, others, self.limit, "answer", interrupt)?,
            }
        };
        let (pids, same_namespace) = match find_server(&preflight) {
            Ok(server) => (server.pids, server.same_namespace),
            Err(_) => (descendants(self.started.pid()), true),
        };
        let kind = plan::Sut::Started { command: self.command };
        let mut sut = Sut::answering(landed(load, &preflight)?, pids, kind)
            .answered(&preflight)
            .reached_by(&load.route);
        if !same_namespace {
            sut.transport = plan::Transport::Namespace;
        }
        Ok(sut.with(self.started))
    }

    /// Waits until it listens, on whatever and for whatever protocol.
    fn listening(mut self, interrupt: &AtomicBool) -> Result<Sut, LabError> {
        let root = Root::live();
        let listens = |pid| peers::listens(&root, &[pid]) || peers::listens(&root, &orphans());
        while !listens(self.started.pid()) {
            wait(&mut self.started, &[], self.limit, "listen on a TCP or Unix socket", interrupt)?;
        }
        // A server may listen on one address before the next.
        std::thread::sleep(ALL_LISTEN);
        let mut pids = descendants(self.started.pid());
        if self.started.has_ended() {
            pids = orphans();
        }
        let kind = plan::Sut::Started { command: self.command };
        Ok(Sut::connected(pids, kind).with(self.started))
    }
}

/// Waits a moment for a started server; an error when it died, took too long, or the user has had enough.
pub(super) fn wait(
    started: &mut Started,
    others: &[u32],
    limit: StartLimit,
    what: &str,
    interrupt: &AtomicBool,
) -> Result<(), LabError> {
    if interrupt.load(Ordering::Relaxed) {
        return Err(LabError::Interrupted);
    }
    if started.has_ended() && !has_heirs(others) {
        return Err(dead(started));
    }
    if Instant::now() > limit.end {
        let StartLimit { length, hint, .. } = limit;
        return Err(LabError::Sut {
            what: format!("did not {what} within {} s{hint}", length.as_secs_f64()),
            last_output: started.output_so_far(),
        });
    }
    std::thread::sleep(RETRY);
    Ok(())
}

/// Whether anybody descends from us who descends from none of the `others`: a started program that handed over to somebody.
fn has_heirs(others: &[u32]) -> bool {
    let theirs: Vec<u32> = others.iter().flat_map(|pid| descendants(*pid)).collect();
    orphans().iter().any(|pid| !theirs.contains(pid))
}
