//! Where a probe runs: a thread of its own on a named CPU, which ends with it, so that nothing of the caller's
//! (affinity, policy, timer slack) has to be put back.

use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;
use tare_model::probes::CpuReading;
use tare_model::{CpuSet, Missing, Reading};
use tare_sys::affinity;

/// How much longer than it was given a probe may take: its first and last steps are not timed, and it waits its
/// turn on a busy CPU.
const GRACE: Duration = Duration::from_millis(400);

/// Runs `task` on `cpu`. One that has not ended [`GRACE`] after `duration_ns` is left to itself: a real-time
/// thread may hold the CPU for as long as it likes.
pub(super) fn on_cpu<T: Send + 'static>(
    cpu: u32,
    duration_ns: u64,
    task: impl FnOnce() -> Result<T, Missing> + Send + 'static,
) -> Result<T, Missing> {
    outcome(&[cpu], duration_ns, &start(cpu, task)?)
}

/// As [`on_cpu`] on the first of two CPUs, for a task that needs the other as well.
pub(super) fn on_first<T: Send + 'static>(
    cpus: [u32; 2],
    duration_ns: u64,
    task: impl FnOnce() -> Result<T, Missing> + Send + 'static,
) -> Result<T, Missing> {
    outcome(&cpus, duration_ns, &start(cpus[0], task)?)
}

/// Runs `task` on each of the CPUs at the same time.
pub(super) fn on_each<T: Send + 'static>(
    cpus: &[u32],
    duration_ns: u64,
    task: impl Fn() -> Result<T, Missing> + Clone + Send + 'static,
) -> Vec<CpuReading<T>> {
    let started: Vec<_> = cpus.iter().map(|&cpu| (cpu, start(cpu, task.clone()))).collect();
    let read = |(cpu, receiver): (u32, Result<Receiver<_>, Missing>)| CpuReading {
        cpu,
        found: Reading::from(receiver.and_then(|receiver| outcome(&[cpu], duration_ns, &receiver))),
    };
    started.into_iter().map(read).collect()
}

/// Moves the calling thread to `cpu`.
pub(super) fn pin(cpu: u32) -> Result<(), Missing> {
    affinity::set(0, &[cpu]).map_err(|error| Missing::new(format!("cannot run on CPU {cpu}: {error}")))
}

fn start<T: Send + 'static>(
    cpu: u32,
    task: impl FnOnce() -> Result<T, Missing> + Send + 'static,
) -> Result<Receiver<Result<T, Missing>>, Missing> {
    let (sender, receiver) = sync_channel(1);
    let thread = move || {
        // Nobody listens any more when it took too long.
        let _ = sender.send(pin(cpu).and_then(|()| task()));
    };
    let started = std::thread::Builder::new().name("tare-probe".into()).spawn(thread);
    started.map_err(|error| Missing::new(format!("no thread for the probe: {error}")))?;
    Ok(receiver)
}

fn outcome<T>(cpus: &[u32], duration_ns: u64, receiver: &Receiver<Result<T, Missing>>) -> Result<T, Missing> {
    let mut named = cpus.to_vec();
    named.sort_unstable();
    named.dedup();
    match receiver.recv_timeout(Duration::from_nanos(duration_ns).saturating_add(GRACE)) {
        Ok(outcome) => outcome,
        Err(RecvTimeoutError::Timeout) => Err(Missing::with_remedy(
            format!("the probe got too little of CPU {} to end in time", CpuSet::from(named.as_slice())),
            "see what else runs there (ps -eLo psr,cls,rtprio,pcpu,comm), or what quota holds this process back",
        )),
        Err(RecvTimeoutError::Disconnected) => Err(Missing::new("the probe's thread ended early")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_runs_where_it_should_and_leaves_the_caller_alone() {
        let before = affinity::get(0).unwrap();
        let cpus = before.clone();
        for found in on_each(&cpus, 1_000_000_000, || Ok(affinity::get(0).unwrap())) {
            assert_eq!(found.found, Reading::Measured(vec![found.cpu]));
        }
        assert_eq!(affinity::get(0).unwrap(), before);
    }

    #[test]
    fn a_cpu_that_is_not_there_and_a_probe_that_does_not_end_are_missing() {
        let missing = on_cpu(affinity::CPUS_MAX - 1, 0, || Ok(())).unwrap_err();
        assert!(missing.why.contains("cannot run on CPU"), "{}", missing.why);
        let cpu = affinity::get(0).unwrap()[0];
        let (release, held) = sync_channel::<()>(0);
        let missing = on_cpu(cpu, 0, move || {
            let _ = held.recv();
            Ok(())
        })
        .unwrap_err();
        assert!(missing.why.contains("too little"), "{}", missing.why);
        drop(release);
    }
}
