//! The connections of somebody else's generator: when it has been set up, whom it loads, and when it has stopped.

use crate::error::LabError;
use crate::process::descendants;
use crate::running::Running;
use crate::subjects::met;
use crate::subjects::sut::Sut;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tare_formats::Generator;
use tare_machine::peers::{self, NoPeer};
use tare_machine::{Root, procs};
use tare_sys::sockdiag::{SockDiag, unix_pairs};

/// How often connections are counted while a generator is set up.
const COUNT_EVERY: Duration = Duration::from_millis(25);
/// A generator that is to show the SUT by its connections has one within this, and one that is known has been started.
const CONNECTED_WITHIN: Duration = Duration::from_secs(30);
/// What the kernel keeps of a program's name (`TASK_COMM_LEN` less the zero).
const NAME_BYTES: usize = 15;
/// Room for the kernel's list of Unix sockets: some 30,000.
const UNIX_BYTES_MAX: usize = 2 << 20;
/// How often it is looked at whether connections are still open.
const OPEN_EVERY: Duration = Duration::from_millis(50);
/// Without a connection for so long a generator has stopped; one that opens them again and again, for longer.
const GONE: Duration = Duration::from_millis(300);
const GONE_AGAIN: Duration = Duration::from_secs(1);

/// Waits until a generator, process `pid` and its descendants, has been set up, or `ended`. Whether it has a connection.
///
/// One that is known by its program may be started late (`sleep 3; wrk ...`): its time begins when that runs.
pub(super) fn set_up(
    pid: u32,
    known: &Generator,
    must_connect: bool,
    phase: &str,
    ended: impl Fn() -> bool,
    running: &mut Running<'_>,
) -> Result<bool, LabError> {
    let begun = Instant::now();
    let (mut most, mut since, mut next) = (0, begun, begun);
    let mut started = known.program.is_empty().then_some(begun);
    let mut connected = None;
    let is_long = |since: Option<Instant>| since.is_some_and(|since| since.elapsed() >= known.set_up.at_most);
    running.wait_until(CONNECTED_WITHIN, phase, || {
        let now = Instant::now();
        if now >= next {
            next = now + COUNT_EVERY;
            let tree = descendants(pid);
            if started.is_none() && tree.iter().any(|pid| runs(*pid, known.program)) {
                started = Some(now);
            }
            let count = peers::connections(&Root::live(), &tree, &unix_sockets());
            if count > most {
                (most, since) = (count, now);
                connected.get_or_insert(now);
            }
        }
        let is_steady = started.is_some() && since.elapsed() >= known.set_up.steady_for;
        let is_connected = most > 0 && (is_steady || is_long(connected));
        let has_none = most == 0 && !must_connect && is_long(started);
        is_connected || has_none || ended()
    })?;
    Ok(most > 0)
}

/// Whether a process runs this program. The kernel keeps 15 bytes of its name.
fn runs(pid: u32, program: &str) -> bool {
    let name = program.get(..NAME_BYTES).unwrap_or(program);
    procs::stat(&Root::live(), pid).is_ok_and(|stat| stat.name == name)
}

/// Finds out whom a generator is connected to, which makes the SUT known or confirms it.
pub(super) fn show(pid: u32, sut: &mut Sut, running: &mut Running<'_>) -> Result<(), LabError> {
    let tree = descendants(pid);
    let found = peers::other_ends(&Root::live(), &tree, &unix_sockets(), &[std::process::id()]);
    match found {
        Ok(peers) => met(sut, &peers, running),
        Err(why) if sut.pids.is_empty() => Err(nobody(&why)),
        // It was named: it is watched, and whoever reads the result knows what was not checked.
        Err(why) => {
            let text =
                format!("whether the load goes to {} was not seen: the generator has {why}", sut.name());
            running.notice("load-not-seen", &text, "check the address that the generator is given")
        }
    }
}

fn nobody(why: &NoPeer) -> LabError {
    let hint = match why {
        NoPeer::NotConnected { .. } => {
            "is the server up, and its address right? one over UDP, or a generator in a container, shows no server: name it with \
             --sut-pid"
        }
        NoPeer::Elsewhere { .. } => "name the server's process with --sut-pid, where it is on this machine",
        NoPeer::Hidden { .. } => "run tare as root, or name the server's process with --sut-pid",
        NoPeer::Unreadable(_) => "name the server's process with --sut-pid",
    };
    LabError::usage(format!("the load generator shows no server: it has {why}"), hint)
}

/// Whether a generator still has connections, asked again and again at little cost.
pub(super) struct Connections {
    pid: u32,
    files: Vec<(PathBuf, u64)>,
    next: Instant,
    /// Since when there has been none.
    none_since: Option<Instant>,
    reopens: bool,
}

impl Connections {
    pub fn of(pid: u32) -> Connections {
        let files = some_files(pid);
        Connections { pid, files, next: Instant::now(), none_since: None, reopens: false }
    }

    /// Whether it had some and has closed them all for good.
    pub fn are_gone(&mut self) -> bool {
        let now = Instant::now();
        if now < self.next || self.files.is_empty() && self.none_since.is_none() {
            return false;
        }
        self.next = now + OPEN_EVERY;
        if peers::any_open(&self.files) {
            return false;
        }
        self.files = some_files(self.pid);
        if !self.files.is_empty() {
            self.reopens = true;
            self.none_since = None;
            return false;
        }
        let since = *self.none_since.get_or_insert(now);
        since.elapsed() >= if self.reopens { GONE_AGAIN } else { GONE }
    }
}

fn some_files(pid: u32) -> Vec<(PathBuf, u64)> {
    peers::some_files(&Root::live(), &descendants(pid), &unix_sockets())
}

/// The machine's Unix sockets that have another end; none where the kernel does not tell.
fn unix_sockets() -> Vec<(u64, u64)> {
    let mut buffer = vec![0; UNIX_BYTES_MAX];
    let filled = SockDiag::open().and_then(|diag| diag.dump_unix(&mut buffer));
    filled
        .map_or_else(|_| Vec::new(), |filled| unix_pairs(buffer.get(..filled).unwrap_or_default()).collect())
}
