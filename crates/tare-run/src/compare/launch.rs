//! One launch: every program afresh and the first one twice, all loaded interleaved within the same window.

use super::alone::{self, Allowance};
use super::breaks::{BREAK, Server, arm, counts, cut, of, wait_for};
use super::interference::HostWatch;
use super::length::{self, Length};
use super::pace::Pace;
use super::request::{CONNECTIONS_EACH_CPU, EMBEDDED, PORT, Request};
use super::slices::{slice_at, slices_in};
use super::taken::{self, Taken};
use super::warmth::Warmth;
use crate::blocks::shuffle;
use crate::error::LabError;
use crate::generate::load_failed;
use crate::levels::nanoseconds;
use crate::loads::drive::start;
use crate::loads::interleaved::slowest_median;
use crate::place;
use crate::ports::free_ports;
use crate::process::stop_orphans;
use crate::request::Warmup;
use crate::running::Running;
use crate::subjects::started::{self, With};
use crate::subjects::sut::Sut;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use tare_load::{Generator, Interleaving, LoadSpec, Pacing, Slices, Target, Workers};
use tare_machine::placement::Placement;
use tare_machine::probes::speed::LOOK_NS;
use tare_model::comparison::{Arm, Figure, Interference, Launch, LaunchWarmUp};
use tare_model::topology::Topology;
use tare_stats::SplitMix64;
use tare_sys::time::monotonic_ns;

/// Counted load in a launch until it is known better.
const WINDOW: Duration = Duration::from_millis(600);
/// Rounds without a break: what disturbs a slice disturbs few rounds, and breaks take little of the time.
const SLICE: Duration = Duration::from_millis(200);
/// Until a generator has opened its connections, about.
const OPENING: Duration = Duration::from_millis(4);
/// Of the budget, this part at most is for the load before a launch is counted: two launches fit into it.
const WARMUP_PART: f64 = 0.3;
/// Where that load is long, so much of it is counted then, in so many windows.
const COUNTED_OF_WARMUP: f64 = 0.35;
const WINDOWS: u64 = 4;
/// Servers are warm already when the length of turns changes.
const WARM_AGAIN: Duration = Duration::from_millis(400);
/// What is the same in every launch.
pub(super) struct Stage<'a> {
    request: &'a Request,
    /// The load to make, but for where it goes and when.
    traffic: LoadSpec,
    placement: &'a Placement,
    may_poll: bool,
    seed: u64,
    pace: Pace,
    length: Length,
    allowance: Allowance,
    /// What each program is started with; empty: nothing but ours.
    with: Vec<With>,
}

/// Load before a launch is counted.
struct Loaded {
    /// The last slice of it.
    last: u64,
    length: Duration,
    warmth: Warmth,
}

/// What came of arms that were up together.
pub(super) struct Measured {
    pub arms: Vec<Arm>,
    pub turn_ns: u64,
    pub interference: Interference,
    pub warm_up: Option<LaunchWarmUp>,
    /// The effect in each half, while the best length is learnt.
    halves: Option<[f64; 2]>,
}

/// What came of a window.
struct Counted {
    arms: Vec<Arm>,
    /// The effect in each half, while the best length is learnt.
    halves: Option<[f64; 2]>,
    /// CPU time of a request of each arm, window by window.
    windows_s: Vec<Vec<f64>>,
    interference: Interference,
}

