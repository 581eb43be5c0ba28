//! Load on a server, trial by trial, with observers beside it.
//!
//! One level alone is driven on the same connections from its first trial to its last. Several are driven in blocks,
//! one trial of each in an order drawn at random, so that the machine's interference meets all of them alike; then each
//! trial opens connections of its own. The SUT and the reference server are loaded interleaved of a few milliseconds within the
//! same trial.

use crate::blocks::{self, Stint};
use crate::error::LabError;
use crate::generate::load_failed;
use crate::meters::tool;
use crate::plan;
use crate::process::{Launch, Output, Started};
use crate::progress::Event;
use crate::request::{HttpRequest, LoadRequest};
use crate::running::Running;
use crate::subjects::server::Sut;
use std::time::{Duration, Instant};
use tare_load::{Gaps, Generator, LoadSpec, Pacing, Stage, Workers};
use tare_machine::Root;
use tare_machine::placement::Placement;
use tare_model::plan::{Level, Purpose};
use tare_model::trial::{HttpSample, Measure, Trial};
use tare_observe::{LoadWatch, Observers, Watch};

/// A SUT that no longer answers may take this long to be gone.
const DYING: Duration = Duration::from_millis(500);
/// Samples per second of the series.
const SAMPLE_HZ: f64 = 100.0;
/// Finding what an idle period costs under the level's own load, before each of its trials and at the end of the warm-up: it
/// changes with the interference of a virtual machine, and only several seconds together tell it well enough.
const CALIBRATION: Duration = Duration::from_millis(500);
/// One look at that; a saturated CPU is hardly ever idle, so that it is enough there.
const CALIBRATION_MIN: Duration = Duration::from_millis(250);
/// Load on new connections before a trial, where there was a warm-up before.
pub(crate) const SETTLE: Duration = Duration::from_millis(100);
/// Before a course of rates: the observers start and idle periods are found out meanwhile.
const LEAD_IN: Duration = Duration::from_secs(1);
/// How long a foreign generator may take to open its connections; its accounting begin afterwards.
const FOREIGN_SETTLE: Duration = Duration::from_millis(400);
/// A foreign generator that runs longer than this is stopped.
const FOREIGN_MAX: Duration = Duration::from_secs(3600);

/// What is driven, and how.
pub(crate) struct Drive<'a> {
    pub request: &'a HttpRequest,
    pub placement: &'a Placement,
    /// Threads of our own generator.
    pub threads: u32,
    pub levels: &'a [Level],
    /// Seed of the order within the blocks.
    pub seed: u64,
    /// Whether the generator may poll all the time without taking a core from a server. What a server costs depends on how often it
    /// has to wake its generator: where that sleeps, the ratio of two servers varies four times as much.
    pub may_poll: bool,
}

impl Drive<'_> {
    /// How long all of it takes, about, and at most where it ends by what is known.
    pub fn expected_s(&self) -> f64 {
        if let Some(stopping) = &self.request.stopping {
            return stopping.budget_s;
        }
        // Levels interleaved share their trials.
        let length = |level: &Level| level_s(level, self.levels.len() > 1) / f64::from(level.arms.max(1));
        self.levels.iter().map(length).sum()
    }

    /// Drives all levels. `reference` answers where a level's purpose is that.
    pub fn all(
        &self,
        sut: &mut Sut,
        mut reference: Option<Sut>,
        running: &mut Running<'_>,
    ) -> Result<(), LabError> {
        running.warm_up = self.warm_up(sut, running)?;
        if let [level] = self.levels {
            return self.stand(0, level).alone(sut, running);
        }
        for block in blocks::blocks(self.seed, self.levels) {
            for stint in block {
                self.stint(&stint, sut, &mut reference, running)?;
            }
            if running.is_enough(0) {
                break;
            }
        }
        if let Some(mut reference) = reference {
            reference.stop();
        }
        Ok(())
    }

    fn stint(
        &self,
        stint: &Stint,
        sut: &mut Sut,
        reference: &mut Option<Sut>,
        running: &mut Running<'_>,
    ) -> Result<(), LabError> {
        match (&stint[..], reference) {
            ([(index, trial)], _) => {
                let Some(level) = self.levels.get(*index) else { return Ok(()) };
                self.stand(*index as u32, level).one(*trial, sut, running)
            }
            (_, Some(reference)) => self.interleaved(stint, sut, reference, running),
            (_, None) => Err(LabError::Observe("levels interleaved, and nobody to take turns with".into())),
        }
    }

    pub(crate) fn stand<'d>(&'d self, index: u32, level: &'d Level) -> Stand<'d> {
        Stand { drive: self, index, level }
    }

    pub(crate) fn watch(&self, sut: &Sut, load: LoadWatch) -> Watch {
        Watch {
            sut_pids: sut.pids.clone(),
            server_port: Some(sut.target.port()),
            load,
            sut_cpus: self.placement.sut_cpus.clone(),
            load_cpus: self.placement.load_cpus.clone(),
            observer_cpus: self.placement.observer_cpus.clone(),
            beside_pids: Vec::new(),
            sample_hz: SAMPLE_HZ,
            clock: true,
            // Everywhere alike: what sampling costs is then in no difference between levels.
            stacks: self.request.stacks,
            trace: self.request.trace,
        }
    }
}

