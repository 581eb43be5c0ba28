//! Somebody else's generator, started anew for each trial: that is how it is used without us.

use super::connections::{self, Connections};
use super::drive::{Drive, Stand, observe};
use super::load::{Counted, Driven, Load};
use crate::blocks::Stint;
use crate::error::LabError;
use crate::levels::{CALIBRATION, nanoseconds};
use crate::plan::Resolved;
use crate::process::{Launch, Output, Started};
use crate::running::Running;
use crate::subjects::sut::Sut;
use std::time::{Duration, Instant};
use tare_formats::{Generator, OTHER};
use tare_model::observation::Observation;
use tare_observe::LoadWatch;

/// A generator that runs longer than this is stopped.
const LONGEST: Duration = Duration::from_secs(3600);
/// One that is watched for less than this is started again, and nothing is found out before it is watched.
const HURRIED_NS: u64 = 1_000_000_000;
/// What is seen in less is the kernel's ticks.
const WINDOW_NS_MIN: u64 = 100_000_000;
/// What a generator should run for, in words of a hint.
const WORTH_WATCHING: &str = "have it load for 3 s or more";

/// Somebody else's generator.
pub(crate) struct Command<'d> {
    drive: &'d Drive<'d>,
    command: &'d str,
    /// Started already, for the first trial.
    first: Option<Started>,
    /// Whether its runs are so short that all of them must be watched.
    in_a_hurry: bool,
}

impl<'d> Command<'d> {
    pub fn new(drive: &'d Drive<'d>, command: &'d str, first: Option<Started>) -> Self {
        Command { drive, command, first, in_a_hurry: false }
    }
}

/// Starts a generator, and has its connections show the SUT.
pub(super) fn shown(
    command: &str,
    resolved: &Resolved,
    sut: &mut Sut,
    running: &mut Running<'_>,
) -> Result<Started, LabError> {
    let cpus = resolved.request.place.load_cpus.clone().unwrap_or_default();
    let mut generator = launch(command, cpus, running)?;
    let connected = set_up(&generator, command, true, "waiting for connections", running)?;
    if generator.has_ended() {
        return Err(too_short(&mut generator, connected));
    }
    connections::show(generator.pid(), sut, running)?;
    Ok(generator)
}

fn launch(command: &str, cpus: Vec<u32>, running: &Running<'_>) -> Result<Started, LabError> {
    let launch = Launch {
        what: "the load generator",
        words: ["sh", "-c", command].map(String::from).to_vec(),
        cpus,
        groups: Vec::new(),
        environment: Vec::new(),
        output: Output::Keep,
    };
    Started::launch(&launch, &running.journal)
}

fn set_up(
    generator: &Started,
    command: &str,
    must_connect: bool,
    phase: &str,
    running: &mut Running<'_>,
) -> Result<bool, LabError> {
    connections::set_up(
        generator.pid(),
        known(command),
        must_connect,
        phase,
        || generator.has_ended(),
        running,
    )
}

/// What is known of the generator that a command line starts, be it through another program.
fn known(command: &str) -> &'static Generator {
    let words = shell_words::split(command).unwrap_or_default();
    let known =
        words.iter().map(|word| tare_formats::generator(word)).find(|known| !known.program.is_empty());
    known.unwrap_or(OTHER)
}

/// The rate that a command line asks its generator for.
fn rate_hz(command: &str) -> Option<f64> {
    known(command).rate_hz(&shell_words::split(command).unwrap_or_default())
}

/// What is wrong with one that has ended before it was watched.
fn too_short(generator: &mut Started, connected: bool) -> LabError {
    let output = generator.output();
    let status = generator.exit_description();
    let what = match (generator.succeeded(), connected) {
        (false, _) => format!("failed: {status} (hint: run its command in a shell)"),
        (true, true) => format!("ended before it could be watched (hint: {WORTH_WATCHING})"),
        (true, false) => {
            format!(
                "ended, and no connection of it to a server was seen (hint: check its address, and {WORTH_WATCHING})"
            )
        }
    };
    LabError::Load { what, last_output: output }
}

