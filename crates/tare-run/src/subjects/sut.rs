//! A system under test: its boundary, and what was started for it.

use crate::error::LabError;
use crate::process::{Started, alive};
use std::net::IpAddr;
use std::time::{Duration, Instant};
use tare_load::{LoadSpec, Preflight, Route, Target};
use tare_machine::namespaces::namespace;
use tare_machine::{Root, procs};
use tare_model::plan::{self, Transport};
use tare_sys::process::{self, Signal};

/// What was started may end so long after the server that it started, and is looked at so often.
const PARENT_ENDS: Duration = Duration::from_millis(500);
const POLL: Duration = Duration::from_millis(2);

/// A SUT that can be loaded.
pub struct Sut {
    /// Where it answers HTTP; `None`: it speaks something else, or nothing.
    pub target: Option<Target>,
    /// The port that its connections come in on, where it is known.
    pub port: Option<u16>,
    /// The address that answered before the load, where it was asked over IP.
    pub address: Option<IpAddr>,
    /// Its processes now; empty when it cannot be seen.
    pub pids: Vec<u32>,
    /// What goes into the plan.
    pub kind: plan::Sut,
    /// How requests reach it.
    pub transport: Transport,
    /// The status of its first answer, where it was asked before the load.
    pub first_status: Option<u16>,
    pub(super) started: Option<Started>,
}

impl Sut {
    /// One that answers HTTP on this machine.
    pub(super) fn answering(target: Target, pids: Vec<u32>, kind: plan::Sut) -> Sut {
        let port = Some(target.port());
        Sut {
            target: Some(target),
            port,
            address: None,
            pids,
            kind,
            transport: Transport::Loopback,
            first_status: None,
            started: None,
        }
    }

    /// The same, which has given this answer.
    pub(super) fn answered(mut self, preflight: &Preflight) -> Sut {
        self.first_status = Some(preflight.status);
        self.address = preflight.peer_addr.map(|peer| peer.ip());
        self
    }

    /// The same, where it is reached by this route.
    pub(super) fn reached_by(mut self, route: &Route) -> Sut {
        if let Some(at) = &route.connect_to {
            self.port = Some(at.port());
        }
        self
    }

    /// The same, whose processes may be in another network namespace than tare.
    pub(super) fn seen_from_here(mut self) -> Sut {
        let [own, its] = [Some(std::process::id()), self.pids.first().copied()]
            .map(|pid| pid.map_or(String::new(), |pid| namespace(&Root::live(), pid)));
        if !own.is_empty() && !its.is_empty() && own != its {
            self.transport = Transport::Namespace;
        }
        self
    }

    /// One that is connected to, whatever it speaks.
    pub(super) fn connected(pids: Vec<u32>, kind: plan::Sut) -> Sut {
        Sut {
            target: None,
            port: None,
            address: None,
            pids,
            kind,
            transport: Transport::Loopback,
            first_status: None,
            started: None,
        }
    }

    /// A program, whose processes are others in each run.
    pub(crate) fn of_runs() -> Sut {
        Sut::connected(Vec::new(), plan::Sut::Attached { pids: Vec::new() })
    }

    pub(super) fn with(self, started: Started) -> Sut {
        let mut sut = self;
        sut.started = Some(started);
        sut
    }

    /// The load, aimed at where it answers.
    pub fn aim(&self, load: &LoadSpec) -> LoadSpec {
        match &self.target {
            Some(target) => load.aimed_at(target.clone()),
            None => load.clone(),
        }
    }

    /// Where it answers HTTP.
    ///
    /// # Errors
    /// It does not.
    pub fn answers_at(&self) -> Result<&Target, LabError> {
        self.target.as_ref().ok_or_else(|| LabError::Observe(format!("{} answers at no URL", self.name())))
    }

    /// Whose name stands in messages.
    pub fn name(&self) -> String {
        let comm = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).ok();
        match (self.pids.first().and_then(comm), &self.target) {
            (Some(name), _) => format!("{} (pid {})", name.trim_end(), self.pids[0]),
            (None, Some(target)) => target.to_string(),
            (None, None) => "the server".to_owned(),
        }
    }

    /// The threads of its processes.
    pub fn tids(&self) -> Vec<u32> {
        self.pids.iter().flat_map(|pid| procs::tasks_of(&Root::live(), *pid)).collect()
    }

    /// Counts those as its own that its processes have started since it first answered.
    pub fn meet_children(&mut self) {
        let mut at = 0;
        while let Some(pid) = self.pids.get(at).copied() {
            let children = procs::children(&Root::live(), pid);
            let new: Vec<u32> = children.into_iter().filter(|child| !self.pids.contains(child)).collect();
            self.pids.extend(new);
            at += 1;
        }
    }

    /// An error when the SUT has died; with its last words where tare started it.
    pub fn check_alive(&mut self) -> Result<(), LabError> {
        if self.pids.is_empty() || self.pids.iter().any(|pid| alive(*pid)) {
            return Ok(());
        }
        Err(match &mut self.started {
            Some(started) => dead(started),
            None => LabError::Sut {
                what: format!(
                    "(pid {}) ended while it was being measured (hint: see its log; --sut 'COMMAND' has tare start it and keep \
                     its last words)",
                    self.pids[0]
                ),
                last_output: String::new(),
            },
        })
    }

    /// Asks what was started to end, and does not wait for it.
    pub fn ask_to_end(&self) {
        if let Some(started) = &self.started {
            process::kill_group(started.pid(), Signal::Term).ok();
        }
    }

    /// Stops what was started, with everything that descends from it.
    pub fn stop(&mut self) {
        if let Some(mut started) = self.started.take() {
            started.stop();
        }
    }
}

impl Drop for Sut {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The error of a started server that has ended.
pub(super) fn dead(started: &mut Started) -> LabError {
    // The server may have a parent (a shell) that was started, and ends a moment after it.
    let end = Instant::now() + PARENT_ENDS;
    while !started.has_ended() && Instant::now() < end {
        std::thread::sleep(POLL);
    }
    let what = format!("died: {} (hint: run its command in a shell)", started.exit_description());
    LabError::Sut { what, last_output: started.output() }
}