fn level_s(level: &Level, in_blocks: bool) -> f64 {
    level.warmup_ns as f64 / 1e9 + f64::from(level.trials) * trial_s(level, in_blocks)
}

/// How long a trial takes, with what is found out before it.
pub(crate) fn trial_s(level: &Level, in_blocks: bool) -> f64 {
    let settle = if in_blocks { SETTLE } else { Duration::ZERO };
    level.trial_ns as f64 / 1e9 + (calibration(level) + settle).as_secs_f64()
}

fn calibration(level: &Level) -> Duration {
    match level.purpose {
        Purpose::Asked => (Duration::from_nanos(level.trial_ns) / 2).clamp(CALIBRATION_MIN, CALIBRATION),
        // Only its cost per request is of use, which has no idle periods in it.
        _ if level.arms > 1 => Duration::ZERO,
        Purpose::Saturating | Purpose::Reference => CALIBRATION_MIN,
    }
}

/// One level and what it takes to drive it.
pub(crate) struct Stand<'a> {
    drive: &'a Drive<'a>,
    index: u32,
    pub(crate) level: &'a Level,
}

impl Stand<'_> {
    fn watch(&self, sut: &Sut, load: LoadWatch) -> Watch {
        self.drive.watch(sut, load)
    }

    /// All trials, with no other level between them.
    fn alone(&self, sut: &mut Sut, running: &mut Running<'_>) -> Result<(), LabError> {
        match (&self.drive.request.load, &self.drive.request.traffic.pacing) {
            (LoadRequest::Pid(pid), _) => self.attached(*pid, sut, running),
            (LoadRequest::Own { .. }, Pacing::Closed | Pacing::Thinking { .. } | Pacing::Open { .. }) => {
                self.steady(0..self.level.trials, sut, running)
            }
            _ => {
                for trial in 0..self.level.trials {
                    self.one(trial, sut, running)?;
                    if running.is_enough(0) {
                        break;
                    }
                }
                Ok(())
            }
        }
    }

    /// One trial from its beginning.
    fn one(&self, trial: u32, sut: &mut Sut, running: &mut Running<'_>) -> Result<(), LabError> {
        let request = self.drive.request;
        match (&request.load, &request.traffic.pacing, self.level.purpose) {
            (LoadRequest::Start(command), _, Purpose::Asked) => self.foreign(trial, command, sut, running),
            (_, Pacing::Stages { stages, gaps }, Purpose::Asked) => {
                self.timeline(trial, stages, *gaps, sut, running)
            }
            _ => self.steady(trial..trial + 1, sut, running),
        }
    }

    pub(crate) fn spec(&self, pacing: Pacing, sut: &Sut) -> LoadSpec {
        let traffic = &self.drive.request.traffic;
        let spec = match self.level.purpose {
            // What the reference answers costs the same whatever the SUT is asked for.
            Purpose::Reference => {
                LoadSpec { timeout_ns: traffic.timeout_ns, ..LoadSpec::new(sut.target.clone()) }
            }
            Purpose::Asked | Purpose::Saturating => traffic.aimed_at(sut.target.clone()),
        };
        let cpus = self.drive.placement.load_cpus.len().max(1) as u32;
        let threads = match self.level.purpose {
            Purpose::Asked => self.drive.threads,
            // Threads that take turns on a CPU sleep, and who wakes them pays for it.
            Purpose::Saturating | Purpose::Reference => self.drive.threads.min(cpus),
        };
        LoadSpec {
            connections: self.level.connections,
            workers: Workers {
                threads: threads.min(self.level.connections),
                cpus: self.drive.placement.load_cpus.clone(),
                ..spec.workers
            },
            pacing,
            pipeline: self.level.pipeline,
            ..spec
        }
    }

    /// One start of our own generator, then the trials back to back on the same connections.
    fn steady(
        &self,
        trials: std::ops::Range<u32>,
        sut: &mut Sut,
        running: &mut Running<'_>,
    ) -> Result<(), LabError> {
        let pacing = match self.level.purpose {
            Purpose::Asked => self.drive.request.traffic.pacing.clone(),
            Purpose::Saturating | Purpose::Reference => Pacing::Closed,
        };
        let mut generator = start(&self.spec(pacing, sut), sut)?;
        let observers = observe(self.watch(sut, LoadWatch::Threads(generator.thread_ids())))?;
        let mut answered = 0;
        let is_cold = self.drive.request.warmup.at_most().is_zero();
        let first = trials.start == 0;
        // Who wants it cold gets no more load than the look at idle periods takes.
        if !(first && is_cold) {
            let rate = |seconds| Some(live_rate(&generator, seconds, &mut answered));
            running.wait(SETTLE, "warm-up", rate)?;
        }
        // The first trial has none before it whose looks are near.
        if first && !is_cold {
            look_at_idle(&observers, calibration(self.level));
        }
        let last = trials.end.saturating_sub(1);
        for trial in trials {
            look_at_idle(&observers, calibration(self.level));
            self.trial(trial, &mut generator, &observers, sut, running)?;
            // A trial of a block is the last of its range: what is enough is asked when the block is over.
            if trial < last && running.is_enough(0) {
                break;
            }
        }
        observers.stop();
        generator.stop().map_err(load_failed)
    }

    /// A rate that changes: each trial is the whole course, after a lead-in at the rate that it begins with, so that
    /// trials are alike.
    fn timeline(
        &self,
        trial: u32,
        stages: &[Stage],
        gaps: Gaps,
        sut: &mut Sut,
        running: &mut Running<'_>,
    ) -> Result<(), LabError> {
        let warmup = Duration::from_nanos(if trial == 0 { self.level.warmup_ns } else { 0 });
        let lead_in = LEAD_IN + warmup;
        let begin_hz = stages.first().map_or(0.0, |first| first.from_hz);
        let before = Stage { from_hz: begin_hz, to_hz: begin_hz, for_ns: plan::nanoseconds(lead_in) };
        let stages = std::iter::once(before).chain(stages.iter().copied()).collect();
        let spec = self.spec(Pacing::Stages { stages, gaps }, sut);
        let mut generator = start(&spec, sut)?;
        let begun = Instant::now();
        let observers = observe(self.watch(sut, LoadWatch::Threads(generator.thread_ids())))?;
        observers.calibrate_idle(CALIBRATION);
        running.wait(lead_in.saturating_sub(begun.elapsed()), "warm-up", |_| None)?;
        self.trial(trial, &mut generator, &observers, sut, running)?;
        observers.stop();
        generator.stop().map_err(load_failed)
    }

    fn phase(&self, trial: u32, how: &str, running: &Running<'_>) -> String {
        let what = match self.level.purpose {
            Purpose::Asked => "trial",
            Purpose::Saturating => "saturating trial",
            Purpose::Reference => "reference",
        };
        format!("{what} {} {how}{}", running.nth(trial, self.level), running.known())
    }

    /// Counts and watches for the length of a trial.
    fn trial(
        &self,
        trial: u32,
        generator: &mut Generator,
        observers: &Observers,
        sut: &mut Sut,
        running: &mut Running<'_>,
    ) -> Result<(), LabError> {
        let phase = self.phase(trial, &format!("at {} connections", self.level.connections), running);
        // The requests are counted inside the observers' window: their look at everybody else on the machine,
        // which takes milliseconds before the window opens and after it has closed, is in no rate.
        observers.begin();
        generator.cut();
        let mut answered = generator.live().answers;
        running.wait(Duration::from_nanos(self.level.trial_ns), &phase, |seconds| {
            Some(live_rate(generator, seconds, &mut answered))
        })?;
        let sample = generator.cut();
        let observation = observers.end();
        sut.check_alive()?;
        self.keep(sample, observation, running)
    }

    /// Somebody else's generator, started anew for each trial: that is how it is used without us.
    fn foreign(
        &self,
        trial: u32,
        command: &str,
        sut: &mut Sut,
        running: &mut Running<'_>,
    ) -> Result<(), LabError> {
        let words = ["sh", "-c", command].map(String::from).to_vec();
        let cpus = self.drive.request.load_cpus.clone().unwrap_or_default();
        let launch = Launch {
            what: "the load generator",
            words,
            cpus,
            groups: Vec::new(),
            environment: Vec::new(),
            output: Output::Keep,
        };
        let mut generator = Started::launch(&launch, &running.journal)?;
        let phase = self.phase(trial, &format!("of {command}"), running);
        let observers = observe(self.watch(sut, LoadWatch::Process(vec![generator.pid()])))?;
        running.wait_until(FOREIGN_SETTLE, &phase, || generator.has_ended())?;
        observers.calibrate_idle(CALIBRATION);
        observers.begin();
        let begun = Instant::now();
        let finished = running.wait_until(FOREIGN_MAX, &phase, || generator.has_ended());
        let window_ns = plan::nanoseconds(begun.elapsed());
        let observation = observers.end();
        observers.stop();
        finished?;
        sut.check_alive()?;
        if !generator.has_ended() {
            generator.stop();
            let what = format!("did not end within {} s", FOREIGN_MAX.as_secs());
            return Err(LabError::Load { what, last_output: generator.output() });
        }
        let sample = tool::summary(&mut generator, window_ns)?;
        self.keep(sample, observation, running)
    }

    /// Somebody else's generator that runs already: its requests cannot be counted.
    fn attached(&self, pid: u32, sut: &mut Sut, running: &mut Running<'_>) -> Result<(), LabError> {
        let observers = observe(self.watch(sut, LoadWatch::Process(vec![pid])))?;
        for trial in 0..self.level.trials {
            let phase = self.phase(trial, &format!("of pid {pid}"), running);
            observers.calibrate_idle(CALIBRATION);
            observers.begin();
            running.wait(Duration::from_nanos(self.level.trial_ns), &phase, |_| None)?;
            let observation = observers.end();
            sut.check_alive()?;
            let why = "the generator was started by somebody else; only it knows its requests";
            self.keep(tool::uncounted(observation.wall_ns(), why), observation, running)?;
        }
        observers.stop();
        Ok(())
    }

    pub(crate) fn keep(
        &self,
        mut sample: HttpSample,
        observation: tare_model::observation::Observation,
        running: &mut Running<'_>,
    ) -> Result<(), LabError> {
        let value =
            sample.requests.value().map(|count| *count as f64 * 1e9 / sample.elapsed_ns.max(1) as f64);
        if let Some(detail) = sample.detail.as_mut().filter(|_| self.level.purpose == Purpose::Asked) {
            detail.warm_up = running.warm_up.take();
        }
        let seq = running.next_seq();
        running.keep(Trial { seq, level: self.index, sample: Measure::Http(sample), observation })?;
        running.progress.show(Event::TrialDone { seq, value, unit: "req/s" });
        Ok(())
    }
}

fn look_at_idle(observers: &Observers, duration: Duration) {
    // Even no time at all is one look, of a quarter of a second.
    if !duration.is_zero() {
        observers.calibrate_idle(duration);
    }
}

/// The rate since the last look.
pub(crate) fn live_rate(generator: &Generator, seconds: f64, answered: &mut u64) -> f64 {
    let before = std::mem::replace(answered, generator.live().answers);
    answered.saturating_sub(before) as f64 / seconds
}

pub(crate) fn observe(watch: Watch) -> Result<Observers, LabError> {
    Observers::start(watch, &Root::live()).map_err(|error| LabError::Observe(error.to_string()))
}

/// Starts our generator. Where that fails because the SUT has just died, this is what is told.
pub(crate) fn start(spec: &LoadSpec, sut: &mut Sut) -> Result<Generator, LabError> {
    let error = match Generator::start(spec) {
        Ok(generator) => return Ok(generator),
        Err(error) => error,
    };
    // Who dies stops answering first.
    let end = Instant::now() + DYING;
    while Instant::now() < end {
        sut.check_alive()?;
        std::thread::sleep(DYING / 50);
    }
    Err(load_failed(error))
}
