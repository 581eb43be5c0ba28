//! All of the machine that is online, whoever may use it.

use super::nested_sets::NestedSets;
use super::traits::CpuTraits;
use super::{caches, cpuinfo, cpus, nodes};
use crate::root::Root;
use std::collections::{BTreeMap, HashMap};
use tare_model::topology::Cache;
use tare_model::{CpuSet, Missing};

pub(super) struct Machine {
    pub online: Result<CpuSet, Missing>,
    pub cpus: BTreeMap<u32, CpuTraits>,
    /// Each core's CPUs.
    pub cores: Result<Vec<CpuSet>, Missing>,
    /// Each package's CPUs.
    pub packages: Result<Vec<CpuSet>, Missing>,
    pub caches: Result<Vec<Cache>, Missing>,
    pub nodes: Result<Vec<nodes::Node>, Missing>,
}

pub(super) fn read(root: &Root) -> Machine {
    let online = cpus::online(root);
    let set = online.clone().unwrap_or_default();
    let mut traits = if cpus::has_topology(root, &set) {
        set.iter().map(|cpu| (cpu, cpus::read(root, &set, cpu))).collect()
    } else {
        cpuinfo::cpus(root, &set)
    };
    by_identifiers(&mut traits);
    let split = cpuinfo::splits_modules(root);
    let cores: Vec<(u32, CpuSet)> = traits
        .iter()
        .filter_map(|(&cpu, one)| Some((cpu, core_of(&traits, one.siblings.as_ref().ok()?, cpu, split))))
        .collect();
    let packages: Vec<(u32, CpuSet)> =
        traits.iter().filter_map(|(&cpu, one)| Some((cpu, one.package_cpus.clone().ok()?))).collect();
    let nodes = match &online {
        Ok(online) => nodes::read(root, online),
        Err(missing) => Err(missing.clone()),
    };
    for (&cpu, one) in &mut traits {
        one.node = nodes::of_cpu(&nodes, cpu);
    }
    // Cores first: where sets cannot all be true, the smaller are the likelier.
    let mut nested = NestedSets::default();
    Machine {
        cores: nested.groups(cores, "core", &online),
        packages: nested.groups(packages, "package", &online),
        caches: caches::read(root, &set, &mut nested),
        cpus: traits,
        nodes,
        online,
    }
}

/// A module of AMD's families 15h and 16h has two cores that share a front end: the kernel calls them siblings,
/// and tells them apart by `core_id` alone.
fn core_of(all: &BTreeMap<u32, CpuTraits>, siblings: &CpuSet, cpu: u32, split: bool) -> CpuSet {
    let id = |cpu: u32| all.get(&cpu).and_then(|one| one.core.as_ref().ok());
    if split { siblings.iter().filter(|&other| id(other) == id(cpu)).collect() } else { siblings.clone() }
}

/// Where the kernel gives identifiers and no sets, CPUs with the same identifiers stand together.
fn by_identifiers(all: &mut BTreeMap<u32, CpuTraits>) {
    let mut packages: HashMap<u32, CpuSet> = HashMap::new();
    let mut cores: HashMap<(u32, u32), CpuSet> = HashMap::new();
    for (&cpu, one) in all.iter() {
        if let Ok(package) = one.package {
            packages.entry(package).or_default().insert(cpu);
            if let Ok(core) = one.core {
                cores.entry((package, core)).or_default().insert(cpu);
            }
        }
    }
    for one in all.values_mut() {
        let Ok(package) = one.package else { continue };
        if let (Err(_), Some(set)) = (&one.package_cpus, packages.get(&package)) {
            one.package_cpus = Ok(set.clone());
        }
        let core = one.core.as_ref().ok().and_then(|&core| cores.get(&(package, core)));
        if let (Err(_), Some(set)) = (&one.siblings, core) {
            one.siblings = Ok(set.clone());
        }
    }
}
