//! A command, from its start to its end.

use super::client::Client;
use super::fault::{ProbeFault, printable};
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tare_sys::process::{self, Confinement, Ended, Signal};

/// How much of its standard error is kept.
const ERROR_BYTES_MAX: u64 = 4096;
/// How long is waited for it after the end.
const DRAIN: Duration = Duration::from_millis(200);
/// How long a group that was killed may take to end.
const REAP: Duration = Duration::from_secs(2);

/// A command and what it is started with.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Program {
    pub words: Vec<String>,
    /// Variables beside ours.
    pub environment: Vec<(String, String)>,
}

/// Runs it.
pub(super) struct Runner(pub Arc<Program>);

impl Client for Runner {
    fn ask(&mut self, deadline: Instant) -> Result<(), ProbeFault> {
        let failed = |what: std::io::Error| ProbeFault::Command(what.to_string());
        let (program, arguments) =
            self.0.words.split_first().ok_or_else(|| ProbeFault::Command("it is empty".into()))?;
        let mut command = Command::new(program);
        command.args(arguments).envs(self.0.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = process::spawn(&mut command, &Confinement::default()).map_err(failed)?;
        let pid = child.id();
        let said = child.stderr.take().map(kept);
        let ended = match awaited(pid) {
            Ok(ended) => ended,
            Err(error) => {
                process::kill_group(pid, Signal::Kill).ok();
                reaped(pid);
                return Err(ProbeFault::Command(format!("nobody could wait for it: {error}")));
            }
        };
        // It is not reaped until then, so that the number is its own.
        let waited = ended.recv_timeout(deadline.saturating_duration_since(Instant::now()));
        let in_time = waited.is_ok() && Instant::now() < deadline;
        // What it left behind goes with it.
        process::kill_group(pid, Signal::Kill).ok();
        match reaped(pid) {
            Some(Ended { exit_code: Some(0), .. }) => Ok(()),
            _ if !in_time => Err(ProbeFault::TimedOut),
            Some(Ended { exit_code: Some(code), .. }) => {
                let said = said.and_then(|said| said.recv_timeout(DRAIN).ok()).unwrap_or_default();
                Err(ProbeFault::Command(
                    format!("exit status {code} {}", printable(&said)).trim_end().to_owned(),
                ))
            }
            ended => {
                let signal = ended.and_then(|ended| ended.signal).unwrap_or_default();
                Err(ProbeFault::Command(format!("ended by signal {signal}")))
            }
        }
    }
}

/// Says when a child has ended, in the moment in which it does. Nobody waits for the thread: one that is killed may be in a call of the
/// kernel that does not end.
fn awaited(pid: u32) -> std::io::Result<mpsc::Receiver<()>> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let wait = move || {
        process::has_ended(pid, true).ok();
        sender.send(()).ok();
    };
    std::thread::Builder::new().name("tare-child".into()).spawn(wait)?;
    Ok(receiver)
}

/// Empties a pipe beside; what came first is sent at its end. Nobody waits for it: a descendant may hold the other end for ever.
fn kept(mut pipe: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    let read = move || {
        let mut said = Vec::new();
        pipe.by_ref().take(ERROR_BYTES_MAX).read_to_end(&mut said).ok();
        std::io::copy(&mut pipe, &mut std::io::sink()).ok();
        sender.send(said).ok();
    };
    // Without a thread nothing is kept: the receiver sees a closed channel.
    std::thread::Builder::new().name("tare-stderr".into()).spawn(read).ok();
    receiver
}

fn reaped(pid: u32) -> Option<Ended> {
    let until = Instant::now() + REAP;
    loop {
        match process::wait4(pid, false) {
            Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(1)),
            ended => return ended.ok().flatten(),
        }
    }
}
