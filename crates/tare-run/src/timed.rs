//! Programs that are timed: started and waited for by a thread that does nothing else, so that from the start to the end
//! nothing of tare's own runs in between.

use crate::arrivals;
use crate::error::{LabError, THREADS_HINT};
use crate::own_program;
use crate::process::{Output, Started, Tail, last_line, printed};
use crate::running::Running;
use crate::subjects::program::find_program;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tare_machine::Root;
use tare_machine::journal::RUN_VARIABLE;
use tare_model::tool::ToolMetrics;
use tare_model::warning::Warning;
use tare_sys::process::{self, Confinement, End, Ended, Signal};
use tare_sys::start::{Begun, Program, Starter};
use tare_sys::terminal::Terminal;

/// For so long from its start a program is left alone: nothing of tare's own runs, and what ends before is read afterwards.
const LEFT_ALONE: Duration = Duration::from_millis(10);
/// How often a wait for the end of a run looks at the interrupt flag and the time limit.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// A program that runs for so long is put in the journal by its number, too.
const JOURNAL_AFTER: Duration = Duration::from_secs(1);
/// Of a program that runs for so long it is shown what it is at.
const SHOWN_AFTER: Duration = Duration::from_secs(1);
const NO_MEMORY_FILE: &str = "no file in memory for the program's input";

/// What the program reads.
#[derive(Debug, Clone, Default)]
pub(crate) enum Input {
    /// Nothing.
    #[default]
    Nothing,
    File(PathBuf),
    /// A file in memory.
    Text(Arc<File>),
}

impl Input {
    /// From the beginning.
    fn open(&self) -> io::Result<File> {
        match self {
            Input::Nothing => File::open("/dev/null"),
            Input::File(path) => File::open(path),
            Input::Text(file) => {
                File::open(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file.as_ref())))
            }
        }
    }

    /// What `--input` names: a file, or a text.
    pub fn of(given: Option<&str>) -> Result<Input, LabError> {
        let Some(given) = given else { return Ok(Input::Nothing) };
        let path = PathBuf::from(given);
        if std::fs::metadata(&path).is_ok_and(|metadata| metadata.file_type().is_fifo()) {
            return Err(LabError::usage(
                format!("--input: '{given}' is a pipe, and each run is to read it from its beginning"),
                "write what it has to a file first",
            ));
        }
        if path.exists() {
            File::open(&path).map_err(|error| {
                LabError::usage(
                    format!("--input: cannot read '{given}': {error}"),
                    "name a file that can be read",
                )
            })?;
            return Ok(Input::File(path));
        }
        if given.contains('/') && !given.contains(char::is_whitespace) {
            return Err(LabError::usage(
                format!("--input: there is no file '{given}'"),
                "check the path; a text with a '/' is taken as one where it has a space or ends with a newline",
            ));
        }
        let file = tare_sys::file::in_memory(c"tare-input", given.as_bytes());
        file.map(|file| Input::Text(Arc::new(file)))
            .map_err(|error| LabError::State(format!("{NO_MEMORY_FILE}: {error}")))
    }
}

/// What is run, and how.
#[derive(Debug, Clone)]
pub(crate) struct Timed<'a> {
    pub words: &'a [String],
    pub environment: &'a [(String, String)],
    pub confinement: Confinement,
    pub output: Output,
    /// What is kept goes to standard error as well.
    pub shown: bool,
    pub input: &'a Input,
    /// In a terminal of its own.
    pub pty: bool,
    /// It is ended after so long.
    pub time_limit: Option<Duration>,
    /// What is said of it while it runs; with what it printed last, where that is kept for its results.
    pub phase: Option<&'a str>,
}

/// How a run went.
pub(crate) struct Run {
    pub wall_ns: u64,
    pub ended: Ended,
    /// It did not end by itself within its limit.
    pub over_limit: bool,
    /// What it printed last, where that is kept; read only where it is needed.
    started: Started,
    /// Its standard output, where that is kept apart.
    apart: Option<Arc<Mutex<Tail>>>,
    /// Whether that is all: a terminal has one stream of both.
    in_terminal: bool,
    /// When it began, CLOCK_MONOTONIC.
    begun_ns: u64,
}

impl Run {
    /// `exit status 3`, `ended by signal 9`.
    pub fn exit_description(&mut self) -> String {
        self.started.exit_description()
    }

    /// What it printed last.
    pub fn output(&self) -> String {
        let all = self.apart.as_deref().filter(|_| self.in_terminal);
        all.map_or_else(|| self.started.output(), |all| printed(all).1)
    }

