//! From a plan to what this machine does of it.

use super::expect::Expectation;
use super::planfile::{Case, Factor, PlanFile};
use super::settings::Settings;
use crate::error::{LabError, URL_EXAMPLE};
use crate::request::Warmup;
use std::time::Duration;
use tare_load::{CONNECTIONS_DEFAULT, Target};
use tare_stats::LAUNCHES_MIN;

/// Most cells of a plan.
const CELLS_MAX: usize = 256;
/// Blocks unless plan or budget say otherwise.
const BLOCKS: u32 = 5;
/// Fewest blocks of which anything can be said: one alone has no spread.
pub(super) const BLOCKS_MIN: u32 = 2;
pub(super) const BLOCKS_MAX: u32 = 10_000;
/// About what starting and stopping a server takes.
const LAUNCH: Duration = Duration::from_millis(500);

/// What will be done: every cell once in each block, on a fresh launch.
#[derive(Debug, Clone, PartialEq)]
pub struct Study {
    /// What it is about.
    pub name: String,
    /// The cells, in the order of the plan.
    pub cells: Vec<Cell>,
    /// How many blocks, at most where `precision` may end it before.
    pub blocks: u32,
    /// How well each throughput is to be known against its baseline's, as a share.
    pub precision: Option<f64>,
    /// How many of them may be measured once more, because they were disturbed.
    pub reruns: u32,
    /// Trials in a launch.
    pub trials: u32,
    /// Length of a trial.
    pub trial: Duration,
    /// Load before the first trial of a launch.
    pub warmup: Warmup,
    /// How long a server that is started may take until it answers; `None`: 30 s.
    pub start_timeout: Option<Duration>,
    /// Seed of the order, if the plan has one.
    pub seed: Option<u64>,
    /// Cases that this machine has not the CPUs for: their names and how many they need.
    pub left_out: Vec<(String, u32)>,
}

/// One combination of a case and a level of each factor.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Its case and its levels: `one CPU, threads=4`.
    pub name: String,
    /// All that is set.
    pub settings: Settings,
    /// Index of the cell that it is held against: the baseline at the same levels; in a plan of one case that expects no change, the
    /// first level of each factor.
    pub baseline: usize,
    /// What is expected of it.
    pub expect: Vec<Expectation>,
}

impl Study {
    /// About how long it takes, with nothing measured again.
    pub fn expected(&self) -> Duration {
        self.length_of_block() * self.blocks
    }

    fn length_of_block(&self) -> Duration {
        (LAUNCH + self.warmup.at_least() + self.trial * self.trials) * self.cells.len() as u32
    }
}

impl PlanFile {
    /// Judges the plan on a machine with these CPUs online. What it cannot do is a usage error of one line.
    pub fn resolve(&self, online: &[u32]) -> Result<Study, LabError> {
        let (cases, left_out): (Vec<&Case>, Vec<&Case>) =
            self.cases.iter().partition(|case| case.needs_cpus as usize <= online.len());
        let left_out: Vec<(String, u32)> =
            left_out.into_iter().map(|case| (case.name.clone(), case.needs_cpus)).collect();
        if cases.is_empty() {
            return Err(LabError::usage(
                format!("every case of the plan needs more CPUs than the {} here", online.len()),
                "lower 'needs_cpus' of a case, or take a larger machine",
            ));
        }
        let levels = combinations(&self.factors)?;
        if cases.len() * levels.len() > CELLS_MAX {
            return Err(LabError::usage(
                format!("the plan has {} cells, more than {CELLS_MAX}", cases.len() * levels.len()),
                "leave out levels of its factors",
            ));
        }
        // A change that is expected of the one case there is, is one from its own baseline.
        let changes = |case: &Case| case.expect.iter().any(Expectation::needs_baseline);
        let levels_alone = matches!(self.cases.as_slice(), [alone] if !changes(alone));
        let mut cells = Vec::new();
        for case in &cases {
            let baseline = self.baseline_of(case, &cases)?;
            for (at, (label, level)) in levels.iter().enumerate() {
                let settings = level.over(&case.settings).over(&self.settings);
                let name = [case.name.as_str(), label.as_str()];
                let name = name.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
                let name = if name.is_empty() { "all".to_owned() } else { name };
                check(&name, &settings, online)?;
                let baseline = if levels_alone { 0 } else { baseline * levels.len() + at };
                check_against(&name, case, baseline == cells.len())?;
                cells.push(Cell { name, settings, baseline, expect: case.expect.clone() });
            }
        }
        let mut study = Study {
            name: self.name.clone(),
            cells,
            blocks: BLOCKS,
            precision: self.precision,
            reruns: self.reruns,
            trials: self.trials,
            trial: self.trial,
            warmup: self.warmup,
            start_timeout: self.start_timeout,
            seed: self.seed,
            left_out,
        };
        study.blocks = self.blocks(&study)?;
        check_precision(&study)?;
        Ok(study)
    }

    /// Which of the cases that are done one of them is held against; itself where no change is reported.
    fn baseline_of(&self, case: &Case, cases: &[&Case]) -> Result<usize, LabError> {
        let first = self.cases.first().map(|case| &case.name);
        let name = case.baseline.as_ref().or(self.baseline.as_ref()).or(first);
        let position = |name: Option<&String>| cases.iter().position(|case| Some(&case.name) == name);
        let of_its_own = || {
            let nothing = self.precision.is_none() && !case.expect.iter().any(Expectation::needs_baseline);
            position(Some(&case.name)).filter(|_| nothing)
        };
        position(name).or_else(of_its_own).ok_or_else(|| {
            LabError::usage(
                format!(
                    "the baseline '{}' needs more CPUs than there are here",
                    name.map_or("", String::as_str)
                ),
                "name another case with baseline = \"…\"",
            )
        })
    }

