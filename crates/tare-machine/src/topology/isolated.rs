//! CPUs that the scheduler does not balance: by the kernel's command line, or by a control group.

use super::files::{self, CPU_DIR};
use crate::mounts;
use crate::root::Root;
use std::path::{Path, PathBuf};
use tare_model::{CpuSet, Missing};

/// Most groups below the top that are looked at: isolated partitions lie there.
const GROUPS_MAX: usize = 1024;

/// Those of `isolcpus=` and those of isolated cpusets.
pub(super) fn read(root: &Root) -> Result<CpuSet, Missing> {
    let by_command_line = files::list(root, &format!("{CPU_DIR}/isolated"));
    match (by_command_line, by_groups(root)) {
        (Ok(one), Some(other)) => Ok(one.or(&other)),
        (Ok(one), None) => Ok(one),
        (Err(_), Some(other)) if !other.is_empty() => Ok(other),
        (Err(missing), _) => Err(missing),
    }
}

/// `None` where no tree tells.
fn by_groups(root: &Root) -> Option<CpuSet> {
    let mounts = mounts::read(root).ok()?;
    let target = |mount: &mounts::Mount| Path::new(&mount.target).to_path_buf();
    let has_cpuset = |mount: &&mounts::Mount| mount.options.split(',').any(|option| option == "cpuset");
    if let Some(v1) = mounts.iter().filter(|mount| mount.kind == "cgroup").find(has_cpuset) {
        // The controller is in one of the two trees.
        return not_balanced(root, &target(v1));
    }
    let top = mounts.iter().find(|mount| mount.kind == "cgroup2").map(target)?;
    // Since Linux 6.7 the top tells of all.
    if let Ok(all) = list(root, &top, "cpuset.cpus.isolated") {
        return Some(all);
    }
    let children =
        root.names(&top).unwrap_or_default().into_iter().take(GROUPS_MAX).map(|name| top.join(name));
    let isolated = |dir: &PathBuf| {
        let kind = root.text(dir.join("cpuset.cpus.partition"));
        kind.is_ok_and(|kind| kind.trim() == "isolated")
    };
    let groups = std::iter::once(top.clone()).chain(children).filter(isolated);
    Some(
        groups
            .filter_map(|dir| list(root, &dir, "cpuset.cpus.effective").ok())
            .fold(CpuSet::new(), |all, set| all.or(&set)),
    )
}

/// Of cgroup v1: CPUs of the top that are in no group whose load is balanced. As long as the top's is, all are balanced.
/// `None` where not all groups can be seen.
fn not_balanced(root: &Root, top: &Path) -> Option<CpuSet> {
    // In a container this is a group below the top, which is not seen and may balance them.
    root.exists(top.join("cgroup.sane_behavior")).then_some(())?;
    let all = list(root, top, "cpuset.cpus").ok()?;
    let mut balanced = CpuSet::new();
    let mut groups = vec![top.to_path_buf()];
    let mut seen = 1;
    while let Some(group) = groups.pop() {
        // What cannot be read is as the kernel has it by default.
        if root.value::<u32>(group.join("cpuset.sched_load_balance")).unwrap_or(1) != 0 {
            balanced = balanced.or(&list(root, &group, "cpuset.cpus").ok()?);
            // A group's CPUs are among its parent's.
            continue;
        }
        let below = root.names(&group).unwrap_or_default().into_iter().map(|name| group.join(name));
        let known = groups.len();
        groups.extend(below.filter(|dir| root.exists(dir.join("cpuset.cpus"))));
        seen += groups.len() - known;
        if seen > GROUPS_MAX {
            return None;
        }
    }
    Some(all.minus(&balanced))
}

fn list(root: &Root, dir: &Path, file: &str) -> Result<CpuSet, Missing> {
    files::list(root, &dir.join(file).to_string_lossy())
}
