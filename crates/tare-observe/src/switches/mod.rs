//! Where the SUT's threads were when they did not run, switch by switch: asleep and why, waiting and behind whom.
//!
//! The scheduler's tracepoints fill rings on the CPUs that the SUT may use ([`rings`]); the sampling thread empties them
//! and sums up what they tell ([`follow`], [`locks`]). Why a thread sleeps is known from the functions of the kernel that it
//! sleeps in ([`reason`]), so no system call is watched: one that does not sleep costs nothing.
//!
//! Every sleep of the SUT costs it some microseconds of call chain and records, so this is off unless asked for; what is
//! then there are the samples of `tasks`.

mod follow;
mod locks;
mod reason;
mod rings;
mod sums;
mod user_locks;
mod variables;

use crate::maps::{self, Map};
use crate::observed::Observed;
use crate::observer::{Edge, Observer};
use crate::scene::Scene;
use crate::sleep::{Peers, why_asleep};
use crate::tracepoints::{SETTLED_NS, in_first_pid_namespace};
use crate::watch::LoadWatch;
use follow::{Event, Followed, Follower};
use locks::Locks;
use reason::Kernel;
use rings::{Contended, Layout, Read, Rings};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use sums::THE_REST;
use tare_machine::procs;
use tare_model::Missing;
use tare_model::observation::Role;
use tare_model::schedule::{
    Behind, Downstream, LockHolder, ProgramLock, Schedule, ScheduleSource, ThreadSchedule,
};
use tare_sys::affinity;
use tare_sys::time::monotonic_ns;
use user_locks::{LockSum, UserLocks};

/// How often new threads are looked for.
const RESCAN_HZ: f64 = 4.0;
/// How often rings are emptied: a server that hands over each request fills megabytes in this time.
const DRAIN_HZ: f64 = 100.0;
/// Those a thread waited behind that are reported by name, at most.
const NAMED_MAX: usize = 8;
/// Threads that are followed, at most.
const THREADS_MAX: usize = 1024;
/// Locks of the program that are reported, and who had one, at most.
const LOCKS_MAX: usize = 16;
const HOLDERS_MAX: usize = 8;
/// How often the memory of processes is read to know what lies where, in one window at most.
const MAPS_READ_MAX: u32 = 32;

struct Switches {
    /// Why nothing is traced.
    not_traced: Option<Missing>,
    /// Why this window is not: there came more threads than a filter of the kernel can name. The next begins anew.
    broken_off: Option<Missing>,
    traced: Option<Traced>,
    /// Processes of the SUT, and their threads that are followed.
    pids: BTreeSet<u32>,
    threads: BTreeMap<u32, u32>,
}

/// Everything that is there only while tracing.
struct Traced {
    kernel: Kernel,
    rings: Rings,
    follower: Follower,
    locks: Locks,
    user_locks: UserLocks,
    /// The memory of processes whose threads slept for locks, read while they live.
    memory: HashMap<u32, Vec<Map>>,
    maps_read: u32,
    peers: Peers,
    read: Read,
    begin_ns: Option<u64>,
    events: u64,
}

pub(crate) fn open(scene: &Scene) -> Box<dyn Observer> {
    let (traced, not_traced) = match start(scene) {
        Ok(traced) => (Some(traced), None),
        Err(missing) => (None, Some(missing)),
    };
    Box::new(Switches {
        not_traced,
        broken_off: None,
        traced,
        pids: BTreeSet::new(),
        threads: BTreeMap::new(),
    })
}

fn start(scene: &Scene) -> Result<Traced, Missing> {
    if !scene.watch.trace {
        return Err(Missing::with_remedy(
            "switches were not traced, which costs what is measured some time",
            "add --trace",
        ));
    }
    in_first_pid_namespace(&scene.root)?;
    let layout = Layout::find()?;
    Ok(Traced {
        kernel: Kernel::read(&scene.root)?,
        rings: Rings::new(layout),
        follower: Follower::new(),
        locks: Locks::default(),
        user_locks: UserLocks::default(),
        memory: HashMap::new(),
        maps_read: 0,
        peers: Peers::default(),
        read: Read::default(),
        begin_ns: None,
        events: 0,
    })
}

impl Observer for Switches {
    fn prepare(&mut self, scene: &Scene) {
        let pids = scene.family(&scene.watch.sut_pids);
        self.pids = pids.into_iter().collect();
        self.threads.clear();
        self.broken_off = None;
        if let Some(traced) = &mut self.traced {
            traced.forget();
            self.follow_new(scene);
        }
    }

