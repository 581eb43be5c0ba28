//! A sitting with a server: levels of load, trials within each, observers beside them.

use crate::error::LabError;
use crate::fit;
use crate::generate::load_failed;
use crate::identity;
use crate::load;
use crate::process::{Launch, Output, Started};
use crate::progress::{Event, Progress};
use crate::request::{HttpRequest, LoadRequest, SutRequest};
use crate::resolve;
use crate::sitting::{Held, Running, Sitting};
use crate::sut::{self, Sut};
use std::time::{Duration, Instant};
use tare_load::{Gaps, Generator, LoadSpec, Pacing, Stage};
use tare_machine::journal::{Journal, Pinned, pin_tasks};
use tare_machine::placement::{self, Placement, Wanted};
use tare_machine::{Root, cgroup, procs};
use tare_observe::{LoadWatch, Observers, Watch};
use tare_record::plan::{self, HttpWorkload, Level, Plan, Purpose, Transport, Workload};
use tare_record::topology::Topology;
use tare_record::trial::{HttpSample, Measure, Trial};

/// Samples per second of the series.
const SAMPLE_HZ: f64 = 20.0;
/// Finding what an idle period costs under the level's own load, before each of its trials and at the end of the warm-up: it
/// changes with the weather of a virtual machine, and only several seconds together tell it well enough.
const CALIBRATION: Duration = Duration::from_millis(500);
/// Before a course of rates: the observers start and idle periods are found out meanwhile.
const LEAD_IN: Duration = Duration::from_secs(1);
/// How long a foreign generator may take to open its connections; its books begin afterwards.
const FOREIGN_SETTLE: Duration = Duration::from_millis(400);
/// More generator threads than this are used only when asked for.
const LOAD_THREADS_MAX: u32 = 8;
/// A foreign generator that runs longer than this is stopped.
const FOREIGN_MAX: Duration = Duration::from_secs(3600);

/// Weighs a server. Trials that were finished are kept whatever the end.
pub fn weigh(request: HttpRequest, sitting: &Sitting, progress: &mut dyn Progress) -> Held {
    let mut running = match Running::begin(sitting, progress) {
        Ok(running) => running,
        Err(error) => return Held { record: None, end: Err(error) },
    };
    let end = hold(&request, &mut running);
    running.end(end)
}

fn hold(request: &HttpRequest, running: &mut Running<'_>) -> Result<(), LabError> {
    let facts = running.facts.clone();
    let target = resolve::target(request)?;
    request.traffic.validate().map_err(|error| LabError::usage(error.to_string(), ""))?;
    resolve::check_threads(request)?;
    resolve::check_unix_socket(request)?;
    resolve::check_cpus("--sut-cpus", request.sut_cpus.as_deref(), &facts)?;
    resolve::check_cpus("--load-cpus", request.load_cpus.as_deref(), &facts)?;

    let topology = running.topology.clone();
    let mut sut = open_sut(request, target, &topology, running)?;
    let placement = place(request, &sut, &topology)?;
    for note in &placement.notes {
        running.progress.show(Event::Notice(note.clone()));
    }
    // Kept until the end: dropping it puts an attached SUT back on the CPUs it came with.
    let journal = running.journal.clone();
    let pinned = pin(request, &sut, &journal)?;
    let levels = resolve::levels(request, sut.transport == Transport::Loopback);
    let programs = identity::of_server(&sut, &request.load);
    running.open_record(plan(request, &sut, &placement, levels.clone()), programs)?;
    running.progress.show(Event::Expected { total_s: levels.iter().map(level_s).sum() });
    running.progress.show(Event::Step(format!("weighing {}", sut.name())));
    for (index, level) in levels.iter().enumerate() {
        let drive = Drive { request, placement: &placement, index: index as u32, level };
        match (&request.load, level.purpose) {
            (LoadRequest::Start(command), Purpose::Asked) => drive.foreign(command, &mut sut, running)?,
            (LoadRequest::Pid(pid), Purpose::Asked) => drive.attached(*pid, &mut sut, running)?,
            _ => drive.own(&mut sut, running)?,
        }
    }
    drop(pinned);
    sut.stop();
    Ok(())
}

