//! How the machine is put together, and which part of it a process may use.
//!
//! `machine` reads all that is online; `allowed` what a process may use of it; this file cuts the one to the
//! other. What the kernel says of CPUs is taken as sets (which CPUs share a core, a package, a cache), never as
//! identifiers: those repeat, are -1 in virtual machines, and mean other things on other architectures.

mod allowed;
mod caches;
mod cpuinfo;
mod cpus;
mod files;
mod kinds;
mod machine;
mod nodes;

use crate::root::Root;
use allowed::Allowed;
pub(crate) use cpuinfo::model as cpu_model;
use machine::CpuTraits;
use tare_record::machine::CpuFacts;
use tare_record::topology::{Cache, CpuPlace, NumaNode, Topology};
use tare_record::{CpuSet, Missing, Reading};

/// Reads the part of the machine that process `pid` may use (`None`: the reader itself). What cannot be read is
/// missing, with the reason.
pub fn read(root: &Root, pid: Option<u32>) -> Topology {
    let machine = machine::read(root);
    let may_use = allowed::read(root, pid);
    let cpus = machine.online.clone().and_then(|online| may_use.cpus_of(&online));
    let set = cpus.clone().unwrap_or_default();
    let (count, nodes) = nodes_of(machine.nodes, &set, &may_use);
    Topology {
        packages: count_of(machine.packages, &cpus).into(),
        numa_nodes: count.into(),
        cores: count_of(machine.cores, &cpus).into(),
        threads: Reading::from(cpus.clone()).map(|cpus| cpus.len() as u32),
        online: machine.online.into(),
        caches: machine.caches.map(|caches| caches_of(caches, &set)).into(),
        numa: nodes.into(),
        offline: files::list(root, &format!("{}/offline", files::CPU_DIR)).into(),
        isolated: files::list(root, &format!("{}/isolated", files::CPU_DIR)).into(),
        nohz_full: files::nohz_full(root).into(),
        kinds: cpus.clone().map(|cpus| kinds::read(root, &cpus)).into(),
        cpus: set.iter().filter_map(|cpu| Some(place(machine.cpus.get(&cpu)?, cpu, &set))).collect(),
        allowed: cpus.into(),
    }
}

/// Online CPUs, ascending.
///
/// # Errors
/// The list cannot be read.
pub fn online_cpus(root: &Root) -> Result<Vec<u32>, Missing> {
    cpus::online(root).map(|online| online.to_vec())
}

/// Every online CPU for the machine's facts, whoever may use it.
pub(crate) fn cpu_facts(root: &Root) -> Vec<CpuFacts> {
    let facts = |(cpu, traits): (u32, CpuTraits)| CpuFacts {
        cpu,
        package: traits.package.into(),
        core: traits.core.into(),
        node: traits.node.into(),
        siblings: traits.siblings.map(|set| set.to_vec()).into(),
    };
    machine::read(root).cpus.into_iter().map(facts).collect()
}

/// How many of the groups hold an allowed CPU; missing where one of those stands in none.
fn count_of(groups: Result<Vec<CpuSet>, Missing>, allowed: &Result<CpuSet, Missing>) -> Result<u32, Missing> {
    let allowed = allowed.as_ref().map_err(Clone::clone)?;
    let groups = groups?;
    let all = groups.iter().fold(CpuSet::new(), |all, group| all.or(group));
    match allowed.minus(&all).lowest() {
        Some(cpu) => Err(Missing::new(format!(
            "{}/cpu{cpu}/topology does not tell what CPU {cpu} is a part of",
            files::CPU_DIR
        ))),
        None => Ok(groups.iter().filter(|group| group.meets(allowed)).count() as u32),
    }
}

fn caches_of(caches: Vec<Cache>, allowed: &CpuSet) -> Vec<Cache> {
    let cut = |cache: Cache| Cache { cpus: cache.cpus.and(allowed), ..cache };
    let mut caches: Vec<Cache> = caches.into_iter().map(cut).filter(|cache| !cache.cpus.is_empty()).collect();
    caches.sort_by_key(|cache| (cache.level, cache.kind, cache.cpus.lowest()));
    caches
}

/// The nodes whose memory the process may use, and how many of them are near one of its CPUs.
fn nodes_of(
    nodes: Result<Vec<nodes::Node>, Missing>,
    allowed: &CpuSet,
    may_use: &Allowed,
) -> (Result<u32, Missing>, Result<Vec<NumaNode>, Missing>) {
    let nodes = match nodes {
        Ok(nodes) if !allowed.is_empty() => nodes,
        Ok(_) => {
            let missing = Missing::new("the allowed CPUs are not known");
            return (Err(missing.clone()), Err(missing));
        }
        Err(missing) => return (Err(missing.clone()), Err(missing)),
    };
    let kept: Vec<usize> = (0..nodes.len()).filter(|&nth| may_use.may_use_node(nodes[nth].id)).collect();
    let near = kept.iter().filter(|&&nth| nodes[nth].near.meets(allowed)).count() as u32;
    let node = |&nth: &usize| NumaNode {
        id: nodes[nth].id,
        cpus: nodes[nth].cpus.and(allowed),
        memory_bytes: nodes[nth].memory_bytes.clone().into(),
        distances: nodes[nth].distances.clone().map(|all| pick(&all, &kept)).into(),
    };
    (Ok(near), Ok(kept.iter().map(node).collect()))
}

fn pick(all: &[u32], kept: &[usize]) -> Vec<u32> {
    kept.iter().filter_map(|&nth| all.get(nth).copied()).collect()
}

fn place(traits: &CpuTraits, cpu: u32, allowed: &CpuSet) -> CpuPlace {
    let alone = || [cpu].into_iter().collect();
    CpuPlace {
        cpu,
        package: traits.package.clone().into(),
        die: traits.die.clone().into(),
        cluster: traits.cluster.clone().into(),
        core: traits.core.clone().into(),
        node: traits.node.clone().into(),
        siblings: traits.siblings.as_ref().map_or_else(|_| alone(), |set| set.and(allowed)),
    }
}
