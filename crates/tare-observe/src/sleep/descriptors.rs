//! What a thread sleeps on: its table of descriptors tells.

use super::doing::{Doing, parse_syscall};
use super::peers::Peers;
use super::why::Why;
use crate::scene::Scene;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use tare_model::schedule::Sleep;

/// Why a thread sleeps, by one sample; `None` where it runs or is ready to.
pub(crate) fn why_asleep(scene: &Scene, pid: u32, tid: u32, peers: &mut Peers, now_ns: u64) -> Option<Why> {
    let dir = scene.root.path(format!("/proc/{pid}/task/{tid}"));
    let text = std::fs::read_to_string(dir.join("syscall")).ok()?;
    Descriptors { scene, peers, pid, tid, dir: &dir.join("fd") }.why(parse_syscall(&text), now_ns)
}

/// A thread's table of descriptors.
pub(crate) struct Descriptors<'a> {
    pub(crate) scene: &'a Scene,
    pub(crate) peers: &'a mut Peers,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) dir: &'a Path,
}

impl Descriptors<'_> {
    pub(crate) fn why(self, doing: Doing, now_ns: u64) -> Option<Why> {
        match doing {
            Doing::Runnable => None,
            Doing::Asleep(sleep) => Some(sleep.into()),
            Doing::TimedFutex(limit, sleep) => {
                let is_soon = limit.is_soon(|address, bytes| self.read_memory(address, bytes));
                Some(if is_soon { Sleep::Timer } else { sleep }.into())
            }
            Doing::ReadOrWrite(fd) if self.is_on_disk(fd) => Some(Sleep::Disk.into()),
            Doing::Socket(fd) | Doing::ReadOrWrite(fd) => {
                Some(self.peers.why(&self.scene.root, self.pid, self.tid, fd, now_ns))
            }
        }
    }

    /// Fills `bytes` with what the process has at an address; without the right to, nothing is read.
    fn read_memory(&self, address: u64, bytes: &mut [u8]) -> Option<()> {
        let memory = File::open(self.scene.root.path(format!("/proc/{}/mem", self.pid))).ok()?;
        memory.read_exact_at(bytes, address).ok()
    }

    /// Whether a descriptor is an ordinary file rather than a socket, pipe or device.
    fn is_on_disk(&self, fd: u64) -> bool {
        let link = std::fs::read_link(self.dir.join(fd.to_string()));
        link.is_ok_and(|target| target.is_absolute() && !target.starts_with("/dev"))
    }
}
