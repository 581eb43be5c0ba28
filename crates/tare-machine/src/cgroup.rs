//! Control groups of a process: which tree carries the `cpu` controller, the path from its group to the root,
//! and which files tell usage, throttling and quota at each level.

use crate::mounts::{self, Mount};
use crate::root::Root;
use std::path::{Path, PathBuf};
use tare_model::Missing;

/// Deepest nesting that is followed.
const DEPTH_MAX: usize = 64;
/// Most groups below one that are looked into.
const CHILDREN_MAX: usize = 4096;

/// Which interface a tree speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// One tree per controller (`cpu`, `cpuacct`).
    V1,
    /// The unified tree.
    V2,
}

/// One group on the way from a process's own to the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    /// Path below the controller's mount; `/` is the root.
    pub path: String,
    /// The interface of the files below.
    pub version: Version,
    /// Its directory in the tree of the `cpu` controller.
    pub dir: PathBuf,
    /// The file that holds its CPU time: `cpuacct.usage` (v1), `cpu.stat` (v2).
    pub usage: Result<PathBuf, Missing>,
}

impl Level {
    /// `cpu.stat`: periods, throttled periods, time throttled by the group's *own* quota.
    pub fn stat(&self) -> PathBuf {
        self.dir.join("cpu.stat")
    }

    /// `cpu.stat.local`: time throttled by its own *or an ancestor's* quota (Linux 6.5 or later).
    pub fn stat_local(&self) -> PathBuf {
        self.dir.join("cpu.stat.local")
    }
}

/// A group's quota: this much CPU time in each period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// CPU time allowed in a period; `None` is unlimited.
    pub quota_ns: Option<u64>,
    /// Length of a period.
    pub period_ns: u64,
}

/// `v1`, `v2` or `hybrid`: where the `cpu` controller is.
///
/// # Errors
/// No control groups, or none with a `cpu` controller.
pub fn layout(root: &Root) -> Result<String, Missing> {
    let trees = Trees::read(root)?;
    match (trees.v1("cpu"), &trees.unified) {
        (Some(_), Some(_)) => Ok("hybrid".to_string()),
        (Some(_), None) => Ok("v1".to_string()),
        (None, Some(_)) => Ok("v2".to_string()),
        (None, None) => Err(Missing::new("no control group tree with the cpu controller is mounted")),
    }
}

/// The groups of process `pid` from its own to the root, in the tree of the `cpu` controller.
///
/// # Errors
/// Why they are not known: the process is gone, or no tree is mounted.
pub fn of(root: &Root, pid: u32) -> Result<Vec<Level>, Missing> {
    let trees = Trees::read(root)?;
    let file = format!("/proc/{pid}/cgroup");
    let text = root.text(&file)?;
    let path = path_in(&trees, &file, &text, "cpu")?;
    let accounted = own_path(&text, "cpuacct");
    let version = path.version;
    let usage_of = |(path, dir): &(String, PathBuf)| match version {
        Version::V2 => Ok(dir.join("cpu.stat")),
        Version::V1 => v1_usage(trees.v1("cpuacct").map(|tree| &tree.target), accounted, path),
    };
    let level =
        |found: (String, PathBuf)| Level { usage: usage_of(&found), version, dir: found.1, path: found.0 };
    Ok(path.levels.into_iter().map(level).collect())
}

/// The groups of the process that reads, from its own to the highest that it can see, in the tree of any
/// controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// The interface of the files in each directory.
    pub version: Version,
    /// Path below the mount, and directory.
    pub levels: Vec<(String, PathBuf)>,
}

/// Where the process that reads stands in the tree of `controller` (`cpu`, `cpuset`, `memory`).
///
/// # Errors
/// As [`of`].
pub fn own(root: &Root, controller: &str) -> Result<Branch, Missing> {
    in_tree(root, "self", controller)
}

/// Where process `pid` stands in the tree of `controller`.
///
/// # Errors
/// As [`of`].
pub fn branch_of(root: &Root, pid: u32, controller: &str) -> Result<Branch, Missing> {
    in_tree(root, &pid.to_string(), controller)
}

fn in_tree(root: &Root, whose: &str, controller: &str) -> Result<Branch, Missing> {
    let file = format!("/proc/{whose}/cgroup");
    let text = root.text(&file)?;
    path_in(&Trees::read(root)?, &file, &text, controller)
}

