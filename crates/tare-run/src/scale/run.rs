//! Measures the levels: block by block, each launch for itself, in an order drawn at random.

use super::factor::{Factor, Setting};
use super::level::{self, Launches, Measured};
use super::levels::Levels;
use super::pace::Pace;
use super::sweep::{FIRST_RUN, Setup, Sweep, Swept};
use super::warnings::warnings;
use crate::blocks::shuffle;
use crate::error::LabError;
use crate::progress::{Event, Part, Progress};
use crate::request::{LoadRequest, Request};
use crate::running::{Held, Session};
use crate::study::orders;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tare_explain::smt_worth;
use tare_machine::{Root, placement, topology};
use tare_model::Record;
use tare_model::scaling::OrderedCpu;
use tare_model::warning::Warning;
use tare_stats::SplitMix64;

/// Orders of blocks that are drawn; no sweep has more blocks.
const BLOCKS_DRAWN: usize = 1000;
/// A program of which so many runs fit into a launch is not judged by its first run, which may take longer.
const RUNS_SEVERAL: u32 = 3;

/// Measures it. What was measured before a failure or an interruption is kept.
pub fn run(sweep: &Sweep, setup: &Setup, progress: &mut dyn Progress) -> Swept {
    let cpus = placement::growing(&topology::read(&Root::live(), None));
    let pace = Pace { budget: sweep.budget, blocks: sweep.blocks, trial: sweep.trial };
    let mut running = Running {
        sweep,
        setup,
        pace,
        cpus,
        request: sweep.request.clone(),
        seed: sweep.seed.unwrap_or_else(tare_sys::time::monotonic_ns),
        begun: Instant::now(),
        trial: Duration::ZERO,
        all: Vec::new(),
        blocks: 0,
        notes: Vec::new(),
    };
    let end = running.prepare().and_then(|()| running.all(progress));
    running.swept(end)
}

struct Running<'a> {
    sweep: &'a Sweep,
    setup: &'a Setup,
    pace: Pace,
    /// CPUs in the order in which they are added.
    cpus: Vec<OrderedCpu>,
    /// With what has one value.
    request: Request,
    seed: u64,
    begun: Instant,
    trial: Duration,
    /// The levels, ascending.
    all: Vec<Launches>,
    blocks: u32,
    notes: Vec<Warning>,
}