fn open_sut(
    request: &HttpRequest,
    target: Option<tare_load::Target>,
    topology: &Topology,
    running: &mut Running<'_>,
) -> Result<Sut, LabError> {
    match (&request.sut, target) {
        (SutRequest::Embedded, _) | (_, None) => {
            let place = choose(request, topology, &[], 1)?;
            running.progress.show(Event::Step("starting the built-in server".into()));
            sut::embedded(&request.embedded_program, &place.sut_cpus, &running.journal, running.interrupt)
        }
        (SutRequest::Start(command), Some(target)) => {
            running.progress.show(Event::Step(format!("starting {command}")));
            let cpus = started_on(request, topology)?;
            let load = request.traffic.aimed_at(target);
            let environment = match request.fit_runtime {
                true => fit::environment(&cpus, topology, running.progress),
                false => Vec::new(),
            };
            sut::start(command, &load, &cpus, environment, &running.journal, running.interrupt)
        }
        (SutRequest::Pid(pid), Some(target)) => sut::attach(*pid, &request.traffic.aimed_at(target)),
        (SutRequest::Find, Some(target)) => {
            let sut = sut::find(&request.traffic.aimed_at(target))?;
            if let plan::Sut::Unseen { why } = &sut.kind {
                running.notice(
                    "sut-unseen",
                    why,
                    "the books hold the generator's side only; --sut-pid names the server's process",
                )?;
            }
            Ok(sut)
        }
    }
}

fn request_threads(request: &HttpRequest) -> Option<u32> {
    match request.load {
        LoadRequest::Own { threads } => threads,
        LoadRequest::Start(_) | LoadRequest::Pid(_) => None,
    }
}

/// The CPUs that a program of the user's is started on; none: wherever it wants to.
fn started_on(request: &HttpRequest, topology: &Topology) -> Result<Vec<u32>, LabError> {
    match (&request.sut_cpus, request.placement) {
        (Some(given), _) => Ok(given.clone()),
        (None, None) => Ok(Vec::new()),
        (None, Some(_)) => {
            let cores = topology.cores.value().or(topology.threads.value()).copied().unwrap_or(1);
            choose(request, topology, &[], (cores / 2).max(1)).map(|place| place.sut_cpus)
        }
    }
}

fn place(request: &HttpRequest, sut: &Sut, topology: &Topology) -> Result<Placement, LabError> {
    let tids = tids(sut);
    let mut allowed: Vec<u32> =
        tids.iter().flat_map(|tid| tare_sys::affinity::get(*tid).unwrap_or_default()).collect();
    allowed.sort_unstable();
    allowed.dedup();
    choose(request, topology, &allowed, tids.len() as u32)
}

fn choose(
    request: &HttpRequest,
    topology: &Topology,
    allowed: &[u32],
    threads: u32,
) -> Result<Placement, LabError> {
    let wanted = Wanted {
        sut_allowed: allowed,
        sut_threads: threads,
        load_threads: request_threads(request).unwrap_or_else(|| load_threads(topology)),
        given_sut: request.sut_cpus.as_deref().unwrap_or_default(),
        given_load: request.load_cpus.as_deref().unwrap_or_default(),
        policy: request.placement.unwrap_or_default(),
        // What tare starts is in tare's own group.
        quota_cpus: cgroup::quota_cpus(&Root::live(), std::process::id()),
    };
    placement::choose(topology, &wanted).map_err(|error| LabError::usage(error.to_string(), ""))
}

/// Generator threads unless told otherwise: half of the machine's cores, so that the other half can serve.
fn load_threads(topology: &Topology) -> u32 {
    (topology.cpus.len() as u32 / 2).clamp(1, LOAD_THREADS_MAX)
}

fn tids(sut: &Sut) -> Vec<u32> {
    sut.pids.iter().flat_map(|pid| procs::tasks_of(&Root::live(), *pid)).collect()
}

/// Pins an attached SUT where that was asked for; one that tare starts is born on its CPUs.
fn pin<'j>(request: &HttpRequest, sut: &Sut, journal: &'j Journal) -> Result<Option<Pinned<'j>>, LabError> {
    let (Some(cpus), plan::Sut::Attached { .. }) = (&request.sut_cpus, &sut.kind) else { return Ok(None) };
    pin_tasks(journal, &Root::live(), &tids(sut), cpus)
        .map(Some)
        .map_err(|error| LabError::usage(format!("cannot pin the SUT: {error}"), "leave out --sut-cpus"))
}

