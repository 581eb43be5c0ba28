//! What was measured of instances, and what it comes to.

use super::super::level::{Launches, Measured, settle_unit};
use super::place::{Place, beside};
use std::collections::BTreeMap;
use tare_explain::efficiency::{self, Launch, Seen};
use tare_explain::instances;
use tare_model::instances::{Fairness, Instance, InstanceState};
use tare_model::outcome::{Cause, Estimate};
use tare_model::scaling::{LevelAccounting, ScaleLevel};
use tare_model::topology::Topology;
use tare_model::{Missing, Reading};
use tare_stats::{mean, mean_interval};

const REMEDY: &str = "'tare run' of one instance says more";

/// Every launch.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// Of each instance, block by block.
    pub alone: Vec<Vec<Measured>>,
    /// Of each number of instances, block by block, each instance.
    pub together: BTreeMap<u32, Vec<Vec<Measured>>>,
}

impl Kept {
    /// Of so many instances.
    pub fn of(instances: usize) -> Kept {
        Kept { alone: (0..instances).map(|_| Vec::new()).collect(), together: BTreeMap::new() }
    }

    /// One unit for all, once a launch is added.
    pub fn settle(&mut self) {
        let together = self.together.values_mut().flatten().flatten();
        settle_unit(self.alone.iter_mut().flatten().chain(together));
    }

    /// How long a run of a program took with so many at once, or alone.
    pub fn run_s(&self, n: u32) -> Option<f64> {
        let together = self.together.get(&n).into_iter().flatten().flatten();
        together.chain(self.alone.iter().flatten()).find_map(|launch| launch.run_s)
    }

    /// The figure of each level so far, in the order of the levels.
    pub fn seen(&self) -> Vec<(f64, f64)> {
        let levels = [1].into_iter().chain(self.together.keys().copied());
        levels.filter_map(|n| Some((f64::from(n), mean(&self.samples(n))?))).collect()
    }

    /// One figure a block: the sum of all instances; of one instance the mean of each alone.
    fn samples(&self, n: u32) -> Vec<f64> {
        let valid = |launch: &Measured| Some(launch.valid()?.value);
        match self.together.get(&n) {
            Some(blocks) => {
                blocks.iter().filter_map(|block| block.iter().map(valid).sum::<Option<f64>>()).collect()
            }
            None => {
                let blocks = self.alone.iter().map(Vec::len).max().unwrap_or(0);
                let of_block = |block: usize| {
                    let each: Vec<f64> = self.alone.iter().filter_map(|of| valid(of.get(block)?)).collect();
                    mean(&each)
                };
                (0..blocks).filter_map(of_block).collect()
            }
        }
    }

    /// Instance `i` (from 0) with `n` at once, block by block; alone: `n` is 1.
    fn launches(&self, n: u32, i: usize) -> Vec<Option<&Measured>> {
        match self.together.get(&n) {
            Some(blocks) => blocks.iter().map(|block| block.get(i)).collect(),
            None => self.alone.get(i).map(|of| of.iter().map(Some).collect()).unwrap_or_default(),
        }
    }

    /// What is seen of an instance; `None` where no launch is valid.
    fn of_instance(&self, n: u32, i: usize) -> Option<Seen> {
        let valid: Vec<&Measured> =
            self.launches(n, i).into_iter().flatten().filter(|launch| launch.valid().is_some()).collect();
        seen(&valid)
    }

    /// What is seen of a level: all instances together, or of level 1 an instance alone.
    fn of_level(&self, n: u32, cpus_there: f64) -> Option<Seen> {
        if !self.together.contains_key(&n) {
            let valid: Vec<&Measured> =
                self.alone.iter().flatten().filter(|launch| launch.valid().is_some()).collect();
            return seen(&valid);
        }
        let all: Option<Vec<Seen>> = (0..n as usize).map(|i| self.of_instance(n, i)).collect();
        instances::together(f64::from(n), &all?, cpus_there)
    }

    /// Every level, ascending, each in comparison with one instance alone.
    pub fn levels(&self, places: &[Place]) -> Vec<ScaleLevel> {
        let mut all: Vec<u32> = self.together.keys().copied().collect();
        if self.alone.iter().any(|of| !of.is_empty()) {
            all.insert(0, 1);
        }
        let lowest = self.of_level(1, 0.0);
        all.into_iter().map(|n| self.level(n, lowest.as_ref(), places)).collect()
    }

    fn level(&self, n: u32, lowest: Option<&Seen>, places: &[Place]) -> ScaleLevel {
        let samples = self.samples(n);
        let seen = self.of_level(n, cpus_of(places.get(..n as usize).unwrap_or(places)));
        let lost = lowest.zip(seen.as_ref()).map(|(lowest, seen)| efficiency::lost(lowest, seen));
        let launches: Vec<&Measured> = match self.together.get(&n) {
            Some(blocks) => blocks.iter().flatten().collect(),
            None => self.alone.iter().flatten().collect(),
        };
        ScaleLevel {
            n: f64::from(n),
            estimate: self.estimate(&samples, "in no block all instances were valid"),
            samples,
            is_outlier: false,
            bottlenecks: launches
                .iter()
                .map(|launch| launch.outcome.verdict.bottleneck)
                .collect::<Vec<Cause>>(),
            accounting: accounting(seen.as_ref()),
            lost: lost.unwrap_or_default(),
        }
    }

    fn estimate(&self, samples: &[f64], why: &str) -> Reading<Estimate> {
        let launches = self.alone.iter().flatten().chain(self.together.values().flatten().flatten());
        let mut valid = launches.filter_map(Measured::valid);
        let unit = valid.next().map(|figure| figure.unit.clone());
        match unit.zip(mean_interval(samples)) {
            Some((unit, mean)) => Reading::Measured(Estimate {
                value: mean.value,
                unit,
                ci95: mean.ci95.map(|ends| [ends.lo, ends.hi]),
            }),
            None => Reading::Missing(Missing::with_remedy(why, REMEDY)),
        }
    }