/// A generator, and what was seen of it while it loaded the SUT.
struct Watched {
    generator: Started,
    seen: Option<Seen>,
}

struct Seen {
    window_ns: u64,
    observation: Observation,
}

impl Watched {
    fn window_ns(&self) -> u64 {
        self.seen.as_ref().map_or(0, |seen| seen.window_ns)
    }
}

impl Command<'_> {
    /// Has a generator load the SUT until it ends or stops doing so.
    fn watch(
        &mut self,
        stand: &Stand<'_>,
        phase: &str,
        sut: &mut Sut,
        running: &mut Running<'_>,
    ) -> Result<Watched, LabError> {
        let mut generator = match self.first.take() {
            Some(first) => first,
            None => {
                let cpus = self.drive.request.place.load_cpus.clone().unwrap_or_default();
                let generator = launch(self.command, cpus, running)?;
                set_up(&generator, self.command, sut.target.is_none(), phase, running)?;
                generator
            }
        };
        let observers = observe(stand.watch(sut, LoadWatch::Process(vec![generator.pid()])))?;
        if !self.in_a_hurry {
            observers.calibrate_idle(CALIBRATION);
        }
        if generator.has_ended() {
            return Ok(Watched { generator, seen: None });
        }
        let mut connections = Connections::of(generator.pid());
        observers.begin();
        let begun = Instant::now();
        let watched = running.wait_until(LONGEST, phase, || generator.has_ended() || connections.are_gone());
        let window_ns = nanoseconds(begun.elapsed());
        let observation = observers.end();
        observers.stop();
        watched?;
        // What it does when it loads no more, summing up say, is none of the trial.
        running.wait_until(LONGEST.saturating_sub(begun.elapsed()), phase, || generator.has_ended())?;
        if !generator.has_ended() {
            generator.stop();
            let what =
                format!("did not end within {} s (hint: give it a time, as -d20s of wrk)", LONGEST.as_secs());
            return Err(LabError::Load { what, last_output: generator.output() });
        }
        Ok(Watched { generator, seen: Some(Seen { window_ns, observation }) })
    }
}

impl Load for Command<'_> {
    fn drive(
        &mut self,
        stint: &Stint,
        sut: &mut Sut,
        running: &mut Running<'_>,
    ) -> Result<Vec<Driven>, LabError> {
        let Some((index, trial)) = stint.first().copied() else { return Ok(Vec::new()) };
        let Some(level) = self.drive.levels.get(index) else { return Ok(Vec::new()) };
        let stand = self.drive.stand(index as u32, level);
        let phase = stand.phase(trial, &format!("of {}", self.command), running);
        let mut watched = self.watch(&stand, &phase, sut, running)?;
        if watched.window_ns() < HURRIED_NS && !self.in_a_hurry && watched.generator.succeeded() {
            // It ends soon: once more, with nothing found out before.
            self.in_a_hurry = true;
            watched = self.watch(&stand, &phase, sut, running)?;
        }
        sut.check_alive()?;
        let Watched { mut generator, seen } = watched;
        match seen.filter(|seen| seen.window_ns >= WINDOW_NS_MIN && generator.succeeded()) {
            Some(Seen { window_ns, observation }) => {
                let output = generator.output();
                let report = tare_formats::report(known(self.command), &output, &generator.errors());
                let rate_hz = rate_hz(self.command);
                let counted = Counted::Printed { output, window_ns, rate_hz, report: Box::new(report) };
                Ok(vec![Driven { level: stand.index, counted, observation }])
            }
            None => Err(too_short(&mut generator, true)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generator_is_known_by_its_name_wherever_it_stands() {
        assert_eq!(known("redis-benchmark -p 7777 -n 2000000").program, "redis-benchmark");
        assert_eq!(known("taskset -c 1 /usr/bin/wrk -t1 http://127.0.0.1/").program, "wrk");
        assert_eq!(known("./my-load 'redis").program, "");
    }
}