fn plan(request: &HttpRequest, sut: &Sut, placement: &Placement, levels: Vec<Level>) -> Plan {
    let generator = match &request.load {
        LoadRequest::Own { .. } => plan::Generator::Own { threads: threads(request, placement) },
        LoadRequest::Start(command) => plan::Generator::Started { command: command.clone() },
        LoadRequest::Pid(pid) => plan::Generator::Attached { pid: *pid },
    };
    Plan {
        argv: request.argv.clone(),
        started_unix_s: tare_sys::time::wall_s(),
        workload: Workload::Http(HttpWorkload {
            url: sut.target.to_string(),
            sut: sut.kind.clone(),
            generator,
            transport: sut.transport,
            levels,
        }),
        sut_cpus: match (&sut.kind, &request.sut_cpus) {
            (_, Some(cpus)) => cpus.clone(),
            (plan::Sut::Embedded, None) => placement.sut_cpus.clone(),
            _ => Vec::new(),
        },
        load_cpus: match &request.load {
            LoadRequest::Own { .. } => placement.load_cpus.clone(),
            _ => request.load_cpus.clone().unwrap_or_default(),
        },
        ref_clock_hz: request.ref_clock_hz,
    }
}

fn threads(request: &HttpRequest, placement: &Placement) -> u32 {
    request_threads(request).unwrap_or(placement.load_cpus.len().max(1) as u32)
}

fn level_s(level: &Level) -> f64 {
    let trial_s = level.trial_ns as f64 / 1e9 + calibration(level).as_secs_f64();
    level.warmup_ns as f64 / 1e9 + f64::from(level.trials) * trial_s
}

/// A saturated CPU is hardly ever idle: less is enough.
fn calibration(level: &Level) -> Duration {
    match level.purpose {
        Purpose::Asked => CALIBRATION,
        Purpose::Saturating => CALIBRATION / 2,
    }
}

/// One level and what it takes to drive it.
struct Drive<'a> {
    request: &'a HttpRequest,
    placement: &'a Placement,
    index: u32,
    level: &'a Level,
}

