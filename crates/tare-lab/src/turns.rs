//! Several servers loaded in turns within the same trial, so that the machine's weather meets all of them alike.
//!
//! Each has a generator of its own, which sends in its turns alone; one watch sees all of them, so that their books are over
//! the same instants.

use crate::blocks::Stint;
use crate::drive::{Drive, SETTLE, Stand, live_rate, observe, start};
use crate::error::LabError;
use crate::generate::load_failed;
use crate::sitting::Running;
use crate::sut::Sut;
use std::time::Duration;
use tare_load::{Generator, LoadSpec, Pacing, Turns};
use tare_machine::placement::Placement;
use tare_observe::{LoadWatch, Watch};
use tare_record::metric::Subject;
use tare_record::observation::{Column, Observation, Role};
use tare_record::plan::{Level, Purpose};
use tare_sys::time::monotonic_ns;

/// Length of a turn. A host's disturbances last for tens of milliseconds to seconds, so the shorter the better; but a turn begins
/// and ends with a third of a millisecond in which both servers have something to do.
const TURN_NS: u64 = 20_000_000;

impl Drive<'_> {
    /// One trial of each level of `stint`, in turns: `reference` answers where a level's purpose is that, else the SUT.
    pub(crate) fn in_turns(
        &self,
        stint: &Stint,
        sut: &mut Sut,
        reference: &mut Sut,
        running: &mut Running<'_>,
    ) -> Result<(), LabError> {
        let (begin_ns, seed) = (monotonic_ns(), self.seed);
        let levels: Vec<(u32, &Level, u32)> = stint
            .iter()
            .filter_map(|(index, trial)| Some((*index as u32, self.levels.get(*index)?, *trial)))
            .collect();
        let Some(&(_, longest, trial)) = levels.iter().max_by_key(|(_, level, _)| level.trial_ns) else {
            return Ok(());
        };
        let mut parties = Vec::with_capacity(levels.len());
        for (place, (index, level, _)) in (0..).zip(&levels) {
            let turns = Turns { begin_ns, turn_ns: TURN_NS, parties: levels.len() as u32, place, seed };
            let server = if level.purpose == Purpose::Reference { &mut *reference } else { &mut *sut };
            let stand = self.stand(*index, level);
            let spec = stand.spec(Pacing::InTurns(turns), server);
            let generator = start(&LoadSpec { busy_poll: self.has_cpus_of_its_own(), ..spec }, server)?;
            parties.push(Party { stand, generator });
        }
        let warmup = if trial == 0 { Duration::from_nanos(longest.warmup_ns) } else { SETTLE };
        let observers = observe(self.watch_in_turns(sut, reference, &parties))?;
        running.wait(warmup, "warm-up", |_| None)?;
        observers.begin();
        parties.iter_mut().for_each(|party| _ = party.generator.cut());
        let mut answered = 0;
        let phase = format!("trial {}/{} in turns with the reference", trial + 1, longest.trials);
        running.wait(Duration::from_nanos(longest.trial_ns), &phase, |seconds| {
            parties.first().map(|party| live_rate(&party.generator, seconds, &mut answered))
        })?;
        let samples: Vec<_> = parties.iter_mut().map(|party| party.generator.cut()).collect();
        let observation = observers.end();
        observers.stop();
        sut.check_alive()?;
        reference.check_alive()?;
        for (Party { stand, generator }, sample) in parties.into_iter().zip(samples) {
            let theirs = match stand.level.purpose {
                Purpose::Reference => from_beside(&observation, &reference.pids, &generator.thread_ids()),
                Purpose::Asked | Purpose::Saturating => observation.clone(),
            };
            generator.stop().map_err(load_failed)?;
            stand.keep(sample, theirs, running)?;
        }
        Ok(())
    }

    /// Whether the generator may poll all the time without taking a CPU from a server. What a server costs depends on how often it has to
    /// wake its generator: where that sleeps, the ratio of two servers varies four times as much.
    fn has_cpus_of_its_own(&self) -> bool {
        let Placement { sut_cpus, load_cpus, .. } = self.placement;
        !sut_cpus.is_empty() && !load_cpus.is_empty() && sut_cpus.iter().all(|cpu| !load_cpus.contains(cpu))
    }

    fn watch_in_turns(&self, sut: &Sut, reference: &Sut, parties: &[Party]) -> Watch {
        let of_sut = |party: &&Party| party.stand.level.purpose != Purpose::Reference;
        let load = parties.iter().filter(of_sut).flat_map(|party| party.generator.thread_ids()).collect();
        Watch { beside_pids: reference.pids.clone(), ..self.watch(sut, LoadWatch::Threads(load)) }
    }
}

