//! What every load on a server needs: what is driven and how, the load of a level, and who watches.

use crate::error::LabError;
use crate::generate::load_failed;
use crate::levels::{SETTLE_NEW, level_s};
use crate::request::ServerRequest;
use crate::running::Running;
use crate::subjects::sut::Sut;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use tare_load::{Generator, LoadError, LoadSpec, Pacing, Workers};
use tare_machine::Root;
use tare_machine::placement::Placement;
use tare_model::plan::{Level, Purpose};
use tare_observe::{LoadWatch, Observers, Watch};

/// A SUT that no longer answers may take this long to be gone.
const DYING: Duration = Duration::from_millis(500);
/// Samples per second of the series.
const SAMPLE_HZ: f64 = 100.0;

/// What is driven, and how.
pub(crate) struct Drive<'a> {
    pub request: &'a ServerRequest,
    pub placement: &'a Placement,
    /// Threads of our own generator.
    pub threads: u32,
    pub levels: &'a [Level],
    /// The load for call stacks alone, after all levels.
    pub profile: Option<&'a Level>,
    /// Seed of the order within the blocks.
    pub seed: u64,
    /// Whether the generator may poll all the time without taking a core from a server. What a server costs depends on how often it
    /// has to wake its generator: where that sleeps, the ratio of two servers varies four times as much.
    pub may_poll: bool,
}

impl Drive<'_> {
    /// How long all of it takes, about, and at most where it ends by what is known.
    pub fn expected_s(&self) -> f64 {
        if let Some(stopping) = &self.request.trials.stopping {
            return stopping.budget_s + self.profile_s();
        }
        // Levels interleaved share their trials.
        let length = |level: &Level| level_s(level, self.levels.len() > 1) / f64::from(level.arms.max(1));
        self.levels.iter().map(length).sum::<f64>() + self.profile_s()
    }

    fn profile_s(&self) -> f64 {
        self.profile.map_or(0.0, |level| level_s(level, false) + SETTLE_NEW.as_secs_f64())
    }

    pub(crate) fn stand<'d>(&'d self, index: u32, level: &'d Level) -> Stand<'d> {
        Stand { drive: self, index, level }
    }

    pub(crate) fn watch(&self, sut: &Sut, load: LoadWatch) -> Watch {
        Watch {
            sut_pids: sut.pids.clone(),
            server_port: sut.port,
            load,
            sut_cpus: self.placement.sut_cpus.clone(),
            load_cpus: self.placement.load_cpus.clone(),
            observer_cpus: self.placement.observer_cpus.clone(),
            beside_pids: Vec::new(),
            sample_hz: SAMPLE_HZ,
            clock: true,
            // Everywhere alike: what sampling costs is then in no difference between levels.
            stacks: self.request.watch.stacks,
            stacks_alone: false,
            trace: self.request.watch.trace,
        }
    }
}

/// One level and what it takes to drive it.
pub(crate) struct Stand<'a> {
    pub(super) drive: &'a Drive<'a>,
    pub(super) index: u32,
    pub(crate) level: &'a Level,
}

impl Stand<'_> {
    pub(super) fn watch(&self, sut: &Sut, load: LoadWatch) -> Watch {
        self.drive.watch(sut, load)
    }

    pub(crate) fn spec(&self, pacing: Pacing, sut: &Sut) -> LoadSpec {
        let traffic = &self.drive.request.traffic;
        let spec = match self.level.purpose {
            // What the reference answers costs the same whatever the SUT is asked for.
            Purpose::Reference => {
                LoadSpec { timeout_ns: traffic.timeout_ns, ..LoadSpec::new(sut.aim(traffic).route.target) }
            }
            Purpose::Asked | Purpose::Saturating | Purpose::Profile => sut.aim(traffic),
        };
        let cpus = self.drive.placement.load_cpus.len().max(1) as u32;
        let threads = match self.level.purpose {
            Purpose::Asked | Purpose::Profile => self.drive.threads,
            // Threads that share a CPU sleep, and who wakes them pays for it.
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

    pub(super) fn phase(&self, trial: u32, how: &str, running: &Running<'_>) -> String {
        let what = match self.level.purpose {
            Purpose::Asked => "trial",
            Purpose::Saturating => "saturating trial",
            Purpose::Reference => "reference",
            Purpose::Profile => "call stacks",
        };
        let how = match &self.level.stage {
            Some(stage) if stage.is_ramp() => format!("at {:.0} to {:.0}/s", stage.from_hz, stage.to_hz),
            Some(stage) => format!("at {:.0}/s", stage.to_hz),
            None => how.to_owned(),
        };
        format!("{what} {} {how}{}", running.nth(trial, self.level), running.known())
    }
}

pub(super) fn sample_idle(observers: &Observers, duration: Duration) {
    // Even no time at all is one sample, of a quarter of a second.
    if !duration.is_zero() {
        observers.calibrate_idle(duration);
    }
}

/// The rate since it was last read.
pub(crate) fn live_rate(generator: &Generator, seconds: f64, answered: &mut u64) -> f64 {
    let before = std::mem::replace(answered, generator.live().answers);
    answered.saturating_sub(before) as f64 / seconds
}

pub(crate) fn observe(watch: Watch) -> Result<Observers, LabError> {
    Observers::start(watch, &Root::live()).map_err(|error| LabError::Observe(error.to_string()))
}

/// Starts our generator, unless the user has had enough meanwhile. Where that fails because the SUT has just died, this is the error.
pub(crate) fn start(spec: &LoadSpec, sut: &mut Sut, interrupt: &AtomicBool) -> Result<Generator, LabError> {
    let error = match Generator::start_unless(spec, interrupt) {
        Ok(generator) => return Ok(generator),
        Err(LoadError::Interrupted) => return Err(LabError::Interrupted),
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use tare_load::Target;

    /// A server that takes connections and never answers TLS: without an interrupt, opening them takes seconds.
    #[test]
    fn whoever_has_had_enough_waits_for_no_connection() {
        let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = silent.local_addr().expect("its address");
        let target = Target::parse(&format!("https://{address}/")).expect("a URL");
        let ended = start(&LoadSpec::new(target), &mut Sut::of_runs(), &AtomicBool::new(true));
        assert!(matches!(ended, Err(LabError::Interrupted)), "{ended:?}");
    }
}
