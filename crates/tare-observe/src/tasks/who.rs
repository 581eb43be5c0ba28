//! Which threads are watched one by one, and which rest.

use super::resting::Resting;
use super::state::{ALL, Tasks};
use super::watched::{Source, Watched};
use crate::observed::refused;
use crate::roles::role_of_thread;
use crate::scene::Scene;
use crate::watch::LoadWatch;
use std::collections::BTreeMap;
use tare_machine::procs;
use tare_model::Missing;
use tare_model::observation::Role;
use tare_sys::time::monotonic_ns;

/// Threads that are watched one by one, at most.
const WATCHED_MAX: usize = 4096;
/// Of more threads than this, those that did not run in the last window rest in the next.
const WATCHED_IDLE_MAX: usize = 32;
/// One of many threads that is met first is watched if it has run for so long since it began, and rests else; of those that have, so many are.
const WORKED_NS: u64 = 10_000_000;
const WATCHED_NEW_MAX: usize = 512;
/// A process with more threads than this is asked for their numbers only where their number has changed.
const LISTED_MAX: u64 = 64;

impl Tasks {
    /// Drops threads that are gone, and those that have another role in this window than in the last. Of many threads those rest
    /// now that did not run in the last window, and those are watched that did.
    pub(super) fn forget_strangers(&mut self, scene: &Scene, processes: &[(u32, Role)]) {
        let roles: BTreeMap<u32, Role> = processes.iter().copied().collect();
        let role_of = |pid: u32, tid: u32| Some(role_of_thread(scene, tid, *roles.get(&pid)?));
        for watched in self.watched.iter().filter(|watched| watched.gone) {
            self.listed.remove(&watched.pid);
        }
        self.watched.retain_mut(|watched| {
            role_of(watched.pid, watched.tid) == Some(watched.role) && watched.is_there()
        });
        let woken = self.rest.take(Resting::is_busy);
        let ended = self.rest.begin(role_of);
        ended.iter().for_each(|pid| _ = self.listed.remove(pid));
        self.put_to_rest(woken.len());
        woken.into_iter().for_each(|thread| self.watch(scene, thread));
        let resting = self.rest.threads().map(|thread| thread.tid);
        self.known = self.watched.iter().map(|watched| watched.tid).chain(resting).collect();
        self.listed.retain(|pid, _| roles.contains_key(pid));
    }

    /// Threads that did not run in the last window rest, where more than a few are watched.
    fn put_to_rest(&mut self, woken: usize) {
        let idle = |watched: &Watched| watched.role != Role::Tare && watched.state_samples.has_only_slept();
        let busy = woken + self.watched.iter().filter(|watched| !idle(watched)).count();
        let mut places = WATCHED_IDLE_MAX.saturating_sub(busy);
        let kept = |watched: &mut Watched| {
            let is_kept = !idle(watched) || places > 0;
            places -= usize::from(is_kept && idle(watched));
            !is_kept
        };
        let resting: Vec<Watched> = self.watched.extract_if(.., kept).collect();
        for watched in resting {
            let Some(last) = watched.state_samples.last() else { continue };
            let (pid, tid, role) = (watched.pid, watched.tid, watched.role);
            self.rest.add(Resting::of_watched(pid, tid, role, watched.into_schedstat(), last));
        }
    }

    /// Watches a thread that rested, as if it had been watched since the window began.
    fn watch(&mut self, scene: &Scene, thread: Resting) {
        let mut watched = match Watched::open(scene, thread.pid, thread.tid, thread.role) {
            Ok(watched) if self.watched.len() < WATCHED_MAX => watched,
            // It has ended, or there are too many: it is accounted for where the window ends.
            _ => return self.rest.add(thread),
        };
        watched.state_samples.begin(monotonic_ns());
        watched.was_resting = true;
        let number = Source::Schedstat.number(self.watched.len() as u32);
        self.tape.keep(number, thread.before.at_ns, thread.before.text().as_bytes());
        self.watched.push(watched);
        self.read_one(self.watched.len() - 1, &ALL);
    }

