//! Control groups on the way from the process that reads to the root.

use super::files;
use crate::cgroup::{self, Branch, Version};
use crate::root::{Root, nonsense};
use std::path::Path;
use tare_model::survey::{CpuGroup, CpusetGroup, Groups, MemoryGroup, Quota, Throttling};
use tare_model::{CpuSet, Missing, Reading};

const US: u64 = 1000;
/// Longest state of a partition with its reason.
const PARTITION_CHARS_MAX: usize = 200;
/// The weight of a group that nobody has set one for.
const SHARES_DEFAULT: f64 = 1024.0;
const WEIGHT_DEFAULT: f64 = 100.0;
/// v1 writes "no limit" as the largest multiple of a page.
const V1_UNLIMITED_FROM: u64 = 1 << 62;

pub(super) fn read(root: &Root) -> Groups {
    let cpu = cgroup::own(root, "cpu");
    let status = root.text("/proc/self/status");
    let allowed = |key: &str| {
        let text = status.as_ref().map_err(Missing::clone)?;
        let list = files::field(text, key).and_then(CpuSet::from_list).filter(|set| !set.is_empty());
        list.ok_or_else(|| Missing::new(format!("/proc/self/status has no {}", key.trim_end_matches(':'))))
    };
    Groups {
        sees_root: cpu.as_ref().map(|branch| sees_root(root, branch)).map_err(Missing::clone).into(),
        cpu: each(cpu, |version, path, dir| cpu_group(root, version, path, dir)),
        cpuset: each(cgroup::own(root, "cpuset"), |version, path, dir| {
            cpuset_group(root, version, path, dir)
        }),
        memory: each(cgroup::own(root, "memory"), |version, path, dir| {
            memory_group(root, version, path, dir)
        }),
        allowed_cpus: allowed("Cpus_allowed_list:").into(),
        allowed_nodes: allowed("Mems_allowed_list:").into(),
    }
}

fn each<T>(branch: Result<Branch, Missing>, read: impl Fn(Version, String, &Path) -> T) -> Reading<Vec<T>> {
    let levels = |branch: Branch| {
        branch.levels.into_iter().map(|(path, dir)| read(branch.version, path, &dir)).collect()
    };
    branch.map(levels).into()
}

/// Only the machine's root group has no quota (v2), or an agent for groups that empty (v1).
fn sees_root(root: &Root, branch: &Branch) -> bool {
    branch.levels.last().is_some_and(|(_, dir)| match branch.version {
        Version::V1 => root.exists(dir.join("release_agent")),
        Version::V2 => !root.exists(dir.join("cgroup.type")) && root.exists(dir.join("cgroup.controllers")),
    })
}

/// Why a file of v2 may rightly not be there.
fn without(root: &Root, version: Version, dir: &Path, controller: &str) -> Option<String> {
    if version == Version::V1 {
        return None;
    }
    let controllers = root.text(dir.join("cgroup.controllers")).ok()?;
    if !controllers.split_ascii_whitespace().any(|name| name == controller) {
        return Some(format!("the {controller} controller is not enabled for this group"));
    }
    (!root.exists(dir.join("cgroup.type"))).then(|| "the root group has no such limit".to_string())
}

fn none<T>(why: impl Into<String>) -> Reading<T> {
    Reading::NotApplicable { not_applicable: why.into() }
}

