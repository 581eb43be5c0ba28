//! What stands in a server's way, until it is dropped.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tare_sys::process::{Confinement, spawn};

/// `yes` on a CPU: somebody who is never done.
pub struct Busy(Child);

impl Busy {
    pub fn on(cpu: u32) -> Result<Busy> {
        let mut command = Command::new("yes");
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let there = Confinement { cpus: vec![cpu], cgroup_procs: Vec::new() };
        spawn(&mut command, &there).map(Busy).context("cannot start yes")
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A control group with 30 % of a CPU in each 100 ms.
pub struct Quota {
    root: PathBuf,
    group: PathBuf,
}

impl Quota {
    pub fn on(pids: &[u32]) -> Result<Quota> {
        let v1 = Path::new("/sys/fs/cgroup/cpu");
        let is_v1 = v1.join("cgroup.procs").exists();
        let root = if is_v1 { v1 } else { Path::new("/sys/fs/cgroup") };
        let group = root.join(format!("bench-net-{}", std::process::id()));
        std::fs::create_dir(&group).context("a quota needs root and a writable cpu controller")?;
        let quota = Quota { root: root.to_owned(), group };
        match is_v1 {
            true => {
                std::fs::write(quota.group.join("cpu.cfs_period_us"), "100000")?;
                std::fs::write(quota.group.join("cpu.cfs_quota_us"), "30000")?;
            }
            false => {
                std::fs::write(root.join("cgroup.subtree_control"), "+cpu")?;
                std::fs::write(quota.group.join("cpu.max"), "30000 100000")?;
            }
        }
        for pid in pids {
            std::fs::write(quota.group.join("cgroup.procs"), pid.to_string())?;
        }
        Ok(quota)
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