    /// Each instance alone and with all others.
    pub fn instances(&self, places: &[Place], topology: &Topology) -> Vec<Instance> {
        let most = self.together.keys().next_back().copied().unwrap_or(1);
        let instance = |(i, place): (usize, &Place)| {
            let (alone, together) = (self.of_instance(1, i), self.of_instance(most, i));
            let both = alone.as_ref().zip(together.as_ref()).filter(|_| most > 1);
            let taken =
                both.map(|(alone, together)| instances::taken(alone, together, beside(places, i, topology)));
            let taken = taken.unwrap_or_default();
            let not_measured = || Reading::missing("it was not measured both alone and together");
            Instance {
                i: i as u32 + 1,
                cpus: place.cpus.clone(),
                shared_cpus: place.shared.clone(),
                load_cpus: place.load_cpus.clone(),
                alone: self.state(1, i, alone.as_ref()),
                together: self.state(most, i, together.as_ref()),
                kept: self.kept(most, i),
                summary: both.map_or_else(not_measured, |(alone, together)| {
                    instances::summary(alone, together, &taken)
                }),
                taken,
            }
        };
        places.iter().take(most as usize).enumerate().map(instance).collect()
    }

    fn state(&self, n: u32, i: usize, seen: Option<&Seen>) -> InstanceState {
        let valid =
            self.launches(n, i).into_iter().flatten().filter_map(|launch| Some(launch.valid()?.value));
        let samples: Vec<f64> = valid.collect();
        let ipc = self.launches(n, i).into_iter().flatten().find_map(why_no_ipc);
        let ipc = ipc.unwrap_or_else(|| Missing::new("IPC was not counted"));
        InstanceState {
            estimate: self.estimate(&samples, "no launch of it is valid"),
            samples,
            ipc: seen.and_then(|seen| seen.accounting.ipc).ok_or(ipc).into(),
            accounting: accounting(seen),
        }
    }

    /// Together over alone, block by block.
    fn shares(&self, n: u32, i: usize) -> Vec<Option<f64>> {
        let valid = |launch: Option<&Measured>| Some(launch?.valid()?.value);
        let pairs = self.launches(1, i).into_iter().zip(self.launches(n, i));
        pairs.map(|(alone, together)| Some(valid(together)? / valid(alone)?)).collect()
    }

    fn kept(&self, n: u32, i: usize) -> Reading<Estimate> {
        let shares: Vec<f64> = self.shares(n, i).into_iter().flatten().collect();
        match mean_interval(&shares).filter(|_| n > 1) {
            Some(mean) => Reading::Measured(Estimate {
                value: mean.value,
                unit: "share".to_owned(),
                ci95: mean.ci95.map(|ends| [ends.lo, ends.hi]),
            }),
            None => Reading::Missing(Missing::with_remedy(
                "in no block it was valid both alone and together",
                REMEDY,
            )),
        }
    }

    /// How evenly they lose, at every level above 1.
    pub fn fairness(&self) -> Vec<Fairness> {
        let of = |n: u32| {
            let each: Vec<Vec<Option<f64>>> = (0..n as usize).map(|i| self.shares(n, i)).collect();
            let blocks = each.iter().map(Vec::len).min().unwrap_or(0);
            let block = |at: usize| each.iter().map(|shares| shares[at]).collect::<Option<Vec<f64>>>();
            let blocks: Vec<Vec<f64>> = (0..blocks).filter_map(block).collect();
            instances::fairness(f64::from(n), &blocks)
        };
        self.together.keys().map(|n| of(*n)).collect()
    }

    /// The launches of each level as those of other sweeps, for their warnings.
    pub fn into_launches(self) -> Vec<Launches> {
        let alone = Launches { n: 1.0, measured: self.alone.into_iter().flatten().collect() };
        let together = self.together.into_iter().map(|(n, blocks)| Launches {
            n: f64::from(n),
            measured: blocks.into_iter().flatten().collect(),
        });
        [alone].into_iter().chain(together).filter(|launches| !launches.measured.is_empty()).collect()
    }
}

/// One instance, from launches that are valid.
fn seen(valid: &[&Measured]) -> Option<Seen> {
    let counted = valid.first()?.valid()?.counted;
    let there = valid.iter().map(|launch| launch.cpus_there).max().map(|cpus| cpus as f64);
    let launches: Vec<Launch<'_>> = valid
        .iter()
        .filter_map(|launch| Some(Launch { outcome: &launch.outcome, x: launch.valid()?.value }))
        .collect();
    efficiency::seen(1.0, counted, &launches, there)
}

fn accounting(seen: Option<&Seen>) -> Reading<LevelAccounting> {
    let missing = || Reading::Missing(Missing::with_remedy("no launch is valid", REMEDY));
    seen.map_or_else(missing, |seen| Reading::Measured(seen.accounting))
}

/// Why a launch has no IPC.
fn why_no_ipc(launch: &Measured) -> Option<Missing> {
    let execution = launch.outcome.accounting.sut.as_ref()?.execution.as_ref();
    match execution {
        Some(execution) => execution.ipc.clone().ok().err(),
        None => Some(Missing::new("instructions are not counted of programs that end")),
    }
}

/// How many CPUs these instances are held on in all.
fn cpus_of(places: &[Place]) -> f64 {
    let mut cpus: Vec<u32> = places.iter().flat_map(|place| place.cpus.iter().copied()).collect();
    cpus.sort_unstable();
    cpus.dedup();
    cpus.len() as f64
}
