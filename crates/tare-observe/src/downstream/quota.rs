//! How long a quota held each of the programs that are called back: of the group of its first process and of all above it, the one that
//! held it back the longest.

use super::called::Called;
use crate::scene::Scene;
use std::fs::File;
use std::os::unix::fs::FileExt;
use tare_machine::cgroup::{self, Level, Version};

const FILE_BYTES_MAX: usize = 2048;

/// Of each program, from its own group up.
#[derive(Default)]
pub(super) struct Quotas(Vec<Vec<Quota>>);

struct Quota {
    file: File,
    version: Version,
    cpus: f64,
    /// At the first edge and at the last.
    throttled_ns: Option<(u64, u64)>,
}

impl Quotas {
    pub(super) fn begin(&mut self, scene: &Scene, called: &[Called]) {
        let quotas =
            |program: &Called| program.pids.first().map_or_else(Vec::new, |pid| Quota::all(scene, *pid));
        self.0 = called.iter().map(quotas).collect();
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
        let quotas = self.0.get(at).map_or(&[][..], Vec::as_slice);
        // Where none did, the smallest.
        let most = quotas
            .iter()
            .max_by(|a, b| a.held_ns().cmp(&b.held_ns()).then_with(|| b.cpus.total_cmp(&a.cpus)));
        most.map_or((None, None), |quota| (quota.held_ns(), Some(quota.cpus)))
    }
}

impl Quota {
    fn all(scene: &Scene, pid: u32) -> Vec<Quota> {
        let limited = |level: Level| {
            let quota = cgroup::quota(&scene.root, &level).ok()?;
            let cpus = quota.quota_ns? as f64 / quota.period_ns.max(1) as f64;
            let file = File::open(scene.root.path(level.stat())).ok()?;
            Some(Quota { file, version: level.version, cpus, throttled_ns: None })
        };
        cgroup::of(&scene.root, pid).unwrap_or_default().into_iter().filter_map(limited).collect()
    }

    /// Between the edges; `None` where it was not read.
    fn held_ns(&self) -> Option<u64> {
        self.throttled_ns.map(|(first_ns, last_ns)| last_ns.saturating_sub(first_ns))
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

#[cfg(test)]
mod tests {
    use super::*;
    use tare_machine::Root;

    #[test]
    fn of_nested_quotas_the_one_that_held_counts() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let throttled = |group: &str, usec: u64| {
            put(&format!("sys/fs/cgroup{group}/cpu.stat"), &format!("usage_usec 1\nthrottled_usec {usec}\n"));
        };
        put("proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
        put("proc/50/cgroup", "0::/web/db\n");
        put("sys/fs/cgroup/web/cpu.max", "30000 100000\n");
        put("sys/fs/cgroup/web/db/cpu.max", "200000 100000\n");
        let scene = Scene::new(crate::Watch::default(), &Root::at(dir.path()));
        let held = |held_usec: [u64; 2]| {
            let mut quotas = Quotas(vec![Vec::new()]);
            ["/web", "/web/db"].iter().for_each(|group| throttled(group, 5));
            quotas.0 = vec![Quota::all(&scene, 50)];
            quotas.read();
            for (group, usec) in ["/web", "/web/db"].iter().zip(held_usec) {
                throttled(group, 5 + usec);
            }
            quotas.read();
            quotas.of(0)
        };
        assert_eq!(held([700, 0]), (Some(700_000), Some(0.3)), "the group above");
        assert_eq!(held([0, 700]), (Some(700_000), Some(2.0)), "its own");
        assert_eq!(held([0, 0]), (Some(0), Some(0.3)), "neither: the smaller");
        assert_eq!(Quotas::default().of(0), (None, None));
    }
}
