//! What stands in a server's way, until it is dropped.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tare_sys::process::{Confinement, Signal, kill, spawn};

/// `yes` on a CPU: somebody who is never done.
pub struct Busy(Child);

impl Busy {
    pub fn on(cpu: u32) -> Result<Busy> {
        let mut command = Command::new("yes");
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let there = Confinement { cpus: vec![cpu], ..Confinement::default() };
        spawn(&mut command, &there).map(Busy).context("cannot start yes")
    }
}

impl Busy {
    /// Stops it, or lets it go on.
    pub fn pause(&self, paused: bool) -> Result<()> {
        let signal = if paused { Signal::Stop } else { Signal::Cont };
        kill(self.0.id(), signal).context("yes could not be paused")
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A control group with a share of a CPU in each 100 ms.
pub struct Quota {
    root: PathBuf,
    group: PathBuf,
    is_v1: bool,
    percent: u32,
}

impl Quota {
    pub fn on(pids: &[u32], percent: u32) -> Result<Quota> {
        let v1 = Path::new("/sys/fs/cgroup/cpu");
        let is_v1 = v1.join("cgroup.procs").exists();
        let root = if is_v1 { v1 } else { Path::new("/sys/fs/cgroup") };
        let group = root.join(format!("bench-net-{}", std::process::id()));
        std::fs::create_dir(&group).context("a quota needs root and a writable cpu controller")?;
        let quota = Quota { root: root.to_owned(), group, is_v1, percent };
        if is_v1 {
            std::fs::write(quota.group.join("cpu.cfs_period_us"), "100000")?;
        } else {
            std::fs::write(root.join("cgroup.subtree_control"), "+cpu")?;
        }
        quota.lift(false)?;
        for pid in pids {
            std::fs::write(quota.group.join("cgroup.procs"), pid.to_string())?;
        }
        Ok(quota)
    }

    /// Lets its processes have all of the CPU, or again as little as they had.
    pub fn lift(&self, lifted: bool) -> Result<()> {
        let held = format!("{}000", self.percent);
        let held_v2 = format!("{held} 100000");
        let (file, value) = match (self.is_v1, lifted) {
            (true, true) => ("cpu.cfs_quota_us", "-1"),
            (true, false) => ("cpu.cfs_quota_us", held.as_str()),
            (false, true) => ("cpu.max", "max 100000"),
            (false, false) => ("cpu.max", held_v2.as_str()),
        };
        std::fs::write(self.group.join(file), value).with_context(|| format!("{file} cannot be written"))
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        for pid in std::fs::read_to_string(self.group.join("cgroup.procs")).unwrap_or_default().lines() {
            std::fs::write(self.root.join("cgroup.procs"), pid).ok();
        }
        // A group empties a moment after its last process ended.
        for _ in 0..200 {
            if std::fs::remove_dir(&self.group).is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
