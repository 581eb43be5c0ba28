//! A thread that is watched: who it is, and its open files.

use super::state_samples::StateSamples;
use crate::observed::refused;
use crate::scene::Scene;
use crate::sleep::{Descriptors, Doing, Peers, parse_syscall};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use tare_machine::procs;
use tare_model::observation::{Role, Task};
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
            // Read where it is looked at.
            Source::Syscall => 0,
        }
    }
}

/// What a file said, and what the thread had used then: until it has used more the file says the same.
#[derive(Default)]
struct Held {
    used: Option<(u64, u64)>,
    text: Vec<u8>,
}

pub(super) struct Watched {
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) role: Role,
    pub(super) start_ticks: u64,
    /// It ended while it was watched.
    pub(super) gone: bool,
    /// It rested when the window began.
    pub(super) was_resting: bool,
    name: String,
    /// Where it may run, when it was found: one that has ended cannot be asked.
    allowed: Option<Vec<u32>>,
    /// Its own table of descriptors, for what it reads and writes: threads may have one each.
    files_dir: PathBuf,
    /// What it was found doing.
    pub(super) state_samples: StateSamples,
    /// What the look of this tick saw.
    seen: Option<Doing>,
    /// What `stat` and `status` said last.
    held: [Held; 2],
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
        let process = match tid == pid && matches!(role, Role::Sut | Role::Load | Role::Downstream) {
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
            was_resting: false,
            name: stat.name,
            allowed: affinity::get(tid).ok(),
            files_dir: dir.join("fd"),
            state_samples: StateSamples::default(),
            seen: None,
            held: Default::default(),
            files,
        })
    }

    pub(super) fn file(&self, source: Source) -> Option<&File> {
        self.files.get(source as usize)?.as_ref()
    }

    /// Its `schedstat`, for one that is not to be watched any more.
    pub(super) fn into_schedstat(mut self) -> Option<File> {
        self.files[Source::Schedstat as usize].take()
    }

    fn held(&mut self, source: Source) -> Option<&mut Held> {
        match source {
            Source::Stat => self.held.first_mut(),
            Source::Status => self.held.last_mut(),
            Source::Schedstat | Source::Syscall | Source::Process => None,
        }
    }

    /// What this file would say, without reading it: the thread has not run since it was read, as `schedstat` tells, and at which
    /// instant that was.
    pub(super) fn unchanged(&mut self, source: Source) -> Option<(u64, &[u8])> {
        let last = self.state_samples.last()?;
        let held = self.held(source)?;
        (held.used == Some((last.used_ns(), last.slices))).then_some((last.at_ns, held.text.as_slice()))
    }

    /// Holds what a file said.
    pub(super) fn hold(&mut self, source: Source, text: &[u8]) {
        let used = self.state_samples.last().map(|last| (last.used_ns(), last.slices));
        if let Some(held) = self.held(source) {
            held.used = used;
            held.text.clear();
            held.text.extend_from_slice(text);
        }
    }

    /// What it is doing may not be asked.
    pub(super) fn forbid_syscall(&mut self) {
        self.files[Source::Syscall as usize] = None;
    }

    /// Whether it still exists: the files of an ended thread cannot be read any more.
    pub(super) fn is_there(&self) -> bool {
        let read = |file: &File| file.read_at(&mut [0u8; 64], 0).is_ok_and(|bytes| bytes > 0);
        !self.gone && self.file(Source::Schedstat).is_some_and(read)
    }

    /// Whether more than one sample in a while can show more: it goes to sleep and wakes.
    pub(super) fn is_restless(&self, now_ns: u64) -> bool {
        !self.gone && self.file(Source::Syscall).is_some() && self.state_samples.is_restless(now_ns)
    }

    /// Whether it was running or ready, by the sample of this tick or, where that was needless, by the last.
    pub(super) fn is_ready(&self) -> bool {
        !self.gone
            && match self.seen {
                Some(doing) => doing == Doing::Runnable,
                None => self.state_samples.was_ready(),
            }
    }

    /// Looks what it is doing. What that means is asked in [`Watched::settle`].
    pub(super) fn read_state(&mut self) -> io::Result<()> {
        self.seen = None;
        let Some(file) = self.file(Source::Syscall) else { return Ok(()) };
        let mut text = [0; 256];
        let bytes = file.read_at(&mut text, 0)?;
        let text = std::str::from_utf8(text.get(..bytes).unwrap_or_default()).unwrap_or_default();
        self.seen = Some(parse_syscall(text));
        Ok(())
    }

    /// Counts what the look of this turn saw. What it sleeps on is asked only where its `schedstat`, if that was read
    /// since, does not tell that it is still what it was.
    pub(super) fn settle(&mut self, scene: &Scene, peers: &mut Peers, now_ns: u64, tick: u64, is_read: bool) {
        let Some(doing) = self.seen.take() else { return };
        // One that was woken and is held back by a quota has the `schedstat` of a sleeper until it runs.
        if is_read && doing != Doing::Runnable && self.state_samples.repeat(tick) {
            return;
        }
        let fds = Descriptors { scene, peers, pid: self.pid, tid: self.tid, dir: &self.files_dir };
        let why = fds.why(doing, now_ns);
        self.state_samples.add(why, tick);
    }

    /// For the record; `name` is what it was called last.
    pub(super) fn task(&self, name: Option<String>, present_at_begin: bool) -> Task {
        let now = affinity::get(self.tid);
        let allowed = now.or_else(|error| self.allowed.clone().ok_or(error));
        let allowed = allowed.map_err(|error| refused("the thread's affinity", &error));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::Reading;
    use crate::watch::Watch;
    use std::collections::BTreeMap;
    use tare_machine::Root;
    use tare_model::schedule::Sleep;

    /// Under a quota a thread that was woken may wait for a tenth of a second until it runs: its `schedstat` stands as if it
    /// slept.
    #[test]
    fn one_that_was_woken_and_is_held_back_does_not_count_as_asleep() {
        let dir = tempfile::tempdir().unwrap();
        let task = dir.path().join("proc/7/task/7");
        std::fs::create_dir_all(&task).unwrap();
        let write = |name: &str, text: &str| std::fs::write(task.join(name), text).unwrap();
        write("stat", &format!("7 (web) S{}\n", " 1".repeat(49)));
        write("schedstat", "5 5 7\n");
        let asleep = format!("{} 0x0 0x0 0x7f 0x0 0x0 0x0 0x7f 0x7f\n", libc::SYS_clock_nanosleep);
        write("syscall", &asleep);
        let scene = Scene::new(Watch::default(), &Root::at(dir.path()));
        let (mut watched, mut peers) = (Watched::open(&scene, 7, 7, Role::Sut).unwrap(), Peers::default());
        let mut sample = |tick: u64, is_read: bool| {
            watched.read_state().unwrap();
            watched.state_samples.heed(&Reading { at_ns: tick, source: 0, bytes: b"5 5 7\n" });
            watched.settle(&scene, &mut peers, tick, tick, is_read);
        };
        sample(1, false);
        sample(2, true);
        write("syscall", "running\n");
        sample(3, true);
        sample(4, true);
        write("syscall", &asleep);
        sample(5, false);
        let timer = Some(Sleep::Timer.into());
        assert_eq!(
            watched.state_samples.counts().collect::<BTreeMap<_, _>>(),
            BTreeMap::from([(timer, 3), (None, 2)])
        );
    }
}
