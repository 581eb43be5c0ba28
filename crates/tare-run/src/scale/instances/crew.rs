//! The instances of a launch: a process of tare's own for each, which measure at the same time.

use super::super::sweep::InstancesAsked;
use super::part::Part;
use crate::error::{LabError, THREADS_HINT};
use crate::in_step::{END, ENOUGH, GO, READY};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The option that says which instance a process measures.
const OPTION: &str = "--instance";
/// How often the wait looks at the interrupt flag.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A launch takes no longer than this.
const LONGEST: Duration = Duration::from_secs(7200);
/// What is stopped has so long to stop its server and to close its record.
const GRACE: Duration = Duration::from_secs(20);
/// Of what a process says of its failure this much is kept.
const ERRORS_MAX: u64 = 64 * 1024;
/// Exit codes of tare: bad usage, and interrupted.
const USAGE: i32 = 2;
const INTERRUPTED: i32 = 130;

/// What a process said.
enum Word {
    Ready,
    Enough,
    /// Nothing more: it ends.
    Closed,
}

/// The process of an instance.
struct Member {
    i: u32,
    child: Child,
    stdin: Option<ChildStdin>,
    errors: Option<JoinHandle<String>>,
}

/// Measures these instances at the same time; each record is in its file then. `live` is called again and again meanwhile.
pub(super) fn measure(
    parts: &[Part],
    asked: &InstancesAsked,
    interrupt: &AtomicBool,
    live: &mut dyn FnMut(),
) -> Result<(), LabError> {
    let (sender, words) = mpsc::channel();
    let mut members = Vec::with_capacity(parts.len());
    for (at, part) in parts.iter().enumerate() {
        members.push(Member::start(at, part, asked, &sender)?);
    }
    drop(sender);
    let end = in_step(&mut members, &words, interrupt, live);
    // All at once, so that they end at the same time where one has failed.
    members.iter_mut().for_each(|member| drop(member.stdin.take()));
    end
}

/// Has them begin together, and end together.
fn in_step(
    members: &mut [Member],
    words: &Receiver<(usize, Word)>,
    interrupt: &AtomicBool,
    live: &mut dyn FnMut(),
) -> Result<(), LabError> {
    let count = members.len();
    let (mut ready, mut enough, mut closed) = (0, 0, 0);
    let end = Instant::now() + LONGEST;
    while closed < count {
        if interrupt.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        if Instant::now() > end {
            return Err(LabError::Observe(format!("a launch did not end within {} s", LONGEST.as_secs())));
        }
        match words.recv_timeout(LOOK_EVERY) {
            Ok((_, Word::Ready)) => {
                ready += 1;
                if ready == count {
                    members.iter_mut().for_each(|member| member.say(GO));
                }
            }
            Ok((_, Word::Enough)) => {
                enough += 1;
                if enough == count {
                    members.iter_mut().for_each(|member| member.say(END));
                }
            }
            Ok((at, Word::Closed)) => {
                closed += 1;
                members.get_mut(at).map_or(Ok(()), Member::end)?;
            }
            Err(RecvTimeoutError::Timeout) => live(),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    Ok(())
}

impl Member {
    fn start(
        at: usize,
        part: &Part,
        asked: &InstancesAsked,
        words: &Sender<(usize, Word)>,
    ) -> Result<Member, LabError> {
        let mut command = Command::new(&asked.program);
        command.args(&asked.before).arg(OPTION).arg(part.word()).args(&asked.after);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|error| LabError::State(format!("cannot start {}: {error}", asked.program.display())))?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let mut member = Member { i: part.i, child, stdin, errors: None };
        let words = words.clone();
        let hear = move || {
            for line in stdout.into_iter().flat_map(|stdout| BufReader::new(stdout).lines()) {
                let word = match line.as_deref().map(str::trim) {
                    Ok(READY) => Word::Ready,
                    Ok(ENOUGH) => Word::Enough,
                    Ok(_) => continue,
                    Err(_) => break,
                };
                words.send((at, word)).ok();
            }
            words.send((at, Word::Closed)).ok();
        };
        let keep = move || {
            let mut text = Vec::new();
            let Some(mut stderr) = stderr else { return String::new() };
            stderr.by_ref().take(ERRORS_MAX).read_to_end(&mut text).ok();
            // What goes beyond is read all the same: a full pipe would hold the process.
            std::io::copy(&mut stderr, &mut std::io::sink()).ok();
            String::from_utf8_lossy(&text).into_owned()
        };
        let thread = |error: std::io::Error| {
            LabError::State(format!("cannot start a thread: {error} ({THREADS_HINT})"))
        };
        std::thread::Builder::new().name("tare-instance".into()).spawn(hear).map_err(thread)?;
        let errors = std::thread::Builder::new().name("tare-errors".into()).spawn(keep).map_err(thread)?;
        member.errors = Some(errors);
        Ok(member)
    }

    /// Who cannot hear it has ended, which is seen elsewhere.
    fn say(&mut self, word: &str) {
        if let Some(stdin) = &mut self.stdin {
            writeln!(stdin, "{word}").and_then(|()| stdin.flush()).ok();
        }
    }

    /// Waits for its end, and says why it failed where it did.
    fn end(&mut self) -> Result<(), LabError> {
        let code = self.reap(GRACE);
        if code == Some(0) {
            return Ok(());
        }
        let said = self.errors.take().and_then(|errors| errors.join().ok()).unwrap_or_default();
        Err(failure(self.i, code, &said))
    }

    /// Its exit code; `None` where it had to be killed.
    fn reap(&mut self, within: Duration) -> Option<i32> {
        let end = Instant::now() + within;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return status.code(),
                Ok(None) if Instant::now() < end => std::thread::sleep(Duration::from_millis(5)),
                Ok(None) | Err(_) => {
                    self.child.kill().ok();
                    self.child.wait().ok();
                    return None;
                }
            }
        }
    }
}

