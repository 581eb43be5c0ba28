//! A session with a program: runs of it, one after the other, each a trial.

use crate::error::LabError;
use crate::identity;
use crate::plan;
use crate::process::{Launch, Output, Started};
use crate::progress::{Event, Progress};
use crate::request::{CommandRequest, Parameter};
use crate::running::{Held, Running, Session};
use crate::subjects::fit;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tare_machine::Root;
use tare_machine::placement::{self, Wanted};
use tare_model::observation::Observation;
use tare_model::placement::Policy;
use tare_model::plan::{CommandWorkload, Plan, Workload};
use tare_model::trial::{CommandSample, Measure, Trial};
use tare_observe::{LoadWatch, Observers, Watch};
use tare_sys::process::{self, Ended};

/// Runs when the user names no number: at least so many …
const RUNS_MIN: u32 = 10;
/// … for at least so long …
const SESSION_MIN: Duration = Duration::from_secs(3);
/// … and never more than this.
const RUNS_MAX: u32 = 1000;
/// Commands that parameters may multiply to.
const COMMANDS_MAX: usize = 10_000;
const SAMPLE_HZ: f64 = 100.0;
/// How often a wait for the end of a run looks at the interrupt flag.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Measures a program. Runs that were finished are kept whatever the end.
pub fn measure(request: CommandRequest, session: &Session, progress: &mut dyn Progress) -> Held {
    let mut running = match Running::begin(session, progress) {
        Ok(running) => running,
        Err(error) => return Held { record: None, end: Err(error) },
    };
    let end = hold(&request, &mut running);
    running.end(end)
}

fn hold(request: &CommandRequest, running: &mut Running<'_>) -> Result<(), LabError> {
    let facts = running.facts.clone();
    plan::check_cpus("--sut-cpus", request.sut_cpus.as_deref(), &facts)?;
    let variants = expand(&request.command, &request.parameters)?;
    let programs = variants.iter().map(|words| program(words, request)).collect::<Result<Vec<_>, _>>()?;
    let wanted = Wanted {
        sut_allowed: &[],
        sut_threads: 1,
        load_threads: 1,
        given_sut: request.sut_cpus.as_deref().unwrap_or_default(),
        given_load: &[],
        policy: Policy::Auto,
        quota_cpus: None,
    };
    programs.iter().try_for_each(|words| find_program(&words[0]))?;
    let place = placement::choose(&running.topology, &wanted)
        .map_err(|error| LabError::usage(error.to_string(), ""))?;
    let cpus = request.sut_cpus.clone().unwrap_or_default();
    let environment = match request.fit_runtime {
        true => fit::environment(&cpus, &running.topology, running.progress),
        false => Vec::new(),
    };
    let taking_part = identity::of_commands(&variants, request, &environment);
    running.open_record(plan(request, &variants), taking_part)?;
    let observers = Observers::start(
        Watch {
            sut_pids: Vec::new(),
            server_port: None,
            beside_pids: Vec::new(),
            load: LoadWatch::None,
            sut_cpus: request.sut_cpus.clone().unwrap_or_else(|| place.sut_cpus.clone()),
            load_cpus: Vec::new(),
            observer_cpus: place.observer_cpus,
            sample_hz: SAMPLE_HZ,
            clock: true,
            stacks: None,
            trace: request.trace,
        },
        &Root::live(),
    )
    .map_err(|error| LabError::Observe(error.to_string()))?;
    for (index, words) in programs.iter().enumerate() {
        let bench = Bench {
            request,
            environment: &environment,
            words,
            index: index as u32,
            name: variants[index].join(" "),
            observers: &observers,
        };
        bench.all_runs(running)?;
    }
    observers.stop();
    Ok(())
}

fn plan(request: &CommandRequest, variants: &[Vec<String>]) -> Plan {
    Plan {
        argv: request.argv.clone(),
        started_unix_s: tare_sys::time::wall_s(),
        workload: Workload::Command(CommandWorkload {
            commands: variants.iter().map(|words| words.join(" ")).collect(),
            runs: request.runs.unwrap_or(if request.stopping.is_some() { RUNS_MAX } else { RUNS_MIN }),
            warmup: request.warmup,
            shell: request.shell.clone(),
        }),
        sut_cpus: request.sut_cpus.clone().unwrap_or_default(),
        load_cpus: Vec::new(),
        ref_clock_hz: request.ref_clock_hz,
        stopping: request.stopping,
    }
}

/// The command with every combination of parameter values filled in.
fn expand(command: &[String], parameters: &[Parameter]) -> Result<Vec<Vec<String>>, LabError> {
    let mut variants = vec![command.to_vec()];
    for parameter in parameters {
        let placeholder = format!("{{{}}}", parameter.name);
        if !command.iter().any(|word| word.contains(&placeholder)) {
            return Err(LabError::usage(
                format!("the command does not contain {placeholder}"),
                "write the parameter's name between braces where its value belongs",
            ));
        }
        if variants.len().saturating_mul(parameter.values.len()) > COMMANDS_MAX {
            return Err(LabError::usage(
                format!("more than {COMMANDS_MAX} combinations of parameters"),
                "give fewer values",
            ));
        }
        variants = variants
            .iter()
            .flat_map(|words| {
                let fill =
                    |value: &String| words.iter().map(|word| word.replace(&placeholder, value)).collect();
                parameter.values.iter().map(fill).collect::<Vec<Vec<String>>>()
            })
            .collect();
    }
    Ok(variants)
}