impl Drive<'_> {
    fn watch(&self, sut: &Sut, load: LoadWatch) -> Watch {
        Watch {
            sut_pids: sut.pids.clone(),
            load,
            sut_cpus: self.placement.sut_cpus.clone(),
            load_cpus: self.placement.load_cpus.clone(),
            observer_cpus: self.placement.observer_cpus.clone(),
            sample_hz: SAMPLE_HZ,
            clock: true,
        }
    }

    /// Our own generator.
    fn own(&self, sut: &mut Sut, running: &mut Running<'_>) -> Result<(), LabError> {
        match (&self.request.traffic.pacing, self.level.purpose) {
            (Pacing::Stages { stages, gaps }, Purpose::Asked) => self.courses(stages, *gaps, sut, running),
            (pacing, Purpose::Asked) => self.steady(pacing.clone(), sut, running),
            (_, Purpose::Saturating) => self.steady(Pacing::Closed, sut, running),
        }
    }

    fn spec(&self, pacing: Pacing, sut: &Sut) -> LoadSpec {
        LoadSpec {
            connections: self.level.connections,
            threads: threads(self.request, self.placement).min(self.level.connections),
            cpus: self.placement.load_cpus.clone(),
            pacing,
            pipeline: self.level.pipeline,
            ..self.request.traffic.aimed_at(sut.target.clone())
        }
    }

    /// One start, then the trials back to back on the same connections.
    fn steady(&self, pacing: Pacing, sut: &mut Sut, running: &mut Running<'_>) -> Result<(), LabError> {
        let mut generator = Generator::start(&self.spec(pacing, sut)).map_err(load_failed)?;
        let observers = observe(self.watch(sut, LoadWatch::Threads(generator.thread_ids())))?;
        let mut answered = 0;
        let warmup = Duration::from_nanos(self.level.warmup_ns);
        let looked_at = (warmup / 2).min(CALIBRATION);
        let rate = |seconds| Some(live_rate(&generator, seconds, &mut answered));
        running.wait(warmup - looked_at, "warm-up", rate)?;
        observers.calibrate_idle(looked_at);
        for trial in 0..self.level.trials {
            observers.calibrate_idle(calibration(self.level));
            self.trial(trial, &mut generator, &observers, sut, running)?;
        }
        observers.stop();
        generator.stop().map_err(load_failed)
    }

    /// A rate that changes: each trial is the whole course, after a lead-in at the rate that it begins with, so that
    /// trials are alike.
    fn courses(
        &self,
        stages: &[Stage],
        gaps: Gaps,
        sut: &mut Sut,
        running: &mut Running<'_>,
    ) -> Result<(), LabError> {
        for trial in 0..self.level.trials {
            let warmup = Duration::from_nanos(if trial == 0 { self.level.warmup_ns } else { 0 });
            let lead_in = LEAD_IN + warmup;
            let begin_hz = stages.first().map_or(0.0, |first| first.from_hz);
            let before = Stage { from_hz: begin_hz, to_hz: begin_hz, for_ns: resolve::nanoseconds(lead_in) };
            let stages = std::iter::once(before).chain(stages.iter().copied()).collect();
            let spec = self.spec(Pacing::Stages { stages, gaps }, sut);
            let mut generator = Generator::start(&spec).map_err(load_failed)?;
            let begun = Instant::now();
            let observers = observe(self.watch(sut, LoadWatch::Threads(generator.thread_ids())))?;
            observers.calibrate_idle(CALIBRATION);
            running.wait(lead_in.saturating_sub(begun.elapsed()), "warm-up", |_| None)?;
            self.trial(trial, &mut generator, &observers, sut, running)?;
            observers.stop();
            generator.stop().map_err(load_failed)?;
        }
        Ok(())
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
        let level = self.level;
        let phase = format!("trial {}/{} at {} connections", trial + 1, level.trials, level.connections);
        // The requests are counted inside the observers' window: their look at everybody else on the machine,
        // which takes milliseconds before the window opens and after it has closed, is in no rate.
        observers.begin();
        generator.cut();
        let mut answered = generator.live().answers;
        running.wait(Duration::from_nanos(level.trial_ns), &phase, |seconds| {
            Some(live_rate(generator, seconds, &mut answered))
        })?;
        let sample = generator.cut();
        let observation = observers.end();
        sut.check_alive()?;
        self.keep(sample, observation, running)
    }

    /// Somebody else's generator, started anew for each trial: that is how it is used without us.
    fn foreign(&self, command: &str, sut: &mut Sut, running: &mut Running<'_>) -> Result<(), LabError> {
        for trial in 0..self.level.trials {
            let words = ["sh", "-c", command].map(String::from).to_vec();
            let cpus = self.request.load_cpus.clone().unwrap_or_default();
            let launch = Launch {
                what: "the load generator",
                words,
                cpus,
                environment: Vec::new(),
                output: Output::Keep,
            };
            let mut generator = Started::launch(&launch, &running.journal)?;
            let phase = format!("trial {}/{} of {command}", trial + 1, self.level.trials);
            let observers = observe(self.watch(sut, LoadWatch::Process(vec![generator.pid()])))?;
            running.wait_until(FOREIGN_SETTLE, &phase, || generator.has_ended())?;
            observers.calibrate_idle(CALIBRATION);
            observers.begin();
            let begun = Instant::now();
            let finished = running.wait_until(FOREIGN_MAX, &phase, || generator.has_ended());
            let window_ns = resolve::nanoseconds(begun.elapsed());
            let observation = observers.end();
            observers.stop();
            finished?;
            sut.check_alive()?;
            if !generator.has_ended() {
                generator.stop();
                let what = format!("did not end within {} s", FOREIGN_MAX.as_secs());
                return Err(LabError::Load { what, last_output: generator.output() });
            }
            let sample = load::summary(&mut generator, window_ns)?;
            self.keep(sample, observation, running)?;
        }
        Ok(())
    }

    /// Somebody else's generator that runs already: its requests cannot be counted.
    fn attached(&self, pid: u32, sut: &mut Sut, running: &mut Running<'_>) -> Result<(), LabError> {
        let observers = observe(self.watch(sut, LoadWatch::Process(vec![pid])))?;
        for trial in 0..self.level.trials {
            let phase = format!("trial {}/{} of pid {pid}", trial + 1, self.level.trials);
            observers.calibrate_idle(CALIBRATION);
            observers.begin();
            running.wait(Duration::from_nanos(self.level.trial_ns), &phase, |_| None)?;
            let observation = observers.end();
            sut.check_alive()?;
            let why = "the generator was started by somebody else; only it knows its requests";
            self.keep(load::uncounted(observation.wall_ns(), why), observation, running)?;
        }
        observers.stop();
        Ok(())
    }

    fn keep(
        &self,
        sample: HttpSample,
        observation: tare_record::observation::Observation,
        running: &mut Running<'_>,
    ) -> Result<(), LabError> {
        let value =
            sample.requests.value().map(|count| *count as f64 * 1e9 / sample.elapsed_ns.max(1) as f64);
        let seq = running.next_seq();
        running.keep(Trial { seq, level: self.index, sample: Measure::Http(sample), observation })?;
        running.progress.show(Event::TrialDone { seq, value, unit: "req/s" });
        Ok(())
    }
}

/// The rate since the last look.
fn live_rate(generator: &Generator, seconds: f64, answered: &mut u64) -> f64 {
    let before = std::mem::replace(answered, generator.live().answers);
    answered.saturating_sub(before) as f64 / seconds
}

fn observe(watch: Watch) -> Result<Observers, LabError> {
    Observers::start(watch, &Root::live()).map_err(|error| LabError::Observe(error.to_string()))
}
