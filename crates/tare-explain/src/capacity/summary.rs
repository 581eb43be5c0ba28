//! Short facts out of the pooled accounting, for findings, warnings and the outcome.

use crate::accounting::Asleep;
use crate::accounting::Closed;
use crate::accounting::Loss;
use crate::capacity::levels::Accounting;
use std::collections::{BTreeMap, BTreeSet};
use tare_model::latency::Latencies;
use tare_model::observation::Role;
use tare_model::stacks::Stacks;
use tare_model::trial::{HttpSample, Measure, Trial};

/// A CPU counts as used by the SUT from this share of its time on,
const USED_SHARE: f64 = 0.05;
/// or, where others leave it less everywhere, from this share of all that the SUT ran.
const OF_ITS_OWN_SHARE: f64 = 0.2;
/// Who finds a CPU busy with others for so much of the time is better off beside somebody on another one.
const FILLED_SHARE: f64 = 0.7;

/// So many answers lie beyond a percentile of a trial at least: fewer make it a matter of single requests.
const BEYOND_MIN: f64 = 10.0;

/// A percentile of a trial's latencies, seconds; `None` where too few answers lie beyond it.
pub(crate) fn quantile_s(sample: &HttpSample, quantile: f64) -> Option<f64> {
    let ns = match sample.latency.value() {
        Some(latencies) => {
            let enough = latencies.count() as f64 * (1.0 - quantile) >= BEYOND_MIN;
            latencies.quantile_ns(quantile).filter(|_| enough)?
        }
        None => {
            let printed = |reported: &&(f64, u64)| (reported.0 - quantile).abs() < 1e-6;
            sample.printed_quantiles_ns.iter().find(printed)?.1
        }
    };
    (ns > 0).then(|| ns as f64 / 1e9)
}

/// Names of a role's busiest threads, each once.
pub(crate) fn names_of(pool: &Closed, role: Role) -> String {
    let mut run_s: BTreeMap<&str, f64> = BTreeMap::new();
    for thread in pool.threads_of(role).filter(|thread| thread.serves()) {
        *run_s.entry(thread.id.name.as_str()).or_default() += thread.run_s;
    }
    let mut names: Vec<(&str, f64)> = run_s.into_iter().collect();
    names.sort_by(|a, b| b.1.total_cmp(&a.1));
    let names: Vec<&str> = names.into_iter().take(3).map(|(name, _)| name).collect();
    if names.is_empty() { "no thread at work".to_owned() } else { names.join(", ") }
}

/// Who else ran on the SUT's CPUs: `name/pid` and the CPUs' worth of time it ran there, busiest first.
pub(crate) fn neighbours(pool: &Closed) -> Vec<(String, f64)> {
    let all_s: f64 = pool.cpus.values().map(|accounting| accounting.ran_s.sut).sum();
    let is_used = |ran_s: f64, wall_s: f64| {
        ran_s > USED_SHARE * wall_s || (ran_s > 0.0 && ran_s >= OF_ITS_OWN_SHARE * all_s)
    };
    let used = pool.cpus.iter().filter(|(_, one)| is_used(one.ran_s.sut, one.times.wall_s));
    let sut_cpus: Vec<u32> = used.map(|(cpu, _)| *cpu).collect();
    others_on(pool, &sut_cpus)
}

/// Who else ran on these CPUs, as [`neighbours`] gives them. Those that ended are known by their name alone.
fn others_on(pool: &Closed, cpus: &[u32]) -> Vec<(String, f64)> {
    let mut processes: BTreeMap<(u32, &str), (&str, f64)> = BTreeMap::new();
    for thread in pool.threads_of(Role::Other) {
        let on = cpus.iter().filter_map(|cpu| thread.cpu_run_s.get(cpu));
        let name = thread.id.name.as_str();
        let key = (thread.id.pid, if thread.id.pid == 0 { name } else { "" });
        let entry = processes.entry(key).or_insert((name, 0.0));
        entry.1 += on.sum::<f64>();
        if thread.id.tid == thread.id.pid {
            entry.0 = name;
        }
    }
    let share = |run_s: f64| if pool.span.wall_s > 0.0 { run_s / pool.span.wall_s } else { 0.0 };
    let named = |pid: u32, name: &str| {
        // Its own threads are not among them.
        let name = if name == "tare" { "another tare" } else { name };
        if pid == 0 { name.to_owned() } else { format!("{name}/{pid}") }
    };
    let mut busiest: Vec<(String, f64)> = processes
        .into_iter()
        .map(|((pid, _), (name, run_s))| (named(pid, name), share(run_s)))
        .filter(|(_, share)| *share >= 0.005)
        .collect();
    busiest.sort_by(|a, b| b.1.total_cmp(&a.1));
    busiest
}

/// A CPU that server or generator may use, and that others filled.
pub(crate) struct Filled {
    pub cpu: u32,
    /// Which share of its time all others ran there.
    pub share: f64,
    /// Who of them ran there most; `None` where nobody was seen.
    pub by: Option<String>,
}