    fn blocks(&self, study: &Study) -> Result<u32, LabError> {
        let Some(budget) = self.budget else { return Ok(self.blocks.unwrap_or(BLOCKS)) };
        let block = study.length_of_block();
        let fit = (budget.as_secs_f64() / block.as_secs_f64().max(1e-3)).min(f64::from(BLOCKS_MAX)) as u32;
        let wanted = self.blocks.unwrap_or(BLOCKS_MIN).saturating_add(self.reruns);
        if fit < wanted {
            let reruns = if self.reruns > 0 { ", those measured again among them," } else { "" };
            return Err(LabError::usage(
                format!(
                    "{wanted} blocks{reruns} of {} cells take about {:.0} s, more than the budget of {:.0} s",
                    study.cells.len(),
                    (block * wanted).as_secs_f64(),
                    budget.as_secs_f64()
                ),
                match self.reruns {
                    0 => "raise 'budget', or lower 'blocks', 'trials' or 'trial'",
                    _ => "raise 'budget', or lower 'blocks', 'reruns', 'trials' or 'trial'",
                },
            ));
        }
        Ok(self.blocks.unwrap_or(fit - self.reruns))
    }
}

/// Every combination of the factors' levels, with its label; one that sets nothing where there are none.
fn combinations(factors: &[Factor]) -> Result<Vec<(String, Settings)>, LabError> {
    let mut all = vec![(String::new(), Settings::default())];
    for Factor { key, levels } in factors {
        if all.len() * levels.len() > CELLS_MAX {
            return Err(LabError::usage(
                format!("the factors of the plan have more than {CELLS_MAX} combinations"),
                "leave out some of their levels",
            ));
        }
        all = all
            .iter()
            .flat_map(|(label, settings)| {
                levels.iter().map(move |(level, set)| {
                    let joint = if label.is_empty() { "" } else { ", " };
                    (format!("{label}{joint}{key}={level}"), set.over(settings))
                })
            })
            .collect();
    }
    Ok(all)
}

/// What is analysed after each block must be compared with something, and by enough of them.
fn check_precision(study: &Study) -> Result<(), LabError> {
    if study.precision.is_none() {
        return Ok(());
    }
    if study.cells.iter().enumerate().all(|(at, cell)| cell.baseline == at) {
        return Err(LabError::usage(
            "'precision' is of throughput against a baseline, and there is nothing beside it",
            "add a second [[case]] or a factor, or say how long with 'blocks' or 'budget' alone",
        ));
    }
    if (study.blocks as usize) < LAUNCHES_MIN {
        return Err(LabError::usage(
            format!(
                "'precision' cannot be known from fewer than {LAUNCHES_MIN} blocks, and {} are planned",
                study.blocks
            ),
            "raise 'blocks' or 'budget', or lower 'trial'",
        ));
    }
    Ok(())
}

/// A change is one from the baseline: of the baseline itself none can be expected.
fn check_against(name: &str, case: &Case, is_baseline: bool) -> Result<(), LabError> {
    let Some(change) = case.expect.iter().find(|expected| is_baseline && expected.needs_baseline()) else {
        return Ok(());
    };
    Err(LabError::usage(
        format!("{name}: '{}' is expected of the baseline, which has no baseline of its own", change.text),
        "expect a value of it, or name another case with baseline = \"…\"",
    ))
}

/// A policy chooses the CPUs of a server that is started, where nobody else does.
fn check_placement(name: &str, settings: &Settings) -> Result<(), LabError> {
    let Some(policy) = settings.placement else { return Ok(()) };
    let (what, hint) = match settings {
        Settings { sut_cpus: Some(_), .. } => ("'sut_cpus' names the CPUs already", "leave out one of them"),
        Settings { sut: None, url: Some(_), .. } => {
            ("the server runs already, and stays where it is", "have it started with 'sut'")
        }
        _ => return Ok(()),
    };
    Err(LabError::usage(format!("{name}: placement = \"{policy}\": {what}"), hint))
}

/// What cannot be carried out as it stands.
fn check(name: &str, settings: &Settings, online: &[u32]) -> Result<(), LabError> {
    let here = || tare_model::CpuSet::from(online);
    for (key, cpus) in [("sut_cpus", &settings.sut_cpus), ("load_cpus", &settings.load_cpus)] {
        let missing = cpus.iter().flatten().find(|cpu| !online.contains(cpu));
        if let Some(cpu) = missing {
            return Err(LabError::usage(
                format!("{name}: {key}: there is no CPU {cpu} here"),
                format!("online are {}; needs_cpus = N leaves a case out on smaller machines", here()),
            ));
        }
    }
    if let Some(Err(error)) = settings.url.as_deref().map(Target::parse) {
        return Err(LabError::usage(format!("{name}: url: {error}"), URL_EXAMPLE));
    }
    if settings.sut.is_some() && settings.url.is_none() {
        return Err(LabError::usage(
            format!("{name}: 'sut' starts a server, and no 'url' says where it answers"),
            "add url = \"http://127.0.0.1:8080/\"",
        ));
    }
    check_placement(name, settings)?;
    match (settings.threads, settings.connections) {
        (Some(threads), connections) if threads > connections.unwrap_or(CONNECTIONS_DEFAULT) => {
            let connections = connections.unwrap_or(CONNECTIONS_DEFAULT);
            Err(LabError::usage(
                format!("{name}: {threads} generator threads for {connections} connections"),
                "lower 'threads', or raise 'connections': a thread without a connection has nothing to do",
            ))
        }
        _ => Ok(()),
    }
}
