//! The quota of a control group.

use super::setting::{Change, Setting};
use super::wanted::{Group, Wanted};
use crate::cgroup::{self, Level, Version};
use crate::root::Root;
use crate::value::{self, Step};
use tare_model::Missing;

/// The kernel takes no less than 1 ms in a period.
const QUOTA_US_MIN: u64 = 1000;
/// No period is longer than 1 s.
const PERIOD_US: std::ops::RangeInclusive<u64> = 1000..=1_000_000;

/// How much CPU time a group may use in each period.
#[derive(Debug)]
pub(super) struct CpuQuota;

impl Setting for CpuQuota {
    fn name(&self) -> &'static str {
        "quota"
    }

    fn about(&self) -> &'static str {
        "CPU time that a control group may use (with --pid or --cgroup)"
    }

    fn now(&self, root: &Root) -> Result<String, Missing> {
        if !root.is_live() {
            return Err(Missing::new("this process is in no group of a captured machine"));
        }
        let levels = cgroup::of(root, std::process::id())?;
        let limited = |level: &Level| {
            let quota = cgroup::quota(root, level).ok()?;
            let cpus = quota.quota_ns? as f64 / quota.period_ns.max(1) as f64;
            Some(format!("{} has {:.0} %", level.path, cpus * 100.0))
        };
        let found: Vec<String> = levels.iter().filter_map(limited).collect();
        Ok(if found.is_empty() { "none on this process".to_string() } else { found.join(", ") })
    }

    fn change(&self, root: &Root, wanted: &Wanted) -> Option<Result<Change, Missing>> {
        let wanted = wanted.quota.as_ref()?;
        Some(group(root, &wanted.group).and_then(|level| steps(root, &level, wanted.cpus)))
    }
}

fn group(root: &Root, group: &Group) -> Result<Level, Missing> {
    let level = match group {
        Group::At(path) => cgroup::at(root, path)?,
        Group::Of(pid) => {
            let own = cgroup::of(root, *pid)?.into_iter().next();
            own.ok_or_else(|| Missing::new(format!("process {pid} is in no group")))?
        }
    };
    if level.path == "/" {
        return Err(Missing::with_remedy(
            "the root group takes no quota",
            "put the program into a group of its own: systemd-run -p CPUQuota=200% …, or mkdir one and write its pid to cgroup.procs",
        ));
    }
    Ok(level)
}

fn steps(root: &Root, level: &Level, cpus: Option<f64>) -> Result<Change, Missing> {
    let (file, period_us, before) = match level.version {
        Version::V1 => {
            let file = level.dir.join("cpu.cfs_quota_us");
            let before = value::read(root, &file)?;
            (file, value::number(root, level.dir.join("cpu.cfs_period_us"))?, before)
        }
        Version::V2 => {
            let file = level.dir.join("cpu.max");
            let before = value::read(root, &file)?;
            (file, cgroup::quota(root, level)?.period_ns / 1000, before)
        }
    };
    // Also says whether what stands there is a quota at all.
    cgroup::quota(root, level)?;
    if !PERIOD_US.contains(&period_us) {
        return Err(Missing::new(format!("the period of {} is {period_us} µs", level.path)));
    }
    let quota_us = match cpus {
        None => None,
        Some(cpus) => {
            let quota_us = (cpus * period_us as f64).round() as u64;
            if quota_us < QUOTA_US_MIN {
                return Err(Missing::new(format!(
                    "a quota is at least 1 ms in each period, and a period here is {} ms",
                    period_us as f64 / 1e3
                )));
            }
            Some(quota_us)
        }
    };
    let wanted = match (level.version, quota_us) {
        (Version::V1, None) => "-1".to_string(),
        (Version::V1, Some(us)) => us.to_string(),
        (Version::V2, None) => format!("max {period_us}"),
        (Version::V2, Some(us)) => format!("{us} {period_us}"),
    };
    Ok(Change::of([Step::change(file, before, wanted)]))
}