fn cpu_group(root: &Root, version: Version, path: String, dir: &Path) -> CpuGroup {
    let quota = match without(root, version, dir, "cpu") {
        Some(why) => none(why),
        None => quota(root, version, dir).unwrap_or_else(Reading::Missing),
    };
    let weight = match version {
        Version::V1 => root.value(dir.join("cpu.shares")).map(|shares: u64| shares as f64 / SHARES_DEFAULT),
        Version::V2 => root.value(dir.join("cpu.weight")).map(|weight: u64| weight as f64 / WEIGHT_DEFAULT),
    };
    let known =
        |file: &str, read: fn(&Root, &Path) -> Result<f64, Missing>| match without(root, version, dir, "cpu")
        {
            Some(why) => none(why),
            None => read(root, &dir.join(file)).into(),
        };
    let throttling = throttling(root, dir);
    let local = held_back(root, &dir.join("cpu.stat.local"));
    CpuGroup {
        path,
        quota,
        weight: weight.into(),
        idle: idle(root, version, dir),
        uclamp_min_ratio: known("cpu.uclamp.min", percentage),
        uclamp_max_ratio: known("cpu.uclamp.max", percentage),
        throttling: throttling.into(),
        throttled_local_ns: local.into(),
    }
}

fn idle(root: &Root, version: Version, dir: &Path) -> Reading<bool> {
    match without(root, version, dir, "cpu") {
        Some(why) => none(why),
        None => files::switch(root, &dir.join("cpu.idle").to_string_lossy()).into(),
    }
}

/// `50.00` of a hundred, or `max`, as a ratio.
fn percentage(root: &Root, file: &Path) -> Result<f64, Missing> {
    let text = root.text(file)?;
    let percent = match text.trim() {
        "max" => Some(100.0),
        number => number.parse::<f64>().ok(),
    };
    let valid = percent.filter(|percent| (0.0..=100.0).contains(percent));
    valid.map(|percent| percent / 100.0).ok_or_else(|| nonsense(file, &text))
}

fn quota(root: &Root, version: Version, dir: &Path) -> Result<Reading<Quota>, Missing> {
    let (quota_us, period_us) = match version {
        Version::V1 => {
            let quota: i64 = root.value(dir.join("cpu.cfs_quota_us"))?;
            (
                if quota < 0 { None } else { Some(quota.unsigned_abs()) },
                root.value(dir.join("cpu.cfs_period_us"))?,
            )
        }
        Version::V2 => {
            let file = dir.join("cpu.max");
            let text = root.text(&file)?;
            let parsed = text.trim().split_once(' ').and_then(|(quota, period)| {
                let quota = if quota == "max" { None } else { Some(quota.parse::<u64>().ok()?) };
                Some((quota, period.parse::<u64>().ok()?))
            });
            parsed.ok_or_else(|| nonsense(&file, &text))?
        }
    };
    let Some(quota_us) = quota_us else { return Ok(none("no quota")) };
    match (quota_us.checked_mul(US), period_us.checked_mul(US)) {
        (Some(quota_ns), Some(period_ns)) if quota_ns > 0 && period_ns > 0 => {
            Ok(Reading::Measured(Quota { quota_ns, period_ns }))
        }
        _ => Err(nonsense(dir, &format!("a quota of {quota_us} µs in {period_us} µs"))),
    }
}

fn throttling(root: &Root, dir: &Path) -> Result<Throttling, Missing> {
    let file = dir.join("cpu.stat");
    let text = root.text(&file)?;
    let number = |key: &str| files::field(&text, key).and_then(|value| value.parse::<u64>().ok());
    let parsed = (|| {
        Some(Throttling {
            periods: number("nr_periods ")?,
            throttled_periods: number("nr_throttled ")?,
            throttled_ns: throttled_ns(&text)?,
        })
    })();
    parsed.ok_or_else(|| Missing::new(format!("{} counts no throttling", file.display())))
}

/// v1 counts nanoseconds, v2 microseconds.
fn throttled_ns(text: &str) -> Option<u64> {
    let v1 = files::field(text, "throttled_time ").and_then(|value| value.parse().ok());
    v1.or_else(|| files::field(text, "throttled_usec ")?.parse::<u64>().ok()?.checked_mul(US))
}

fn held_back(root: &Root, file: &Path) -> Result<u64, Missing> {
    let text = root.text(file)?;
    throttled_ns(&text).ok_or_else(|| nonsense(file, &text))
}

