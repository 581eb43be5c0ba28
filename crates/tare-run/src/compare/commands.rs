//! Commands interleaved: a launch is runs of all of them, of the first as of two, in an order drawn at random and then in its mirror,
//! until its window is over. What changes evenly meanwhile changes all of them alike.

use super::interference::HostWatch;
use super::judge::judge;
use super::launch::{arms, name, order};
use super::printed::Printed;
use super::request::Compared;
use super::steps::{Step, check_count, check_file, empty, go_on, in_session};
use crate::error::LabError;
use crate::plan;
use crate::process::Output;
use crate::progress::{Event, Progress};
use crate::running::{Running, Session};
use crate::subjects::program::{find_program, words_of};
use crate::timed::{Input, Runner, Timed};
use crate::treatment::{self, Around, Sampler, Seen, Switch, Treatment};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use tare_formats::{Choice, NoMatch};
use tare_model::comparison::{Arm, Comparison, Figure, Launch, Program};
use tare_model::tool::ToolMetrics;
use tare_sys::process::Confinement;
use tare_sys::time::monotonic_ns;

/// Rounds of a launch, however short the commands are.
const ROUNDS_MAX: u64 = 10_000;

/// What is to be compared, parsed but not judged.
#[derive(Debug, Clone)]
pub struct CommandsRequest {
    /// The command line, for the result.
    pub argv: Vec<String>,
    /// Command lines, run without a shell; the first is what the others are held against.
    pub commands: Vec<String>,
    /// How long it may take.
    pub budget: Duration,
    /// How narrow the intervals of both times, and of all metrics that are printed, must be to end before that, as a share.
    pub precision: f64,
    /// Differences up to this share do not matter.
    pub margin: f64,
    /// Seed of the orders; `None`: another one each time.
    pub seed: Option<u64>,
    /// A launch goes on for so long at least.
    pub window: Duration,
    /// CPUs to hold the commands on; `None`: wherever they want to be.
    pub sut_cpus: Option<Vec<u32>>,
    /// Which of the results are compared that they print.
    pub choice: Choice,
    /// Whether there is nothing to do where they print none.
    pub needs_results: bool,
    /// What each is run with; empty: nothing but as it is.
    pub treatments: Vec<Treatment>,
}

/// Compares commands; see [`super::compare`] for what is kept.
pub fn compare_commands(
    request: &CommandsRequest,
    session: &Session,
    progress: &mut dyn Progress,
) -> Compared {
    in_session(session, progress, |running, comparison| carry_out(request, running, comparison))
}

fn carry_out(
    request: &CommandsRequest,
    running: &mut Running<'_>,
    kept: &mut Option<Comparison>,
) -> Result<(), LabError> {
    if request.commands.len() < 2 {
        return Err(LabError::usage("there is nothing to compare with", "give a second --command"));
    }
    check_count(request.commands.len())?;
    let words = request.commands.iter().map(|line| words_of(line)).collect::<Result<Vec<_>, _>>()?;
    words.iter().filter_map(|words| words.first()).try_for_each(|program| find_program(program).map(drop))?;
    check_file(running)?;
    plan::check_cpus("--sut-cpus", request.sut_cpus.as_deref(), &running.facts)?;
    let switch = Switch::new(&request.treatments, running)?;
    let seed = request.seed.unwrap_or_else(monotonic_ns);
    let mut bench = Bench {
        request,
        words,
        seed,
        places: places(request, &switch, running)?,
        switch,
        runner: Runner::new()?,
        are_read: Cell::new(true),
        warned: RefCell::default(),
    };
    running
        .journal
        .will_start(&request.commands.join("; "))
        .map_err(|error| LabError::State(error.to_string()))?;
    let treatments = treatment::begun(&request.treatments);
    let comparison = kept.insert(Comparison { treatments, ..nothing_yet(request, seed) });
    if let Err(error) = bench.rehearse(comparison, running) {
        // What the kernel did not do is a result; nothing else was started.
        judge(comparison);
        return if bench.switch.refused().is_some() { Ok(()) } else { Err(error) };
    }
    go_on(comparison, running, |seq, begun, phase, running| {
        Ok(Step { launch: bench.launch(seq, begun, phase, running)?, turn: Duration::ZERO, alike: seq + 1 })
    })
}

