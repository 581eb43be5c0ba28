//! A plan as it is written.

use super::expect::Expectation;
use super::settings::Settings;
use crate::request::Warmup;
use std::time::Duration;

/// A plan as written.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanFile {
    /// What it is about.
    pub name: String,
    /// How often every cell is measured, each time on a fresh launch; `None`: as often as the budget allows.
    pub blocks: Option<u32>,
    /// How many blocks that were disturbed from outside may be measured once more.
    pub reruns: u32,
    /// How long all of it may take.
    pub budget: Option<Duration>,
    /// It ends before that once each throughput is known this well against its baseline's, as a share.
    pub precision: Option<f64>,
    /// Trials in a launch.
    pub trials: u32,
    /// Length of a trial.
    pub trial: Duration,
    /// Load before the first trial of a launch.
    pub warmup: Warmup,
    /// How long a server that is started may take until it answers; `None`: 30 s.
    pub start_timeout: Option<Duration>,
    /// Seed of the order; `None`: another one each time.
    pub seed: Option<u64>,
    /// Name of the case that the others are held against; `None`: the first.
    pub baseline: Option<String>,
    /// What holds for every case that does not say otherwise.
    pub settings: Settings,
    /// What is varied in every case, each with its levels.
    pub factors: Vec<Factor>,
    /// The cases; at least one, which has no name where the plan has none.
    pub cases: Vec<Case>,
}

/// As of `tare run`, but shorter: a plan has many launches.
const TRIAL: Duration = Duration::from_secs(1);
const WARMUP: Warmup =
    Warmup::UntilCompiled { at_least: Duration::from_millis(500), at_most: Duration::from_secs(20) };

impl PlanFile {
    /// What holds where nothing is said; it has no cases.
    pub(super) fn unwritten() -> PlanFile {
        PlanFile {
            name: String::new(),
            blocks: None,
            reruns: 0,
            budget: None,
            precision: None,
            trials: 1,
            trial: TRIAL,
            warmup: WARMUP,
            start_timeout: None,
            seed: None,
            baseline: None,
            settings: Settings::default(),
            factors: Vec::new(),
            cases: Vec::new(),
        }
    }
}

/// A setting that is varied.
#[derive(Debug, Clone, PartialEq)]
pub struct Factor {
    /// Its key.
    pub key: String,
    /// Its levels: as written, and as set.
    pub levels: Vec<(String, Settings)>,
}

/// A case of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Its name, unique.
    pub name: String,
    /// What it sets.
    pub settings: Settings,
    /// Name of the case that it is held against; `None`: the plan's.
    pub baseline: Option<String>,
    /// It is left out on a machine with fewer CPUs.
    pub needs_cpus: u32,
    /// What is expected of it, beside its baseline.
    pub expect: Vec<Expectation>,
}

impl Case {
    /// One that sets nothing.
    pub(super) fn unnamed() -> Case {
        Case {
            name: String::new(),
            settings: Settings::default(),
            baseline: None,
            needs_cpus: 1,
            expect: Vec::new(),
        }
    }
}
