//! Control groups that are made for a while, and removed again: by the guard, or by whoever cleans up after its owner.

use super::entry::Entry;
use super::left;
use super::writer::{Journal, JournalError};
use crate::cgroup::{self, Version};
use crate::procs;
use crate::root::Root;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tare_model::Missing;

/// What the names of our groups begin with: nothing else is ever removed.
const PREFIX: &str = "tare-";
/// A group is empty only a moment after the last of its processes has ended.
const EMPTY_WITHIN: Duration = Duration::from_secs(2);
const RETRY: Duration = Duration::from_millis(5);
/// ESRCH.
const NO_SUCH_PROCESS: i32 = 3;
/// The period of a quota, microseconds.
const PERIOD_US: f64 = 100_000.0;
/// The weight of a thread of the usual priority, and the most that a group can have: `cpu.shares` and `cpu.weight`.
const SHARES_OF_ONE: u32 = 1024;
const SHARES_MAX: u32 = 262_144;
const WEIGHT_OF_ONE: u32 = 100;
const WEIGHT_MAX: u32 = 10_000;

/// Why there is no group, or not as it was wanted.
#[derive(Debug, thiserror::Error)]
pub enum GroupError {
    /// The way back could not be written down.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// No group can be made here.
    #[error("{0}")]
    Cannot(Missing),
    /// The kernel refused.
    #[error("{}: {source}", path.display())]
    Refused {
        /// The file or folder.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
}

/// Where a group with a controller can be made, and which interface its files speak.
///
/// # Errors
/// There is no such place: why, and what would help.
pub fn place_for_groups(root: &Root, controller: &str) -> Result<(PathBuf, Version), Missing> {
    let branch = cgroup::own(root, controller)?;
    let place = match branch.version {
        // Below our own, so that what limits us limits what is put there.
        Version::V1 => branch.levels.first(),
        // A group with processes passes no controller on, and ours has some: but for the root, which may.
        Version::V2 => branch.levels.last(),
    };
    let (_, dir) = place.ok_or_else(|| Missing::new("this process is in no control group"))?;
    if branch.version == Version::V2 {
        let passed_on = root.text(dir.join("cgroup.subtree_control"))?;
        if !passed_on.split_whitespace().any(|name| name == controller) {
            return Err(Missing::with_remedy(
                format!("{} passes the {controller} controller on to no group", dir.display()),
                format!("write +{controller} to its cgroup.subtree_control, as systemd does"),
            ));
        }
    }
    if root.is_live() && !tare_sys::process::is_root() {
        return Err(not_root());
    }
    Ok((dir.clone(), branch.version))
}

/// Who is put into a group that is made around them.
#[derive(Debug, Clone, Copy)]
pub enum Members<'a> {
    /// Whole processes, with the threads that they will have.
    Processes(&'a [u32]),
    /// Single threads.
    Threads(&'a [u32]),
}

impl Members<'_> {
    /// The one group that all of them are in, as it stands on this system.
    fn place(self, root: &Root) -> Result<PathBuf, Missing> {
        let tids: Vec<u32> = match self {
            Members::Processes(pids) => pids.iter().flat_map(|pid| procs::tasks_of(root, *pid)).collect(),
            Members::Threads(tids) => tids.to_vec(),
        };
        let mut places = Vec::new();
        for tid in tids {
            // One that has ended meanwhile is nowhere.
            let Ok(branch) = cgroup::branch_of(root, tid, "cpu") else { continue };
            if branch.version == Version::V2 {
                return Err(Missing::new(
                    "in control groups v2 a program cannot be put into a group below its own while it runs",
                ));
            }
            places.extend(branch.levels.into_iter().next().map(|(_, dir)| dir));
        }
        places.sort_unstable();
        places.dedup();
        match (places.pop(), places.is_empty()) {
            (None, _) => Err(Missing::new("none of the threads is there any more")),
            (Some(_), false) => Err(Missing::new("its threads are in different control groups")),
            (Some(_), true) if root.is_live() && !tare_sys::process::is_root() => Err(not_root()),
            (Some(place), true) => Ok(root.path(place)),
        }
    }
}

fn fresh_name(journal: &Journal) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("{PREFIX}{}-{}", journal.run_id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

fn not_root() -> Missing {
    Missing::with_remedy("control groups are root's to make", "run it as root")
}

/// A control group that was made for a while. Dropping it removes it; who is still in it then goes to the group above.
#[derive(Debug)]
#[must_use = "dropping this removes the group"]
pub struct MadeGroup {
    journal: Rc<Journal>,
    dir: PathBuf,
    version: Version,
}

impl MadeGroup {
    /// Makes one, after the journal knows of it.
    ///
    /// # Errors
    /// [`GroupError`].
    pub fn make(journal: &Rc<Journal>, root: &Root, controller: &str) -> Result<MadeGroup, GroupError> {
        let (place, version) = place_for_groups(root, controller).map_err(GroupError::Cannot)?;
        MadeGroup::make_at(journal, root.path(place).join(fresh_name(journal)), version)
    }

    /// Makes one inside of it.
    ///
    /// # Errors
    /// [`GroupError`].
    pub fn inner(&self) -> Result<MadeGroup, GroupError> {
        MadeGroup::make_at(&self.journal, self.dir.join(format!("{PREFIX}inner")), self.version)
    }

    /// Makes one below the group that these are in, for the `cpu` controller, and puts them into it: what limits them there
    /// goes on to. Dropping it moves them, and what they have started meanwhile, back up before it is removed.
    ///
    /// # Errors
    /// [`GroupError`]; they are where they were then.
    pub fn around(journal: &Rc<Journal>, root: &Root, members: Members<'_>) -> Result<MadeGroup, GroupError> {
        let place = members.place(root).map_err(GroupError::Cannot)?;
        let group = MadeGroup::make_at(journal, place.join(fresh_name(journal)), Version::V1)?;
        let (file, ids) = match members {
            Members::Processes(pids) => ("cgroup.procs", pids),
            Members::Threads(tids) => ("tasks", tids),
        };
        for id in ids {
            match group.set(file, &id.to_string()) {
                // It has ended just now.
                Err(GroupError::Refused { source, .. }) if source.raw_os_error() == Some(NO_SUCH_PROCESS) => {
                }
                done => done?,
            }
        }
        Ok(group)
    }

    fn make_at(journal: &Rc<Journal>, dir: PathBuf, version: Version) -> Result<MadeGroup, GroupError> {
        journal.append(&Entry::WillMakeGroup { dir: dir.clone() })?;
        fs::create_dir(&dir).map_err(|source| GroupError::Refused { path: dir.clone(), source })?;
        Ok(MadeGroup { journal: journal.clone(), dir, version })
    }

    /// The file that a process is put into it by.
    pub fn procs(&self) -> PathBuf {
        self.dir.join("cgroup.procs")
    }

    /// Which interface its files speak.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Lets its processes have so many CPUs' worth of time in each period of 100 ms.
    ///
    /// # Errors
    /// [`GroupError::Refused`].
    pub fn set_quota(&self, cpus: f64) -> Result<(), GroupError> {
        let quota_us = (cpus * PERIOD_US).round();
        match self.version {
            Version::V1 => {
                self.set("cpu.cfs_period_us", &format!("{PERIOD_US}"))?;
                self.set("cpu.cfs_quota_us", &format!("{quota_us}"))
            }
            Version::V2 => self.set("cpu.max", &format!("{quota_us} {PERIOD_US}")),
        }
    }

    /// Gives it the weight of so many threads against others that want the same CPUs.
    ///
    /// # Errors
    /// [`GroupError::Refused`].
    pub fn set_weight(&self, threads: u32) -> Result<(), GroupError> {
        match self.version {
            Version::V1 => {
                self.set("cpu.shares", &threads.saturating_mul(SHARES_OF_ONE).min(SHARES_MAX).to_string())
            }
            Version::V2 => {
                self.set("cpu.weight", &threads.saturating_mul(WEIGHT_OF_ONE).min(WEIGHT_MAX).to_string())
            }
        }
    }

    /// Lets its processes have so much memory, the pages of files among it.
    ///
    /// # Errors
    /// [`GroupError::Refused`].
    pub fn set_memory(&self, bytes: u64) -> Result<(), GroupError> {
        let file = match self.version {
            Version::V1 => "memory.limit_in_bytes",
            Version::V2 => "memory.max",
        };
        self.set(file, &bytes.to_string())
    }

    /// Lets them have all the time there is again.
    ///
    /// # Errors
    /// [`GroupError::Refused`].
    pub fn lift_quota(&self) -> Result<(), GroupError> {
        match self.version {
            Version::V1 => self.set("cpu.cfs_quota_us", "-1"),
            Version::V2 => self.set("cpu.max", "max"),
        }
    }

    /// Writes one of its files.
    ///
    /// # Errors
    /// [`GroupError::Refused`].
    pub fn set(&self, file: &str, value: &str) -> Result<(), GroupError> {
        let path = self.dir.join(file);
        fs::write(&path, value).map_err(|source| GroupError::Refused { path, source })
    }
}

impl Drop for MadeGroup {
    fn drop(&mut self) {
        // Where it cannot be removed, or that cannot be written down, the journal leads the next start to it.
        if remove(&self.dir).is_ok() {
            self.journal.append(&Entry::RemovedGroup { dir: self.dir.clone() }).ok();
        }
    }
}

/// Removes the groups that a dead owner left, the inner ones first.
pub(super) fn remove_left(entries: &[Entry], removed: &mut Vec<PathBuf>, failed: &mut Vec<String>) {
    for dir in left::groups(entries).into_iter().rev() {
        let is_ours = dir.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX))
            && dir.join("cgroup.procs").exists();
        if !is_ours {
            continue;
        }
        match remove(&dir) {
            Ok(()) => removed.push(dir),
            Err(error) => failed.push(format!("the control group {} was left: {error}", dir.display())),
        }
    }
}