fn nothing_yet(request: &CommandsRequest, seed: u64) -> Comparison {
    let program = |(command, name): (&String, char)| Program {
        name: name.to_string(),
        command: command.clone(),
        url: None,
    };
    Comparison {
        argv: request.argv.clone(),
        budget_s: request.budget.as_secs_f64(),
        precision: request.precision,
        margin: request.margin,
        sut_cpus: request.sut_cpus.clone().unwrap_or_default(),
        ..empty(request.commands.iter().zip('A'..).map(program).collect(), seed)
    }
}

/// The CPUs that each is held on; none: wherever it wants to be.
fn places(
    request: &CommandsRequest,
    switch: &Switch,
    running: &Running<'_>,
) -> Result<Vec<Vec<u32>>, LabError> {
    let given = request.sut_cpus.as_deref();
    let count = request.commands.len();
    let around = Around { sut: given, load: None, load_threads: 0 };
    let placed = switch.places(count, around, &running.topology)?;
    Ok(match placed {
        Some(placed) => placed.into_iter().map(|placed| placed.sut_cpus).collect(),
        None => vec![given.unwrap_or_default().to_vec(); count],
    })
}

/// What is the same in every launch.
struct Bench<'a> {
    request: &'a CommandsRequest,
    /// Of each command.
    words: Vec<Vec<String>>,
    seed: u64,
    /// CPUs of each command.
    places: Vec<Vec<u32>>,
    switch: Switch,
    runner: Runner,
    /// Whether what they print is read; if nobody prints results it goes nowhere.
    are_read: Cell<bool>,
    /// What was said of how a tool's results are to be read.
    warned: RefCell<BTreeSet<String>>,
}

/// A run that is over.
struct Ran {
    wall_ns: u64,
    cpu_ns: u64,
    results: Option<ToolMetrics>,
}

/// The runs of an arm.
#[derive(Debug, Default)]
struct Runs {
    count: u64,
    wall_ns: u64,
    cpu_ns: u64,
    printed: Printed,
}

impl Runs {
    fn add(&mut self, ran: Ran) {
        self.count += 1;
        self.wall_ns += ran.wall_ns;
        self.cpu_ns += ran.cpu_ns;
        self.printed.add(ran.results);
    }

    fn arm(self) -> Arm {
        let of_one = |ns: u64| ns as f64 / 1e9 / self.count.max(1) as f64;
        let figures = [(Figure::Time, of_one(self.wall_ns)), (Figure::CpuTime, of_one(self.cpu_ns))];
        Arm {
            own_ns: self.wall_ns,
            answers: self.count,
            errors: 0,
            cpu_ns: Some(self.cpu_ns),
            waited_ns: None,
            throttled_ns: None,
            quota_cpus: None,
            modes: None,
            figures: BTreeMap::from_iter(figures.into_iter().filter(|(_, value)| *value > 0.0)),
            windows_s: Vec::new(),
            alone_s: None,
            benchmarks: self.printed.values(self.count),
        }
    }
}

