//! No load: a program that runs by itself from its start to its end, each run a trial.

use super::load::{Counted, Driven, Load};
use crate::blocks::Stint;
use crate::error::LabError;
use crate::left_behind;
use crate::process::{Launch, Output, Started};
use crate::request::CommandRequest;
use crate::running::Running;
use crate::subjects::sut::Sut;
use std::sync::mpsc;
use std::time::Duration;
use tare_model::trial::{CommandSample, WarmUp};
use tare_observe::Observers;
use tare_sys::process::{self, Ended};

/// How often a wait for the end of a run looks at the interrupt flag.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A program, and what its runs need.
pub(crate) struct Alone<'a> {
    pub request: &'a CommandRequest,
    pub environment: &'a [(&'static str, String)],
    /// What is executed.
    pub words: &'a [String],
    /// Which of the commands it is.
    pub index: u32,
    pub name: String,
    pub observers: &'a Observers,
}

impl Load for Alone<'_> {
    fn warm_up(&mut self, _sut: &mut Sut, running: &mut Running<'_>) -> Result<Option<WarmUp>, LabError> {
        auxiliary("--setup", &self.request.around.setup, running)?;
        for run in 0..self.request.runs.warmup {
            running.live(&format!("warm-up {} of {}", run + 1, self.name), None);
            self.run_once(running)?;
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
        running.live(&format!("run {} of {}{}", run + 1, self.name, running.known()), None);
        self.run_once(running).map(|driven| vec![driven])
    }

    fn end(&mut self, running: &mut Running<'_>) -> Result<(), LabError> {
        auxiliary("--cleanup", &self.request.around.cleanup, running)
    }
}

impl Alone<'_> {
    /// One run: timed from before its start to its end, its last counters read before it is reaped.
    fn run_once(&self, running: &mut Running<'_>) -> Result<Driven, LabError> {
        auxiliary("--prepare", &self.request.around.prepare, running)?;
        let launch = Launch {
            what: "the program",
            words: self.words.to_vec(),
            cpus: self.request.place.sut_cpus.clone().unwrap_or_default(),
            groups: self.request.groups.clone(),
            environment: self.environment.to_vec(),
            output: if self.request.show_output { Output::Show } else { Output::KeepErrors },
        };
        self.observers.begin();
        let begin_ns = tare_sys::time::monotonic_ns();
        let mut started = Started::launch(&launch, &running.journal)?;
        self.observers.watch_sut(vec![started.pid()]);
        let end_ns = wait_for_end(&started, running)?;
        // The zombie's counters are final; they are gone once it is reaped.
        let observation = self.observers.end();
        left_behind::report(started.pid(), &self.name, running)?;
        let ended = started.reap().ok_or_else(|| LabError::Sut {
            what: format!("'{}' could not be waited for", self.name),
            last_output: String::new(),
        })?;
        if ended.exit_code != Some(0) && !self.request.ignore_failure {
            let what =
                format!("'{}' failed: {}; -i goes on in spite of it", self.name, started.exit_description());
            return Err(LabError::Sut { what, last_output: started.output() });
        }
        let counted = Counted::Run(sample(self.index, end_ns.saturating_sub(begin_ns), &ended));
        Ok(Driven { level: 0, counted, observation })
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
    wait_for_end(&started, running)?;
    if started.succeeded() {
        return Ok(());
    }
    let what = format!("was not run: {option} '{command}' failed: {}", started.exit_description());
    Err(LabError::Sut { what, last_output: started.output() })
}

/// A thread waits for the end and stamps it, so that the stamp is exact and Ctrl-C is still noticed.
pub(crate) fn wait_for_end(started: &Started, running: &mut Running<'_>) -> Result<u64, LabError> {
    let pid = started.pid();
    let (sender, receiver) = mpsc::channel();
    let watch = move || {
        // An error means that it is gone already, which is the end as well.
        process::has_ended(pid, true).ok();
        sender.send(tare_sys::time::monotonic_ns()).ok();
    };
    let builder = std::thread::Builder::new().name("tare-wait".into());
    builder.spawn(watch).map_err(|error| LabError::State(format!("cannot start a thread: {error}")))?;
    loop {
        match receiver.recv_timeout(LOOK_EVERY) {
            Ok(end_ns) => return Ok(end_ns),
            Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(tare_sys::time::monotonic_ns()),
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
    }
}