/// Where process `pid` stands in the unified tree, whichever tree has the `cpu` controller: pressure is kept there.
///
/// # Errors
/// As [`of`].
pub fn unified(root: &Root, pid: u32) -> Result<Branch, Missing> {
    let trees = Trees::read(root)?;
    let tree = trees.unified.ok_or_else(|| Missing::new("no control groups v2 are mounted"))?;
    let file = format!("/proc/{pid}/cgroup");
    branch(&tree, Version::V2, &file, &root.text(&file)?, "")
}

fn path_in(trees: &Trees, file: &str, text: &str, controller: &str) -> Result<Branch, Missing> {
    match (trees.v1(controller), &trees.unified) {
        (Some(tree), _) => branch(tree, Version::V1, file, text, controller),
        (None, Some(tree)) => branch(tree, Version::V2, file, text, ""),
        (None, None) => {
            Err(Missing::new(format!("no control group tree with the {controller} controller is mounted")))
        }
    }
}

fn branch(tree: &Mount, version: Version, file: &str, text: &str, name: &str) -> Result<Branch, Missing> {
    let own = own_path(text, name).ok_or_else(|| Missing::new(format!("{file} names no {name} group")))?;
    if own.split('/').any(|part| part == "..") {
        return Err(Missing::with_remedy(
            format!("the process's group {own} is outside this control group namespace"),
            "run tare outside the container",
        ));
    }
    // A container may see its own part of the tree only, mounted as if that were the top.
    let below = match own.strip_prefix(tree.top.as_str()) {
        Some(below) if below.is_empty() || below.starts_with('/') => below,
        _ => own,
    };
    let dir = |path: String| (path.clone(), Path::new(&tree.target).join(path.trim_start_matches('/')));
    Ok(Branch { version, levels: ancestry(below).into_iter().map(dir).collect() })
}

/// The group at `path`: below the mount of the `cpu` controller, or its folder there.
///
/// # Errors
/// No tree is mounted, or it has no such group.
pub fn at(root: &Root, path: &str) -> Result<Level, Missing> {
    let trees = Trees::read(root)?;
    let (tree, version) = match (trees.v1("cpu"), &trees.unified) {
        (Some(tree), _) => (tree, Version::V1),
        (None, Some(tree)) => (tree, Version::V2),
        (None, None) => {
            return Err(Missing::new("no control group tree with the cpu controller is mounted"));
        }
    };
    let mount = PathBuf::from(&tree.target);
    let below =
        Path::new(path).strip_prefix(&mount).map_or(path.to_string(), |rest| rest.display().to_string());
    let below = below.trim_matches('/');
    let dir = mount.join(below);
    let leads_out = below.split('/').any(|part| part == "..");
    if leads_out || !root.is_dir(&dir) {
        return Err(Missing::new(format!("there is no group {path} below {}", mount.display())));
    }
    let usage = match version {
        Version::V2 => Ok(dir.join("cpu.stat")),
        Version::V1 => Err(Missing::new("the group was named by its folder in the tree of quotas")),
    };
    Ok(Level { path: format!("/{below}"), version, dir, usage })
}

/// In v1 the two controllers may have trees of their own: the usage found under a path is this group's only
/// where the process is in the group of that path in both.
fn v1_usage(mount: Option<&String>, accounted: Option<&str>, path: &str) -> Result<PathBuf, Missing> {
    match (mount, accounted) {
        (Some(mount), Some(own)) if ancestry(own).iter().any(|level| level == path) => {
            Ok(PathBuf::from(mount).join(path.trim_start_matches('/')).join("cpuacct.usage"))
        }
        (Some(_), Some(own)) => Err(Missing::with_remedy(
            format!("CPU time is accounted in another group ({own}) than it is limited in ({path})"),
            format!("put the process into {path} of the cpuacct tree too"),
        )),
        _ => Err(Missing::new("the cpuacct controller is not mounted")),
    }
}

/// The quota of a level.
///
/// # Errors
/// Why it cannot be read; the root of v2 has none.
pub fn quota(root: &Root, level: &Level) -> Result<Quota, Missing> {
    const US: u64 = 1000;
    match level.version {
        Version::V1 => {
            let quota_us: i64 = root.value(level.dir.join("cpu.cfs_quota_us"))?;
            let period_us: u64 = root.value(level.dir.join("cpu.cfs_period_us"))?;
            let quota_ns = u64::try_from(quota_us).ok().map(|us| us.saturating_mul(US));
            Ok(Quota { quota_ns, period_ns: period_us.saturating_mul(US) })
        }
        Version::V2 => {
            let path = level.dir.join("cpu.max");
            let text = root.text(&path)?;
            parse_cpu_max(&text).ok_or_else(|| crate::root::nonsense(&path, &text))
        }
    }
}