    fn edge(&mut self, edge: &mut Edge) {
        if let Some(traced) = self.traced.as_mut().filter(|traced| traced.begin_ns.is_none()) {
            traced.begin_ns = Some(edge.at_ns);
            traced.follower.begin(edge.at_ns);
        }
    }

    fn sample(&mut self, scene: &Scene, tick: u64) {
        if self.traced.is_none() {
            return;
        }
        // A program that was started after its window was opened is looked for at once.
        if tick.is_multiple_of(scene.every(RESCAN_HZ)) || self.threads.is_empty() {
            let children = self.pids.iter().flat_map(|pid| procs::children(&scene.root, *pid));
            let found: Vec<u32> = children.chain(scene.watch.sut_pids.iter().copied()).collect();
            self.pids.extend(found);
            self.follow_new(scene);
        }
        if let Some(traced) = &mut self.traced {
            traced.drain(scene, &self.threads, u64::MAX);
        }
    }

    fn next(&self, scene: &Scene, tick: u64) -> u64 {
        if self.traced.is_some() { scene.next(DRAIN_HZ, tick) } else { u64::MAX }
    }

    fn report(&mut self, scene: &Scene, observed: &mut Observed) {
        if let Some(missing) = self.not_traced.as_ref().or(self.broken_off.as_ref()) {
            return observed.not_traced(missing.clone());
        }
        let Some(traced) = self.traced.as_mut().filter(|_| !self.threads.is_empty()) else {
            return observed.not_traced(Missing::new("no thread of the SUT is seen from here"));
        };
        traced.rings.enable(false);
        traced.follower.until(observed.end_ns());
        traced.drain(scene, &self.threads, observed.end_ns());
        traced.follower.end(observed.end_ns());
        traced.user_locks.end((traced.begin_ns.unwrap_or(u64::MAX), observed.end_ns()));
        observed.schedule(traced.schedule(scene, &self.threads));
        traced.forget();
    }

    fn set_active(&mut self, active: bool) {
        if let Some(traced) = &self.traced {
            traced.rings.enable(active);
        }
    }
}

impl Switches {
    /// Looks who is there, and follows whoever is new.
    fn follow_new(&mut self, scene: &Scene) {
        let Some(traced) = self.traced.as_mut().filter(|_| self.broken_off.is_none()) else { return };
        let tasks = |pid: &u32| {
            procs::tasks_of(&scene.root, *pid).into_iter().map(|tid| (tid, *pid)).collect::<Vec<_>>()
        };
        let found: BTreeMap<u32, u32> = self.pids.iter().flat_map(tasks).collect();
        let is_new = |tid: &&u32| !self.threads.contains_key(tid);
        let new: Vec<u32> = found
            .keys()
            .filter(is_new)
            .take(THREADS_MAX - self.threads.len().min(THREADS_MAX))
            .copied()
            .collect();
        if new.is_empty() {
            return;
        }
        // Those that have ended stay: their last switches may not have been read.
        self.threads.extend(new.iter().filter_map(|tid| Some((*tid, *found.get(tid)?))));
        let tids: BTreeSet<u32> = self.threads.keys().copied().collect();
        let cpus: BTreeSet<u32> =
            tids.iter().flat_map(|tid| affinity::get(*tid).unwrap_or_default()).collect();
        let online = tare_machine::facts::online_cpus(&scene.root).unwrap_or_default();
        match traced.rings.watch(&cpus, &online, &tids) {
            Ok(()) => {
                traced.rings.enable(true);
                for tid in new {
                    let at_ns = monotonic_ns();
                    let asleep = self
                        .threads
                        .get(&tid)
                        .and_then(|pid| why_asleep(scene, *pid, tid, &mut traced.peers, at_ns));
                    traced.follower.follow(tid, at_ns, asleep);
                }
            }
            Err(missing) => {
                traced.rings.enable(false);
                self.broken_off = Some(missing);
            }
        }
    }
}

impl Traced {
    fn forget(&mut self) {
        self.rings.enable(false);
        // What is left of before the window is nobody's.
        self.rings.drain(&self.kernel, &mut self.read, &mut |_, _| tare_model::schedule::Sleep::Event.into());
        self.read = Read::default();
        (self.follower, self.locks) = (Follower::new(), Locks::default());
        (self.user_locks, self.memory, self.maps_read) = (UserLocks::default(), HashMap::new(), 0);
        (self.begin_ns, self.events) = (None, 0);
    }