impl Running<'_> {
    /// Judges what was asked for, and sets what has one value.
    fn prepare(&mut self) -> Result<(), LabError> {
        let Sweep { factor, levels, .. } = self.sweep;
        let ends = match levels {
            Levels::List(values) => values.clone(),
            Levels::Range(min, max) => vec![*min, *max],
        };
        factor.check(&ends, &self.request, &self.cpus)?;
        self.request = self.sweep.prepared(&self.cpus)?;
        let most = ends.last().copied().unwrap_or(1.0);
        if *factor == Factor::Cpus {
            self.keep_generator_apart(most as usize);
        }
        self.setup.make_folder()
    }

    /// Where CPUs are varied the generator stays on the same ones at every level: those that the SUT gets at none.
    fn keep_generator_apart(&mut self, most: usize) {
        let Request::Server(server) = &mut self.request else { return };
        if server.place.load_cpus.is_some() || !server.load.is_own() {
            return;
        }
        let mut left: Vec<u32> = self.cpus.iter().skip(most).map(|next| next.cpu).collect();
        left.sort_unstable();
        if left.is_empty() {
            self.notes.push(Warning {
                id: smt_worth::SHARED.to_owned(),
                text: "at the highest level the server may use every CPU, so the load generator shares some of them".to_owned(),
                hint: "vary fewer CPUs, or load it from another host".to_owned(),
            });
        } else {
            server.place.load_cpus = Some(left);
        }
    }

    fn all(&mut self, progress: &mut dyn Progress) -> Result<(), LabError> {
        progress.show(Event::Expected { total_s: self.sweep.budget.as_secs_f64() });
        let is_whole = self.sweep.factor.is_whole();
        let mut random = SplitMix64::new(self.seed);
        let first = self.first(is_whole);
        self.trial = self.pace.trial(first.len());
        self.all = first.iter().map(|n| Launches::new(*n)).collect();
        let mut next: Vec<usize> = (0..self.all.len()).collect();
        shuffle(&mut next, &mut random);
        let mut lengths: Vec<Duration> = Vec::new();
        while !next.is_empty() {
            for at in &next {
                let before = Instant::now();
                self.launch(*at, progress)?;
                lengths.push(before.elapsed());
            }
            next = self.refine(is_whole);
        }
        self.blocks = 1;
        let mut block: Duration = lengths.iter().sum();
        self.foretell(block, progress);
        let mut orders = orders(random.next_u64(), self.all.len(), BLOCKS_DRAWN).into_iter();
        while self.pace.goes_on(self.blocks, self.begun.elapsed(), block) {
            let Some(order) = orders.next() else { break };
            let before = Instant::now();
            for at in order {
                self.launch(at, progress)?;
            }
            block = before.elapsed();
            self.blocks += 1;
        }
        Ok(())
    }

    /// The levels to begin with: of a range of CPUs the number of cores as well, from which on each adds an SMT sibling.
    fn first(&self, is_whole: bool) -> Vec<f64> {
        let mut first = self.sweep.levels.first(is_whole);
        let cores = smt_worth::cores_before_siblings(&self.cpus).map(|cores| cores as f64);
        if let (Factor::Cpus, Levels::Range(min, max), Some(cores)) =
            (self.sweep.factor, &self.sweep.levels, cores)
            && (*min..*max).contains(&cores)
            && !first.contains(&cores)
        {
            first.push(cores);
            first.sort_by(f64::total_cmp);
        }
        first
    }

    /// Adds levels where the curve bends, and says which those are.
    fn refine(&mut self, is_whole: bool) -> Vec<usize> {
        let mean = |launches: &Launches| Some((launches.n, tare_stats::mean(&launches.samples())?));
        let seen: Vec<(f64, f64)> = self.all.iter().filter_map(mean).collect();
        let known = |n: f64, all: &[Launches]| all.iter().any(|launches| launches.n == n);
        let added = self.sweep.levels.next(&seen, is_whole);
        let added: Vec<f64> = added.into_iter().filter(|n| !known(*n, &self.all)).collect();
        self.all.extend(added.iter().map(|n| Launches::new(*n)));
        self.all.sort_by(|one, other| one.n.total_cmp(&other.n));
        (0..self.all.len()).filter(|at| added.contains(&self.all[*at].n)).collect()
    }

    /// Says how long all takes, now that a block is known.
    fn foretell(&self, block: Duration, progress: &mut dyn Progress) {
        let expected = self.pace.expected(self.begun.elapsed(), block);
        progress.show(Event::Expected { total_s: expected.as_secs_f64() });
        if self.sweep.blocks.is_none() && expected > self.sweep.budget {
            progress.show(Event::Notice(format!(
                "3 blocks of {} levels take about {:.0} s, more than the budget of {:.0} s (fewer levels or a shorter program take less)",
                self.all.len(),
                expected.as_secs_f64(),
                self.sweep.budget.as_secs_f64()
            )));
        }
    }

    /// Measures a level once more.
    fn launch(&mut self, at: usize, progress: &mut dyn Progress) -> Result<(), LabError> {
        let runs = self.runs(at);
        let measured = self.measure(at, runs, progress)?;
        // Of the first one it is not known before how long a run takes.
        let several = measured.run_s.map_or(1, |run_s| self.pace.runs(self.all.len(), run_s));
        let is_first = self.all.iter().all(|launches| launches.measured.is_empty());
        let measured = match is_first && several >= RUNS_SEVERAL && measured.outcome.answers.results.is_none()
        {
            true => {
                self.set_aside(at)?;
                self.measure(at, several, progress)?
            }
            false => measured,
        };
        self.all[at].measured.push(measured);
        level::settle_unit(self.all.iter_mut().flat_map(|launches| &mut launches.measured));
        Ok(())
    }

    /// The record of the first launch, which is in no figure, gets another name: the next one has its own.
    fn set_aside(&self, at: usize) -> Result<(), LabError> {
        let Some(folder) = &self.setup.records else { return Ok(()) };
        let (from, to) = (folder.join(self.file_name(at)), folder.join(FIRST_RUN));
        std::fs::rename(&from, to)
            .map_err(|error| LabError::State(format!("cannot rename {}: {error}", from.display())))
    }

    fn file_name(&self, at: usize) -> String {
        let block = self.all[at].measured.len() + 1;
        let name = self.sweep.factor.name().trim_matches(['{', '}']);
        format!("block-{block:04}-{name}-{}.tare", self.all[at].n)
    }

    /// How often a program is run in a launch: by how long a run took at this level, or at the nearest one that is known.
    fn runs(&self, at: usize) -> u32 {
        let run_s = |launches: &Launches| launches.measured.iter().find_map(|launch| launch.run_s);
        let distance = |launches: &Launches| (launches.n / self.all[at].n).ln().abs();
        let known = self.all.iter().filter_map(|launches| Some((distance(launches), run_s(launches)?)));
        let nearest = known.min_by(|one, other| one.0.total_cmp(&other.0));
        nearest.map_or(1, |(_, run_s)| self.pace.runs(self.all.len(), run_s))
    }

    fn measure(&self, at: usize, runs: u32, progress: &mut dyn Progress) -> Result<Measured, LabError> {
        let Setup { session, records } = self.setup;
        if session.interrupt.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        let n = self.all[at].n;
        let factor = self.sweep.factor;
        let block = self.all[at].measured.len() + 1;
        progress.show(Event::Step(format!("block {block}: {} {n}", factor.name())));
        let record = records.as_ref().map(|folder| folder.join(self.file_name(at)));
        let session = Session { record, ..session.clone() };
        let mut request = Setting { factor, value: n }.of(&self.request, &self.cpus);
        match &mut request {
            Request::Server(server) if !matches!(server.load, LoadRequest::Start(_)) => {
                server.trials.length = Some(self.trial);
            }
            Request::Server(_) => {}
            Request::Program(program) => program.runs.count = Some(runs),
        }
        let mut part = Part { within: progress, begun: self.begun };
        let held = crate::session::measure(request, &session, &mut part);
        self.read(n, held)
    }

    fn read(&self, n: f64, held: Held) -> Result<Measured, LabError> {
        let Held { record, end } = held;
        end.map_err(|error| {
            error.of(&format!("at {} {n}", self.sweep.factor.name()), "try its command by hand")
        })?;
        let record = record.ok_or_else(|| LabError::Observe("a launch left no record".to_owned()))?;
        let outcome = tare_explain::explain(&record);
        let figure = self.sweep.metering.figure(&outcome, n)?;
        let run_s = outcome.answers.commands.first().map(|command| command.gross.value);
        Ok(Measured { cpus_there: self.cpus_there(&record), outcome, figure, run_s, other_unit: None })
    }

    fn cpus_there(&self, record: &Record) -> usize {
        match record.plan.sut_cpus.len() {
            0 => self.cpus.len(),
            held => held,
        }
    }

    fn swept(mut self, end: Result<(), LabError>) -> Swept {
        self.all.retain(|launches| !launches.measured.is_empty());
        let levels = level::levels(&self.all);
        let mut warnings = warnings(&self.all, &levels, self.blocks);
        warnings.append(&mut self.notes);
        let cpu_order = match self.sweep.factor {
            Factor::Cpus => self.cpus,
            _ => Vec::new(),
        };
        Swept {
            levels,
            cpu_order,
            instances: Vec::new(),
            fairness: Vec::new(),
            blocks: self.blocks,
            seed: self.seed,
            warnings,
            end,
        }
    }
}