/// The tightest quota on the process's way to the root, in CPU seconds per second; `None` where there is none, or
/// none can be read.
pub fn quota_cpus(root: &Root, pid: u32) -> Option<f64> {
    tightest(root, pid)?.cpus()
}

/// The same with its period.
pub fn tightest(root: &Root, pid: u32) -> Option<Quota> {
    let levels = of(root, pid).ok()?;
    let quotas = levels.iter().filter_map(|level| quota(root, level).ok());
    let tight = quotas.filter_map(|quota| Some((quota.cpus()?, quota)));
    tight.min_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, quota)| quota)
}

impl Quota {
    /// In CPU seconds per second; `None` where it is unlimited.
    pub fn cpus(self) -> Option<f64> {
        let share = self.quota_ns? as f64 / self.period_ns as f64;
        share.is_finite().then_some(share)
    }
}

/// `max 100000` or `30000 100000`, microseconds.
fn parse_cpu_max(text: &str) -> Option<Quota> {
    let (quota, period) = text.trim().split_once(' ')?;
    let ns = |text: &str| text.parse::<u64>().ok()?.checked_mul(1000);
    let quota_ns = if quota == "max" { None } else { Some(ns(quota)?) };
    Some(Quota { quota_ns, period_ns: ns(period)? })
}

/// Whether the group and those below it hold exactly these processes.
///
/// # Errors
/// Its process list cannot be read.
pub fn holds_exactly(root: &Root, level: &Level, pids: &[u32]) -> Result<bool, Missing> {
    let mut open = vec![level.dir.clone()];
    let mut found: Vec<u32> = Vec::new();
    let mut looked_into = 0;
    while let Some(dir) = open.pop() {
        looked_into += 1;
        if looked_into > CHILDREN_MAX {
            return Err(Missing::new(format!("{} has too many groups below it", level.path)));
        }
        let text = root.text(dir.join("cgroup.procs"))?;
        found.extend(text.lines().filter_map(|line| line.trim().parse::<u32>().ok()));
        if found.iter().any(|pid| !pids.contains(pid)) {
            return Ok(false);
        }
        let names = root.names(&dir)?.into_iter();
        open.extend(names.map(|name| dir.join(name)).filter(|path| root.is_dir(path)));
    }
    Ok(!pids.is_empty() && pids.iter().all(|pid| found.contains(pid)))
}

/// `/a/b` → `/a/b`, `/a`, `/`.
fn ancestry(own: &str) -> Vec<String> {
    let mut levels = Vec::new();
    let mut path = own.trim_end_matches('/');
    while !path.is_empty() && levels.len() < DEPTH_MAX {
        levels.push(path.to_string());
        path = path.rsplit_once('/').map_or("", |(parent, _)| parent);
    }
    levels.push("/".to_string());
    levels
}

/// The group in the tree of a v1 controller, or in the unified tree for an empty name:
/// lines such as `4:cpu,cpuacct:/system.slice/nginx.service` and `0::/`.
fn own_path<'a>(text: &'a str, controller: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (id, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let matches = if controller.is_empty() {
            id == "0" && controllers.is_empty()
        } else {
            controllers.split(',').any(|name| name == controller)
        };
        (matches && path.starts_with('/')).then_some(path)
    })
}

/// Where the trees are mounted.
struct Trees {
    v1: Vec<Mount>,
    unified: Option<Mount>,
}

impl Trees {
    fn read(root: &Root) -> Result<Trees, Missing> {
        let mounts = mounts::read(root)?;
        let unified = mounts.iter().find(|mount| mount.kind == "cgroup2").cloned();
        Ok(Trees { v1: mounts.into_iter().filter(|mount| mount.kind == "cgroup").collect(), unified })
    }

    /// The v1 tree that carries a controller.
    fn v1(&self, controller: &str) -> Option<&Mount> {
        self.v1.iter().find(|mount| mount.options.split(',').any(|option| option == controller))
    }
}