    /// Finds who ran of those that rest, where their processes ran more than the threads that are watched.
    pub(super) fn wake(&mut self, scene: &Scene, runs: &[(u32, u64)]) {
        if self.rest.is_empty() {
            return;
        }
        let at_once_max = scene.busy_cpus().len().max(1) as u64;
        let mut of_watched: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for watched in &self.watched {
            let run_ns = watched.state_samples.last().map_or(0, |last| last.run_ns);
            let (ran_ns, at_once) = of_watched.entry(watched.pid).or_default();
            *ran_ns += run_ns;
            *at_once = (*at_once + 1).min(at_once_max);
        }
        let mut pids = self.rest.unclaimed(runs, &of_watched);
        if runs.is_empty() {
            pids.extend(self.rest.processes());
        }
        if pids.is_empty() {
            return;
        }
        let (woken, ended) = self.rest.woken(&pids);
        // Whoever ran may be new as well.
        pids.iter().chain(&ended).for_each(|pid| _ = self.listed.remove(pid));
        woken.into_iter().for_each(|thread| self.watch(scene, thread));
    }

    /// Looks for new threads of the processes that are watched, and for new children of those.
    pub(super) fn rescan(&mut self, scene: &Scene) {
        let mut pids: BTreeMap<u32, Role> = BTreeMap::new();
        for watched in self.watched.iter().filter(|watched| !watched.gone) {
            let role = if watched.pid == scene.own_pid { Role::Tare } else { watched.role };
            pids.insert(watched.pid, role);
        }
        // A program that was started in this window has not been looked for yet.
        for pid in scene.watch.sut_pids.iter().filter(|pid| !self.rest.is_of(**pid)) {
            pids.entry(*pid).or_insert(Role::Sut);
        }
        // What a program left behind came to us.
        if scene.watch.server_port.is_none() && scene.watch.load == LoadWatch::None {
            for pid in procs::children(&scene.root, scene.own_pid) {
                pids.entry(pid).or_insert(Role::Sut);
            }
        }
        for (pid, role) in pids {
            self.discover(scene, pid, role);
            if pid != scene.own_pid {
                // A thread that rests has started nothing, nor has one that slept since the window began.
                let has_slept = |at: usize, watched: &Watched| {
                    at < self.at_begin && !watched.was_resting && watched.state_samples.has_only_slept()
                };
                let of_process = self.watched.iter().enumerate().filter(|(_, watched)| watched.pid == pid);
                let awake = of_process.filter(|(at, watched)| !watched.gone && !has_slept(*at, watched));
                let tids: Vec<u32> = awake.map(|(_, watched)| watched.tid).collect();
                for child in procs::children_of(&scene.root, pid, &tids) {
                    self.discover(scene, child, role);
                }
            }
        }
    }

    pub(super) fn discover(&mut self, scene: &Scene, pid: u32, role: Role) {
        self.pids.insert(pid);
        let threads = procs::thread_count(&scene.root, pid);
        if threads.is_some_and(|count| count > LISTED_MAX && self.listed.get(&pid) == Some(&count)) {
            return;
        }
        threads.and_then(|count| self.listed.insert(pid, count));
        for tid in procs::tasks_of(&scene.root, pid) {
            if self.known.contains(&tid) {
                continue;
            }
            // One that is met in a window was started in it, and has run.
            let may_rest = !self.is_open && self.watched.len() >= WATCHED_IDLE_MAX && role != Role::Tare;
            if may_rest && self.rests(scene, pid, tid, role) {
                continue;
            }
            if self.watched.len() >= WATCHED_MAX {
                continue;
            }
            match Watched::open(scene, pid, tid, role_of_thread(scene, tid, role)) {
                Ok(mut watched) => {
                    watched.state_samples.begin(monotonic_ns());
                    self.known.insert(tid);
                    self.watched.push(watched);
                    self.read_one(self.watched.len() - 1, &ALL);
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    // One file may be had where five may not.
                    match Resting::open(scene, pid, tid, role_of_thread(scene, tid, role)) {
                        Ok(thread) if may_rest && !self.rest.is_full() => {
                            self.known.insert(tid);
                            self.rest.add(thread);
                        }
                        _ => self.unopened = Some(refused(&format!("thread {tid}"), &error)),
                    }
                }
            }
        }
    }

    /// Takes in a thread that is one of many: whether it runs will be seen. False where it is to be watched, since it has worked before.
    fn rests(&mut self, scene: &Scene, pid: u32, tid: u32, role: Role) -> bool {
        if self.rest.is_full() {
            let reason = "there are more threads than are looked at";
            self.unopened = Some(Missing::new(reason));
            return true;
        }
        match Resting::open(scene, pid, tid, role_of_thread(scene, tid, role)) {
            Ok(thread) if thread.last.run_ns >= WORKED_NS && self.watched.len() < WATCHED_NEW_MAX => {
                return false;
            }
            Ok(thread) => {
                self.known.insert(tid);
                self.rest.add(thread);
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => self.unopened = Some(refused(&format!("thread {tid}"), &error)),
        }
        true
    }
}
