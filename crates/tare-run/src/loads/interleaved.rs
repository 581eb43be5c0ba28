//! Several servers interleaved within the same trial, so that the machine's interference is the same for all of them.
//!
//! Each has a generator of its own, which sends in its turns alone; one watch sees all of them, so that their accounting is over
//! the same instants.

use super::drive::{Drive, Stand, live_rate, observe, start};
use super::load::{Counted, Driven};
use crate::blocks::Stint;
use crate::error::LabError;
use crate::generate::load_failed;
use crate::levels::{SETTLE, nanoseconds};
use crate::progress::Event;
use crate::running::Running;
use crate::subjects::sut::Sut;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tare_load::{Generator, Interleaving, Pacing};
use tare_model::metric::Subject;
use tare_model::observation::{Column, Observation, Role};
use tare_model::plan::{Level, Purpose, TURN, turn_for};
use tare_observe::{LoadWatch, Watch};
use tare_sys::time::monotonic_ns;

/// A window has at least so many turns of each.
const ROUNDS_MIN: u64 = 4;

/// One trial of each level of `stint`, interleaved: `reference` answers where a level's purpose is that, else the SUT.
pub(super) fn interleaved(
    drive: &Drive<'_>,
    stint: &Stint,
    sut: &mut Sut,
    reference: &mut Sut,
    running: &mut Running<'_>,
) -> Result<Vec<Driven>, LabError> {
    let levels: Vec<(u32, &Level, u32)> = stint
        .iter()
        .filter_map(|(index, trial)| Some((*index as u32, drive.levels.get(*index)?, *trial)))
        .collect();
    let Some(&(_, longest, trial)) = levels.iter().max_by_key(|(_, level, _)| level.trial_ns) else {
        return Ok(Vec::new());
    };
    let mut arms = drive.arms(&levels, TURN, (sut, reference), running.interrupt)?;
    let warmup = if trial == 0 { Duration::from_nanos(longest.warmup_ns) } else { SETTLE };
    running.wait(warmup, "warm-up", |_| None)?;
    let turn = turn_for(slowest_median(arms.iter_mut().map(|arm| &mut arm.generator)));
    if turn > TURN {
        stop(arms)?;
        arms = drive.arms(&levels, turn, (sut, reference), running.interrupt)?;
        running.wait(SETTLE, "warm-up", |_| None)?;
    }
    let turns_ns = nanoseconds(turn) * ROUNDS_MIN * levels.len() as u64;
    let trial_ns = longest.trial_ns.max(turns_ns);
    if trial == 0 && trial_ns > longest.trial_ns && drive.request.trials.stopping.is_none() {
        // Requests take long, which nobody knew when it was said how long all takes.
        let more_s = (trial_ns - longest.trial_ns) as f64 / 1e9 * f64::from(longest.trials);
        running.progress.show(Event::Expected { total_s: drive.expected_s() + more_s });
    }
    let observers = observe(drive.watch_interleaved(sut, reference, &arms))?;
    observers.begin();
    arms.iter_mut().for_each(|arm| _ = arm.generator.cut());
    let mut answered = arms.first().map_or(0, |arm| arm.generator.live().answers);
    let nth = running.nth(trial, longest);
    let phase = format!("trial {nth} interleaved with the reference{}", running.known());
    // Of its own turns: while another has its turn it is not loaded.
    let share = 1.0 / arms.len().max(1) as f64;
    running.wait(Duration::from_nanos(trial_ns), &phase, |seconds| {
        arms.first().map(|arm| live_rate(&arm.generator, seconds * share, &mut answered))
    })?;
    let samples: Vec<_> = arms.iter_mut().map(|arm| arm.generator.cut()).collect();
    let observation = observers.end();
    observers.stop();
    sut.check_alive()?;
    reference.check_alive()?;
    arms.iter().for_each(|arm| arm.generator.end());
    let mut driven = Vec::with_capacity(samples.len());
    for (Arm { stand, generator }, sample) in arms.into_iter().zip(samples) {
        let theirs = match stand.level.purpose {
            Purpose::Reference => from_beside(&observation, &reference.pids, &generator.thread_ids()),
            Purpose::Asked | Purpose::Saturating | Purpose::Profile => observation.clone(),
        };
        generator.stop().map_err(load_failed)?;
        let counted = Counted::Requests(Box::new(sample));
        driven.push(Driven { level: stand.index, counted, observation: theirs });
    }
    Ok(driven)
}

