//! A process that tare started: journalled, watched, its output kept to a bound, stopped with its whole group.

use crate::arrivals::Arrivals;
use crate::error::LabError;
use crate::own_program;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};
use tare_machine::journal::{Journal, RUN_VARIABLE};
use tare_machine::{Root, procs};
use tare_sys::process::{self, Confinement, Ended, Signal};

/// How much of a process's output is kept: enough for any generator's summary and any last words.
const OUTPUT_BYTES_MAX: usize = 1 << 20;
/// The same of a program that may be a benchmark, on standard output: every sample is a line.
const RESULTS_BYTES_MAX: usize = 64 << 20;
/// How much of its standard error is kept apart: the first complaint says most.
const ERRORS_BYTES_MAX: usize = 16 << 10;
/// How much of the last line is shown while a program runs, and where it is looked for.
const LAST_LINE_CHARS_MAX: usize = 60;
const LAST_LINE_BYTES_MAX: usize = 400;
/// How long a process group may take to end when asked politely.
const GRACE: Duration = Duration::from_secs(3);
/// How long reading the last output may take after the end: descendants may hold the pipe open for ever.
const DRAIN: Duration = Duration::from_millis(300);
const POLL: Duration = Duration::from_millis(5);
/// How often those are looked for that left their group.
const ORPHANS_EVERY: Duration = Duration::from_millis(20);

/// What a process is started with.
pub struct Launch<'a> {
    /// For the journal and messages.
    pub what: &'a str,
    /// Program and arguments.
    pub words: Vec<String>,
    /// CPUs it is held on from its first instruction; empty: ours.
    pub cpus: Vec<u32>,
    /// `cgroup.procs` of the control groups that it is in from its first instruction; empty: ours.
    pub groups: Vec<PathBuf>,
    /// Variables beside ours.
    pub environment: Vec<(String, String)>,
    /// Where its output goes.
    pub output: Output,
}

/// Where a process's output goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Kept, up to a bound.
    Keep,
    /// Only what it says of its errors is kept.
    KeepErrors,
    /// Both are kept, apart from each other.
    KeepApart,
}

/// A started process and its group.
pub struct Started {
    pid: u32,
    ended: Option<Ended>,
    tail: Arc<Mutex<Tail>>,
    /// What came first of standard error alone.
    errors: Arc<Mutex<Vec<u8>>>,
}

/// The last that was printed.
#[derive(Default)]
pub(crate) struct Tail {
    bytes: VecDeque<u8>,
    readers: usize,
    /// All that was printed.
    count: u64,
    /// More than is kept of other output; 0: as much.
    bytes_max: usize,
    /// When it came, of a benchmark's results.
    arrivals: Option<Arrivals>,
}

impl Tail {
    /// One that keeps a benchmark's results.
    pub(crate) fn of_results() -> Tail {
        Tail { bytes_max: RESULTS_BYTES_MAX, arrivals: Some(Arrivals::default()), ..Tail::default() }
    }

    /// Keeps what was printed next.
    fn add(&mut self, printed: &[u8]) {
        self.count += printed.len() as u64;
        self.bytes.extend(printed);
        let excess = self.bytes.len().saturating_sub(self.bytes_max.max(OUTPUT_BYTES_MAX));
        self.bytes.drain(..excess);
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.note(printed, tare_sys::time::monotonic_ns());
        }
    }

    /// When its lines came; `None` where that is not kept, or the first of them are not there any more.
    pub(crate) fn arrivals(&self) -> Option<&Arrivals> {
        self.arrivals.as_ref().filter(|_| self.count == self.bytes.len() as u64)
    }

    /// The last line that is not empty, or its beginning: what a program that prints as it goes is at.
    fn last_line(&self) -> Option<String> {
        let first = self.bytes.len().saturating_sub(LAST_LINE_BYTES_MAX);
        let last: Vec<u8> = self.bytes.range(first..).copied().collect();
        let last = String::from_utf8_lossy(&last);
        let line = last.split(['\n', '\r']).map(str::trim).rfind(|line| !line.is_empty())?;
        let plain = line.chars().map(|char| if char.is_control() { ' ' } else { char });
        Some(plain.take(LAST_LINE_CHARS_MAX).collect())
    }

    /// How much was printed, and the last of it.
    pub(crate) fn printed(&self) -> (u64, String) {
        let (front, back) = self.bytes.as_slices();
        (self.count, String::from_utf8_lossy(&[front, back].concat()).into_owned())
    }

    /// Whether its end has not been read.
    pub(crate) fn is_open(&self) -> bool {
        self.readers > 0
    }
}

impl Started {
    /// Starts a process, after the journal knows that one is about to be.
    pub fn launch(launch: &Launch<'_>, journal: &Journal) -> Result<Self, LabError> {
        Started::launch_with(launch, false, journal)
    }