/// The kernel removes a group as a whole, though it has files; one with processes or groups in it not at all. Who was started in it
/// has ended or is ending by now; who was put into it goes back to the group above, where it was made around them.
fn remove(dir: &Path) -> io::Result<()> {
    let deadline = Instant::now() + EMPTY_WITHIN;
    loop {
        match fs::remove_dir(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && Instant::now() < deadline => {
                move_up(dir);
                std::thread::sleep(RETRY);
            }
            done => return done,
        }
    }
}

/// Moves what is in a group to the one above. Who cannot be moved is tried again, or ends.
fn move_up(dir: &Path) {
    let threads = dir.join("tasks");
    let file = if threads.exists() { "tasks" } else { "cgroup.procs" };
    let Some(above) = dir.parent() else { return };
    for id in fs::read_to_string(dir.join(file)).unwrap_or_default().lines() {
        fs::write(above.join(file), id).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(mounts: &str, files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        for (file, text) in [("proc/self/mounts", mounts)].iter().chain(files) {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let root = Root::at(dir.path());
        (dir, root)
    }

    const V1: &str = "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n";
    const V2: &str = "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n";

    #[test]
    fn the_place_is_one_that_has_the_controller() {
        let (_dir, root) = machine(V1, &[("proc/self/cgroup", "1:cpu:/web\n")]);
        let place = (PathBuf::from("/sys/fs/cgroup/cpu/web"), Version::V1);
        assert_eq!(place_for_groups(&root, "cpu"), Ok(place));
        let control = "sys/fs/cgroup/cgroup.subtree_control";
        let (_dir, root) = machine(V2, &[("proc/self/cgroup", "0::/a/b\n"), (control, "cpu io\n")]);
        let place = (PathBuf::from("/sys/fs/cgroup/"), Version::V2);
        assert_eq!(place_for_groups(&root, "cpu"), Ok(place));
        let refused = place_for_groups(&root, "memory").unwrap_err();
        assert!(refused.remedy.contains("+memory"), "{refused:?}");
    }

    #[test]
    fn what_is_made_is_removed_and_what_is_left_is_known() {
        let (dir, root) = machine(V1, &[("proc/self/cgroup", "1:cpu:/\n")]);
        fs::create_dir_all(dir.path().join("sys/fs/cgroup/cpu")).unwrap();
        let state = tempfile::tempdir().unwrap();
        let journal = Rc::new(Journal::create(state.path(), &Root::live()).unwrap());
        let entries = || super::super::found::read(&journal.path).unwrap().entries;
        let group = MadeGroup::make(&journal, &root, "cpu").unwrap();
        let inner = group.inner().unwrap();
        let (outside, inside) = (group.dir.clone(), inner.dir.clone());
        assert!(inside.is_dir() && inside.starts_with(&outside));
        assert_eq!(left::groups(&entries()), [outside.clone(), inside.clone()]);
        drop(inner);
        assert_eq!(left::groups(&entries()), std::slice::from_ref(&outside));
        // A plain folder keeps its files, as a group does not.
        group.set_quota(0.3).unwrap();
        assert_eq!(fs::read_to_string(outside.join("cpu.cfs_quota_us")).unwrap(), "30000");
        group.set_weight(3).unwrap();
        assert_eq!(fs::read_to_string(outside.join("cpu.shares")).unwrap(), "3072");
        drop(group);
        assert_eq!(left::groups(&entries()), std::slice::from_ref(&outside), "it could not be removed");
        let (mut removed, mut failed) = (Vec::new(), Vec::new());
        remove_left(&entries(), &mut removed, &mut failed);
        assert!(removed.is_empty() && failed.is_empty() && outside.is_dir(), "a folder is no group");
        fs::write(outside.join("cgroup.procs"), "").unwrap();
        remove_left(&entries(), &mut removed, &mut failed);
        assert!(removed.is_empty() && failed.len() == 1, "{failed:?}");
    }
}
