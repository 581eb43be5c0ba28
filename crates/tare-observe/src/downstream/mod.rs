//! Who the SUT calls: local programs at the other ends of its connections, and those that they call in turn. Connections are sampled
//! while the window is open, since some live for one call; who holds the other ends is looked up when it is over.

pub(crate) mod called;
mod ends;
mod quota;
mod sightings;

use crate::observed::Observed;
use crate::observer::{Edge, Observer};
use crate::scene::Scene;
use called::{Found, NotCalled, Where};
use ends::{Asking, Ends};
use quota::Quotas;
use sightings::Sightings;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::os::fd::AsFd;
use tare_machine::{called as machine, procs};
use tare_model::downstream::DownstreamSeen;
use tare_sys::sockdiag::{Family, SockDiag, tcp_ends, unix_ends};
use tare_sys::time::monotonic_ns;

/// Samples a second.
const SAMPLE_HZ: f64 = 5.0;
/// Where nobody is called so many are taken at that pace in each of the first windows, and one in each after them, and then one every two
/// seconds: the kernel walks through its whole table of sockets for one, 3 ms here.
const QUIET_SAMPLES: u32 = 2;
const FIRST_WINDOWS: u32 = 2;
const QUIET_NS: u64 = 2_000_000_000;
/// A sample is not taken again before so many times the time that the last one took; where somebody is called, before so many. With a
/// connection for each call the kernel walks past tens of thousands that are over, 12 ms here: a trial of a second and a half then has three.
const APART_TIMES: u64 = 100;
const APART_TIMES_CALLED: u64 = 40;
/// Room for the sockets of one kind in one namespace; where there are more, they are not looked at.
const DUMP_BYTES_MAX: usize = 2 << 20;
const NAMESPACES_MAX: usize = 4;
/// Addresses that are kept of a window, and addresses that one caller's program is named with.
const PLACES_MAX: usize = 256;
const NAMED_MAX: usize = 8;
/// Processes of all callers whose open files are looked at in a sample.
const CALLERS_MAX: usize = 64;
/// Sockets of a window whose owner is remembered, and sockets without one, at most. Beyond, a sample finds those that it knows.
const SOCKETS_MAX: usize = 1 << 18;

/// A way to ask for the sockets of one network namespace.
struct Way {
    namespace: String,
    diag: SockDiag,
}

#[derive(Default)]
struct Downstream {
    ways: Vec<Way>,
    buffer: Vec<u8>,
    /// Whose a socket is: the SUT's (`None`) or a called program's. Others' are strangers.
    own: HashMap<u64, Option<usize>>,
    /// The SUT's processes as the window opened.
    sut: Vec<u32>,
    /// Sockets that were nobody's who calls, when they were seen for the first time.
    strangers: HashSet<u64>,
    /// There were new ones in the last sample: others', or closed before anybody looked whose they are.
    vanish: bool,
    /// Windows that were sampled.
    windows: u32,
    places: BTreeMap<Where, Found>,
    seen: BTreeMap<(Where, Option<usize>), Sightings>,
    /// The first and the last sample of the window, and how many there were.
    sampled_ns: Option<(u64, u64)>,
    samples: u32,
    due_ns: u64,
    quotas: Quotas,
}

pub(crate) fn open(_scene: &Scene) -> Box<dyn Observer> {
    Box::new(Downstream::default())
}

impl Observer for Downstream {
    fn prepare(&mut self, scene: &Scene) {
        self.own.clear();
        self.strangers.clear();
        self.vanish = false;
        self.places.clear();
        if scene.watch.sut_pids.is_empty() {
            return;
        }
        with_not_called(scene, |not| {
            scene.called.borrow_mut().refresh(&scene.root, not);
            self.sut = not.sut.iter().copied().collect();
            self.open_ways(scene, not.sut);
            self.look(scene);
            self.resolve(scene, not);
        });
        self.seen.clear();
        (self.sampled_ns, self.samples, self.due_ns) = (None, 0, 0);
        self.quotas.begin(scene, scene.called.borrow().all());
    }

    fn edge(&mut self, _edge: &mut Edge) {
        self.quotas.read();
    }