impl Drive<'_> {
    /// Their generators, started; the turns have another order in each trial.
    fn arms<'l>(
        &'l self,
        levels: &[(u32, &'l Level, u32)],
        turn: Duration,
        (sut, reference): (&mut Sut, &mut Sut),
        interrupt: &AtomicBool,
    ) -> Result<Vec<Arm<'l>>, LabError> {
        let begin_ns = monotonic_ns();
        let mut arms = Vec::with_capacity(levels.len());
        for (place, (index, level, trial)) in (0..).zip(levels) {
            let turns = Interleaving {
                begin_ns,
                turn_ns: nanoseconds(turn),
                rest_ns: 0,
                arms: levels.len() as u32,
                place,
                seed: self.seed ^ u64::from(*trial),
                slices: None,
            };
            let server = if level.purpose == Purpose::Reference { &mut *reference } else { &mut *sut };
            let stand = self.stand(*index, level);
            let mut spec = stand.spec(Pacing::Interleaved(turns), server);
            spec.workers.busy_poll = self.may_poll;
            let generator = start(&spec, server, interrupt)?;
            arms.push(Arm { stand, generator });
        }
        Ok(arms)
    }

    fn watch_interleaved(&self, sut: &Sut, reference: &Sut, arms: &[Arm]) -> Watch {
        let of_sut = |arm: &&Arm| arm.stand.level.purpose != Purpose::Reference;
        let load = arms.iter().filter(of_sut).flat_map(|arm| arm.generator.thread_ids()).collect();
        Watch { beside_pids: reference.pids.clone(), ..self.watch(sut, LoadWatch::Threads(load)) }
    }
}

/// The time that half of the requests take, of the slowest server. Cuts the generators' accounting.
pub(crate) fn slowest_median<'g>(generators: impl Iterator<Item = &'g mut Generator>) -> Duration {
    let median = |generator: &mut Generator| {
        let sample = generator.cut();
        let ns = sample.latency.value().and_then(|latency| latency.quantile_ns(0.5));
        ns.map_or(Duration::ZERO, Duration::from_nanos)
    };
    generators.map(median).max().unwrap_or(Duration::ZERO)
}

fn stop(arms: Vec<Arm>) -> Result<(), LabError> {
    arms.iter().for_each(|arm| arm.generator.end());
    arms.into_iter().try_for_each(|arm| arm.generator.stop().map_err(load_failed))
}

/// One of the servers that are interleaved.
struct Arm<'a> {
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
                Role::Sut | Role::Downstream | Role::Other => Role::Other,
            };
            task
        })
        .collect();
    let reported = |column: &&Column| match column.subject {
        Subject::Task(index) => tasks.get(index as usize).is_some_and(|task| task.role == Role::Sut),
        Subject::Cpu(_) => true,
        Subject::Machine | Subject::Group(_) | Subject::Device(_) => false,
    };
    // Its ends are all that its cost is taken from.
    let ends = |column: &Column| match column.samples.as_slice() {
        [first, .., last] => Column { samples: vec![*first, *last], ..column.clone() },
        _ => column.clone(),
    };
    let columns = observation.columns.iter().filter(reported).map(ends).collect();
    let (begin_ns, end_ns) = (observation.begin_ns, observation.end_ns);
    Observation { begin_ns, end_ns, tasks, columns, ..Observation::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::observation::{Sample, Task};
    use tare_model::{Missing, Reading};

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