    /// The same; `no_thp`: it and what it starts get no transparent huge pages.
    pub fn launch_with(launch: &Launch<'_>, no_thp: bool, journal: &Journal) -> Result<Self, LabError> {
        let words = own_program::replaced(&launch.words);
        let (program, arguments) = words
            .split_first()
            .ok_or_else(|| LabError::usage(format!("{} is empty", launch.what), "give a program to run"))?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null());
        command.envs(launch.environment.iter().map(|(name, value)| (name, value)));
        let (stdout, stderr) = match launch.output {
            Output::Keep | Output::KeepApart => (Stdio::piped(), Stdio::piped()),
            Output::KeepErrors => (Stdio::null(), Stdio::piped()),
        };
        command.stdout(stdout).stderr(stderr);
        let state = |error: tare_machine::journal::JournalError| LabError::State(error.to_string());
        journal.will_start(&launch.words.join(" ")).map_err(state)?;
        command.env(RUN_VARIABLE, journal.run_id());
        let confinement =
            Confinement { cpus: launch.cpus.clone(), cgroup_procs: launch.groups.clone(), no_thp };
        let mut child = process::spawn(&mut command, &confinement).map_err(|error| {
            LabError::usage(
                format!("cannot start {} '{program}': {error}", launch.what),
                "check its name, its path and that it may be executed",
            )
        })?;
        journal.started(&Root::live(), child.id()).map_err(state)?;
        let (tail, errors) = (Arc::new(Mutex::new(Tail::default())), Arc::new(Mutex::new(Vec::new())));
        let apart = |pipe| Apart { pipe, kept: errors.clone() };
        let pipes = [child.stdout.take().map(boxed), child.stderr.take().map(apart).map(boxed)];
        for pipe in pipes.into_iter().flatten() {
            keep_reading(pipe, None, &tail);
        }
        Ok(Started { pid: child.id(), ended: None, tail, errors })
    }

    /// Of a program that was started as the leader of its group, and whose output is kept there.
    pub(crate) fn of_program(pid: u32, tail: Arc<Mutex<Tail>>) -> Self {
        Started { pid, ended: None, tail, errors: Arc::default() }
    }

    /// The process itself; its group has the same number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether it has ended; it stays a zombie, so that its `/proc` files can still be read.
    pub fn has_ended(&self) -> bool {
        self.ended.is_some() || process::has_ended(self.pid, false).unwrap_or(true)
    }

    /// Reaps it if it has ended.
    pub fn reap(&mut self) -> Option<Ended> {
        if self.ended.is_none() {
            self.ended = process::wait4(self.pid, false).ok().flatten();
        }
        self.ended
    }

    /// Whether it ended with exit code 0.
    pub fn succeeded(&mut self) -> bool {
        self.reap().is_some_and(|ended| ended.exit_code == Some(0))
    }

    /// `exit status 3`, `ended by signal 9`, `still running`.
    pub fn exit_description(&mut self) -> String {
        match self.reap() {
            Some(Ended { exit_code: Some(code), .. }) => format!("exit status {code}"),
            Some(Ended { signal: Some(signal), .. }) => format!("ended by signal {signal}"),
            Some(_) => "ended".into(),
            None => "still running".into(),
        }
    }

    /// What it printed last, waiting a moment for the rest when it has ended.
    pub fn output(&self) -> String {
        let deadline = Instant::now() + DRAIN;
        while self.has_ended() && is_open(&self.tail) && Instant::now() < deadline {
            std::thread::sleep(POLL);
        }
        self.output_so_far()
    }

    /// What it wrote to standard error first, where its output is kept.
    pub fn errors(&self) -> String {
        let errors = self.errors.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        String::from_utf8_lossy(&errors).into_owned()
    }

    /// What it has printed up to now.
    pub fn output_so_far(&self) -> String {
        self.tail.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).printed().1
    }

    /// Stops the whole process group: politely, then not.
    pub fn stop(&mut self) {
        // An error means that nobody is left in the group.
        if process::kill_group(self.pid, Signal::Term).is_ok() {
            let deadline = Instant::now() + GRACE;
            while group_alive(self.pid, self.reap().is_none()) && Instant::now() < deadline {
                std::thread::sleep(POLL);
            }
            process::kill_group(self.pid, Signal::Kill).ok();
        }
        let deadline = Instant::now() + GRACE;
        while self.reap().is_none() && Instant::now() < deadline {
            std::thread::sleep(POLL);
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if self.ended.is_none() || group_alive(self.pid, false) {
            self.stop();
        }
    }
}

/// How much was printed and the last of it, after the end, waiting a moment for the rest.
pub(crate) fn printed(tail: &Mutex<Tail>) -> (u64, String) {
    let deadline = Instant::now() + DRAIN;
    while is_open(tail) && Instant::now() < deadline {
        std::thread::sleep(POLL);
    }
    tail.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).printed()
}

/// What a program that prints as it goes is at.
pub(crate) fn last_line(tail: &Mutex<Tail>) -> Option<String> {
    tail.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).last_line()
}

fn is_open(tail: &Mutex<Tail>) -> bool {
    tail.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).is_open()
}

/// Whether anybody is left in the group; `Cont` harms nobody who runs.
fn group_alive(pgid: u32, leader_unreaped: bool) -> bool {
    if leader_unreaped {
        return true;
    }
    // A shell's child that outlived it came to us, and would be in the group for ever.
    process::reap_group(pgid);
    process::kill_group(pgid, Signal::Cont).is_ok()
}

