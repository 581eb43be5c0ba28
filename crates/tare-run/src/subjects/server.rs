//! The system under test: the embedded server, one that runs already, or one that is started and stopped.

use crate::error::LabError;
use crate::process::{Launch, Output, Started};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tare_load::{LoadError, LoadSpec, Preflight, Target};
use tare_machine::journal::Journal;
use tare_machine::{Root, procs, sockets};
use tare_model::plan::{self, Transport};
use tare_sys::process::{self, Signal};

/// How long a started server may take until it answers.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// How long one attempt to get an answer may take, at least and at most: else as long as the load's own timeout.
const ATTEMPT_MIN: Duration = Duration::from_secs(2);
const ATTEMPT_MAX: Duration = Duration::from_secs(30);
const RETRY: Duration = Duration::from_millis(20);
/// How long a listener may take to accept; the kernel does so for it.
const ACCEPT_WITHIN: Duration = Duration::from_millis(200);
/// How long leftovers of a started server may take to end when asked.
const GRACE: Duration = Duration::from_secs(3);

/// A SUT that answers.
pub struct Sut {
    /// Where it answers.
    pub target: Target,
    /// Its processes now; empty when it cannot be seen.
    pub pids: Vec<u32>,
    /// What goes into the plan.
    pub kind: plan::Sut,
    /// How requests reach it.
    pub transport: Transport,
    started: Option<Started>,
}

