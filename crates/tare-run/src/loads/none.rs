//! No load: a program that runs by itself from its start to its end, each run a trial.

use super::load::{Counted, Driven, Load};
use crate::blocks::Stint;
use crate::error::{LabError, THREADS_HINT};
use crate::left_behind;
use crate::process::{Launch, Output, Started, wants_terminal};
use crate::progress::Event;
use crate::request::CommandRequest;
use crate::running::Running;
use crate::start_up::Empty;
use crate::subjects::sut::Sut;
use crate::timed::{Input, Run, Runner, Timed};
use std::cell::Cell;
use std::sync::mpsc;
use std::time::Duration;
use tare_model::observation::Observation;
use tare_model::tool::ToolMetrics;
use tare_model::trial::{CommandSample, WarmUp};
use tare_observe::Observers;
use tare_sys::process::{self, Confinement, End, Ended, Signal};

/// How often a wait for the end of a run looks at the interrupt flag.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What is known of what a program prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prints {
    /// No run has ended.
    Unknown,
    /// The results of a benchmark: they are read in every run.
    Results,
    /// Nothing that is known: it goes nowhere.
    Other,
}

/// Whether observers watch a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Watched {
    Yes,
    /// It is only timed: what observers do at its edges makes a short run longer.
    No,
}

/// A program, and what its runs need.
pub(crate) struct Alone<'a> {
    pub request: &'a CommandRequest,
    pub environment: &'a [(String, String)],
    /// What is executed.
    pub words: &'a [String],
    /// Which of the commands it is.
    pub index: u32,
    pub name: String,
    pub input: &'a Input,
    pub observers: &'a Observers,
    pub runner: &'a Runner,
    pub empty: Option<&'a Empty>,
    pub prints: Cell<Prints>,
}

impl Load for Alone<'_> {
    fn warm_up(&mut self, _sut: &mut Sut, running: &mut Running<'_>) -> Result<Option<WarmUp>, LabError> {
        auxiliary("--setup", &self.request.around.setup, running)?;
        for run in 0..self.request.runs.warmup {
            let phase = format!("warm-up {} of {}", run + 1, self.name);
            self.run_once(&phase, running, Watched::Yes)?;
        }
        Ok(None)
    }

    fn drive(
        &mut self,
        stint: &Stint,
        _sut: &mut Sut,
        running: &mut Running<'_>,
    ) -> Result<Vec<Driven>, LabError> {
        let run = stint.first().map_or(0, |(_, run)| *run);
        let phase = format!("run {} of {}{}", run + 1, self.name, running.known());
        let (driven, counts) = self.run_once(&phase, running, Watched::Yes)?;
        if run == 0
            && self.has_results()
            && self.request.runs.count.is_none()
            && self.request.runs.stopping.is_none()
        {
            let text = format!(
                "{} prints the results of a benchmark: it is run once (--trials N for more)",
                self.name
            );
            running.progress.show(Event::Notice(text));
        }
        // Who asks for one run gets no second one: a program may do something.
        if counts || self.request.runs.count == Some(1) {
            return Ok(vec![driven]);
        }
        let phase = format!("run {} of {} once more: what it prints was read", run + 1, self.name);
        self.run_once(&phase, running, Watched::Yes).map(|(driven, _)| vec![driven])
    }

    fn end(&mut self, running: &mut Running<'_>) -> Result<(), LabError> {
        auxiliary("--cleanup", &self.request.around.cleanup, running)
    }
}