    /// How much it wrote to its standard output, and the results of a benchmark in that or in standard error, where these are kept apart.
    pub fn results(&self) -> Option<(u64, Option<ToolMetrics>)> {
        let (count, printed) = self.apart.as_deref().map(printed)?;
        let errors = self.started.output();
        let of_both = || tare_formats::read_printed(&format!("{printed}\n{errors}"));
        let mut is_of_output = true;
        let mut of_errors = || {
            is_of_output = false;
            tare_formats::read_printed(&errors)
        };
        let results = match tare_formats::read_printed(&printed) {
            found if errors.is_empty() => found,
            Some(found) if tare_formats::is_of_both_streams(&found.format) => of_both().or(Some(found)),
            None => of_errors().or_else(of_both),
            found => found,
        };
        let results = results.map(|mut results| {
            let tail = self.apart.as_deref().filter(|_| is_of_output);
            let tail = tail.map(|tail| tail.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
            let arrivals = tail.as_ref().and_then(|tail| tail.arrivals());
            arrivals::set_windows(&mut results, arrivals, self.begun_ns);
            with_cut(results, count, printed.len())
        });
        Some((count, results))
    }
}

/// Warns where the beginning of what was printed is not there any more.
fn with_cut(mut results: ToolMetrics, count: u64, kept: usize) -> ToolMetrics {
    let cut = count.saturating_sub(kept as u64);
    if cut > 0 {
        results.warnings.push(Warning {
            id: "output-cut".into(),
            text: format!(
                "the first {cut} bytes of what the program printed were not kept: their results are missing"
            ),
            hint: "have it write a file, and read that with 'tare show FILE'".into(),
        });
    }
    results
}

/// Where what a program prints is kept.
struct Kept {
    tail: Arc<Mutex<Tail>>,
    /// Standard output, where it is kept apart.
    apart: Option<Arc<Mutex<Tail>>>,
}

/// What the thread is asked to do.
struct Order {
    program: Program,
    stdio: [File; 3],
}

/// What it answers.
struct Answer {
    begun: Begun,
    end_ns: u64,
    end: End,
}

/// The thread that starts programs and waits for their ends. They end with it.
pub(crate) struct Runner {
    orders: Sender<Order>,
    answers: Receiver<io::Result<Answer>>,
    /// The one that runs; 0: none has begun.
    pid: Arc<AtomicU32>,
}

impl Runner {
    pub fn new() -> Result<Runner, LabError> {
        let (orders, ordered) = mpsc::channel::<Order>();
        let (sender, answers) = mpsc::channel();
        let pid = Arc::new(AtomicU32::new(0));
        let begun = Arc::clone(&pid);
        let work = move || {
            let mut starter = Starter::default();
            for Order { program, stdio } in ordered {
                let answer = one_run(&mut starter, &program, stdio, &begun);
                if sender.send(answer).is_err() {
                    return;
                }
            }
        };
        let builder = std::thread::Builder::new().name("tare-run".into());
        builder
            .spawn(work)
            .map_err(|error| LabError::State(format!("cannot start a thread: {error} ({THREADS_HINT})")))?;
        Ok(Runner { orders, answers, pid })
    }

    /// Runs a program once. `look` is called when it runs for long enough to be looked at, and otherwise after its end, before
    /// it is reaped; its counters can be read until `read` has been called.
    pub fn run(
        &self,
        timed: &Timed<'_>,
        running: &mut Running<'_>,
        mut look: impl FnMut(u32),
        read: impl FnOnce(u32),
    ) -> Result<Run, LabError> {
        let (order, Kept { tail, apart }) = order(timed, running)?;
        self.pid.store(0, Ordering::Relaxed);
        let gone = |_| LabError::State("the thread that starts programs has ended".to_owned());
        self.orders.send(order).map_err(|_| gone(()))?;
        let mut watch = Watch { begun: Instant::now(), looked: false, journalled: false, over_limit: false };
        let mut wait = LEFT_ALONE;
        let answer = loop {
            match self.answers.recv_timeout(wait) {
                Ok(answer) => break answer,
                Err(mpsc::RecvTimeoutError::Disconnected) => return Err(gone(())),
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    wait = watch.turn(self.pid.load(Ordering::Acquire), timed, running, &mut look);
                    let printed = apart.as_deref().filter(|_| watch.begun.elapsed() > SHOWN_AFTER);
                    if let Some((phase, line)) = timed.phase.zip(printed.and_then(last_line)) {
                        running.live(&format!("{phase}: {line}"), None);
                    }
                }
            }
        };
        // What it was at is not what it is called.
        if let Some(phase) = timed.phase.filter(|_| watch.begun.elapsed() > SHOWN_AFTER) {
            running.live(phase, None);
        }
        let Answer { begun, end_ns, end } = answer.map_err(|error| {
            LabError::usage(
                format!("cannot start the program '{}': {error}", timed.words[0]),
                "check that it may be executed here; 'file' shows for which machine it was built",
            )
        })?;
        let mut started = Started::of_program(begun.pid, tail);
        if end == End::WantsTerminal {
            process::kill_group(begun.pid, Signal::Kill).ok();
            return Err(wants_terminal(timed));
        }
        running.check_interrupt()?;
        if !watch.looked {
            look(begun.pid);
        }
        read(begun.pid);
        let ended = started.reap().ok_or_else(|| LabError::Sut {
            what: format!("'{}' could not be waited for", timed.words.join(" ")),
            last_output: String::new(),
        })?;
        let wall_ns = end_ns.saturating_sub(begun.made_ns);
        Ok(Run {
            wall_ns,
            ended,
            over_limit: watch.over_limit,
            started,
            apart,
            in_terminal: timed.pty,
            begun_ns: begun.made_ns,
        })
    }
}

