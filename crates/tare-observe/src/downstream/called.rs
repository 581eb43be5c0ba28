//! The programs that are known to be called, and by whom.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use tare_machine::peers::Endpoint;
use tare_machine::{Root, called, procs};

/// Programs that are distinguished, and how far down from the SUT.
const CALLED_MAX: usize = 16;
const DEPTH_MAX: u32 = 3;
/// Processes of one program that are watched.
const PIDS_MAX: usize = 512;
/// Readings of other namespaces for an address that was in none: a program may have been too young to be seen.
const TRIES_MAX: u8 = 3;

/// A program that is called.
#[derive(Debug, Clone)]
pub(crate) struct Called {
    pub(crate) name: String,
    pub(crate) at: BTreeSet<String>,
    /// Those that hold the sockets, each with its start, which tells it from a later one with its number.
    roots: BTreeMap<u32, u64>,
    /// With their descendants.
    pub(crate) pids: Vec<u32>,
    /// Its place; `None` is the SUT.
    pub(crate) caller: Option<usize>,
    depth: u32,
}

/// Everybody who is called. Who was once found stays, while its processes live.
#[derive(Debug, Default)]
pub(crate) struct CalledPrograms {
    programs: Vec<Called>,
    places: BTreeMap<Where, Option<usize>>,
    tries: BTreeMap<Where, u8>,
}

/// Where something is called, in one network namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Where {
    pub(crate) namespace: String,
    pub(crate) at: Endpoint,
}

/// An address that somebody called, and the sockets that are known there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Found {
    pub(crate) caller: Option<usize>,
    pub(crate) inodes: BTreeSet<u64>,
}

/// Who can never be a downstream: the SUT, the generator, tare.
pub(crate) struct NotCalled<'a> {
    pub(crate) sut: &'a BTreeSet<u32>,
    pub(crate) others: &'a BTreeSet<u32>,
}

impl CalledPrograms {
    /// All of them, callers before those that they call.
    pub(crate) fn all(&self) -> &[Called] {
        &self.programs
    }

    /// Who answers there; `None` where nobody was found yet, or nobody that counts.
    pub(crate) fn at(&self, place: &Where) -> Option<usize> {
        self.places.get(place).copied().flatten()
    }

    /// Looks for new children; a program that is gone answers nowhere any more.
    pub(crate) fn refresh(&mut self, root: &Root, not: &NotCalled) {
        let never: BTreeSet<u32> = not.sut.union(not.others).copied().collect();
        for (at, program) in self.programs.iter_mut().enumerate() {
            let lives = |pid: &u32, start: &mut u64| {
                procs::stat(root, *pid).is_ok_and(|stat| stat.start_ticks == *start)
            };
            program.roots.retain(lives);
            program.pids = families(root, &program.roots, &never);
            if program.roots.is_empty() {
                self.places.retain(|_, place| *place != Some(at));
            }
        }
    }

    /// Finds out who holds the sockets at new addresses.
    pub(crate) fn resolve(&mut self, root: &Root, found: &BTreeMap<Where, Found>, not: &NotCalled) {
        let mut open: BTreeMap<Where, Found> = found
            .iter()
            .filter(|(place, _)| self.is_open(place))
            .map(|(a, b)| (a.clone(), b.clone()))
            .collect();
        if open.is_empty() {
            return;
        }
        look_elsewhere(root, &mut open);
        let inodes: BTreeSet<u64> = open.values().flat_map(|found| found.inodes.iter().copied()).collect();
        let holders = if inodes.is_empty() { BTreeMap::new() } else { called::holders(root, &inodes) };
        // Who calls stands before who is called: the SUT's first.
        let mut open: Vec<(Where, Found)> = open.into_iter().collect();
        open.sort_by_key(|(_, found)| found.caller);
        for (place, found) in open {
            let pids: BTreeSet<u32> =
                found.inodes.iter().filter_map(|inode| holders.get(inode)).flatten().copied().collect();
            self.settle(root, place, found.caller, &pids, not);
        }
    }

    fn is_open(&self, place: &Where) -> bool {
        !self.places.contains_key(place) && self.tries.get(place).copied().unwrap_or(0) < TRIES_MAX
    }

    fn settle(
        &mut self,
        root: &Root,
        place: Where,
        caller: Option<usize>,
        pids: &BTreeSet<u32>,
        not: &NotCalled,
    ) {
        if pids.iter().any(|pid| not.sut.contains(pid)) {
            self.places.insert(place, None);
            return;
        }
        let is_other = |pid: &&u32| **pid != 1 && !not.others.contains(pid);
        let roots: BTreeMap<u32, u64> = pids
            .iter()
            .filter(is_other)
            .filter_map(|pid| Some((*pid, procs::stat(root, *pid).ok()?.start_ticks)))
            .collect();
        let Some(first) = roots.keys().next().copied() else {
            *self.tries.entry(place).or_default() += 1;
            return;
        };
        let same = |program: &Called| roots.keys().any(|pid| program.pids.contains(pid));
        if let Some(at) = self.programs.iter().position(same) {
            let program = &mut self.programs[at];
            program.at.insert(place.at.to_string());
            program.roots.extend(roots);
            // A program that calls itself is not called.
            self.places.insert(place, (caller != Some(at)).then_some(at));
            return;
        }
        let depth = caller.and_then(|caller| self.programs.get(caller)).map_or(1, |caller| caller.depth + 1);
        if self.programs.len() >= CALLED_MAX || depth > DEPTH_MAX {
            self.places.insert(place, None);
            return;
        }
        let never: BTreeSet<u32> = not.sut.union(not.others).copied().collect();
        let name = procs::stat(root, first).map_or_else(|_| "?".to_owned(), |stat| stat.name);
        self.programs.push(Called {
            name,
            at: BTreeSet::from([place.at.to_string()]),
            pids: families(root, &roots, &never),
            roots,
            caller,
            depth,
        });
        self.places.insert(place, Some(self.programs.len() - 1));
    }
}

fn families(root: &Root, roots: &BTreeMap<u32, u64>, never: &BTreeSet<u32>) -> Vec<u32> {
    let pids = called::families(root, &roots.keys().copied().collect(), never);
    pids.into_iter().filter(|pid| *pid != 1 && !never.contains(pid)).take(PIDS_MAX).collect()
}

/// Where no socket is known at an address, other network namespaces of this machine may have it.
fn look_elsewhere(root: &Root, open: &mut BTreeMap<Where, Found>) {
    let address = |place: &Where| match place.at {
        Endpoint::Tcp(address) if !address.ip().is_loopback() => Some(address),
        _ => None,
    };
    let is_lost = |(_, found): &(&Where, &Found)| found.inodes.is_empty();
    let lost: BTreeSet<SocketAddr> =
        open.iter().filter(is_lost).filter_map(|(place, _)| address(place)).collect();
    if lost.is_empty() {
        return;
    }
    let known = open.keys().map(|place| place.namespace.clone()).collect();
    let found = called::elsewhere(root, &known, &lost);
    for (place, known) in open.iter_mut() {
        if let Some(inodes) = address(place).and_then(|address| found.get(&address)) {
            known.inodes.extend(inodes);
        }
    }
}
