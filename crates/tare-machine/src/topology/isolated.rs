//! CPUs that the scheduler does not balance: by the kernel's command line, or by a control group.

use super::files::{self, CPU_DIR};
use crate::mounts;
use crate::root::Root;
use std::path::Path;
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
    let unified = mounts.iter().find(|mount| mount.kind == "cgroup2")?;
    let top = Path::new(&unified.target);
    let list = |dir: &Path, file: &str| files::list(root, &dir.join(file).to_string_lossy());
    // Since Linux 6.7 the top tells of all.
    if let Ok(all) = list(top, "cpuset.cpus.isolated") {
        return Some(all);
    }
    let children =
        root.names(top).unwrap_or_default().into_iter().take(GROUPS_MAX).map(|name| top.join(name));
    let isolated = |dir: &std::path::PathBuf| {
        let kind = root.text(dir.join("cpuset.cpus.partition"));
        kind.is_ok_and(|kind| kind.trim() == "isolated")
    };
    let groups = std::iter::once(top.to_path_buf()).chain(children).filter(isolated);
    Some(
        groups
            .filter_map(|dir| list(&dir, "cpuset.cpus.effective").ok())
            .fold(CpuSet::new(), |all, set| all.or(&set)),
    )
}
