//! Servers one after another, each on the machine as it is to be for it: what the whole machine has cannot be another thing every
//! millisecond. A launch is one of each arm, in an order drawn at random, so that what drifts is in all arms alike.

use super::launch::{Measured, Stage, arms, order};
use crate::error::LabError;
use crate::running::Running;
use crate::subjects::started::With;
use crate::treatment::{self, Seen, Switch};
use std::time::Instant;
use tare_machine::Root;
use tare_machine::placement::Placement;
use tare_model::comparison::{Comparison, Interference, Launch, LaunchWarmUp};

/// What is the same in every launch.
pub(super) struct Apart<'a> {
    pub switch: Switch,
    /// Of each program.
    pub placements: &'a [Placement],
    seen: Vec<Seen>,
}

impl<'a> Apart<'a> {
    pub fn new(switch: Switch, placements: &'a [Placement]) -> Apart<'a> {
        Apart { seen: switch.unseen(placements.len()), switch, placements }
    }

    /// Finds out what can be applied before anything is started; by a start of A, how large a pool of huge pages has to be.
    pub fn rehearse(
        &mut self,
        stage: &mut Stage<'a>,
        comparison: &mut Comparison,
        running: &mut Running<'_>,
    ) -> Result<(), LabError> {
        let done = self.switch.rehearse().and_then(|()| self.fit(stage, running));
        for program in 0..self.placements.len() {
            if done.is_ok() || self.switch.refused().is_some() {
                let standing = self.switch.on(program).ok();
                let by = (&self.switch, standing.as_ref());
                treatment::fill(&mut comparison.treatments, program, by, &self.seen);
            }
        }
        done
    }

    fn fit(&mut self, stage: &mut Stage<'a>, running: &mut Running<'_>) -> Result<(), LabError> {
        if self.switch.needs_trial() {
            let begun = (Instant::now(), "trial of A");
            self.one(0, stage.seed_of(usize::MAX), begun, stage, running)?;
            self.switch.fit(&self.seen[0])?;
            self.switch.rehearse()?;
        }
        let with = (0..self.placements.len()).map(|program| With {
            environment: self.switch.environment(program).to_vec(),
            no_thp: self.switch.no_thp(program),
        });
        stage.with(with.collect());
        Ok(())
    }

    /// Launch number `seq`.
    pub fn launch(
        &mut self,
        seq: usize,
        begun: (Instant, &str),
        stage: &mut Stage<'a>,
        running: &mut Running<'_>,
    ) -> Result<Launch, LabError> {
        let begin_s = begun.0.elapsed().as_secs_f64();
        let seed = stage.seed_of(seq);
        let all = order(self.placements.len() + 1, seed);
        let mut measured = Vec::with_capacity(all.len());
        for arm in all {
            measured.push((arm, self.one(arm, seed ^ arm as u64, begun, stage, running)?));
        }
        measured.sort_by_key(|(arm, _)| *arm);
        let took_s = begun.0.elapsed().as_secs_f64() - begin_s;
        let measured: Vec<Measured> = measured.into_iter().map(|(_, measured)| measured).collect();
        Ok(Launch {
            begin_s,
            took_s,
            turn_ns: measured.first().map_or(0, |measured| measured.turn_ns),
            interference: together(measured.iter().map(|measured| measured.interference)),
            disturbed: Vec::new(),
            warm_up: warm_up(measured.iter().map(|measured| measured.warm_up.clone())),
            arms: measured.into_iter().flat_map(|measured| measured.arms).collect(),
        })
    }

    /// One arm, with what it is to be run with applied from before its start to after its end.
    fn one(
        &mut self,
        arm: usize,
        seed: u64,
        begun: (Instant, &str),
        stage: &mut Stage<'a>,
        running: &mut Running<'_>,
    ) -> Result<Measured, LabError> {
        let program = arms(self.placements.len())[arm];
        stage.stand_on(&self.placements[program], &running.topology);
        let standing = self.switch.on(program)?;
        let seen = &mut self.seen[program];
        let measured = stage.measured(&[arm], seed, begun, running, &mut |_, pids| {
            seen.look(&Root::live(), pids);
        })?;
        let counts = standing.end()?;
        seen.counts = seen.counts.and(counts);
        Ok(measured)
    }

    /// What is known by now of what each has in use.
    pub fn keep(&self, comparison: &mut Comparison) {
        for treated in &mut comparison.treatments {
            treatment::see(treated, &self.switch, &self.seen);
        }
    }
}

/// What all arms met: the most that was taken from any, and the mean of how fast core and memory were.
fn together(each: impl Iterator<Item = Interference> + Clone) -> Interference {
    let most = |of: fn(&Interference) -> Option<f64>| {
        each.clone().map(|one| of(&one)).collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)
    };
    let mean = |of: fn(&Interference) -> Option<f64>| {
        tare_stats::mean(&each.clone().map(|one| of(&one)).collect::<Option<Vec<f64>>>()?)
    };
    Interference {
        steal_share: most(|one| one.steal_share),
        throttled_share: most(|one| one.throttled_share),
        compute_s: mean(|one| one.compute_s),
        load_s: mean(|one| one.load_s),
    }
}

/// The load before all arms were counted.
fn warm_up(each: impl Iterator<Item = Option<LaunchWarmUp>>) -> Option<LaunchWarmUp> {
    each.flatten().reduce(|mut all, one| {
        all.length_s += one.length_s;
        all.is_steady &= one.is_steady;
        all.arms.extend(one.arms);
        all
    })
}