impl Alone<'_> {
    /// Whether a run has printed the results of a benchmark.
    pub fn has_results(&self) -> bool {
        self.prints.get() == Prints::Results
    }

    fn output(&self) -> Output {
        match self.prints.get() {
            Prints::Other if self.request.show_output => Output::Keep,
            Prints::Other => Output::KeepErrors,
            Prints::Unknown | Prints::Results => Output::KeepApart,
        }
    }

    /// The results that a run printed, and whether its time is that of one whose output nobody reads: it differs from that of one
    /// whose output goes nowhere (grep then ends at its first match).
    fn results(&self, run: &Run) -> (Option<Box<ToolMetrics>>, bool) {
        let Some((count, results)) = run.results() else { return (None, true) };
        let results = results.map(|mut results| {
            if self.request.runs.stopping.is_some() {
                // Where nothing has such a name, the time of a run is what is made known; that is said with the results.
                self.request.chosen.mark(&mut results).ok();
            }
            Box::new(results)
        });
        match (&results, self.prints.get()) {
            (Some(_), _) => self.prints.set(Prints::Results),
            (None, Prints::Unknown) => self.prints.set(Prints::Other),
            // One run that prints something else does not end it.
            (None, _) => {}
        }
        // One that is shown, or has a terminal, is read by somebody in every run.
        let is_read = self.request.show_output || self.request.pty;
        let counts = self.has_results() || count == 0 || is_read;
        (results, counts)
    }

    /// A run that is only timed.
    pub fn drive_unobserved(&self, run: u32, running: &mut Running<'_>) -> Result<Driven, LabError> {
        let phase = format!("run {} of {}{}", run + 1, self.name, running.known());
        self.run_once(&phase, running, Watched::No).map(|(driven, _)| driven)
    }

    /// One run: timed from before its start to its end, its last counters read before it is reaped; and whether it counts.
    fn run_once(
        &self,
        phase: &str,
        running: &mut Running<'_>,
        watched: Watched,
    ) -> Result<(Driven, bool), LabError> {
        running.live(phase, None);
        auxiliary("--prepare", &self.request.around.prepare, running)?;
        let confinement = Confinement {
            cpus: self.request.place.sut_cpus.clone().unwrap_or_default(),
            cgroup_procs: self.request.groups.clone(),
            no_thp: false,
        };
        let timed = Timed {
            words: self.words,
            environment: self.environment,
            confinement: confinement.clone(),
            output: self.output(),
            shown: self.request.show_output,
            input: self.input,
            pty: self.request.pty,
            time_limit: self.request.runs.time_limit,
            phase: Some(phase),
        };
        // What the observers prepare has left other things in the caches than the start of a program needs.
        let ready = || {
            if let Some(empty) = self.empty {
                empty.run(confinement, self.runner, running);
            }
        };
        let is_watched = watched == Watched::Yes;
        if is_watched {
            self.observers.begin_after(ready);
        } else {
            ready();
        }
        let mut observation =
            Observation { begin_ns: tare_sys::time::monotonic_ns(), ..Observation::default() };
        let watch = |pid| {
            if is_watched {
                self.observers.watch_sut(vec![pid]);
            }
        };
        // The zombie's counters are final; they are gone once it is reaped.
        let mut left = Vec::new();
        let read = |main| {
            if is_watched {
                observation = self.observers.end();
            } else {
                observation.end_ns = tare_sys::time::monotonic_ns();
            }
            left = left_behind::by(main);
        };
        let mut run = self.runner.run(&timed, running, watch, read)?;
        left_behind::report(&left, &self.name, running)?;
        if run.ended.exit_code != Some(0) && !self.request.ignore_failure {
            let how = match (run.over_limit, self.request.runs.time_limit) {
                (true, Some(limit)) => {
                    format!("it did not end within {} s (--time-limit)", limit.as_secs_f64())
                }
                _ => run.exit_description(),
            };
            let what = format!("'{}' failed: {how} (hint: -i goes on in spite of it)", self.name);
            return Err(LabError::Sut { what, last_output: run.output() });
        }
        let (results, counts) = self.results(&run);
        let sample = sample(self.index, run.wall_ns, &run.ended);
        let counted = Counted::Run(CommandSample { results, unobserved: !is_watched, ..sample });
        Ok((Driven { level: 0, counted, observation }, counts))
    }
}

fn auxiliary(option: &str, command: &Option<String>, running: &mut Running<'_>) -> Result<(), LabError> {
    let Some(command) = command else { return Ok(()) };
    let launch = Launch {
        what: option,
        words: ["sh", "-c", command.as_str()].map(String::from).to_vec(),
        cpus: Vec::new(),
        groups: Vec::new(),
        environment: Vec::new(),
        output: Output::Keep,
    };
    let mut started = Started::launch(&launch, &running.journal)?;
    wait_for_end(option, &started, running)?;
    if started.succeeded() {
        return Ok(());
    }
    let what = format!(
        "was not run: {option} '{command}' failed: {} (hint: run it in a shell)",
        started.exit_description()
    );
    Err(LabError::Sut { what, last_output: started.output() })
}

/// A thread waits for the end, so that Ctrl-C is still noticed.
fn wait_for_end(option: &str, started: &Started, running: &mut Running<'_>) -> Result<(), LabError> {
    let pid = started.pid();
    let (sender, receiver) = mpsc::channel();
    let watch = move || {
        // An error means that it is gone already, which is the end as well.
        sender.send(process::wait_end(pid).unwrap_or(End::Ended)).ok();
    };
    let builder = std::thread::Builder::new().name("tare-wait".into());
    builder
        .spawn(watch)
        .map_err(|error| LabError::State(format!("cannot start a thread: {error} ({THREADS_HINT})")))?;
    loop {
        match receiver.recv_timeout(LOOK_EVERY) {
            Ok(End::WantsTerminal) => {
                process::kill_group(pid, Signal::Kill).ok();
                return Err(wants_terminal(option));
            }
            Ok(End::Ended) | Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(()),
            Err(mpsc::RecvTimeoutError::Timeout) => running.check_interrupt()?,
        }
    }
}

fn sample(command: u32, wall_ns: u64, ended: &Ended) -> CommandSample {
    CommandSample {
        command,
        wall_ns,
        user_ns: ended.user_ns,
        system_ns: ended.system_ns,
        voluntary_switches: ended.voluntary_switches,
        involuntary_switches: ended.involuntary_switches,
        rss_bytes_max: ended.rss_bytes_max,
        exit_code: ended.exit_code,
        signal: ended.signal,
        results: None,
        unobserved: false,
    }
}
