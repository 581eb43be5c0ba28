//! What a process may use: its affinity mask, and the cpuset of its control group.

use super::files;
use crate::mounts::{self, Mount};
use crate::root::{Root, nonsense};
use std::path::{Path, PathBuf};
use tare_model::{CpuSet, Missing};

/// Deepest nesting of control groups that is followed.
const DEPTH_MAX: usize = 64;

/// What limits the process; a part is `None` where nothing does.
pub(super) struct Allowed {
    cpus: Result<Option<CpuSet>, Missing>,
    nodes: Option<CpuSet>,
}

impl Allowed {
    /// The CPUs among those online that may be used.
    pub fn cpus_of(&self, online: &CpuSet) -> Result<CpuSet, Missing> {
        let cpus = match self.cpus.as_ref().map_err(Clone::clone)? {
            Some(cpus) => cpus.and(online),
            None => online.clone(),
        };
        if cpus.is_empty() {
            return Err(Missing::new(format!("none of the CPUs {online} that are online is allowed")));
        }
        Ok(cpus)
    }

    /// Whether memory of the node may be used.
    pub fn may_use_node(&self, node: u32) -> bool {
        self.nodes.as_ref().is_none_or(|nodes| nodes.contains(node))
    }
}

pub(super) fn read(root: &Root, pid: Option<u32>) -> Allowed {
    let process = pid.map_or_else(|| "self".to_string(), |pid| pid.to_string());
    let group = Cpuset::of(root, &process);
    let of_group = |what: &str| group.as_ref().and_then(|group| group.nearest(root, what));
    let (cpus, nodes) = (of_group("cpus"), of_group("mems"));
    Allowed {
        cpus: of_status(root, &process, "Cpus_allowed").map(|own| both(own, cpus)),
        nodes: both(of_status(root, &process, "Mems_allowed").unwrap_or_default(), nodes),
    }
}

fn both(one: Option<CpuSet>, other: Option<CpuSet>) -> Option<CpuSet> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.and(&other)),
        (one, other) => one.or(other),
    }
}

/// `Cpus_allowed_list` of `/proc/PID/status`, or the mask beside it. Captured trees may be without the file.
fn of_status(root: &Root, process: &str, key: &str) -> Result<Option<CpuSet>, Missing> {
    let path = format!("/proc/{process}/status");
    let text = match root.text(&path) {
        Ok(text) => text,
        Err(missing) if root.is_live() => return Err(missing),
        Err(_) => return Ok(None),
    };
    let field = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    let (value, set) = match (field(&format!("{key}_list")), field(key)) {
        (Some(value), _) => (value, CpuSet::from_list(value)),
        (None, Some(value)) => (value, CpuSet::from_mask(value)),
        (None, None) => return Ok(None),
    };
    set.map(Some).ok_or_else(|| nonsense(path.as_ref(), value))
}

/// Where the process's cpuset is.
struct Cpuset {
    mount: PathBuf,
    unified: bool,
    /// Below the mount.
    group: String,
}

impl Cpuset {
    fn of(root: &Root, process: &str) -> Option<Cpuset> {
        let (mount, unified) = mounts::read(root).ok()?.iter().find_map(|one| carries_cpusets(root, one))?;
        let groups = root.text(format!("/proc/{process}/cgroup")).unwrap_or_default();
        let named = groups.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':');
            let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
            let matches = if unified { controllers.is_empty() } else { has(controllers, "cpuset") };
            matches.then(|| path.to_string())
        });
        let group = named.or_else(|| root.text(format!("/proc/{process}/cpuset")).ok())?;
        Some(Cpuset { mount, unified, group: group.trim().to_string() })
    }

    /// The set of `cpus` or `mems` in the process's group, or in the nearest above it that has one. Inside a
    /// container the path may name groups that are not in sight: the mount is then its own. What v1 calls effective
    /// has been seen to be stale after CPUs went off and on.
    fn nearest(&self, root: &Root, what: &str) -> Option<CpuSet> {
        let names = match self.unified {
            true => [format!("cpuset.{what}.effective"), format!("cpuset.{what}")],
            false => [format!("cpuset.{what}"), what.to_string()],
        };
        let inside = if self.group.split('/').any(|part| part == "..") { "" } else { self.group.as_str() };
        for path in Path::new(inside.trim_matches('/')).ancestors().take(DEPTH_MAX) {
            let dir = self.mount.join(path);
            let set = |name: &String| files::list(root, &dir.join(name).to_string_lossy()).ok();
            if let Some(found) = names.iter().filter_map(set).find(|set| !set.is_empty()) {
                return Some(found);
            }
        }
        None
    }
}

/// The mount point, and whether it is the unified tree's, if this mount carries cpusets.
fn carries_cpusets(root: &Root, mount: &Mount) -> Option<(PathBuf, bool)> {
    let target = PathBuf::from(&mount.target);
    match mount.kind.as_str() {
        "cpuset" => Some((target, false)),
        "cgroup" if has(&mount.options, "cpuset") => Some((target, false)),
        "cgroup2" => {
            let controllers = root.text(target.join("cgroup.controllers")).ok()?;
            controllers.split_whitespace().any(|name| name == "cpuset").then_some((target, true))
        }
        _ => None,
    }
}

fn has(list: &str, name: &str) -> bool {
    list.split(',').any(|entry| entry == name)
}
