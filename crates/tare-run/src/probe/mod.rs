//! Probes under states of load: each state once in each round, in an order drawn at random, all probes at once in each.

mod request;
mod servers;
mod state;

pub use request::{ProbeRequest, parse_probe, parse_state, parse_via};

use crate::blocks::shuffle;
use crate::error::LabError;
use crate::process::stop_orphans;
use crate::progress::{Event, Progress};
use servers::{Server, found};
use state::Loaded;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tare_load::probe::{Observed, Prober};
use tare_machine::Root;
use tare_machine::journal::Journal;
use tare_model::probing::{ProbeFailure, ProbeWindow, ProbingRun, StateFailure};
use tare_model::warning::Warning;
use tare_stats::{SplitMix64, median};

/// How soon the user who has had enough is heard, and a load that ended.
const POLL: Duration = Duration::from_millis(20);
/// How often progress is shown.
const SHOW_EVERY: Duration = Duration::from_millis(200);
/// What a round takes beside its windows, for each state: to start it, and to end it.
const STATE_S: f64 = 0.3;

/// Measures. When interrupted, or where a state fails, what was measured is given, and the error beside it.
///
/// # Errors
/// Where nothing could be measured: a probe that is not answered, or a request that cannot be carried out.
pub fn run(
    request: &ProbeRequest,
    state_dir: &Path,
    interrupt: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<(ProbingRun, Result<(), LabError>), LabError> {
    request.check()?;
    for line in crate::recovery::recover(state_dir) {
        progress.show(Event::Notice(line));
    }
    // A daemon that leaves its parent becomes our child, so that it is found and stopped.
    tare_sys::process::become_subreaper().ok();
    let state = |error: tare_machine::journal::JournalError| LabError::State(error.to_string());
    let journal = Journal::create(state_dir, &Root::live()).map_err(state)?;
    let measured = measure(request, &journal, interrupt, progress);
    stop_orphans();
    journal.finish().map_err(state)?;
    measured
}

fn measure(
    request: &ProbeRequest,
    journal: &Journal,
    interrupt: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<(ProbingRun, Result<(), LabError>), LabError> {
    let started_unix_s = tare_sys::time::wall_s();
    let (servers, warnings) = found(request, journal, interrupt)?;
    let run = ProbingRun {
        started_unix_s,
        plan: request.plan,
        probes: servers.iter().map(|server| server.probe.clone()).collect(),
        states: request.states.clone(),
        windows: Vec::new(),
        warnings,
    };
    let plan = request.plan;
    let each_s = plan.settle_s + plan.window_s + STATE_S;
    let total_s = each_s * f64::from(plan.rounds) * request.states.len() as f64;
    progress.show(Event::Expected { total_s });
    let begun = Instant::now();
    let mut session = Probing { request, journal, interrupt, progress, servers, run, begun, shown: begun };
    let mut end = session.rounds();
    let failed = session.run.states.iter().find_map(|state| Some((&state.name, state.failed.as_ref()?)));
    if let (Ok(()), Some((name, failed))) = (&end, failed) {
        let what = format!("of the state '{name}' failed: {}", failed.what);
        end = Err(LabError::Load { what, last_output: failed.last_output.clone() });
    }
    if matches!(end, Err(LabError::Interrupted)) {
        session.run.warnings.push(Warning {
            id: "interrupted".into(),
            text: "it was interrupted: fewer rounds than asked for".into(),
            hint: "let it run to its end, or ask for fewer (--rounds)".into(),
        });
    }
    Ok((session.run, end))
}

struct Probing<'a> {
    request: &'a ProbeRequest,
    journal: &'a Journal,
    interrupt: &'a AtomicBool,
    progress: &'a mut dyn Progress,
    servers: Vec<Server>,
    run: ProbingRun,
    begun: Instant,
    shown: Instant,
}

impl Probing<'_> {
    fn rounds(&mut self) -> Result<(), LabError> {
        let mut random = SplitMix64::new(self.request.plan.seed);
        let mut order: Vec<usize> = (0..self.request.states.len()).collect();
        for round in 0..self.request.plan.rounds {
            let left = self.run.states.iter().filter(|state| state.failed.is_none()).count();
            // What is left can be held against nothing.
            if round > 0 && left < self.run.states.len().min(2) {
                return Ok(());
            }
            shuffle(&mut order, &mut random);
            for state in order.clone() {
                if self.run.states[state].failed.is_some() {
                    continue;
                }
                match self.state(round, state, random.next_u64())? {
                    Ok(windows) => self.run.windows.extend(windows),
                    Err((what, last_output)) => {
                        let name = &self.run.states[state].name;
                        self.progress.show(Event::Notice(format!("the state '{name}' failed: {what}")));
                        self.run.states[state].failed = Some(StateFailure { round, what, last_output });
                    }
                }
            }
        }
        Ok(())
    }

    /// One window of a state. `Ok(Err(…))`: its load failed, and what it printed last.
    #[allow(clippy::type_complexity, reason = "two kinds of ends, each used once")]
    fn state(
        &mut self,
        round: u32,
        state: usize,
        seed: u64,
    ) -> Result<Result<Vec<ProbeWindow>, (String, String)>, LabError> {
        let phase =
            format!("round {}/{}, {}", round + 1, self.request.plan.rounds, self.request.states[state].name);
        self.show(&phase, true);
        let command = self.request.states[state].command.as_deref();
        let mut load = match Loaded::begin(command, &self.request.plan, self.journal) {
            Ok(load) => load,
            Err(LabError::Usage { what, hint }) => {
                return Ok(Err((format!("{what} ({hint})"), String::new())));
            }
            Err(error) => return Err(error),
        };
        let settled = Instant::now() + Duration::from_secs_f64(self.request.plan.settle_s);
        let observed = self.window(settled, seed, &mut load, &phase);
        let ended = load.end();
        // What a shell started and left its group.
        stop_orphans();
        let observed = observed?;
        if let Some(failure) = ended {
            return Ok(Err(failure));
        }
        let windows = observed.into_iter().enumerate();
        Ok(Ok(windows.map(|(probe, observed)| window(round, state, probe, observed)).collect()))
    }

    /// Waits until the load has settled and kept connections are open, and asks all servers at once.
    fn window(
        &mut self,
        settled: Instant,
        seed: u64,
        load: &mut Loaded,
        phase: &str,
    ) -> Result<Vec<Observed>, LabError> {
        let length = Duration::from_secs_f64(self.request.plan.window_s);
        self.at_once(settled, load, phase, |_, prober, _| prober.warm_up())?;
        let begin = settled.max(Instant::now());
        self.at_once(begin + length, load, phase, |at, prober, stop| {
            prober.window(begin, length, seed.wrapping_add(at as u64), stop)
        })
    }

    /// Does something with all servers at once, while the load is watched until an instant at least.
    fn at_once<T: Send>(
        &mut self,
        until: Instant,
        load: &mut Loaded,
        phase: &str,
        act: impl Fn(usize, &mut Prober, &AtomicBool) -> T + Sync,
    ) -> Result<Vec<T>, LabError> {
        let stop = AtomicBool::new(false);
        let mut servers = std::mem::take(&mut self.servers);
        let done = std::thread::scope(|scope| {
            let (stop, act) = (&stop, &act);
            let mut threads = Vec::new();
            for (at, server) in servers.iter_mut().enumerate() {
                let act = move || act(at, &mut server.prober, stop);
                threads.push(std::thread::Builder::new().name("tare-probes".into()).spawn_scoped(scope, act));
            }
            while threads.iter().any(|thread| thread.as_ref().is_ok_and(|thread| !thread.is_finished())) {
                if self.interrupt.load(Ordering::Relaxed) || load.has_ended_early(until) {
                    stop.store(true, Ordering::Relaxed);
                }
                self.show(phase, false);
                std::thread::sleep(POLL);
            }
            threads.into_iter().map(|thread| thread.ok()?.join().ok()).collect::<Option<Vec<T>>>()
        });
        self.servers = servers;
        if self.interrupt.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        done.ok_or_else(|| {
            LabError::Observe(format!("no thread could be started ({})", crate::error::THREADS_HINT))
        })
    }

    fn show(&mut self, phase: &str, at_once: bool) {
        if at_once || self.shown.elapsed() >= SHOW_EVERY {
            self.shown = Instant::now();
            let elapsed_s = self.begun.elapsed().as_secs_f64();
            self.progress.show(Event::Live { elapsed_s, rate_hz: None, phase: phase.to_owned() });
        }
    }
}

fn window(round: u32, state: usize, probe: usize, observed: Observed) -> ProbeWindow {
    let failures = observed.failures.into_iter().map(|(why, count)| ProbeFailure { why, count });
    ProbeWindow {
        round,
        state,
        probe,
        own_lateness_s: median(&observed.own_lateness_s),
        times_s: observed.times_s,
        timed_out: observed.timed_out,
        failures: failures.collect(),
    }
}
