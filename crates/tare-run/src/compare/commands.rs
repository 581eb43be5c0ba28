//! Commands interleaved: a launch is runs of all of them, of the first as of two, in an order drawn at random and then in its mirror,
//! until its window is over. What changes evenly meanwhile changes all of them alike.

use super::interference::HostWatch;
use super::launch::{arms, name, order};
use super::request::Compared;
use super::steps::{Step, check_count, check_file, empty, go_on, in_session};
use crate::error::LabError;
use crate::plan;
use crate::process::Output;
use crate::progress::Progress;
use crate::running::{Running, Session};
use crate::subjects::program::{find_program, words_of};
use crate::timed::{Input, Runner, Timed};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tare_model::comparison::{Arm, Comparison, Figure, Launch, Program};
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
    /// How narrow the intervals of both times must be to end before that, as a share.
    pub precision: f64,
    /// Differences up to this share do not matter.
    pub margin: f64,
    /// Seed of the orders; `None`: another one each time.
    pub seed: Option<u64>,
    /// A launch goes on for so long at least.
    pub window: Duration,
    /// CPUs to hold the commands on; `None`: wherever they want to be.
    pub sut_cpus: Option<Vec<u32>>,
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
    let seed = request.seed.unwrap_or_else(monotonic_ns);
    let bench = Bench { request, words, seed, runner: Runner::new()? };
    running
        .journal
        .will_start(&request.commands.join("; "))
        .map_err(|error| LabError::State(error.to_string()))?;
    // What they read is in the caches then, and one that fails does so at once.
    running.live("warm-up", None);
    for (arm, program) in arms(bench.words.len()).into_iter().enumerate() {
        bench.run(program, arm, running)?;
    }
    let program = |(command, name): (&String, char)| Program {
        name: name.to_string(),
        command: command.clone(),
        url: None,
    };
    let comparison = kept.insert(Comparison {
        argv: request.argv.clone(),
        budget_s: request.budget.as_secs_f64(),
        precision: request.precision,
        margin: request.margin,
        sut_cpus: request.sut_cpus.clone().unwrap_or_default(),
        ..empty(request.commands.iter().zip('A'..).map(program).collect(), seed)
    });
    go_on(comparison, running, |seq, begun, phase, running| {
        Ok(Step { launch: bench.launch(seq, begun, phase, running)?, turn: Duration::ZERO, alike: seq + 1 })
    })
}

/// What is the same in every launch.
struct Bench<'a> {
    request: &'a CommandsRequest,
    /// Of each command.
    words: Vec<Vec<String>>,
    seed: u64,
    runner: Runner,
}

/// The runs of an arm.
#[derive(Debug, Clone, Copy, Default)]
struct Runs {
    count: u64,
    wall_ns: u64,
    cpu_ns: u64,
}

impl Runs {
    fn arm(&self) -> Arm {
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
        }
    }
}

impl Bench<'_> {
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
        let mut runs = vec![Runs::default(); arms.len()];
        let all: Vec<u32> = running.facts.cpus.iter().map(|cpu| cpu.cpu).collect();
        let mut watch_of_host = HostWatch::begin(self.request.sut_cpus.as_deref().unwrap_or(&all));
        watch_of_host.probe();
        let begun = Instant::now();
        for pair in 0..ROUNDS_MAX / 2 {
            let seed = self.seed ^ (seq as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (pair << 48);
            let there = order(arms.len(), seed);
            for &at in there.iter().chain(there.iter().rev()) {
                let [wall_ns, cpu_ns] = self.run(arms[at], at, running)?;
                let runs = &mut runs[at];
                runs.count += 1;
                runs.wall_ns += wall_ns;
                runs.cpu_ns += cpu_ns;
            }
            if begun.elapsed() >= self.request.window {
                break;
            }
        }
        watch_of_host.probe();
        let interference = watch_of_host.until_now();
        let took_s = since.elapsed().as_secs_f64() - begin_s;
        let arms = runs.iter().map(Runs::arm).collect();
        Ok(Launch { begin_s, took_s, arms, interference, disturbed: Vec::new(), warm_up: None })
    }

    /// One run: nanoseconds from its start to its end, and of CPU.
    fn run(&self, program: usize, arm: usize, running: &mut Running<'_>) -> Result<[u64; 2], LabError> {
        running.check_interrupt()?;
        let cpus = self.request.sut_cpus.clone().unwrap_or_default();
        let timed = Timed {
            words: &self.words[program],
            environment: &[],
            confinement: Confinement { cpus, cgroup_procs: Vec::new() },
            output: Output::KeepErrors,
            input: &Input::Nothing,
            pty: false,
            time_limit: None,
        };
        let mut run = self.runner.run(&timed, running, |_| (), |_| ())?;
        let failed = |what: String, last_output| LabError::Sut {
            what: format!("{} {what}", name(program, arm, &self.request.commands[program])),
            last_output,
        };
        if run.ended.exit_code != Some(0) {
            let how = run.exit_description();
            return Err(failed(format!("failed: {how}"), run.output()));
        }
        Ok([run.wall_ns, run.ended.user_ns.saturating_add(run.ended.system_ns)])
    }
}
