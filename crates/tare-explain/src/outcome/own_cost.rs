//! What the measuring itself took.

use crate::accounting::Closed;
use crate::capacity::levels::Accounting;
use std::collections::BTreeSet;
use tare_model::Reading;
use tare_model::observation::Role;
use tare_model::outcome::OwnCost;
use tare_model::pack::packed_bytes;
use tare_model::trial::Trial;

/// Trials whose observations are packed to see how large they are.
const PACKED_MAX: usize = 4;
/// Less run than this on a CPU is a visit to it, not a stay.
const SEEN_S_MIN: f64 = 1e-6;

/// Of the trials that the accounting is about.
pub(crate) fn own_cost(accounting: &Accounting) -> OwnCost {
    let pool = &accounting.asked.pool;
    let per_second = |run_s: f64| if pool.span.wall_s > 0.0 { run_s / pool.span.wall_s } else { 0.0 };
    let run_s = |role| total(pool.threads_of(role).map(|thread| thread.run_s));
    OwnCost {
        observers_cpus: of_tare(pool, || per_second(run_s(Role::Tare))),
        observers_ran_on: ran_on(pool, Role::Tare),
        observers_on_sut_cpus: of_tare(pool, || on_sut_cpus(accounting)),
        generator_cpus: accounting.http.is_some().then(|| per_second(run_s(Role::Load))),
        generator_ran_on: ran_on(pool, Role::Load),
        recorded_bytes_hz: recorded_bytes_hz(&accounting.record.trials),
    }
}

/// What tare took; missing where none of its threads could be read.
fn of_tare(pool: &Closed, cpus: impl Fn() -> f64) -> Reading<f64> {
    match pool.threads_of(Role::Tare).next() {
        Some(_) => Reading::Measured(cpus()),
        None => Reading::missing("none of tare's own threads could be read"),
    }
}

/// CPU time per second that the observers took on the SUT's CPUs.
pub(crate) fn on_sut_cpus(accounting: &Accounting) -> f64 {
    let pool = &accounting.asked.pool;
    let cpus = accounting.record.plan.sut_cpus.iter().filter_map(|cpu| pool.cpus.get(cpu));
    let run_s = total(cpus.map(|cpu| cpu.ran_s.tare));
    if pool.span.wall_s > 0.0 { run_s / pool.span.wall_s } else { 0.0 }
}

/// A sum that is 0 where there is nothing to add: that of no floats is −0, which a reader of the JSON would stumble over.
fn total(parts: impl Iterator<Item = f64>) -> f64 {
    parts.sum::<f64>() + 0.0
}

fn ran_on(pool: &Closed, role: Role) -> Vec<u32> {
    let runs = pool.threads_of(role).flat_map(|thread| &thread.cpu_run_s);
    let cpus: BTreeSet<u32> = runs.filter(|(_, run_s)| **run_s > SEEN_S_MIN).map(|(cpu, _)| *cpu).collect();
    cpus.into_iter().collect()
}

fn recorded_bytes_hz(trials: &[Trial]) -> f64 {
    let some = || trials.iter().take(PACKED_MAX).map(|trial| &trial.observation);
    let wall_s = some().map(|seen| seen.wall_ns() as f64 / 1e9).sum::<f64>();
    let bytes: u64 = some().map(packed_bytes).sum();
    if wall_s > 0.0 { bytes as f64 / wall_s } else { 0.0 }
}
