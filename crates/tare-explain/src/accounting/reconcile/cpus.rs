//! Who ran on each CPU: the threads' run against the run of all tasks.

use crate::accounting::raw::by_role::ByRole;
use crate::accounting::raw::cpus::CpuTimes;
use crate::accounting::reconcile::placement::PlacedThread;
use std::collections::BTreeMap;

/// A CPU with who ran on it.
#[derive(Debug, Clone)]
pub(crate) struct OccupiedCpu {
    pub times: CpuTimes,
    /// By the kernel's own figures: stolen time is in it where the kernel leaves it in.
    pub ran_s: ByRole,
}

/// Puts who ran on it beside the times of every CPU. What no thread that was seen explains is somebody else's.
pub(super) fn occupy(
    cpus: BTreeMap<u32, CpuTimes>,
    threads: &[PlacedThread],
    wall_s: f64,
) -> BTreeMap<u32, OccupiedCpu> {
    let unoccupied = |times: CpuTimes| OccupiedCpu { times, ran_s: ByRole::default() };
    let mut cpus: BTreeMap<u32, OccupiedCpu> =
        cpus.into_iter().map(|(cpu, times)| (cpu, unoccupied(times))).collect();
    for thread in threads {
        for (cpu, run_s) in &thread.cpu_run_s {
            let occupied =
                cpus.entry(*cpu).or_insert_with(|| unoccupied(CpuTimes { wall_s, ..CpuTimes::default() }));
            *occupied.ran_s.of_mut(thread.counted.id.role) += run_s;
        }
    }
    for occupied in cpus.values_mut() {
        let Some(all_s) = occupied.times.task_run_s else { continue };
        let ours_s =
            occupied.ran_s.sut + occupied.ran_s.downstream + occupied.ran_s.load + occupied.ran_s.tare;
        occupied.ran_s.other = (all_s - ours_s).max(0.0);
    }
    cpus
}