/// What was done about a run that has not ended.
struct Watch {
    begun: Instant,
    looked: bool,
    journalled: bool,
    over_limit: bool,
}

impl Watch {
    /// Looks after it, and says when to do so again.
    fn turn(
        &mut self,
        pid: u32,
        timed: &Timed<'_>,
        running: &Running<'_>,
        look: &mut impl FnMut(u32),
    ) -> Duration {
        if pid == 0 {
            return LEFT_ALONE;
        }
        let took = self.begun.elapsed();
        if !self.looked {
            self.looked = true;
            look(pid);
        }
        if !self.journalled && took > JOURNAL_AFTER {
            self.journalled = true;
            // The run's id in its environment leads to it as well.
            running.journal.started(&Root::live(), pid).ok();
        }
        self.over_limit |= timed.time_limit.is_some_and(|limit| took >= limit);
        if self.over_limit || running.check_interrupt().is_err() {
            process::kill_group(pid, Signal::Kill).ok();
        }
        let left = timed.time_limit.map(|limit| limit.saturating_sub(took));
        left.unwrap_or(LOOK_EVERY).clamp(Duration::from_millis(1), LOOK_EVERY)
    }
}

fn one_run(
    starter: &mut Starter,
    program: &Program,
    stdio: [File; 3],
    pid: &AtomicU32,
) -> io::Result<Answer> {
    let [input, output, errors] = &stdio;
    let begun = starter.start(program, [input.as_fd(), output.as_fd(), errors.as_fd()])?;
    pid.store(begun.pid, Ordering::Release);
    // An error means that it is gone already, which is the end as well.
    let end = process::wait_end(begun.pid).unwrap_or(End::Ended);
    let end_ns = tare_sys::time::monotonic_ns();
    Ok(Answer { begun, end_ns, end })
}

/// What to start, and where what it prints is kept.
fn order(timed: &Timed<'_>, running: &Running<'_>) -> Result<(Order, Kept), LabError> {
    let name = timed.words.first().map_or("", String::as_str);
    let path = find_program(name)?;
    let cannot = |error: io::Error| {
        LabError::usage(
            format!("cannot start the program '{name}': {error}"),
            "run it in a shell to see whether it starts",
        )
    };
    let mut variables: Vec<(&str, &str)> =
        timed.environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    variables.push((RUN_VARIABLE, running.journal.run_id()));
    let (stdio, kept) = streams(timed).map_err(cannot)?;
    let program =
        Program::new(&path, &own_program::replaced(timed.words), &variables, &timed.confinement, timed.pty)
            .map_err(cannot)?;
    Ok((Order { program, stdio }, kept))
}

/// Its standard streams.
fn streams(timed: &Timed<'_>) -> io::Result<([File; 3], Kept)> {
    let tail = Arc::new(Mutex::new(Tail::default()));
    let own_errors = || io::stderr().as_fd().try_clone_to_owned().map(File::from);
    let shown = || timed.shown.then(own_errors).transpose();
    let mut apart = None;
    if timed.pty {
        let terminal = Terminal::open()?;
        // A terminal has one stream of both.
        let all = match timed.output {
            Output::KeepApart => apart.insert(Arc::new(Mutex::new(Tail::of_results()))),
            Output::Keep | Output::KeepErrors => &tail,
        };
        crate::process::keep_reading(Box::new(terminal.ours), shown()?, all);
        let input = match timed.input {
            Input::Nothing => terminal.program.try_clone()?,
            other => other.open()?,
        };
        return Ok(([input, terminal.program.try_clone()?, terminal.program], Kept { tail, apart }));
    }
    let input = timed.input.open()?;
    let errors = read_by(&tail, shown()?)?;
    let output = match timed.output {
        Output::Keep => errors.try_clone()?,
        Output::KeepApart => read_by(apart.insert(Arc::new(Mutex::new(Tail::of_results()))), shown()?)?,
        Output::KeepErrors => File::options().write(true).open("/dev/null")?,
    };
    Ok(([input, output, errors], Kept { tail, apart }))
}

/// A pipe that is read as long as somebody holds it.
fn read_by(tail: &Arc<Mutex<Tail>>, shown: Option<File>) -> io::Result<File> {
    let (reader, writer) = io::pipe()?;
    crate::process::keep_reading(Box::new(reader), shown, tail);
    Ok(File::from(std::os::fd::OwnedFd::from(writer)))
}

fn wants_terminal(timed: &Timed<'_>) -> LabError {
    crate::process::wants_terminal(&format!("'{}'", timed.words.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nobody is at its other end: to open it would wait for ever.
    #[test]
    fn what_runs_read_is_no_pipe() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
        assert!(made.success());
        let text = Input::of(pipe.to_str()).map(drop).expect_err("a pipe").to_string();
        assert!(text.contains("is a pipe") && text.contains("hint: "), "{text}");
        assert!(matches!(Input::of(Some("/dev/null")), Ok(Input::File(_))));
    }
}