    /// Reads the rings and sums up what happened before this read; with `end_ns`, that and all else.
    fn drain(&mut self, scene: &Scene, threads: &BTreeMap<u32, u32>, end_ns: u64) {
        let now_ns = monotonic_ns();
        let Traced { kernel, rings, follower, locks, user_locks, peers, read, .. } = self;
        peers.forget();
        let mut why = |tid: u32, fd: u64| {
            let pid = threads.get(&tid).copied().unwrap_or(tid);
            peers.why(&scene.root, pid, tid, fd, now_ns)
        };
        rings.drain(kernel, read, &mut why);
        // Another ring, read before, may hold what came before the latest of this one; and a virtual CPU may be stopped
        // between an event's stamp and its record.
        let until_ns = if end_ns == u64::MAX { now_ns.saturating_sub(SETTLED_NS) } else { u64::MAX };
        read.events.sort_by_key(|event| event.at_ns);
        let ready = read.events.partition_point(|event| event.at_ns < until_ns);
        self.events += ready as u64;
        let window = (self.begin_ns.unwrap_or(u64::MAX), end_ns);
        read.events.drain(..ready).for_each(|event: Event| {
            user_locks.take(&event, window, |tid| threads.get(&tid).copied().unwrap_or(tid));
            follower.take(&clipped(event, end_ns));
        });
        read.contended.sort_by_key(|event| event.at_ns);
        let ready = read.contended.partition_point(|event| event.at_ns < until_ns);
        read.contended.drain(..ready).for_each(|event: Contended| locks.take(&event, window));
        self.read_memory(scene);
    }

    /// Reads where things lie in processes with a lock that is not known to lie anywhere. A program may be gone when it is reported.
    fn read_memory(&mut self, scene: &Scene) {
        for &(pid, address) in self.user_locks.sums.keys() {
            let is_known = self.memory.get(&pid).is_some_and(|memory| maps::place(memory, address).is_some());
            if !is_known && self.maps_read < MAPS_READ_MAX {
                self.maps_read += 1;
                let memory = maps::read(&scene.root, pid);
                if !memory.is_empty() {
                    self.memory.insert(pid, memory);
                }
            }
        }
    }

    /// Locks of the program, those that took most time first.
    fn program_locks(&self, scene: &Scene) -> Vec<ProgramLock> {
        let mut locks: Vec<(&(u32, u64), &LockSum)> = self.user_locks.sums.iter().collect();
        locks.sort_unstable_by_key(|(key, sum)| (std::cmp::Reverse(sum.ns), **key));
        locks.truncate(LOCKS_MAX);
        let pids: BTreeSet<u32> = locks.iter().map(|((pid, _), _)| *pid).collect();
        let mut names: HashMap<(u32, u64), String> = HashMap::new();
        for pid in pids {
            let of = |((of, address), _): &(&(u32, u64), &LockSum)| (*of == pid).then_some(*address);
            let addresses: Vec<u64> = locks.iter().filter_map(of).collect();
            let memory = self.memory.get(&pid).map_or(&[][..], |memory| memory);
            let found = variables::names(&scene.root, pid, memory, &addresses);
            names.extend(addresses.iter().map(|address| (pid, *address)).zip(found));
        }
        let lock = |(key, sum): (&(u32, u64), &LockSum)| ProgramLock {
            at: names.remove(key).unwrap_or_default(),
            count: sum.count,
            ns: sum.ns,
            holds: sum.holds,
            held_ns: sum.held_ns,
            holders: self.holders(sum),
        };
        locks.into_iter().map(lock).collect()
    }

    fn holders(&self, sum: &LockSum) -> Vec<LockHolder> {
        let mut holders: Vec<(u32, u64)> = sum.holders.iter().map(|(tid, count)| (*tid, *count)).collect();
        holders.sort_unstable_by_key(|(tid, count)| (std::cmp::Reverse(*count), *tid));
        let holder = |(tid, count)| LockHolder { name: self.name(tid), tid, count };
        holders.into_iter().take(HOLDERS_MAX).map(holder).collect()
    }