impl<'a> Stage<'a> {
    pub fn new(request: &'a Request, placement: &'a Placement, topology: &Topology, seed: u64) -> Stage<'a> {
        let may_poll = place::has_cores_of_its_own(placement, topology);
        let length = Length::new(request.window, WINDOW);
        let cpus = placement.sut_cpus.len().max(1) as u32;
        let connections = request.connections.unwrap_or(CONNECTIONS_EACH_CPU * cpus);
        let traffic = LoadSpec { connections, ..request.traffic.clone() };
        Stage {
            request,
            traffic,
            placement,
            may_poll,
            seed,
            pace: Pace::default(),
            length,
            allowance: Allowance::default(),
            with: Vec::new(),
        }
    }

    /// One whose servers are up one after another: nothing is learnt from them beside each other.
    pub fn apart(mut self) -> Stage<'a> {
        self.length = Length::new(Some(self.length.window()), WINDOW);
        self.pace = Pace::apart();
        self
    }

    /// Whether later launches may take longer than those so far.
    pub fn is_learning(&self) -> bool {
        self.length.is_learning()
    }

    /// Length of a turn.
    pub fn turn(&self) -> Duration {
        self.pace.turn().length
    }

    /// Launch number `seq` of a comparison that began at `since`.
    pub fn launch(
        &mut self,
        seq: usize,
        since: Instant,
        phase: &str,
        running: &mut Running<'_>,
    ) -> Result<Launch, LabError> {
        let begin_s = since.elapsed().as_secs_f64();
        let all: Vec<usize> = (0..arms(self.request.programs.len()).len()).collect();
        let measured = self.measured(&all, self.seed_of(seq), (since, phase), running, &mut |_, _| ())?;
        let took_s = since.elapsed().as_secs_f64() - begin_s;
        let left_s = self.request.budget.as_secs_f64() - begin_s - took_s;
        self.length.learn(measured.halves, took_s, left_s);
        let Measured { turn_ns, arms, interference, warm_up, .. } = measured;
        Ok(Launch { begin_s, took_s, turn_ns, arms, interference, disturbed: Vec::new(), warm_up })
    }

    /// Seed of a launch.
    pub fn seed_of(&self, seq: usize) -> u64 {
        self.seed ^ (seq as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    /// Puts servers and generators elsewhere from the next start on.
    pub fn stand_on(&mut self, placement: &'a Placement, topology: &Topology) {
        self.placement = placement;
        self.may_poll = place::has_cores_of_its_own(placement, topology);
    }

    /// What each program is started with.
    pub fn with(&mut self, with: Vec<With>) {
        self.with = with;
    }

    /// Starts these arms, loads them interleaved until they are warm and then for a window that is counted, and stops them. `look` gets
    /// each arm and its processes before they end.
    pub fn measured(
        &mut self,
        which: &[usize],
        seed: u64,
        (since, phase): (Instant, &str),
        running: &mut Running<'_>,
        look: &mut dyn FnMut(usize, &[u32]),
    ) -> Result<Measured, LabError> {
        running.check_interrupt()?;
        running.live(phase, None);
        let mut servers = self.servers(which, seed, running)?;
        let pids = servers.iter().filter_map(|server| server.sut.pids.first().copied());
        self.pace.quota_of_some(taken::period_of_some(pids, self.placement.sut_cpus.len()));
        let (mut turns, mut generators) = self.load(&mut servers, seed, running.interrupt)?;
        let mut loaded = self.warm_up(&turns, &mut servers, &generators, phase, running)?;
        if self.pace.learn(slowest_median(generators.iter_mut())) {
            stop(generators)?;
            (turns, generators) = self.load(&mut servers, seed, running.interrupt)?;
            loaded.last = self.wait_slices(&turns, WARM_AGAIN, &mut servers, &generators, phase, running)?;
            self.pace.learn_anew(slowest_median(generators.iter_mut()));
        }
        let Counted { mut arms, halves, windows_s, interference } =
            self.window(&turns, &loaded, &mut servers, &mut generators, phase, running)?;
        stop(generators)?;
        which.iter().zip(&servers).for_each(|(arm, server)| look(*arm, &server.sut.pids));
        let compiles = loaded.warmth.compiles();
        self.alone(&mut arms, compiles, &mut servers, since, phase, running)?;
        let more = |arm: &Arm| Some(arm.figures.get(&Figure::CpuPerRequest)? / arm.alone_s?);
        self.pace.learn_costs(&arms.iter().filter_map(more).collect::<Vec<_>>());
        let warm_up =
            self.request.warmup.map(|_| loaded.warmth.kept(loaded.length.as_secs_f64(), &windows_s));
        arms.iter_mut().zip(windows_s).for_each(|(arm, windows_s)| arm.windows_s = windows_s);
        // All are asked before the first is waited for.
        servers.iter().for_each(|server| server.sut.ask_to_end());
        servers.iter_mut().for_each(|server| server.sut.stop());
        // Whoever turned into a daemon is in no group of ours, and would stand beside the next launch.
        stop_orphans();
        Ok(Measured { arms, turn_ns: turns.turn_ns, interference, warm_up, halves })
    }

    /// Starts all servers, in an order drawn at random, and waits until they answer.
    fn servers(&self, which: &[usize], seed: u64, running: &Running<'_>) -> Result<Vec<Server>, LabError> {
        let arms = arms(self.request.programs.len());
        let ports = free_ports(which.len())?;
        let mut starting = Vec::with_capacity(which.len());
        for at in order(which.len(), seed) {
            let (arm, program) = (which[at], arms[which[at]]);
            let asked = &self.request.programs[program];
            let name = name(program, arm, &asked.command);
            let command = self.command(&asked.command, ports[at]);
            let (cpus, limit) = (&self.placement.sut_cpus, self.request.start_timeout);
            let with = self.with.get(program).cloned().unwrap_or_default();
            let sut = started::launch(&command, cpus, with, limit, &running.journal).map_err(of(&name))?;
            starting.push((at, name, target(&asked.url, ports[at])?, sut));
        }
        let pids: Vec<u32> = starting.iter().map(|(.., sut)| sut.pid()).collect();
        let mut servers = Vec::with_capacity(arms.len());
        for (at, name, target, sut) in starting {
            let load = self.traffic.aimed_at(target);
            let others: Vec<u32> = pids.iter().copied().filter(|pid| *pid != sut.pid()).collect();
            let sut = sut.answered(&load, &others, running.interrupt).map_err(of(&name))?;
            servers.push((at, Server { sut, name }));
        }
        servers.sort_by_key(|(at, _)| *at);
        Ok(servers.into_iter().map(|(_, server)| server).collect())
    }

    fn command(&self, command: &str, port: u16) -> String {
        if command != EMBEDDED {
            return command.replace(PORT, &port.to_string());
        }
        let program = self.request.embedded_program.display().to_string();
        let threads = self.placement.sut_cpus.len().max(1);
        format!("exec {} serve --listen 127.0.0.1:{port} --threads {threads}", shell_words::quote(&program))
    }

    /// A generator for each server.
    fn load(
        &self,
        servers: &mut [Server],
        seed: u64,
        interrupt: &AtomicBool,
    ) -> Result<(Interleaving, Vec<Generator>), LabError> {
        let generators = servers.len() as u32;
        let turn = self.pace.turn();
        let round = turn.length * generators;
        // Whole pairs of rounds, each the mirror of the other.
        let pairs = (SLICE.as_secs_f64() / (2.0 * round.as_secs_f64())).round().max(1.0) as u32;
        let turns = Interleaving {
            begin_ns: monotonic_ns() + nanoseconds(OPENING * generators),
            turn_ns: nanoseconds(turn.length),
            rest_ns: nanoseconds(turn.rest),
            arms: generators,
            place: 0,
            seed,
            slices: Some(Slices { rounds: 2 * pairs, break_ns: nanoseconds(BREAK) }),
        };
        let mut generators = Vec::with_capacity(servers.len());
        for at in order(servers.len(), !seed) {
            let Server { sut, name } = &mut servers[at];
            let spec = self.spec(sut, Pacing::Interleaved(Interleaving { place: at as u32, ..turns }));
            generators.push((at, start(&spec, sut, interrupt).map_err(of(name))?));
        }
        generators.sort_by_key(|(at, _)| *at);
        Ok((turns, generators.into_iter().map(|(_, generator)| generator).collect()))
    }

    fn spec(&self, sut: &Sut, pacing: Pacing) -> LoadSpec {
        let (traffic, cpus) = (&self.traffic, &self.placement.load_cpus);
        let spec = sut.aim(traffic);
        LoadSpec {
            pacing,
            workers: Workers {
                threads: self.request.threads.unwrap_or(cpus.len().max(1) as u32).min(traffic.connections),
                cpus: cpus.clone(),
                busy_poll: traffic.workers.busy_poll || self.may_poll,
                ..spec.workers
            },
            ..spec
        }
    }

    /// Slices that are not counted, until all servers are warm.
    fn warm_up(
        &self,
        turns: &Interleaving,
        servers: &mut [Server],
        generators: &[Generator],
        phase: &str,
        running: &mut Running<'_>,
    ) -> Result<Loaded, LabError> {
        let asked = self.request.warmup.unwrap_or(Warmup::Fixed(Duration::ZERO));
        let within = self.request.budget.mul_f64(WARMUP_PART);
        let begun = Instant::now();
        let mut last = self.wait_slices(turns, asked.at_least(), servers, generators, phase, running)?;
        let own_ns = turns.slices.map_or(0, |slices| u64::from(slices.rounds)) * turns.turn_ns;
        servers.iter_mut().for_each(|server| server.sut.meet_children());
        let mut warmth =
            Warmth::new(servers.iter().map(|server| server.sut.pids.clone()), own_ns as f64 / 1e9);
        let may_be_longer = |elapsed: Duration| match asked {
            Warmup::Fixed(_) => false,
            Warmup::UntilSteady { at_most, .. } | Warmup::UntilCompiled { at_most, .. } => {
                elapsed < at_most.min(within)
            }
        };
        warmth.add(counts(servers, generators));
        while !warmth.is_over() && may_be_longer(begun.elapsed()) {
            last = slice_at(turns, monotonic_ns()).max(last + 1);
            wait_for(turns.slice_ns(last).1, servers, generators, phase, running)?;
            warmth.add(counts(servers, generators));
        }
        Ok(Loaded { last, length: begun.elapsed(), warmth })
    }

    /// So much load; which slice was the last.
    fn wait_slices(
        &self,
        turns: &Interleaving,
        length: Duration,
        servers: &mut [Server],
        generators: &[Generator],
        phase: &str,
        running: &mut Running<'_>,
    ) -> Result<u64, LabError> {
        // Where connections took long to open, the first slices are over already.
        let last = slice_at(turns, monotonic_ns()) + slices_in(turns, length) - 1;
        wait_for(turns.slice_ns(last).1, servers, generators, phase, running)?;
        Ok(last)
    }

    /// Servers alone, as far as there is time for it: of those that take long to get warm all, of others one now and then.
    fn alone(
        &mut self,
        arms: &mut [Arm],
        compiles: bool,
        servers: &mut [Server],
        since: Instant,
        phase: &str,
        running: &mut Running<'_>,
    ) -> Result<(), LabError> {
        let share = if compiles { alone::LONG } else { alone::SHORT };
        let phase = format!("{phase}, alone");
        for _ in 1..servers.len() {
            let elapsed_s = since.elapsed().as_secs_f64();
            let Some(at) = self.allowance.arm(elapsed_s, share, servers.len()) else { break };
            let Server { sut, name } = &mut servers[at];
            let spec = self.spec(sut, Pacing::Closed);
            arms[at].alone_s = alone::cost_s(sut, &spec, share.length, &phase, running).map_err(of(name))?;
        }
        Ok(())
    }

    /// The slices that are counted, behind `before`.
    fn window(
        &self,
        turns: &Interleaving,
        loaded: &Loaded,
        servers: &mut [Server],
        generators: &mut [Generator],
        phase: &str,
        running: &mut Running<'_>,
    ) -> Result<Counted, LabError> {
        servers.iter_mut().for_each(|server| server.sut.meet_children());
        let (before, opened) = cut(turns, loaded.last, servers, generators, phase, running)?;
        // Behind the cut, which has little time: what a server waits meanwhile is little of a window.
        let taken: Vec<Taken> = servers.iter().map(|server| Taken::read(&server.sut.pids)).collect();
        let mut watch_of_host = HostWatch::begin(&self.placement.sut_cpus);
        let compiles = loaded.warmth.compiles();
        let slices = slices_in(turns, self.counted(loaded));
        let (half, last) = (before + slices / 2, before + slices);
        let mut seen = vec![counts(servers, generators)];
        let mut windows = seen.clone();
        for slice in before + 1..=last {
            // In the break before it, where that is not nearly over.
            if monotonic_ns() + LOOK_NS < turns.slice_ns(slice).0 {
                watch_of_host.probe();
            }
            wait_for(turns.slice_ns(slice).1, servers, generators, phase, running)?;
            if slice == last || slice == half && self.length.is_learning() {
                seen.push(counts(servers, generators));
            }
            if compiles && (slice - before) * WINDOWS / slices > (slice - before - 1) * WINDOWS / slices {
                windows.push(counts(servers, generators));
            }
        }
        let (last, closed) = cut(turns, last, servers, generators, phase, running)?;
        let interference = watch_of_host.until_now();
        let cpus = self.placement.sut_cpus.len();
        let lost = taken.iter().zip(&*servers).map(|(taken, server)| taken.until_now(&server.sut.pids, cpus));
        let rounds = turns.slices.map_or(0, |slices| u64::from(slices.rounds)) * (last - before);
        let own_ns = rounds * (turns.turn_ns - turns.rest_ns);
        let arms = opened.iter().zip(closed).zip(lost);
        let arms = arms.map(|((before, after), lost)| arm(own_ns, before, after, lost)).collect();
        let windows_s = length::costs_s(&windows);
        Ok(Counted { arms, halves: length::effect(&seen), windows_s, interference })
    }

    /// How long is counted: a longer load before it is worth longer windows.
    fn counted(&self, loaded: &Loaded) -> Duration {
        match self.request.window {
            None if loaded.warmth.compiles() => {
                self.length.window().max(loaded.length.mul_f64(COUNTED_OF_WARMUP))
            }
            _ => self.length.window(),
        }
    }
}

/// Which program each arm is: the first once more as the second.
pub(super) fn arms(programs: usize) -> Vec<usize> {
    [0].into_iter().chain(0..programs).collect()
}

/// `A ('./server …')`, `A once more`.
pub(super) fn name(program: usize, arm: usize, command: &str) -> String {
    let letter = char::from(b'A' + program as u8);
    let again = if arm == 1 { " (once more)" } else { "" };
    format!("{letter}{again} '{command}'")
}

/// All of `count`, in an order of `seed`.
pub(super) fn order(count: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    shuffle(&mut order, &mut SplitMix64::new(seed));
    order
}

/// Where a program answers.
pub(super) fn target(url: &str, port: u16) -> Result<Target, LabError> {
    Target::parse(&url.replace(PORT, &port.to_string())).map_err(|error| {
        LabError::usage(error.to_string(), "write http://127.0.0.1:{port}/path, or the path alone")
    })
}

fn stop(generators: Vec<Generator>) -> Result<(), LabError> {
    generators.iter().for_each(Generator::end);
    generators.into_iter().try_for_each(|generator| generator.stop().map_err(load_failed))
}
