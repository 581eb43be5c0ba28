//! Whose samples are kept.

use crate::scene::Scene;
use crate::watch::LoadWatch;
use std::collections::{BTreeSet, HashMap};
use tare_machine::procs;
use tare_model::observation::Role;
use tare_sys::affinity;

/// The processes and threads that are watched, as far as they have been seen in this window.
#[derive(Debug, Default)]
pub(super) struct Who {
    sut: BTreeSet<u32>,
    load: BTreeSet<u32>,
    /// Threads of ours that make the load.
    load_threads: BTreeSet<u32>,
    own_pid: u32,
    names: HashMap<u32, String>,
}

impl Who {
    /// Before a window: whoever has ended is somebody else by now.
    pub(super) fn forget(&mut self) {
        *self = Who::default();
    }

    /// Looks who is there, beside those that were.
    pub(super) fn refresh(&mut self, scene: &Scene) {
        let family = |pids: &[u32]| scene.family(pids);
        self.own_pid = scene.own_pid;
        self.sut.extend(family(&scene.watch.sut_pids));
        match &scene.watch.load {
            LoadWatch::Threads(tids) => self.load_threads.extend(tids),
            LoadWatch::Process(pids) => self.load.extend(family(pids)),
            LoadWatch::None => {}
        }
    }

    /// Whose thread it is, if it is one of those that are watched.
    pub(super) fn role(&self, pid: u32, tid: u32) -> Option<Role> {
        match pid {
            _ if self.sut.contains(&pid) => Some(Role::Sut),
            _ if self.load.contains(&pid) => Some(Role::Load),
            _ if pid == self.own_pid && self.load_threads.contains(&tid) => Some(Role::Load),
            _ => None,
        }
    }

    /// All threads that are watched, with their processes.
    pub(super) fn threads(&self, scene: &Scene) -> Vec<(u32, u32)> {
        let of = |pid: u32| procs::tasks_of(&scene.root, pid).into_iter().map(move |tid| (pid, tid));
        let others = self.sut.iter().chain(&self.load).flat_map(|pid| of(*pid));
        others.chain(self.load_threads.iter().map(|tid| (self.own_pid, *tid))).collect()
    }

    /// The CPUs that they may use, ascending.
    pub(super) fn cpus(&self, scene: &Scene) -> Vec<u32> {
        let threads = self.threads(scene);
        let cpus = threads.iter().flat_map(|(_, tid)| affinity::get(*tid).unwrap_or_default());
        cpus.chain(scene.busy_cpus()).collect::<BTreeSet<u32>>().into_iter().collect()
    }

    /// What a thread is called now, or was when it was asked for first.
    pub(super) fn name(&mut self, pid: u32, tid: u32, scene: &Scene) -> String {
        let name = self.names.entry(tid).or_insert_with(|| {
            let read = |path: String| std::fs::read_to_string(scene.root.path(path)).ok();
            let comm =
                read(format!("/proc/{pid}/task/{tid}/comm")).or_else(|| read(format!("/proc/{pid}/comm")));
            comm.map_or_else(|| format!("pid {pid}"), |name| name.trim_end().to_owned())
        });
        name.clone()
    }
}
