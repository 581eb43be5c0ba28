//! A CPU quota: the tightest one on the server's way to the root is raised by half, or lowered to two thirds where no more would be used.

use super::{Change, Ground, Intervention, Lever, Toggle};
use std::path::Path;
use std::rc::Rc;
use tare_machine::journal::Journal;
use tare_machine::settings::{self, Applied, Group, Lock, QuotaWanted, Wanted};
use tare_machine::{Root, cgroup};
use tare_model::Missing;

pub(super) static INTERVENTION: Intervention = Intervention { name: "quota", floor: 0.5, prepare };

/// Enough to be seen: a trial has five periods, and varies by a tenth on a virtual machine.
const MORE: f64 = 1.5;
const LESS: f64 = 1.0 / MORE;

fn prepare<'a>(ground: &Ground<'a>) -> Result<Change<'a>, Missing> {
    let root = Root::live();
    let pid = ground.pids.first().ok_or_else(|| Missing::new("the server cannot be seen from here"))?;
    let quota_cpus = |level: &cgroup::Level| {
        let quota = cgroup::quota(&root, level).ok()?;
        Some(quota.quota_ns? as f64 / quota.period_ns.max(1) as f64)
    };
    let levels = cgroup::of(&root, *pid)?.into_iter();
    let mut quotas: Vec<(f64, cgroup::Level)> =
        levels.filter_map(|level| Some((quota_cpus(&level)?, level))).collect();
    quotas.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut quotas = quotas.into_iter();
    let (before, level) = quotas.next().ok_or_else(|| {
        Missing::with_remedy(
            "no quota can be seen on its groups from here",
            "run tare where the group is made",
        )
    })?;
    // What more there is to be had before something else is the bottleneck.
    let room = quotas.next().map_or(f64::INFINITY, |(next, _)| next).min(ground.server()?.entitled_cpus);
    let changed = before * if before * MORE <= room { MORE } else { LESS };
    let setting = Setting {
        group: level.dir.display().to_string(),
        cpus: changed,
        journal: ground.journal,
        state_dir: ground.state_dir,
        applied: None,
    };
    Ok(Change {
        what: format!("the quota of {}", level.path),
        unit: "CPUs",
        before,
        changed,
        by: Lever::Toggle(Box::new(setting)),
    })
}

/// The group's quota, put back whenever it is not changed.
struct Setting<'a> {
    group: String,
    cpus: f64,
    journal: &'a Rc<Journal>,
    state_dir: &'a Path,
    applied: Option<Applied<'a>>,
}

impl Toggle for Setting<'_> {
    fn set(&mut self, changed: bool) -> Result<(), Missing> {
        if let Some(applied) = self.applied.take() {
            let report = applied.restore();
            if let Some(failed) = report.failed.first() {
                return Err(Missing::with_remedy(failed.clone(), "'tare recover' puts it back"));
            }
        }
        if changed {
            let reported = |error: &dyn std::fmt::Display| Missing::new(error.to_string());
            let root = Root::live();
            let lock = Lock::take(self.state_dir).map_err(|error| reported(&error))?;
            let quota = QuotaWanted { group: Group::At(self.group.clone()), cpus: Some(self.cpus) };
            let plan = settings::plan(&root, &Wanted { quota: Some(quota), ..Wanted::default() });
            let applied = settings::apply(self.journal, lock, &root, &plan, &|| ());
            self.applied = Some(applied.map_err(|error| reported(&error))?);
        }
        Ok(())
    }
}