impl Sut {
    /// Whose name stands in messages.
    pub fn name(&self) -> String {
        let comm = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).ok();
        match self.pids.first().and_then(comm) {
            Some(name) => format!("{} (pid {})", name.trim_end(), self.pids[0]),
            None => self.target.to_string(),
        }
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
                what: format!("(pid {}) ended while it was being measured", self.pids[0]),
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

/// Starts the embedded server on a free loopback port, in control groups.
pub fn embedded(
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
pub fn listening(
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
    let deadline = Instant::now() + ANSWER_WITHIN;
    let address = loop {
        if let Some(address) = listening_address(&started.output_so_far()) {
            break address;
        }
        wait(&mut started, &[], deadline, interrupt)?;
    };
    let target = Target::parse(&format!("http://{address}/plaintext")).map_err(|error| LabError::Sut {
        what: format!("gave an odd address: {error}"),
        last_output: started.output(),
    })?;
    let pids = vec![started.pid()];
    Ok(Sut {
        target,
        pids,
        kind: plan::Sut::Embedded,
        transport: Transport::Loopback,
        started: Some(started),
    })
}

/// The address in the server's first line, `listening on 127.0.0.1:40001`.
fn listening_address(output: &str) -> Option<std::net::SocketAddr> {
    let (_, rest) = output.split_once("listening on ")?;
    let (address, _) = rest.split_once('\n')?;
    address.split_whitespace().next()?.parse().ok()
}

/// Starts `command` through sh and waits until it answers.
pub fn start(
    command: &str,
    load: &LoadSpec,
    cpus: &[u32],
    environment: Vec<(&'static str, String)>,
    journal: &Journal,
    interrupt: &AtomicBool,
) -> Result<Sut, LabError> {
    if preflight(load).is_ok() {
        return Err(LabError::usage(
            format!("something answers at {} already", load.route.target),
            "stop it first, or leave out --sut to measure it as it is",
        ));
    }
    launch(command, cpus, environment, journal)?.answered(load, &[], interrupt)
}

/// A SUT that was started and need not answer yet.
pub struct Starting {
    command: String,
    started: Started,
    deadline: Instant,
}

/// Starts `command` through sh.
pub fn launch(
    command: &str,
    cpus: &[u32],
    environment: Vec<(&'static str, String)>,
    journal: &Journal,
) -> Result<Starting, LabError> {
    let words = ["sh", "-c", command].map(String::from).to_vec();
    let launch = Launch {
        what: "the system under test",
        words,
        cpus: cpus.to_vec(),
        groups: Vec::new(),
        environment,
        output: Output::Keep,
    };
    let started = Started::launch(&launch, journal)?;
    Ok(Starting { command: command.to_string(), started, deadline: Instant::now() + ANSWER_WITHIN })
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
            match preflight(load) {
                Ok(preflight) => break preflight,
                Err(_) => wait(&mut self.started, others, self.deadline, interrupt)?,
            }
        };
        let pids = match find_pids(&preflight) {
            Ok(pids) => pids,
            Err(_) => descendants(self.started.pid()),
        };
        Ok(Sut {
            target: load.route.target.clone(),
            pids,
            kind: plan::Sut::Started { command: self.command },
            transport: Transport::Loopback,
            started: Some(self.started),
        })
    }
}

/// Waits a moment for a started server; an error when it died, took too long, or the user has had enough.
fn wait(
    started: &mut Started,
    others: &[u32],
    deadline: Instant,
    interrupt: &AtomicBool,
) -> Result<(), LabError> {
    if interrupt.load(Ordering::Relaxed) {
        return Err(LabError::Interrupted);
    }
    if started.has_ended() && !has_heirs(others) {
        return Err(dead(started));
    }
    if Instant::now() > deadline {
        return Err(LabError::Sut {
            what: format!("did not answer within {} s", ANSWER_WITHIN.as_secs()),
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

fn dead(started: &mut Started) -> LabError {
    let what = format!("died: {}", started.exit_description());
    LabError::Sut { what, last_output: started.output() }
}

/// Whether somebody listens where this leads, be it that nobody answers there.
pub fn is_taken(target: &Target) -> bool {
    let addresses = target.resolve().unwrap_or_default();
    addresses.iter().any(|address| TcpStream::connect_timeout(address, ACCEPT_WITHIN).is_ok())
}

/// Finds the server that answers the load's first request.
pub fn find(load: &LoadSpec) -> Result<Sut, LabError> {
    let preflight = reach(load)?;
    let (pids, kind, transport) = match find_pids(&preflight) {
        Ok(pids) => (pids.clone(), plan::Sut::Attached { pids }, Transport::Loopback),
        Err(not_found) => {
            let transport = match not_found {
                sockets::NotFound::OtherHost => Transport::Remote,
                sockets::NotFound::OtherNamespace => Transport::Namespace,
                _ => Transport::Loopback,
            };
            (Vec::new(), plan::Sut::Unseen { why: not_found.to_string() }, transport)
        }
    };
    Ok(Sut { target: load.route.target.clone(), pids, kind, transport, started: None })
}

/// The server is the given process.
pub fn attach(pid: u32, load: &LoadSpec) -> Result<Sut, LabError> {
    if !alive(pid) {
        return Err(LabError::usage(format!("there is no process {pid}"), "check --sut-pid"));
    }
    reach(load)?;
    let mut pids = vec![pid];
    pids.extend(descendants(pid).into_iter().filter(|descendant| *descendant != pid));
    let kind = plan::Sut::Attached { pids: pids.clone() };
    Ok(Sut { target: load.route.target.clone(), pids, kind, transport: Transport::Loopback, started: None })
}

/// Asks once as the load will; a load with patience has it here too.
fn preflight(load: &LoadSpec) -> Result<Preflight, LoadError> {
    tare_load::preflight(load, Duration::from_nanos(load.timeout_ns).clamp(ATTEMPT_MIN, ATTEMPT_MAX))
}

fn reach(load: &LoadSpec) -> Result<Preflight, LabError> {
    preflight(load).map_err(|error| match error {
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

fn find_pids(preflight: &Preflight) -> Result<Vec<u32>, sockets::NotFound> {
    if let Some(listener) = preflight.peer_pid {
        return of_unix_socket(listener);
    }
    let (Some(local), Some(peer)) = (preflight.local_addr, preflight.peer_addr) else {
        return Err(sockets::NotFound::OtherHost);
    };
    sockets::find_server(&Root::live(), local, peer, &[std::process::id()])
}

/// Who made a Unix socket listen, and what descends from it.
fn of_unix_socket(listener: u32) -> Result<Vec<u32>, sockets::NotFound> {
    // PID 1 hands sockets on to others that it starts.
    if listener == 1 || !alive(listener) {
        return Err(sockets::NotFound::Nobody);
    }
    Ok(descendants(listener))
}

fn alive(pid: u32) -> bool {
    // A zombie has ended, though its number is still taken.
    procs::stat(&Root::live(), pid).is_ok_and(|stat| !matches!(stat.state, 'Z' | 'X'))
}

fn descendants(pid: u32) -> Vec<u32> {
    procs::descendants(&Root::live(), &[pid]).unwrap_or_default()
}

/// What descends from us and is still there.
fn orphans() -> Vec<u32> {
    let own = std::process::id();
    descendants(own).into_iter().filter(|pid| *pid != own && alive(*pid)).collect()
}

/// Ends what was started and left its process group.
pub fn stop_orphans() {
    for signal in [Signal::Term, Signal::Kill] {
        for pid in orphans() {
            process::kill(pid, signal).ok();
        }
        let deadline = Instant::now() + GRACE;
        while !orphans().is_empty() && Instant::now() < deadline {
            std::thread::sleep(RETRY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    #[test]
    fn reads_the_embedded_servers_address() {
        assert_eq!(listening_address("x\nlistening on 127.0.0.1:4711\n"), "127.0.0.1:4711".parse().ok());
        assert_eq!(listening_address("listening on 127.0.0.1:47"), None, "the line may not be whole yet");
        assert_eq!(listening_address("listening on nowhere\n"), None);
    }

    /// A server that only this load's own request can find out to be one.
    #[test]
    fn a_server_is_found_by_what_it_will_be_asked() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = Target::parse(&format!("http://{}/form", listener.local_addr().unwrap())).unwrap();
        let server = std::thread::spawn(move || {
            let (mut connection, _) = listener.accept().unwrap();
            let mut request = vec![0; 1024];
            let length = connection.read(&mut request).unwrap();
            connection.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
            request.truncate(length);
            String::from_utf8(request).unwrap()
        });
        let mut load = LoadSpec::new(target.clone());
        (load.content.method, load.content.body) = ("POST".to_owned(), b"a=1".to_vec());
        assert_eq!(find(&load).unwrap().target, target);
        let request = server.join().unwrap();
        assert!(request.starts_with("POST /form HTTP/1.1\r\n") && request.ends_with("\r\na=1"), "{request}");
    }

    #[test]
    fn knows_the_living() {
        assert!(alive(std::process::id()));
        assert!(!alive(u32::MAX));
    }
}