/// The per-CPU run time of all tasks: `cpuacct.usage_percpu` of the v1 root group.
///
/// # Errors
/// The `cpuacct` controller is not mounted.
pub fn root_usage_per_cpu(root: &Root) -> Result<PathBuf, Missing> {
    match Trees::read(root)?.v1("cpuacct") {
        Some(tree) => Ok(PathBuf::from(&tree.target).join("cpuacct.usage_percpu")),
        None => Err(Missing::new("the cpuacct controller of control groups v1 is not mounted")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = Root::at(dir.path());
        (dir, root)
    }

    fn paths(levels: &[Level]) -> Vec<&str> {
        levels.iter().map(|level| level.path.as_str()).collect()
    }

    const HYBRID: &str = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
        cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0\n\
        cgroup /sys/fs/cgroup/cpuacct cgroup rw,relatime,cpuacct 0 0\n\
        cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";

    #[test]
    fn hybrid_with_trees_apart() {
        let (_dir, root) = tree(&[
            ("proc/self/mounts", HYBRID),
            ("proc/7/cgroup", "2:cpuacct:/web\n1:cpu:/web/nginx\n0::/elsewhere\n"),
            ("sys/fs/cgroup/cpu/web/nginx/cpu.cfs_quota_us", "30000\n"),
            ("sys/fs/cgroup/cpu/web/nginx/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/cpu/web/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu/web/cpu.cfs_period_us", "100000\n"),
        ]);
        assert_eq!(layout(&root), Ok("hybrid".to_string()));
        let levels = of(&root, 7).unwrap();
        assert_eq!(paths(&levels), ["/web/nginx", "/web", "/"]);
        assert!(levels[0].usage.is_err());
        assert_eq!(levels[1].usage.as_deref(), Ok(Path::new("/sys/fs/cgroup/cpuacct/web/cpuacct.usage")));
        assert_eq!(
            quota(&root, &levels[0]),
            Ok(Quota { quota_ns: Some(30_000_000), period_ns: 100_000_000 })
        );
        assert_eq!(quota(&root, &levels[1]), Ok(Quota { quota_ns: None, period_ns: 100_000_000 }));
        assert_eq!((quota_cpus(&root, 7), quota_cpus(&root, 8)), (Some(0.3), None));
        assert_eq!(tightest(&root, 7).map(|quota| quota.period_ns), Some(100_000_000));
        assert!(quota(&root, &levels[2]).is_err());
        assert!(of(&root, 8).is_err());
    }

    #[test]
    fn the_unified_tree() {
        let (_dir, root) = tree(&[
            ("proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"),
            ("proc/7/cgroup", "0::/system.slice/nginx.service\n"),
            ("proc/8/cgroup", "0::/../outside\n"),
            ("sys/fs/cgroup/system.slice/nginx.service/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/system.slice/nginx.service/cgroup.procs", "7\n9\n"),
            ("sys/fs/cgroup/system.slice/nginx.service/below/cgroup.procs", "11\n"),
        ]);
        assert_eq!(layout(&root), Ok("v2".to_string()));
        let levels = of(&root, 7).unwrap();
        assert_eq!(paths(&levels), ["/system.slice/nginx.service", "/system.slice", "/"]);
        assert_eq!(quota(&root, &levels[0]), Ok(Quota { quota_ns: None, period_ns: 100_000_000 }));
        assert_eq!(holds_exactly(&root, &levels[0], &[7, 9, 11]), Ok(true));
        assert_eq!(holds_exactly(&root, &levels[0], &[7, 9]), Ok(false));
        assert_eq!(holds_exactly(&root, &levels[0], &[7, 9, 11, 12]), Ok(false));
        assert!(holds_exactly(&root, &levels[2], &[7]).is_err());
        assert!(of(&root, 8).unwrap_err().why.contains("namespace"));
    }

    #[test]
    fn this_process_has_groups() {
        let root = Root::live();
        if layout(&root).is_ok() {
            let levels = of(&root, std::process::id()).unwrap();
            assert_eq!(levels.last().map(|level| level.path.as_str()), Some("/"));
        }
    }

    proptest! {
        #[test]
        fn garbage_is_missing(text in "\\PC{0,80}", path in "[/a-c.:0]{0,40}") {
            let (_dir, root) = tree(&[
                ("proc/self/mounts", HYBRID),
                ("proc/7/cgroup", &format!("{text}\n1:cpu:{path}\n")),
            ]);
            if let Ok(levels) = of(&root, 7) {
                prop_assert_eq!(levels.last().map(|level| level.path.as_str()), Some("/"));
            }
            parse_cpu_max(&text);
        }
    }
}