/// One of those who take turns.
struct Party<'a> {
    stand: Stand<'a>,
    generator: Generator,
}

/// The window as the server beside the SUT saw it: its processes are the SUT then, and its generator's threads the load. What is not
/// about them or about the CPUs is in the SUT's own observation.
fn from_beside(observation: &Observation, pids: &[u32], load_tids: &[u32]) -> Observation {
    let tasks: Vec<_> = observation
        .tasks
        .iter()
        .cloned()
        .map(|mut task| {
            task.role = match task.role {
                _ if pids.contains(&task.pid) => Role::Sut,
                Role::Load | Role::Tare if load_tids.contains(&task.tid) => Role::Load,
                Role::Load | Role::Tare => Role::Tare,
                Role::Sut | Role::Other => Role::Other,
            };
            task
        })
        .collect();
    let told = |column: &&Column| match column.subject {
        Subject::Task(index) => tasks.get(index as usize).is_some_and(|task| task.role == Role::Sut),
        Subject::Cpu(_) => true,
        Subject::Machine | Subject::Group(_) | Subject::Device(_) => false,
    };
    // Its ends are all that its cost is taken from.
    let ends = |column: &Column| match column.samples.as_slice() {
        [first, .., last] => Column { samples: vec![*first, *last], ..column.clone() },
        _ => column.clone(),
    };
    let columns = observation.columns.iter().filter(told).map(ends).collect();
    let (begin_ns, end_ns) = (observation.begin_ns, observation.end_ns);
    Observation { begin_ns, end_ns, tasks, columns, ..Observation::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_record::observation::{Sample, Task};
    use tare_record::{Missing, Reading};

    #[test]
    fn seen_from_beside_the_reference_is_the_sut() {
        let task = |pid, tid, role| Task {
            pid,
            tid,
            name: "t".to_owned(),
            role,
            allowed_cpus: Reading::Missing(Missing::new("not asked")),
            present_at_begin: true,
            present_at_end: true,
        };
        let samples = (0..3).map(|at| Sample { at_ns: at, value: at as f64 }).collect::<Vec<_>>();
        let column = |subject| Column { metric: "m".to_owned(), subject, samples: samples.clone() };
        let observation = Observation {
            begin_ns: 0,
            end_ns: 2,
            tasks: vec![
                task(10, 10, Role::Sut),
                task(20, 21, Role::Other),
                task(30, 31, Role::Load),
                task(30, 32, Role::Tare),
            ],
            columns: [Subject::Task(0), Subject::Task(1), Subject::Cpu(0), Subject::Machine]
                .map(column)
                .to_vec(),
            ..Observation::default()
        };
        let beside = from_beside(&observation, &[20], &[32]);
        let roles: Vec<Role> = beside.tasks.iter().map(|task| task.role).collect();
        assert_eq!(roles, [Role::Other, Role::Sut, Role::Tare, Role::Load]);
        let kept: Vec<(Subject, usize)> =
            beside.columns.iter().map(|column| (column.subject.clone(), column.samples.len())).collect();
        assert_eq!(kept, [(Subject::Task(1), 2), (Subject::Cpu(0), 2)]);
    }
}