/// The words that are executed: through the shell, or the program itself.
fn program(words: &[String], request: &CommandRequest) -> Result<Vec<String>, LabError> {
    match (&request.shell, words) {
        (Some(shell), words) => {
            let mut through = shell_words::split(shell)
                .map_err(|error| LabError::usage(format!("--shell: {error}"), "check the quotes"))?;
            through.extend(["-c".to_string(), words.join(" ")]);
            Ok(through)
        }
        (None, [line]) => words_of(line),
        (None, words) => Ok(words.to_vec()),
    }
}

/// The words of a command line, one at least.
pub(crate) fn words_of(line: &str) -> Result<Vec<String>, LabError> {
    let bad = |error: String| LabError::usage(error, "check the quotes");
    let words = shell_words::split(line).map_err(|error| bad(format!("'{line}': {error}")))?;
    if words.is_empty() { Err(bad("the command is empty".into())) } else { Ok(words) }
}

/// An error when the shell would say "not found": better before anything has started than at the first run.
pub(crate) fn find_program(name: &str) -> Result<(), LabError> {
    let is_program = |path: &Path| {
        path.metadata().is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = match name.contains('/') {
        true => is_program(Path::new(name)),
        false => std::env::split_paths(&path).any(|folder| is_program(&folder.join(name))),
    };
    if found {
        return Ok(());
    }
    Err(LabError::usage(
        format!("there is no program '{name}'"),
        "check the name, the path and that it may be executed",
    ))
}

/// One command and what its runs need.
struct Bench<'a> {
    request: &'a CommandRequest,
    environment: &'a [(&'static str, String)],
    words: &'a [String],
    index: u32,
    name: String,
    observers: &'a Observers,
}

impl Bench<'_> {
    fn all_runs(&self, running: &mut Running<'_>) -> Result<(), LabError> {
        self.auxiliary("--setup", &self.request.setup, running)?;
        for run in 0..self.request.warmup {
            running.live(&format!("warm-up {} of {}", run + 1, self.name), None);
            self.auxiliary("--prepare", &self.request.prepare, running)?;
            self.run_once(running)?;
        }
        let began = Instant::now();
        let mut run = 0;
        while !self.enough(run, began.elapsed(), running) {
            running.live(&format!("run {} of {}{}", run + 1, self.name, running.known()), None);
            self.auxiliary("--prepare", &self.request.prepare, running)?;
            let (sample, observation) = self.run_once(running)?;
            let value = Some(sample.wall_ns as f64 / 1e9);
            let seq = running.next_seq();
            running.keep(Trial { seq, level: 0, sample: Measure::Command(sample), observation })?;
            running.progress.show(Event::TrialDone { seq, value, unit: "s" });
            run += 1;
        }
        self.auxiliary("--cleanup", &self.request.cleanup, running)
    }

    fn enough(&self, run: u32, elapsed: Duration, running: &mut Running<'_>) -> bool {
        match self.request.runs {
            Some(runs) => run >= runs,
            None if self.request.stopping.is_some() => running.is_enough(self.index) || run >= RUNS_MAX,
            None => run >= RUNS_MAX || (run >= RUNS_MIN && elapsed >= SESSION_MIN),
        }
    }

    /// One run: timed from before its start to its end, its last counters read before it is reaped.
    fn run_once(&self, running: &mut Running<'_>) -> Result<(CommandSample, Observation), LabError> {
        let launch = Launch {
            what: "the program",
            words: self.words.to_vec(),
            cpus: self.request.sut_cpus.clone().unwrap_or_default(),
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
        let ended = started.reap().ok_or_else(|| LabError::Sut {
            what: format!("'{}' could not be waited for", self.name),
            last_output: String::new(),
        })?;
        if ended.exit_code != Some(0) && !self.request.ignore_failure {
            let what =
                format!("'{}' failed: {}; -i goes on in spite of it", self.name, started.exit_description());
            return Err(LabError::Sut { what, last_output: started.output() });
        }
        Ok((sample(self.index, end_ns.saturating_sub(begin_ns), &ended), observation))
    }

    fn auxiliary(
        &self,
        option: &str,
        command: &Option<String>,
        running: &mut Running<'_>,
    ) -> Result<(), LabError> {
        let Some(command) = command else { return Ok(()) };
        let words = ["sh", "-c", command.as_str()].map(String::from).to_vec();
        let launch = Launch {
            what: option,
            words,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(String::from).collect()
    }

    #[test]
    fn fills_in_every_combination() {
        let parameter = |name: &str, values: &[&str]| Parameter {
            name: name.into(),
            values: values.iter().map(|value| value.to_string()).collect(),
        };
        let parameters = [parameter("a", &["1", "2"]), parameter("b", &["x", "y"])];
        let variants = expand(&words("run {a} {b}{a}"), &parameters).unwrap();
        let lines: Vec<String> = variants.iter().map(|words| words.join(" ")).collect();
        assert_eq!(lines, ["run 1 x1", "run 1 y1", "run 2 x2", "run 2 y2"]);
        assert!(matches!(expand(&words("run"), &parameters), Err(LabError::Usage { .. })));
        let many: Vec<String> = (0..200).map(|value| value.to_string()).collect();
        let parameters = ["a", "b"].map(|name| Parameter { name: name.into(), values: many.clone() });
        assert!(matches!(expand(&words("run {a} {b}"), &parameters), Err(LabError::Usage { .. })));
    }
}
