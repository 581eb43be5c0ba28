//! A thread that is watched: who it is, and its open files.

use crate::Scene;
use crate::book::refused;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use tare_machine::procs;
use tare_record::observation::{Role, Task};
use tare_sys::affinity;

/// The files of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Schedstat,
    Stat,
    Status,
    Syscall,
    /// Of the whole process; a main thread's only.
    Process,
}

impl Source {
    const COUNT: u32 = 5;

    /// The number on the tape of this file of the watched thread at `at`.
    pub(super) fn number(self, at: u32) -> u32 {
        at * Source::COUNT + self as u32
    }

    /// What one reading can hold, generously.
    pub(super) fn bytes_max(self) -> usize {
        match self {
            Source::Schedstat => 128,
            Source::Stat | Source::Process => 1024,
            Source::Status => 8192,
            Source::Syscall => 256,
        }
    }
}

pub(super) struct Watched {
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) role: Role,
    pub(super) start_ticks: u64,
    /// It ended while it was watched.
    pub(super) gone: bool,
    name: String,
    /// Its own table of descriptors, for what it reads and writes: threads may have one each.
    files_dir: PathBuf,
    files: [Option<File>; Source::COUNT as usize],
}

impl Watched {
    /// Opens a thread's files. Only those of the SUT are asked what they are doing.
    pub(super) fn open(scene: &Scene, pid: u32, tid: u32, role: Role) -> io::Result<Watched> {
        let dir = scene.root.path(format!("/proc/{pid}/task/{tid}"));
        let open = |name: &str| File::open(dir.join(name));
        let stat = std::fs::read_to_string(dir.join("stat"))?;
        let stat =
            procs::parse_stat(&stat).ok_or_else(|| io::Error::other("its stat file holds nonsense"))?;
        // Threads that come and go between two scans are in their process's counters only.
        let process = match tid == pid && matches!(role, Role::Sut | Role::Load) {
            true => File::open(scene.root.path(format!("/proc/{pid}/stat"))).ok(),
            false => None,
        };
        let files = [
            Some(open("schedstat")?),
            Some(open("stat")?),
            open("status").ok(),
            if role == Role::Sut { open("syscall").ok() } else { None },
            process,
        ];
        Ok(Watched {
            pid,
            tid,
            role,
            start_ticks: stat.start_ticks,
            gone: false,
            name: stat.name,
            files_dir: dir.join("fd"),
            files,
        })
    }

    pub(super) fn file(&self, source: Source) -> Option<&File> {
        self.files.get(source as usize)?.as_ref()
    }

    /// What it is doing may not be asked.
    pub(super) fn forbid_syscall(&mut self) {
        self.files[Source::Syscall as usize] = None;
    }

    /// Whether it still exists: the files of an ended thread cannot be read any more.
    pub(super) fn is_there(&self) -> bool {
        use std::os::unix::fs::FileExt;
        let read = |file: &File| file.read_at(&mut [0u8; 64], 0).is_ok_and(|bytes| bytes > 0);
        !self.gone && self.file(Source::Schedstat).is_some_and(read)
    }

    /// Whether a file descriptor is an ordinary file rather than a socket, pipe or device.
    pub(super) fn is_on_disk(&self, fd: u64) -> bool {
        let link = std::fs::read_link(self.files_dir.join(fd.to_string()));
        link.is_ok_and(|target| target.is_absolute() && !target.starts_with("/dev"))
    }

    /// For the record; `name` is what it was called last.
    pub(super) fn task(&self, name: Option<String>, present_at_begin: bool) -> Task {
        let allowed = affinity::get(self.tid).map_err(|error| refused("the thread's affinity", &error));
        Task {
            pid: self.pid,
            tid: self.tid,
            name: name.unwrap_or_else(|| self.name.clone()),
            role: self.role,
            allowed_cpus: allowed.into(),
            present_at_begin,
            present_at_end: !self.gone,
        }
    }
}