    fn schedule(&self, scene: &Scene, threads: &BTreeMap<u32, u32>) -> Schedule {
        let load: BTreeSet<u32> = match &scene.watch.load {
            LoadWatch::Threads(tids) => tids.iter().copied().collect(),
            LoadWatch::Process(pids) => {
                let family = scene.family(pids);
                family.iter().flat_map(|pid| procs::tasks_of(&scene.root, *pid)).collect()
            }
            LoadWatch::None => BTreeSet::new(),
        };
        let own: BTreeSet<u32> = procs::tasks_of(&scene.root, scene.own_pid).into_iter().collect();
        let called = scene.called.borrow();
        let pids = called.all().iter().flat_map(|program| &program.pids);
        let downstream: BTreeSet<u32> = pids.flat_map(|pid| procs::tasks_of(&scene.root, *pid)).collect();
        let role = |tid: u32| match tid {
            tid if threads.contains_key(&tid) => Role::Sut,
            tid if downstream.contains(&tid) => Role::Downstream,
            tid if load.contains(&tid) => Role::Load,
            tid if own.contains(&tid) => Role::Tare,
            _ => Role::Other,
        };
        let mut followed: Vec<(&u32, &Followed)> = self.follower.threads.iter().collect();
        followed.sort_unstable_by_key(|(tid, _)| **tid);
        Schedule {
            source: ScheduleSource::Tracepoints,
            not_traced: None,
            events_lost: self.read.lost,
            events: self.events,
            threads: followed.into_iter().map(|(tid, thread)| self.thread(*tid, thread, &role)).collect(),
            held: self.follower.held(),
            at_once: Vec::new(),
            locks: self.program_locks(scene),
            kernel_locks: self.locks.report(&scene.root),
            locks_not_traced: self.rings.locks_not_traced(),
            downstream: self.downstream(),
        }
    }

    fn thread(&self, tid: u32, thread: &Followed, role: &dyn Fn(u32) -> Role) -> ThreadSchedule {
        ThreadSchedule {
            tid,
            run_ns: thread.times.run_ns,
            unknown_ns: thread.times.unknown_ns,
            blocked: thread.times.sleeps(),
            behind: self.behind(thread, role),
            held_ns: thread.times.held_ns,
            delay_ns: thread.times.delay_ns,
            wait_edges_ns: thread.times.wait_edges_ns,
            waits: thread.waits.counts(),
            wakes: thread.wakes.counts(),
            migrations: thread.migrations,
            woken_by: thread.wakers(|tid| role(tid) == Role::Sut, |tid| role(tid) == Role::Load),
        }
    }

    /// Those it waited behind, longest first; the rest summed by role.
    fn behind(&self, thread: &Followed, role: &dyn Fn(u32) -> Role) -> Vec<Behind> {
        let mut all: Vec<(u32, u64)> =
            thread.times.behind.iter().map(|(tid, ns)| (*tid, *ns)).filter(|(_, ns)| *ns > 0).collect();
        all.sort_unstable_by_key(|(tid, ns)| (std::cmp::Reverse(*ns), *tid));
        let mut behind: Vec<Behind> = Vec::new();
        for (at, (tid, ns)) in all.into_iter().enumerate() {
            let (of, is_named) = (role(tid), at < NAMED_MAX && tid != THE_REST);
            let sum = behind.iter_mut().find(|known| !is_named && known.tid == 0 && known.role == of);
            match sum {
                Some(sum) => sum.ns += ns,
                None => {
                    let name = if is_named { self.name(tid) } else { String::new() };
                    behind.push(Behind { name, tid: if is_named { tid } else { 0 }, role: of, ns });
                }
            }
        }
        behind
    }

    fn name(&self, tid: u32) -> String {
        let name = self.read.names.get(&tid).map_or(&[][..], |name| name);
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        if name.is_empty() { "?".into() } else { String::from_utf8_lossy(name).into_owned() }
    }

    fn downstream(&self) -> Vec<Downstream> {
        let mut sums: BTreeMap<u16, (u64, u64)> = BTreeMap::new();
        for (why, (ns, count)) in self.follower.threads.values().flat_map(|thread| &thread.times.blocked) {
            if let Some(peer) = why.peer {
                let sum = sums.entry(peer).or_default();
                *sum = (sum.0 + ns, sum.1 + count);
            }
        }
        let name = |(peer, (ns, count))| Some(Downstream { peer: self.peers.name(peer)?, ns, count });
        sums.into_iter().filter_map(name).collect()
    }
}

/// What happened after the window's end only tells how the states before it ended.
fn clipped(event: Event, end_ns: u64) -> Event {
    Event { at_ns: event.at_ns.min(end_ns), ..event }
}
