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
mod isolated;
mod kinds;
mod machine;
mod midr;
mod model;
mod nested_sets;
mod nodes;
mod traits;

use crate::root::Root;
use allowed::Allowed;
pub(crate) use model::read as cpu_model;
use tare_model::machine::CpuFacts;
use tare_model::topology::{Cache, CpuPlace, NumaNode, Topology};
use tare_model::{CpuSet, Missing, Reading};
use traits::CpuTraits;

/// Reads the part of the machine that process `pid` may use (`None`: the reader itself). What cannot be read is
/// missing, with the reason.
pub fn read(root: &Root, pid: Option<u32>) -> Topology {
    let machine = machine::read(root);
    let may_use = allowed::read(root, pid);
    let cpus = machine.online.clone().and_then(|online| may_use.cpus_of(&online));
    let set = cpus.clone().unwrap_or_default();
    let (count, nodes) = nodes_of(machine.nodes, &set, &may_use);
    let count = count.and_then(|count| nodes::not_shown(root).map_or(Ok(count), Err));
    Topology {
        packages: count_of(machine.packages, &cpus).into(),
        numa_nodes: count.into(),
        cores: count_of(machine.cores, &cpus).into(),
        threads: Reading::from(cpus.clone()).map(|cpus| cpus.len() as u32),
        offline: cpus::offline(root, &machine.online).into(),
        online: machine.online.into(),
        caches: machine.caches.and_then(|caches| caches_of(caches, &set)).into(),
        numa: nodes.into(),
        isolated: isolated::read(root).into(),
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

fn caches_of(caches: Vec<Cache>, allowed: &CpuSet) -> Result<Vec<Cache>, Missing> {
    let cut = |cache: Cache| Cache { cpus: cache.cpus.and(allowed), ..cache };
    let mut caches: Vec<Cache> = caches.into_iter().map(cut).filter(|cache| !cache.cpus.is_empty()).collect();
    caches.sort_by_key(|cache| (cache.level, cache.kind, cache.cpus.lowest()));
    if caches.is_empty() { Err(Missing::new("no cache of an allowed CPU is known")) } else { Ok(caches) }
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
    if kept.is_empty() {
        let missing = Missing::new("no NUMA node whose memory may be used is there");
        return (Err(missing.clone()), Err(missing));
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::Path;

    /// Every file that is read of a machine with four CPUs, and what stands there.
    const FILES: &[(&str, &str)] = &[
        ("proc/self/status", "Cpus_allowed_list:\t0-3\n"),
        ("proc/self/mounts", "cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n"),
        ("proc/self/cgroup", "3:cpuset:/a\n"),
        ("proc/cpuinfo", "processor\t: 0\nprocessor\t: 1\n"),
        ("sys/fs/cgroup/cpuset/a/cpuset.cpus", "0-3\n"),
        ("sys/fs/cgroup/cpuset/a/cpuset.mems", "0-1\n"),
        ("sys/devices/system/cpu/online", "0-3\n"),
        ("sys/devices/system/cpu/isolated", "\n"),
        ("sys/devices/system/cpu/cpu0/topology/core_cpus", "3\n"),
        ("sys/devices/system/cpu/cpu0/topology/package_cpus", "f\n"),
        ("sys/devices/system/cpu/cpu1/topology/core_cpus", "3\n"),
        ("sys/devices/system/cpu/cpu1/topology/package_cpus", "f\n"),
        ("sys/devices/system/cpu/cpu2/topology/core_cpus", "c\n"),
        ("sys/devices/system/cpu/cpu2/topology/package_cpus", "f\n"),
        ("sys/devices/system/cpu/cpu3/topology/core_cpus_list", "2-3\n"),
        ("sys/devices/system/cpu/cpu3/topology/package_cpus", "f\n"),
        ("sys/devices/system/cpu/cpu0/cpu_capacity", "1024\n"),
        ("sys/devices/system/cpu/cpu0/cache/index0/level", "3\n"),
        ("sys/devices/system/cpu/cpu0/cache/index0/type", "Unified\n"),
        ("sys/devices/system/cpu/cpu0/cache/index0/size", "8192K\n"),
        ("sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_map", "f\n"),
        ("sys/devices/system/node/online", "0-1\n"),
        ("sys/devices/system/node/node0/cpumap", "3\n"),
        ("sys/devices/system/node/node0/distance", "10 21\n"),
        ("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 1024 kB\n"),
        ("sys/devices/system/node/node1/cpulist", "2-3\n"),
        ("sys/devices/system/node/node1/distance", "21 10\n"),
    ];

    fn write(dir: &Path, file: &str, bytes: &[u8]) {
        let path = dir.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    fn machine() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (file, text) in FILES {
            write(dir.path(), file, text.as_bytes());
        }
        dir
    }

    #[test]
    fn both_spellings_and_a_cpuset() {
        let dir = machine();
        write(dir.path(), "sys/fs/cgroup/cpuset/a/cpuset.cpus", b"0-2\n");
        write(dir.path(), "sys/fs/cgroup/cpuset/a/cpuset.mems", b"1\n");
        let topology = read(&Root::at(dir.path()), None);
        assert_eq!(topology.allowed, Reading::Measured(CpuSet::first(3)));
        assert_eq!((topology.cores, topology.packages), (Reading::Measured(2), Reading::Measured(1)));
        assert_eq!((topology.threads, topology.numa_nodes), (Reading::Measured(3), Reading::Measured(1)));
        let caches = topology.caches.value().unwrap();
        assert_eq!(
            (caches[0].size_bytes.value(), caches[0].cpus.to_string()),
            (Some(&(8 << 20)), "0-2".into())
        );
        let nodes = topology.numa.value().unwrap();
        assert_eq!((nodes.len(), nodes[0].id, nodes[0].cpus.to_string()), (1, 1, "2".into()));
        assert_eq!(nodes[0].distances, Reading::Measured(vec![10]));
        assert_eq!(topology.cpus[2].siblings.to_string(), "2");
    }

    #[test]
    fn both_lists_of_mounts_tell_of_a_cpuset() {
        let dir = machine();
        write(dir.path(), "sys/fs/cgroup/cpuset/a/cpuset.cpus", b"1-2\n");
        std::fs::remove_file(dir.path().join("proc/self/mounts")).unwrap();
        let info = b"32 31 0:29 / /sys/fs/cgroup/cpuset rw,relatime shared:1 - cgroup cgroup rw,cpuset\n";
        write(dir.path(), "proc/self/mountinfo", info);
        assert_eq!(read(&Root::at(dir.path()), None).allowed_cpus().to_string(), "1-2");
    }

    #[test]
    fn without_sys_the_processors_of_cpuinfo_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let text: String = (0..4)
            .map(|cpu| format!("processor\t: {cpu}\nphysical id\t: 0\ncore id\t\t: {}\n\n", cpu / 2))
            .collect();
        write(dir.path(), "proc/cpuinfo", text.as_bytes());
        let topology = read(&Root::at(dir.path()), None);
        assert_eq!((topology.threads, topology.cores), (Reading::Measured(4), Reading::Measured(2)));
        assert_eq!((topology.packages, topology.numa_nodes), (Reading::Measured(1), Reading::Measured(1)));
        assert!(topology.caches.value().is_none());
        let s390 = "# processors    : 2\nprocessor 0: version = 00\nprocessor 1: version = 00\n";
        write(dir.path(), "proc/cpuinfo", s390.as_bytes());
        let topology = read(&Root::at(dir.path()), None);
        assert_eq!(topology.threads, Reading::Measured(2));
        assert!(topology.cores.value().is_none() && topology.packages.value().is_none());
    }

    #[test]
    fn nothing_to_read_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        let topology = read(&Root::at(dir.path()), Some(7));
        assert!(topology.cpus.is_empty());
        for count in [&topology.packages, &topology.numa_nodes, &topology.cores, &topology.threads] {
            assert!(count.value().is_none());
        }
    }

    /// Whatever is measured is not nothing.
    fn check(topology: &Topology) -> Result<(), TestCaseError> {
        for count in [&topology.packages, &topology.cores, &topology.threads] {
            prop_assert!(count.value() != Some(&0), "{:?}", topology);
        }
        for set in [&topology.online, &topology.allowed] {
            prop_assert!(set.value().is_none_or(|set| !set.is_empty()), "{:?}", topology);
        }
        if let Some(caches) = topology.caches.value() {
            prop_assert!(!caches.is_empty() && caches.iter().all(|cache| !cache.cpus.is_empty()));
        }
        prop_assert_eq!(topology.cpus.len(), topology.allowed_cpus().len());
        prop_assert!(topology.numa.value().is_none_or(|nodes| !nodes.is_empty()), "{:?}", topology);
        prop_assert!(topology.cpus.iter().all(|place| place.siblings.contains(place.cpu)));
        Ok(())
    }

    proptest! {
        #[test]
        fn nonsense_in_some_files_is_missing_and_never_a_zero_or_a_panic(
            broken in proptest::collection::vec((0..FILES.len(), "\\PC{0,20}|[0-9a-f,-]{0,20}|\n"), 1..6),
            gone in proptest::collection::vec(0..FILES.len(), 0..4),
        ) {
            let dir = machine();
            for (nth, text) in &broken {
                write(dir.path(), FILES[*nth].0, text.as_bytes());
            }
            for nth in gone {
                std::fs::remove_file(dir.path().join(FILES[nth].0)).ok();
            }
            check(&read(&Root::at(dir.path()), None))?;
        }

        #[test]
        fn bytes_in_every_file_are_missing(bytes in proptest::collection::vec(128u8.., 1..40)) {
            let dir = tempfile::tempdir().unwrap();
            for (file, _) in FILES {
                write(dir.path(), file, &bytes);
            }
            let topology = read(&Root::at(dir.path()), None);
            check(&topology)?;
            prop_assert!(topology.threads.value().is_none() && topology.numa_nodes.value().is_none());
        }
    }
}