impl Bench<'_> {
    /// Finds out what can be applied, before anything is started; runs all once, and keeps what each has in use.
    fn rehearse(&mut self, comparison: &mut Comparison, running: &mut Running<'_>) -> Result<(), LabError> {
        let mut seen = self.switch.unseen(self.words.len());
        let done = self.switch.rehearse().and_then(|()| self.warm_up(&mut seen, running));
        if done.is_err() && self.switch.refused().is_none() {
            return done;
        }
        for program in 0..self.words.len() {
            let standing = self.switch.on(program).ok();
            treatment::fill(&mut comparison.treatments, program, (&self.switch, standing.as_ref()), &seen);
        }
        done
    }

    /// What they read is in the caches then, one that fails does so at once, and it is known whether they print results.
    fn warm_up(&mut self, seen: &mut [Seen], running: &mut Running<'_>) -> Result<(), LabError> {
        running.live("warm-up", None);
        let mut prints = false;
        for (arm, program) in arms(self.words.len()).into_iter().enumerate() {
            let results = self.run(program, arm, Some(&mut seen[program]), running)?.results;
            if arm == 0 {
                self.switch.fit(&seen[0])?;
                self.switch.rehearse()?;
            }
            let Some(mut results) = results else { continue };
            prints = true;
            let of = name(program, arm, &self.request.commands[program]);
            let none = |none: NoMatch| LabError::usage(format!("{of}: {}", none.why), none.hint);
            self.request.choice.keep(&mut results).map_err(none)?;
        }
        self.are_read.set(prints);
        if !prints && self.request.needs_results {
            return Err(LabError::usage(
                "the commands print no results of a benchmark",
                "leave out --benchmark, --metric and --fail-if-worse; 'tare help formats' lists the tools whose results are read",
            ));
        }
        Ok(())
    }

    fn launch(
        &self,
        seq: usize,
        since: Instant,
        phase: &str,
        running: &mut Running<'_>,
    ) -> Result<Launch, LabError> {
        let begin_s = since.elapsed().as_secs_f64();
        running.live(phase, None);
        let arms = arms(self.words.len());
        let mut runs: Vec<Runs> = arms.iter().map(|_| Runs::default()).collect();
        let all: Vec<u32> = running.facts.cpus.iter().map(|cpu| cpu.cpu).collect();
        let mut watch_of_host = HostWatch::begin(self.request.sut_cpus.as_deref().unwrap_or(&all));
        watch_of_host.probe();
        let begun = Instant::now();
        for pair in 0..ROUNDS_MAX / 2 {
            let seed = self.seed ^ (seq as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (pair << 48);
            let there = order(arms.len(), seed);
            for &at in there.iter().chain(there.iter().rev()) {
                let mut ran = self.run(arms[at], at, None, running)?;
                ran.results = ran.results.and_then(|results| self.chosen(results, running));
                runs[at].add(ran);
            }
            if begun.elapsed() >= self.request.window {
                break;
            }
        }
        watch_of_host.probe();
        let interference = watch_of_host.until_now();
        let took_s = since.elapsed().as_secs_f64() - begin_s;
        let arms = runs.into_iter().map(Runs::arm).collect();
        Ok(Launch { begin_s, took_s, turn_ns: 0, arms, interference, disturbed: Vec::new(), warm_up: None })
    }

    /// Those that are chosen; what is to be known of them is said once.
    fn chosen(&self, mut results: ToolMetrics, running: &mut Running<'_>) -> Option<ToolMetrics> {
        for warning in &results.warnings {
            if self.warned.borrow_mut().insert(warning.id.clone()) {
                let text = format!("what the commands print: {} (hint: {})", warning.text, warning.hint);
                running.progress.show(Event::Notice(text));
            }
        }
        self.request.choice.keep(&mut results).is_ok().then_some(results)
    }

    /// One run, with all of its results, on the machine as it is to be for it; `seen`: what it has in use is read meanwhile, which takes
    /// time from it.
    fn run(
        &self,
        program: usize,
        arm: usize,
        seen: Option<&mut Seen>,
        running: &mut Running<'_>,
    ) -> Result<Ran, LabError> {
        running.check_interrupt()?;
        let timed = Timed {
            words: &self.words[program],
            environment: self.switch.environment(program),
            confinement: Confinement {
                cpus: self.places[program].clone(),
                cgroup_procs: Vec::new(),
                no_thp: self.switch.no_thp(program),
            },
            output: if self.are_read.get() { Output::KeepApart } else { Output::KeepErrors },
            shown: false,
            input: &Input::Nothing,
            pty: false,
            time_limit: None,
            phase: None,
        };
        let standing = self.switch.on(program)?;
        let (mut seen, mut sampler) = (seen.filter(|_| self.switch.is_some()), None);
        let (is_seen, of_place) = (seen.is_some(), self.switch.has_place());
        let look = |pid| sampler = is_seen.then(|| Sampler::begin(pid, of_place)).flatten();
        let run = self.runner.run(&timed, running, look, |_| ());
        if let Some((seen, sampler)) = seen.as_mut().zip(sampler) {
            seen.and(sampler.end());
        }
        let mut run = run?;
        let counts = standing.end()?;
        if let Some(seen) = seen {
            seen.counts = seen.counts.and(counts);
        }
        let failed = |what: String, last_output| LabError::Sut {
            what: format!("{} {what}", name(program, arm, &self.request.commands[program])),
            last_output,
        };
        if run.ended.exit_code != Some(0) {
            let how = run.exit_description();
            return Err(failed(format!("failed: {how}"), run.output()));
        }
        let results = run.results().and_then(|(_, results)| results);
        let results = results.filter(|results| !results.metrics.is_empty());
        let cpu_ns = run.ended.user_ns.saturating_add(run.ended.system_ns);
        Ok(Ran { wall_ns: run.wall_ns, cpu_ns, results })
    }
}