/// CPUs that server or generator may use, and that others filled so that both hardly ran there.
pub(crate) fn filled_by_others(pool: &Closed) -> Vec<Filled> {
    let own = [Role::Sut, Role::Load].into_iter().flat_map(|role| pool.threads_of(role));
    let allowed: BTreeSet<u32> = own.flat_map(|thread| thread.id.allowed.iter().copied()).collect();
    let filled = pool.cpus.iter().filter_map(|(cpu, accounting)| {
        let share = accounting.ran_s.other / accounting.times.wall_s;
        let is_filled = allowed.contains(cpu) && accounting.times.wall_s > 0.0 && share >= FILLED_SHARE;
        is_filled.then(|| {
            let by = others_on(pool, &[*cpu]).into_iter().next().map(|(name, _)| name);
            Filled { cpu: *cpu, share, by }
        })
    });
    filled.collect()
}

/// CPUs that server and generator both used, with the share of each.
pub(crate) fn shared_cpus(pool: &Closed) -> Vec<(u32, f64, f64)> {
    let shares =
        pool.cpus.iter().filter(|(_, accounting)| accounting.times.wall_s > 0.0).map(|(cpu, accounting)| {
            (
                *cpu,
                accounting.ran_s.sut / accounting.times.wall_s,
                accounting.ran_s.load / accounting.times.wall_s,
            )
        });
    shares.filter(|(_, sut, load)| *sut > USED_SHARE && *load > USED_SHARE).collect()
}

/// Pairs of different CPUs on one physical core, the first used by the server, the second by the generator.
pub(crate) fn shared_cores(accounting: &Accounting) -> Vec<(u32, u32)> {
    let pool = &accounting.asked.pool;
    let used = |cpu: &u32, role: Role| {
        pool.cpus
            .get(cpu)
            .is_some_and(|accounting| accounting.ran_s.of(role) > USED_SHARE * accounting.times.wall_s)
    };
    let mut pairs = Vec::new();
    for facts in accounting.record.machine.cpus.iter().filter(|facts| used(&facts.cpu, Role::Sut)) {
        let siblings = facts.siblings.value().into_iter().flatten();
        pairs.extend(
            siblings
                .filter(|sibling| **sibling != facts.cpu && used(sibling, Role::Load))
                .map(|sibling| (facts.cpu, *sibling)),
        );
    }
    pairs
}

/// Share of the SUT's CPU entitlement in which the program waited for itself.
pub(crate) fn program_wait(accounting: &Accounting, why: Asleep) -> f64 {
    accounting.sut().map_or(0.0, |sut| sut.share(Loss::Program(why)))
}

impl Accounting<'_> {
    /// The asked level's trials.
    pub fn asked_trials(&self) -> impl Iterator<Item = &Trial> {
        let trials = self.measured_trials().map(|(_, trial)| trial);
        trials.filter(|trial| matches!(trial.sample, Measure::Http(_)))
    }

    /// Call stacks under the asked load: of its trials where they were sampled there, else of the profile after them.
    pub fn sampled(&self) -> Vec<&Stacks> {
        let trials = self.measured_trials().filter_map(|(_, trial)| trial.observation.stacks.as_deref());
        let of_trials: Vec<&Stacks> = trials.collect();
        if of_trials.is_empty() { self.record.profile.iter().collect() } else { of_trials }
    }

    /// The generator's side of them.
    pub fn samples(&self) -> impl Iterator<Item = &HttpSample> {
        self.asked_trials().filter_map(|trial| match &trial.sample {
            Measure::Http(sample) => Some(sample),
            Measure::Command(_) => None,
        })
    }

    /// Latencies of the asked level, merged; `None` where a foreign generator kept them to itself.
    pub fn latencies(&self) -> Option<Latencies> {
        let mut merged: Option<Latencies> = None;
        for latencies in self.samples().filter_map(|sample| sample.latency.value()) {
            match &mut merged {
                Some(merged) => merged.merge(latencies),
                None => merged = Some(latencies.clone()),
            }
        }
        merged.filter(|merged| merged.count() > 0)
    }

    /// Connections of the load as it was planned; of another generator as many as it says that it had.
    pub fn connections(&self) -> Option<f64> {
        let planned = self.http.zip(self.asked_level()).and_then(|(http, level)| http.connections_of(level));
        planned.map(f64::from).or_else(|| self.asked.pool.answered.in_flight())
    }

    /// Requests that so many connections keep in flight.
    pub fn kept_in_flight(&self) -> Option<f64> {
        let depth = self.asked_level().map_or(1, |level| level.pipeline.max(1));
        self.connections().map(|connections| connections * f64::from(depth))
    }

    /// How long the answers of the asked level took to begin; empty where that was not counted.
    pub fn begun(&self) -> Latencies {
        let mut begun = Latencies::new();
        for detail in self.samples().filter_map(|sample| sample.detail.as_deref()) {
            begun.merge(&detail.first_byte);
        }
        begun
    }

    /// Mean time of a request at the asked level, seconds.
    pub fn mean_latency_s(&self) -> Option<f64> {
        self.latencies()?.mean_ns().map(|mean_ns| mean_ns / 1e9)
    }
}