/// A pipe of which the first bytes are kept apart from all other output.
struct Apart<R> {
    pipe: R,
    kept: Arc<Mutex<Vec<u8>>>,
}

impl<R: Read> Read for Apart<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.pipe.read(buffer)?;
        let mut kept = self.kept.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let room = ERRORS_BYTES_MAX.saturating_sub(kept.len());
        kept.extend(buffer.iter().take(count.min(room)));
        Ok(count)
    }
}

fn boxed(pipe: impl Read + Send + 'static) -> Box<dyn Read + Send> {
    Box::new(pipe)
}

/// The error of a program that was stopped when it used the terminal.
pub(crate) fn wants_terminal(name: &str) -> LabError {
    LabError::Sut {
        what: format!(
            "was stopped: {name} used the terminal (SIGTTIN or SIGTTOU), which belongs to tare (hint: --pty gives a program a terminal of \
             its own, --input its input)"
        ),
        last_output: String::new(),
    }
}

/// Empties a pipe for as long as somebody holds its other end, keeping the last bytes, and shows all of them where that was asked for.
pub(crate) fn keep_reading(mut pipe: Box<dyn Read + Send>, mut shown: Option<File>, tail: &Arc<Mutex<Tail>>) {
    let lock = |tail: &Arc<Mutex<Tail>>, act: &mut dyn FnMut(&mut Tail)| {
        act(&mut tail.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
    };
    lock(tail, &mut |tail| tail.readers += 1);
    let shared = tail.clone();
    let (sender, begun) = mpsc::channel::<()>();
    let read = move || {
        drop(sender);
        let mut buffer = [0u8; 4096];
        while let Ok(count @ 1..) = pipe.read(&mut buffer) {
            if shown.as_mut().is_some_and(|shown| shown.write_all(&buffer[..count]).is_err()) {
                shown = None;
            }
            lock(&shared, &mut |tail| tail.add(&buffer[..count]));
        }
        lock(&shared, &mut |tail| tail.readers -= 1);
    };
    // Without a thread the pipe fills and the process blocks on it; it is then stopped like any other.
    if std::thread::Builder::new().name("tare-output".into()).spawn(read).is_err() {
        lock(tail, &mut |tail| tail.readers -= 1);
    }
    // What is timed next does not share a CPU with the start of a thread. The channel closes in any case.
    begun.recv().ok();
}

/// Whether a process is there and has not ended. A zombie has ended, though its number is still taken.
pub(crate) fn alive(pid: u32) -> bool {
    procs::stat(&Root::live(), pid).is_ok_and(|stat| !matches!(stat.state, 'Z' | 'X'))
}

/// A process and what descends from it.
pub(crate) fn descendants(pid: u32) -> Vec<u32> {
    procs::descendants(&Root::live(), &[pid]).unwrap_or_default()
}

/// These processes and what descends from them, without us and what we started: a shell that started us is no reason to measure us.
pub(crate) fn families(pids: &[u32]) -> Vec<u32> {
    let own = descendants(std::process::id());
    let all = procs::descendants(&Root::live(), pids).unwrap_or_default();
    all.into_iter().filter(|pid| !own.contains(pid)).collect()
}

/// What descends from us and is still there.
pub(crate) fn orphans() -> Vec<u32> {
    let own = std::process::id();
    descendants(own).into_iter().filter(|pid| *pid != own && alive(*pid)).collect()
}

/// Ends what was started and left its process group.
pub(crate) fn stop_orphans() {
    for signal in [Signal::Term, Signal::Kill] {
        for pid in orphans() {
            process::kill(pid, signal).ok();
        }
        let deadline = Instant::now() + GRACE;
        while !orphans().is_empty() && Instant::now() < deadline {
            std::thread::sleep(ORPHANS_EVERY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_living() {
        assert!(alive(std::process::id()));
        assert!(!alive(u32::MAX));
    }

    #[test]
    fn the_last_line_is_what_a_program_is_at() {
        let mut tail = Tail::of_results();
        assert_eq!(tail.last_line(), None);
        tail.add(b"goos: linux\nBenchmarkA-2 \t 100\nBenchmarkB-2   \t");
        assert_eq!(tail.last_line().as_deref(), Some("BenchmarkB-2"));
        tail.add(b"\n\x1b[1mlong \x07");
        tail.add(&[b'x'; 100]);
        let line = tail.last_line().unwrap();
        assert!(line.starts_with(" [1mlong  x") && line.chars().count() == LAST_LINE_CHARS_MAX, "{line:?}");
    }

    #[test]
    fn who_started_us_does_not_make_us_a_server() {
        let own = std::process::id();
        let parent = procs::stat(&Root::live(), own).unwrap().ppid;
        let mut child = std::process::Command::new("sleep").arg("9").spawn().unwrap();
        let family = families(&[parent]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(
            family.contains(&parent) && !family.contains(&own) && !family.contains(&child.id()),
            "{family:?}"
        );
    }
}