fn cpuset_group(root: &Root, version: Version, path: String, dir: &Path) -> CpusetGroup {
    let list = |names: &[&str]| {
        let found = names.iter().find_map(|name| {
            let text = root.text(dir.join(name)).ok()?;
            CpuSet::from_list(&text).filter(|set| !set.is_empty())
        });
        found.ok_or_else(|| Missing::new(format!("{} tells no {}", dir.display(), names[0])))
    };
    if let Some(why) =
        without(root, version, dir, "cpuset").filter(|_| !root.exists(dir.join("cpuset.cpus.effective")))
    {
        return CpusetGroup { path, partition: none(why.clone()), cpus: none(why.clone()), nodes: none(why) };
    }
    let partition = match version {
        Version::V1 => none("v1 has no partitions"),
        // The top is a partition of its own, and has no such file.
        Version::V2 if !root.exists(dir.join("cgroup.type")) => none("the root group has no such setting"),
        Version::V2 => partition(root, &dir.join("cpuset.cpus.partition")).into(),
    };
    // v1's names differ when its tree is mounted with `noprefix`.
    CpusetGroup {
        path,
        partition,
        cpus: list(&["cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus", "cpus"]).into(),
        nodes: list(&["cpuset.mems.effective", "cpuset.effective_mems", "cpuset.mems", "mems"]).into(),
    }
}

/// With the kernel's reason, where it is not valid.
fn partition(root: &Root, path: &Path) -> Result<String, Missing> {
    let text = root.text(path)?;
    let partition = text.trim();
    let is_known = ["member", "root", "isolated"].iter().any(|kind| partition.starts_with(kind));
    if is_known && partition.chars().count() <= PARTITION_CHARS_MAX && !partition.contains(char::is_control) {
        Ok(partition.to_owned())
    } else {
        Err(crate::root::nonsense(path, &text))
    }
}

fn memory_group(root: &Root, version: Version, path: String, dir: &Path) -> MemoryGroup {
    let (limit, high, used) = match version {
        Version::V1 => ("memory.limit_in_bytes", "", "memory.usage_in_bytes"),
        Version::V2 => ("memory.max", "memory.high", "memory.current"),
    };
    let why = without(root, version, dir, "memory");
    let bytes = |file: &str| match &why {
        Some(why) => none(why),
        None => limit_bytes(root, &dir.join(file)),
    };
    MemoryGroup {
        limit_bytes: bytes(limit),
        high_bytes: if high.is_empty() { none("v1 has no such limit") } else { bytes(high) },
        used_bytes: bytes(used),
        page_cache_bytes: match &why {
            Some(why) => none(why),
            None => page_cache_bytes(root, version, &dir.join("memory.stat")).into(),
        },
        path,
    }
}

/// Pages of files that may be dropped; memory that is shared has pages of its own kind.
fn page_cache_bytes(root: &Root, version: Version, file: &Path) -> Result<u64, Missing> {
    let text = root.text(file)?;
    let names = match version {
        Version::V1 => ["total_active_file", "total_inactive_file"],
        Version::V2 => ["active_file", "inactive_file"],
    };
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.trim().parse::<u64>().ok())
    };
    let [active, inactive] = names.map(value);
    let sum = active.zip(inactive).and_then(|(active, inactive)| active.checked_add(inactive));
    sum.ok_or_else(|| Missing::new(format!("{} does not say how much is page cache", file.display())))
}

fn limit_bytes(root: &Root, file: &Path) -> Reading<u64> {
    let text = match root.text(file) {
        Ok(text) => text,
        Err(missing) => return Reading::Missing(missing),
    };
    match text.trim().parse::<u64>() {
        Ok(bytes) if bytes < V1_UNLIMITED_FROM => Reading::Measured(bytes),
        Ok(_) => none("no limit"),
        Err(_) if text.trim() == "max" => none("no limit"),
        Err(_) => Reading::Missing(nonsense(file, &text)),
    }
}