    fn sample_states(&mut self, scene: &Scene, tick: u64) {
        let now_ns = monotonic_ns();
        let is_due = tick.is_multiple_of(scene.every(SAMPLE_HZ)) && now_ns >= self.due_ns;
        if self.ways.is_empty() || !is_due {
            return;
        }
        self.look(scene);
        let took_ns = monotonic_ns().saturating_sub(now_ns);
        let nobody = self.places.is_empty() && scene.called.borrow().all().is_empty();
        let apart_ns = took_ns.saturating_mul(if nobody { APART_TIMES } else { APART_TIMES_CALLED });
        let least_ns = if nobody && self.has_seen_enough() { QUIET_NS } else { 0 };
        self.due_ns = now_ns.saturating_add(apart_ns.max(least_ns));
    }

    fn next(&self, scene: &Scene, tick: u64) -> u64 {
        if self.ways.is_empty() { u64::MAX } else { scene.next(SAMPLE_HZ, tick) }
    }

    fn report(&mut self, scene: &Scene, observed: &mut Observed) {
        if self.ways.is_empty() {
            return;
        }
        self.windows += u32::from(self.samples > 0);
        with_not_called(scene, |not| self.resolve(scene, not));
        observed.downstream(self.programs(scene));
    }
}

/// Calls with who is never a downstream.
fn with_not_called(scene: &Scene, call: impl FnOnce(&NotCalled)) {
    let (sut, others) = crate::roles::not_called(scene);
    call(&NotCalled { sut: &sut, others: &others });
}

impl Downstream {
    /// That nobody is called, for now.
    fn has_seen_enough(&self) -> bool {
        let enough = if self.windows < FIRST_WINDOWS { QUIET_SAMPLES } else { 1 };
        self.samples >= enough && !self.vanish
    }

    /// The namespaces of everybody who may call.
    fn open_ways(&mut self, scene: &Scene, sut: &BTreeSet<u32>) {
        let called = scene.called.borrow();
        let firsts = called.all().iter().filter_map(|program| program.pids.first());
        let pids: Vec<u32> = scene.watch.sut_pids.iter().chain(sut.first()).chain(firsts).copied().collect();
        let here = machine::namespace_of(&scene.root, scene.own_pid);
        let mut ways: Vec<Way> = Vec::new();
        for pid in pids {
            let namespace = machine::namespace_of(&scene.root, pid);
            let known = namespace.is_empty() || ways.iter().any(|way| way.namespace == namespace);
            if known || ways.len() >= NAMESPACES_MAX {
                continue;
            }
            let before = self.ways.iter().position(|way| way.namespace == namespace);
            let diag = match before.map(|at| self.ways.swap_remove(at)) {
                Some(way) => Ok(way.diag),
                None if namespace == here => SockDiag::open(),
                None => File::open(scene.root.path(format!("/proc/{pid}/ns/net")))
                    .and_then(|file| SockDiag::open_in(file.as_fd())),
            };
            ways.extend(diag.ok().map(|diag| Way { namespace, diag }));
        }
        self.ways = ways;
    }

    /// One sample of everybody's connections.
    fn look(&mut self, scene: &Scene) {
        let at_ns = monotonic_ns();
        if self.vanish {
            // A connection that lives for one call is gone once the kernel has listed all: whose it is, is asked first.
            self.look_whose(scene);
        }
        let all = self.dump();
        self.learn_own(scene);
        let serves = |inode: u64| self.own.get(&inode) == Some(&None);
        let asking: Vec<Asking> = all.iter().flat_map(|ends| ends.asking(&serves)).collect();
        let is_new = |asking: &Asking| {
            !self.own.contains_key(&asking.inode) && !self.strangers.contains(&asking.inode)
        };
        if asking.iter().any(is_new) {
            self.look_whose(scene);
        }
        // Those whose owner is known come first: where they lead, the others of this sample may lead too.
        let (known, unknown): (Vec<Asking>, Vec<Asking>) =
            asking.into_iter().partition(|asking| self.own.contains_key(&asking.inode));
        for asking in known {
            let Some(caller) = self.own.get(&asking.inode).copied() else { continue };
            self.count(at_ns, &asking, caller);
        }
        self.vanish = false;
        for asking in unknown {
            // Whoever is there for a second sample is somebody else's.
            let is_first = self.strangers.len() < SOCKETS_MAX && self.strangers.insert(asking.inode);
            self.vanish |= is_first;
            let caller = self.places.get(&asking.place).map(|found| found.caller);
            if let Some(caller) = caller.filter(|_| is_first) {
                self.count(at_ns, &asking, caller);
            }
        }
        let first_ns = self.sampled_ns.map_or(at_ns, |(first_ns, _)| first_ns);
        self.sampled_ns = Some((first_ns, at_ns));
        self.samples += 1;
    }