/// A member whose input is closed stops its server, keeps its record and ends. One that does not end in time is killed; the next start of tare
/// then stops what it left.
impl Drop for Member {
    fn drop(&mut self) {
        drop(self.stdin.take());
        self.reap(GRACE);
    }
}

/// What a process says of its failure, of the same kind.
fn failure(i: u32, code: Option<i32>, said: &str) -> LabError {
    let said = said.trim();
    let text = said.find("tare: ").map_or(said, |at| &said[at + "tare: ".len()..]);
    match code {
        Some(INTERRUPTED) => LabError::Interrupted,
        Some(USAGE) => LabError::usage(format!("instance {i}: {text}"), "try its command by hand"),
        _ if text.is_empty() => {
            LabError::Observe(format!("the process that measured instance {i} was killed"))
        }
        _ => match text.strip_prefix("the system under test ") {
            Some(text) => {
                LabError::Sut { what: format!("(instance {i}) {text}"), last_output: String::new() }
            }
            None => LabError::Observe(format!("instance {i}: {text}")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    /// A shell in place of tare: it says and hears the same words.
    fn shell(script: &str) -> InstancesAsked {
        InstancesAsked {
            cpus_each: 1,
            program: "sh".into(),
            before: vec![OsString::from("-c"), OsString::from(script)],
            after: Vec::new(),
        }
    }

    fn part(i: u32) -> Part {
        Part {
            i,
            n: 2,
            cpus: Vec::new(),
            load_cpus: Vec::new(),
            port: 1,
            runs: 1,
            trial_ms: 1,
            record: "none".into(),
        }
    }

    fn both(script: &str, interrupt: bool) -> Result<(), LabError> {
        measure(&[part(1), part(2)], &shell(script), &AtomicBool::new(interrupt), &mut || {})
    }

    #[test]
    fn they_begin_and_end_together() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let log = log.display();
        // $1 is what instance it is; the second one needs longer for everything.
        let script = format!(
            r#"case "$1" in *'"i":2'*) long=0.3;; *) long=0;; esac
            sleep $long; echo ready; read go; echo "$go" >> {log}
            sleep $long; echo enough; read end; echo "$end" >> {log}"#
        );
        both(&script, false).unwrap();
        assert_eq!(std::fs::read_to_string(folder.path().join("log")).unwrap(), "go\ngo\nend\nend\n");
    }

    #[test]
    fn one_that_fails_ends_the_others() {
        let began = Instant::now();
        let script = r#"case "$1" in *'"i":2'*) echo 'tare: the system under test ended: exit status 1' >&2; exit 3;; esac
            echo ready; read go"#;
        let error = both(script, false).unwrap_err().to_string();
        assert_eq!(error, "the system under test (instance 2) ended: exit status 1");
        // The first one waits for a word that never comes, and ends since nobody can say it any more.
        assert!(began.elapsed() < GRACE, "{:?}", began.elapsed());
        assert!(matches!(both("echo ready; read go", true), Err(LabError::Interrupted)));
        assert!(matches!(
            both("echo 'tare: no such option' >&2; exit 2", false),
            Err(LabError::Usage { .. })
        ));
    }
}
