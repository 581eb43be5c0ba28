//! What the launches of a level come to.

use super::figure::Figure;
use tare_explain::efficiency::{self, Launch, Seen};
use tare_model::outcome::{Estimate, Outcome};
use tare_model::scaling::{LevelAccounting, ScaleLevel};
use tare_model::{Missing, Reading};
use tare_stats::mean_interval;

/// One launch.
#[derive(Debug)]
pub(super) struct Measured {
    pub outcome: Outcome,
    pub figure: Option<Figure>,
    /// CPUs that the SUT's affinity left it.
    pub cpus_there: usize,
    /// How long a run of a program took.
    pub run_s: Option<f64>,
    /// Its figure counts something else than those of the other launches: what, and what theirs count.
    pub other_unit: Option<String>,
}

impl Measured {
    /// Its figure, where it can be trusted.
    pub fn valid(&self) -> Option<&Figure> {
        self.figure.as_ref().filter(|_| self.outcome.verdict.valid && self.other_unit.is_none())
    }

    /// Why it has none.
    fn why_not(&self) -> String {
        let warning = || self.outcome.verdict.warnings.first().map(|warning| warning.text.clone());
        self.other_unit.clone().or_else(warning).unwrap_or_else(|| "no figure could be counted".to_owned())
    }
}

/// One unit for all launches: a program that printed no result in one of them has a figure in runs per second there, which is no sample of what
/// the others count. The unit that most have is taken; of two that as many have, that of the first launch.
pub(super) fn settle_unit<'a>(measured: impl Iterator<Item = &'a mut Measured>) {
    let mut measured: Vec<&mut Measured> = measured.collect();
    let mut units: Vec<(String, usize)> = Vec::new();
    for unit in measured.iter().filter_map(|launch| Some(&launch.figure.as_ref()?.unit)) {
        match units.iter_mut().find(|(known, _)| known == unit) {
            Some((_, count)) => *count += 1,
            None => units.push((unit.clone(), 1)),
        }
    }
    let most = units.iter().map(|(_, count)| *count).max().unwrap_or(0);
    let Some((taken, _)) = units.into_iter().find(|(_, count)| *count == most) else { return };
    for launch in &mut measured {
        let other = launch.figure.as_ref().filter(|figure| figure.unit != taken);
        launch.other_unit = other.map(|figure| {
            format!("its figure is in {}, those of the other launches in {taken}", figure.unit)
        });
    }
}

/// A level and its launches.
#[derive(Debug, Default)]
pub(super) struct Launches {
    pub n: f64,
    pub measured: Vec<Measured>,
}

impl Launches {
    pub fn new(n: f64) -> Launches {
        Launches { n, measured: Vec::new() }
    }

    /// One figure a launch, of those that are valid.
    pub fn samples(&self) -> Vec<f64> {
        self.measured.iter().filter_map(|launch| Some(launch.valid()?.value)).collect()
    }

    /// Launches of which no figure counts, and what the first of them says.
    pub fn not_valid(&self) -> (usize, Option<String>) {
        let mut not = self.measured.iter().filter(|launch| launch.valid().is_none());
        let first = not.next().map(Measured::why_not);
        (first.iter().count() + not.count(), first)
    }

    pub fn figure(&self) -> Option<&Figure> {
        self.measured.iter().find_map(Measured::valid)
    }

    fn estimate(&self) -> Reading<Estimate> {
        let samples = self.samples();
        let Some((figure, mean)) = self.figure().zip(mean_interval(&samples)) else {
            let why = self.not_valid().1.unwrap_or_else(|| "it was not measured".to_owned());
            let remedy = "'tare run' of this level alone says more";
            return Reading::Missing(Missing::with_remedy(format!("no launch is valid: {why}"), remedy));
        };
        Reading::Measured(Estimate {
            value: mean.value,
            unit: figure.unit.clone(),
            ci95: mean.ci95.map(|interval| [interval.lo, interval.hi]),
        })
    }

    pub fn seen(&self) -> Option<Seen> {
        let valid = self.measured.iter().filter_map(|launch| Some((launch, launch.valid()?.value)));
        let launches: Vec<Launch<'_>> =
            valid.map(|(launch, x)| Launch { outcome: &launch.outcome, x }).collect();
        let there = self.measured.iter().map(|launch| launch.cpus_there).max().map(|cpus| cpus as f64);
        efficiency::seen(self.n, self.figure()?.counted, &launches, there)
    }

    fn level(&self, lowest: Option<&Seen>) -> ScaleLevel {
        let seen = self.seen();
        let lost = lowest.zip(seen.as_ref()).map(|(lowest, seen)| efficiency::lost(lowest, seen));
        let why = "no launch of this level is valid";
        let accounting: Option<LevelAccounting> = seen.map(|seen| seen.accounting);
        ScaleLevel {
            n: self.n,
            estimate: self.estimate(),
            samples: self.samples(),
            is_outlier: false,
            bottlenecks: self.measured.iter().map(|launch| launch.outcome.verdict.bottleneck).collect(),
            accounting: accounting.map_or_else(|| Reading::missing(why), Reading::Measured),
            lost: lost.unwrap_or_default(),
        }
    }
}

/// All levels, ascending, each in comparison with the lowest one that is known.
pub(super) fn levels(all: &[Launches]) -> Vec<ScaleLevel> {
    let lowest = all.iter().find_map(Launches::seen);
    all.iter().map(|launches| launches.level(lowest.as_ref())).collect()
}
