//! Where threads ran: run is known by thread, and by CPU, but not by both at once; the samples of the last CPU
//! join them.

use crate::accounting::raw::cpus::CpuTimes;
use crate::accounting::raw::readings::Readings;
use crate::accounting::raw::threads::CountedThread;
use std::collections::BTreeMap;
use tare_model::metric::Subject;
use tare_model::metrics::tasks;
use tare_model::observation::Sample;

/// A thread with the CPUs it ran on.
#[derive(Debug, Clone)]
pub(crate) struct PlacedThread {
    pub counted: CountedThread,
    /// Run by CPU; sums to its run. A CPU on which it was only seen has an entry of 0.
    pub cpu_run_s: BTreeMap<u32, f64>,
}

impl PlacedThread {
    /// See [`share_on`].
    pub fn share_on(&self, cpu: u32) -> f64 {
        share_on(&self.cpu_run_s, self.counted.run_s, cpu)
    }

    fn is_pinned(&self) -> bool {
        self.counted.id.allowed.len() == 1
    }
}

/// The share of a thread's run on a CPU; where it did not run, evenly over the CPUs it was seen on.
pub(crate) fn share_on(cpu_run_s: &BTreeMap<u32, f64>, run_s: f64, cpu: u32) -> f64 {
    match cpu_run_s.get(&cpu) {
        None => 0.0,
        Some(on_it_s) if run_s > 0.0 => on_it_s / run_s,
        Some(_) => 1.0 / cpu_run_s.len() as f64,
    }
}

/// Places every thread.
pub(super) fn place(
    threads: Vec<CountedThread>,
    cpus: &BTreeMap<u32, CpuTimes>,
    readings: &Readings,
) -> Vec<PlacedThread> {
    let placed = |counted: CountedThread| {
        let (allowed, run_s) = (&counted.id.allowed, counted.run_s);
        let cpu_run_s = match counted.task {
            Some(index) => run_by_cpu(readings, index, allowed, run_s),
            // Evenly for now: moved to where all tasks together ran more than was seen.
            None => {
                let even = run_s / allowed.len().max(1) as f64;
                allowed.iter().map(|cpu| (*cpu, even)).collect()
            }
        };
        PlacedThread { counted, cpu_run_s }
    };
    let mut threads: Vec<PlacedThread> = threads.into_iter().map(placed).collect();
    move_off_overfull(&mut threads, cpus);
    threads
}

/// Divides a thread's run over CPUs: a pinned thread wholly to its CPU, another by the CPU that each sample of
/// its last CPU found it on, weighted by how much it ran between the samples. Empty where nothing is known.
fn run_by_cpu(readings: &Readings, index: u32, allowed: &[u32], run_s: f64) -> BTreeMap<u32, f64> {
    if let [only] = allowed {
        return BTreeMap::from([(*only, run_s)]);
    }
    let subject = Subject::Task(index);
    let seen = readings.samples(&tasks::LAST_CPU, &subject);
    let runs = readings.samples(&tasks::RUN_NS, &subject);
    let mut weights: BTreeMap<u32, f64> = BTreeMap::new();
    for pair in runs.windows(2) {
        let [before, after] = pair else { continue };
        let grown = (after.value - before.value).max(0.0);
        // Half to where it was at either end of the step: it moved somewhere between.
        for at_ns in [before.at_ns, after.at_ns] {
            if let Some(cpu) = cpu_at(&seen, at_ns) {
                *weights.entry(cpu).or_default() += 0.5 * grown;
            }
        }
    }
    if weights.is_empty() {
        let cpus: Vec<u32> = match seen.last() {
            Some(sample) => vec![sample.value as u32],
            None => allowed.to_vec(),
        };
        weights = cpus.into_iter().map(|cpu| (cpu, 1.0)).collect();
    }
    let sum: f64 = weights.values().sum();
    let even = 1.0 / weights.len().max(1) as f64;
    weights
        .into_iter()
        .map(|(cpu, weight)| (cpu, run_s * if sum > 0.0 { weight / sum } else { even }))
        .collect()
}

/// Where it was at a stamp: only changes are kept, so the last sample before holds until the next.
fn cpu_at(seen: &[Sample], at_ns: u64) -> Option<u32> {
    let next = seen.partition_point(|sample| sample.at_ns <= at_ns);
    let held = next.checked_sub(1).and_then(|before| seen.get(before)).or_else(|| seen.first())?;
    Some(held.value as u32)
}

/// Moves sampled (not pinned) run off CPUs that are given more than all tasks together ran there, to the CPUs
/// with room: samples of the last CPU are few, the run of all tasks of a CPU is exact.
fn move_off_overfull(threads: &mut [PlacedThread], cpus: &BTreeMap<u32, CpuTimes>) {
    let mut room_s: BTreeMap<u32, f64> =
        cpus.iter().filter_map(|(cpu, times)| Some((*cpu, times.task_run_s?))).collect();
    let mut movable_s: BTreeMap<u32, f64> = BTreeMap::new();
    for thread in threads.iter() {
        for (cpu, run_s) in &thread.cpu_run_s {
            room_s.entry(*cpu).and_modify(|room| *room -= run_s);
            if !thread.is_pinned() {
                *movable_s.entry(*cpu).or_default() += run_s;
            }
        }
    }
    for thread in threads.iter_mut().filter(|thread| !thread.is_pinned()) {
        let mut homeless_s = 0.0;
        for (cpu, run_s) in &mut thread.cpu_run_s {
            let (over, movable) = (-room_s.get(cpu).copied().unwrap_or(0.0), movable_s.get(cpu).copied());
            if let Some(movable) = movable.filter(|movable| over > 0.0 && *movable > 0.0) {
                let moved = *run_s * (over / movable).min(1.0);
                *run_s -= moved;
                homeless_s += moved;
            }
        }
        let allowed = &thread.counted.id.allowed;
        let welcome = |cpu: &u32, room: &f64| *room > 0.0 && (allowed.is_empty() || allowed.contains(cpu));
        let space: f64 = room_s.iter().filter(|(cpu, room)| welcome(cpu, room)).map(|(_, room)| room).sum();
        if homeless_s > 0.0 && space > 0.0 {
            for (cpu, room) in room_s.iter().filter(|(cpu, room)| welcome(cpu, room)) {
                *thread.cpu_run_s.entry(*cpu).or_default() += homeless_s * room / space;
            }
        } else if homeless_s > 0.0 {
            // Nowhere to put it: it stays where it was seen, and the residual shows it.
            let first = thread.cpu_run_s.values_mut().next();
            if let Some(run_s) = first {
                *run_s += homeless_s;
            }
        }
    }
}
