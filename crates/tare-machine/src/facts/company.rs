//! Who else uses CPU: two snapshots of `/proc`.

use crate::cpu_times::{self, CpuTicks, TICK_NS};
use crate::procs;
use crate::root::Root;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tare_model::Missing;
use tare_model::survey::{Busy, Company};

/// Processes that are read, and those that are named.
const PROCESSES_MAX: usize = 32_768;
const NAMED_MAX: usize = 10;

/// The first snapshot.
pub(super) struct Snapshot {
    at: Instant,
    cpu: Result<CpuTicks, Missing>,
    processes: BTreeMap<(u32, u64), (String, u64)>,
}

impl Snapshot {
    pub(super) fn take(root: &Root) -> Snapshot {
        Snapshot { at: Instant::now(), cpu: cpu_times::of_all(root), processes: processes(root) }
    }

    /// Waits until the window is over, looks again, and tells who was there.
    pub(super) fn finish(self, root: &Root, window: Duration) -> Company {
        std::thread::sleep(window.saturating_sub(self.at.elapsed()));
        let second = Snapshot::take(root);
        let window = second.at.duration_since(self.at);
        let seconds = window.as_secs_f64().max(1e-3);
        let me = std::process::id();
        let used = |(key, (name, ticks)): (&(u32, u64), &(String, u64))| {
            let before = self.processes.get(key).map_or(0, |(_, ticks)| *ticks);
            // Who was not there at the first snapshot began since, and all that it used is of this window.
            Some((key.0, name.clone(), ticks.checked_sub(before)?))
        };
        let mut busy: Vec<(u32, String, u64)> = second.processes.iter().filter_map(used).collect();
        let own = busy.iter().find(|(pid, ..)| *pid == me).map_or(0, |(.., ticks)| *ticks);
        busy.retain(|(pid, _, ticks)| *pid != me && *ticks > 0);
        busy.sort_by(|a, b| b.2.cmp(&a.2).then(a.0.cmp(&b.0)));
        let cpus = |ticks: u64| ticks.saturating_mul(TICK_NS) as f64 / 1e9 / seconds;
        let between = self.cpu.clone().and_then(|first| Ok((first, second.cpu.clone()?)));
        Company {
            window_ns: u64::try_from(window.as_nanos()).unwrap_or(u64::MAX),
            busy_cpus: between
                .clone()
                .map(|(first, second)| cpus(second.busy().saturating_sub(first.busy()).saturating_sub(own)))
                .into(),
            steal_share: between.and_then(|(first, second)| share(first, second)).into(),
            runnable: runnable(root).into(),
            load_1min: load(root).into(),
            processes: busy
                .into_iter()
                .take(NAMED_MAX)
                .map(|(pid, name, ticks)| Busy { pid, name, cpus: cpus(ticks) })
                .collect(),
        }
    }
}

fn share(first: CpuTicks, second: CpuTicks) -> Result<f64, Missing> {
    match second.all().saturating_sub(first.all()) {
        0 => Err(Missing::new("/proc/stat did not move between the two snapshots")),
        all => Ok(second.steal.saturating_sub(first.steal) as f64 / all as f64),
    }
}

/// CPU time of each process, by its number and start.
fn processes(root: &Root) -> BTreeMap<(u32, u64), (String, u64)> {
    let pids = root.numbers("/proc").unwrap_or_default().into_iter().take(PROCESSES_MAX);
    let process = |pid: u32| {
        let text = root.text(format!("/proc/{pid}/stat")).ok()?;
        let stat = procs::parse_stat(&text)?;
        let (_, rest) = text.rsplit_once(") ")?;
        let mut fields = rest.split_ascii_whitespace().skip(11);
        let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        Some(((pid, stat.start_ticks), (stat.name, user.saturating_add(system))))
    };
    pids.filter_map(process).collect()
}

/// Tasks that run or are ready to, without the one that reads.
fn runnable(root: &Root) -> Result<u64, Missing> {
    let text = root.text("/proc/loadavg")?;
    let field = text.split_ascii_whitespace().nth(3).and_then(|field| field.split_once('/'));
    let running = field.and_then(|(running, _)| running.parse::<u64>().ok());
    running
        .map(|running| running.saturating_sub(1))
        .ok_or_else(|| crate::root::nonsense("/proc/loadavg".as_ref(), &text))
}

fn load(root: &Root) -> Result<f64, Missing> {
    let text = root.text("/proc/loadavg")?;
    let field = text.split_ascii_whitespace().next().and_then(|field| field.parse::<f64>().ok());
    let valid = field.filter(|load| load.is_finite() && *load >= 0.0);
    valid.ok_or_else(|| crate::root::nonsense("/proc/loadavg".as_ref(), &text))
}