    fn count(&mut self, at_ns: u64, asking: &Asking, caller: Option<usize>) {
        let found = self.places.len() < PLACES_MAX || self.places.contains_key(&asking.place);
        if !found {
            return;
        }
        let known = self.places.entry(asking.place.clone()).or_insert_with(|| asking.found(caller));
        known.inodes.extend(&asking.others);
        known.caller = known.caller.min(caller);
        let seen = self.seen.entry((asking.place.clone(), caller)).or_default();
        seen.add(asking.inode, at_ns, asking.sent, asking.state);
    }

    fn dump(&mut self) -> Vec<Ends> {
        if self.buffer.is_empty() {
            self.buffer = vec![0; DUMP_BYTES_MAX];
        }
        let Downstream { ways, buffer, .. } = self;
        let mut all = Vec::new();
        // A way that failed once may have the rest of its answer to come.
        ways.retain(|way| {
            let mut ends = Ends { namespace: way.namespace.clone(), ..Ends::default() };
            for family in [Family::V4, Family::V6] {
                let Ok(filled) = way.diag.dump_ends(family, buffer) else { return false };
                ends.tcp.extend(tcp_ends(buffer.get(..filled).unwrap_or_default()));
            }
            let Ok(filled) = way.diag.dump_unix_ends(buffer) else { return false };
            ends.unix.extend(unix_ends(buffer.get(..filled).unwrap_or_default()));
            all.push(ends);
            true
        });
        all
    }

    /// At the first sample, whose sockets there are: the SUT's listeners must be known before anybody is said to ask.
    fn learn_own(&mut self, scene: &Scene) {
        if self.own.is_empty() {
            self.look_whose(scene);
        }
    }

    fn look_whose(&mut self, scene: &Scene) {
        // With the children that they have by now.
        let first = self.sut.iter().take(CALLERS_MAX);
        let children: Vec<u32> = first.flat_map(|pid| procs::children(&scene.root, *pid)).collect();
        let known: BTreeSet<u32> = self.sut.iter().copied().collect();
        let new = children.into_iter().filter(|pid| !known.contains(pid));
        let sut: Vec<u32> = self.sut.iter().copied().chain(new).collect();
        let called = scene.called.borrow();
        let others = called
            .all()
            .iter()
            .enumerate()
            .flat_map(|(at, program)| program.pids.iter().map(move |pid| (*pid, Some(at))));
        for (pid, whose) in sut.into_iter().map(|pid| (pid, None)).chain(others).take(CALLERS_MAX) {
            for inode in machine::own_sockets(&scene.root, pid) {
                if self.own.len() < SOCKETS_MAX {
                    self.own.entry(inode).or_insert(whose);
                }
            }
        }
    }

    fn resolve(&mut self, scene: &Scene, not: &NotCalled) {
        scene.called.borrow_mut().resolve(&scene.root, &self.places, not);
    }

    /// What was seen of each program in this window; also of those that nobody was seen to call in it.
    fn programs(&self, scene: &Scene) -> Vec<DownstreamSeen> {
        let called = scene.called.borrow();
        let (first_ns, last_ns) = self.sampled_ns.unwrap_or_default();
        let mut all: Vec<DownstreamSeen> = Vec::new();
        for (at, program) in called.all().iter().enumerate() {
            let (throttled_ns, quota_cpus) = self.quotas.of(at);
            all.push(DownstreamSeen {
                name: program.name.clone(),
                at: program.at.iter().take(NAMED_MAX).cloned().collect(),
                pids: program.pids.clone(),
                caller: program.caller.and_then(|caller| u32::try_from(caller).ok()),
                samples: self.samples,
                throttled_ns,
                quota_cpus,
                ..DownstreamSeen::default()
            });
        }
        for ((place, caller), seen) in &self.seen {
            let Some(at) = called.at(place) else { continue };
            let (Some(program), Some(known)) = (all.get_mut(at), called.all().get(at)) else { continue };
            if known.caller != *caller {
                continue;
            }
            let summary = seen.summary(first_ns, last_ns);
            program.open += summary.open;
            program.waiting += summary.waiting;
            program.unsure += summary.unsure;
            program.queued += summary.queued;
            program.sends_hz = match (program.sends_hz, summary.sends_hz) {
                (Some(one), Some(more)) => Some(one + more),
                (one, more) => one.or(more),
            };
        }
        all
    }
}
