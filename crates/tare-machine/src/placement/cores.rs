//! A topology as placement sees it: cores, each with its threads, its last-level cache and its node.

use std::collections::{BTreeMap, BTreeSet};
use tare_model::topology::{CacheKind, Topology};
use tare_model::{CpuSet, Reading};

/// Nodes of which no distance is known are this far apart; 10 is local.
const FAR: u32 = 255;
const LOCAL: u32 = 10;

/// One physical core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Core {
    /// Its place among all.
    pub index: usize,
    /// Its threads that may be used, ascending; never none.
    pub threads: Vec<u32>,
    /// Its last-level cache, by that one's lowest CPU.
    pub cache: u32,
    /// Its NUMA node.
    pub node: u32,
    /// Its package.
    pub package: u32,
    /// 0 for the slowest kind of core.
    pub speed: usize,
}

impl Core {
    pub fn first(&self) -> u32 {
        self.threads[0]
    }

    pub fn set(&self) -> CpuSet {
        self.threads.iter().copied().collect()
    }
}

/// All cores that may be used, by their first thread.
#[derive(Debug, Clone)]
pub(super) struct Cores {
    pub all: Vec<Core>,
    distances: BTreeMap<(u32, u32), u32>,
    /// CPUs that were left out because the scheduler does not balance them.
    pub isolated: CpuSet,
}

impl Cores {
    pub fn of(topology: &Topology) -> Cores {
        let allowed = topology.allowed_cpus();
        let isolated = topology.isolated.value().map(|set| set.and(&allowed)).unwrap_or_default();
        let left = allowed.minus(&isolated);
        // Threads would pile up on the first of isolated CPUs; where there are no others, they are all there is.
        let (usable, isolated) = if left.is_empty() { (allowed, CpuSet::new()) } else { (left, isolated) };
        let mut all: Vec<Core> = Vec::new();
        let mut taken = CpuSet::new();
        for place in topology.cpus.iter().filter(|place| usable.contains(place.cpu)) {
            if taken.contains(place.cpu) {
                continue;
            }
            let mut threads = place.siblings.and(&usable).minus(&taken);
            threads.insert(place.cpu);
            taken = taken.or(&threads);
            let node = place.node.value().copied().unwrap_or(0);
            let package = place.package.value().copied().unwrap_or(0);
            all.push(Core {
                index: all.len(),
                cache: last_level(topology, place.cpu).unwrap_or(place.cpu),
                node,
                package,
                speed: speed(topology, place.cpu),
                threads: threads.to_vec(),
            });
        }
        Cores { all, distances: distances(topology), isolated }
    }

    /// Those that do not meet the set; where all do, what the set leaves of them; all where it leaves nothing.
    pub fn without(&self, set: &CpuSet) -> Cores {
        let apart: Vec<Core> = self.all.iter().filter(|core| !core.set().meets(set)).cloned().collect();
        let rest = |core: &Core| Core { threads: core.set().minus(set).to_vec(), ..core.clone() };
        let rests = || self.all.iter().map(rest).filter(|core| !core.threads.is_empty()).collect::<Vec<_>>();
        let choices = [apart, rests(), self.all.clone()];
        let all = choices.into_iter().find(|cores| !cores.is_empty()).unwrap_or_default();
        Cores { all, ..self.clone() }
    }

    /// How many kinds of core these CPUs are of.
    pub fn kinds_of(&self, cpus: &CpuSet) -> usize {
        let speeds: BTreeSet<usize> =
            self.all.iter().filter(|core| core.set().meets(cpus)).map(|core| core.speed).collect();
        speeds.len()
    }

    /// One thread of each core first, then the second of each, and so on.
    pub fn in_order(&self) -> Vec<u32> {
        let mut ranked: Vec<(usize, u32)> =
            self.all.iter().flat_map(|core| core.threads.iter().copied().enumerate()).collect();
        ranked.sort_unstable();
        ranked.into_iter().map(|(_, cpu)| cpu).collect()
    }

    /// The kernel's distance between two nodes.
    pub fn distance(&self, one: u32, other: u32) -> u32 {
        let unknown = if one == other { LOCAL } else { FAR };
        self.distances.get(&(one, other)).copied().unwrap_or(unknown)
    }
}

/// The CPUs that share the largest-numbered level with this one, by the lowest; those of a node where no cache is
/// known, so that a node is the smallest thing to keep within.
fn last_level(topology: &Topology, cpu: u32) -> Option<u32> {
    let caches = topology.caches.value().map(Vec::as_slice).unwrap_or_default();
    let holds = |cache: &&tare_model::topology::Cache| {
        cache.kind != CacheKind::Instruction && cache.cpus.contains(cpu)
    };
    let last = caches.iter().filter(holds).max_by_key(|cache| cache.level);
    let node = || topology.numa.value()?.iter().find(|node| node.cpus.contains(cpu));
    last.map(|cache| &cache.cpus).or_else(|| node().map(|node| &node.cpus)).and_then(CpuSet::lowest)
}

fn speed(topology: &Topology, cpu: u32) -> usize {
    let kinds = topology.kinds.value().map(Vec::as_slice).unwrap_or_default();
    kinds.iter().position(|kind| kind.cpus.contains(cpu)).unwrap_or(0)
}

fn distances(topology: &Topology) -> BTreeMap<(u32, u32), u32> {
    let nodes = topology.numa.value().map(Vec::as_slice).unwrap_or_default();
    let row = |node: &tare_model::topology::NumaNode| match &node.distances {
        Reading::Measured(distances) => {
            nodes.iter().zip(distances).map(|(other, &far)| ((node.id, other.id), far)).collect()
        }
        _ => Vec::new(),
    };
    nodes.iter().flat_map(row).collect()
}
