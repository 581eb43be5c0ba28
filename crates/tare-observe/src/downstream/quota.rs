//! How long a quota held each of the programs that are called back: of the group of its first process, or the nearest above that has one.

use super::called::Called;
use crate::scene::Scene;
use std::fs::File;
use std::os::unix::fs::FileExt;
use tare_machine::cgroup::{self, Level, Version};

const FILE_BYTES_MAX: usize = 2048;

#[derive(Default)]
pub(super) struct Quotas(Vec<Option<Quota>>);

struct Quota {
    file: File,
    version: Version,
    cpus: f64,
    /// At the first edge and at the last.
    throttled_ns: Option<(u64, u64)>,
}

impl Quotas {
    pub(super) fn begin(&mut self, scene: &Scene, called: &[Called]) {
        let quota = |program: &Called| Quota::of(scene, *program.pids.first()?);
        self.0 = called.iter().map(quota).collect();
    }

    pub(super) fn read(&mut self) {
        for quota in self.0.iter_mut().flatten() {
            if let Some(now_ns) = quota.now_ns() {
                quota.throttled_ns =
                    Some((quota.throttled_ns.map_or(now_ns, |(first_ns, _)| first_ns), now_ns));
            }
        }
    }

    /// How long it was held back between the edges, and the quota in CPUs.
    pub(super) fn of(&self, at: usize) -> (Option<u64>, Option<f64>) {
        let Some(Some(quota)) = self.0.get(at) else { return (None, None) };
        (quota.throttled_ns.map(|(first_ns, last_ns)| last_ns.saturating_sub(first_ns)), Some(quota.cpus))
    }
}

impl Quota {
    fn of(scene: &Scene, pid: u32) -> Option<Quota> {
        let levels = cgroup::of(&scene.root, pid).ok()?;
        let limited = |level: Level| {
            let quota = cgroup::quota(&scene.root, &level).ok()?;
            let cpus = quota.quota_ns? as f64 / quota.period_ns.max(1) as f64;
            Some((level, cpus))
        };
        let (level, cpus) = levels.into_iter().find_map(limited)?;
        let file = File::open(scene.root.path(level.stat())).ok()?;
        Some(Quota { file, version: level.version, cpus, throttled_ns: None })
    }

    fn now_ns(&self) -> Option<u64> {
        let mut bytes = [0; FILE_BYTES_MAX];
        let filled = self.file.read_at(&mut bytes, 0).ok()?;
        let text = std::str::from_utf8(bytes.get(..filled)?).ok()?;
        let (key, unit_ns) = match self.version {
            Version::V1 => ("throttled_time ", 1),
            Version::V2 => ("throttled_usec ", 1000),
        };
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim().parse::<u64>().ok()?.checked_mul(unit_ns)
    }
}
