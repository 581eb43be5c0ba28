//! All of the machine that is online, whoever may use it.

use super::files::CPU_DIR;
use super::{caches, cpuinfo, cpus, nodes};
use crate::root::Root;
use std::collections::{BTreeMap, HashMap, HashSet};
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

/// What is known of one CPU.
pub(super) struct CpuTraits {
    pub package: Result<u32, Missing>,
    pub die: Result<u32, Missing>,
    pub cluster: Result<u32, Missing>,
    pub core: Result<u32, Missing>,
    pub node: Result<u32, Missing>,
    /// The threads that share its execution units, itself included.
    pub siblings: Result<CpuSet, Missing>,
    /// The CPUs of its package.
    pub package_cpus: Result<CpuSet, Missing>,
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
    let mut shelf = Shelf::default();
    Machine {
        cores: shelf.groups(cores, "core", &online),
        packages: shelf.groups(packages, "package", &online),
        caches: caches::read(root, &set, &mut shelf),
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

/// Sets of CPUs that can all be true: any two lie one in the other or apart. Firmware has said otherwise; what
/// contradicts a set that is already there is not believed.
#[derive(Default)]
pub(super) struct Shelf {
    sets: Vec<CpuSet>,
    /// For each CPU, the sets that hold it.
    holding: HashMap<u32, Vec<usize>>,
}

impl Shelf {
    /// Whether the set fits in; if so it is kept.
    pub fn accept(&mut self, set: &CpuSet) -> bool {
        let held: HashSet<usize> =
            set.iter().filter_map(|cpu| self.holding.get(&cpu)).flatten().copied().collect();
        let nested = |other: &CpuSet| other.within(set) || set.within(other);
        if !held.iter().all(|&nth| nested(&self.sets[nth])) {
            return false;
        }
        if !held.iter().any(|&nth| self.sets[nth] == *set) {
            for cpu in set.iter() {
                self.holding.entry(cpu).or_default().push(self.sets.len());
            }
            self.sets.push(set.clone());
        }
        true
    }

    /// The different groups among what each CPU says of its own.
    fn groups(
        &mut self,
        said: Vec<(u32, CpuSet)>,
        what: &str,
        online: &Result<CpuSet, Missing>,
    ) -> Result<Vec<CpuSet>, Missing> {
        online.as_ref().map_err(Clone::clone)?;
        let mut seen: HashSet<CpuSet> = HashSet::new();
        let mut groups = Vec::new();
        for (_, set) in said.into_iter().filter(|(cpu, set)| set.contains(*cpu)) {
            if !seen.contains(&set) && self.accept(&set) {
                groups.push(set.clone());
            }
            seen.insert(set);
        }
        if groups.is_empty() {
            return Err(Missing::new(format!(
                "{CPU_DIR}/cpu*/topology does not tell which CPUs are one {what}"
            )));
        }
        Ok(groups)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_kept_can_all_be_true(
            sets in proptest::collection::vec(proptest::collection::btree_set(0u32..12, 1..6), 1..12),
        ) {
            let mut shelf = Shelf::default();
            for set in &sets {
                let set: CpuSet = set.iter().copied().collect();
                let fits = shelf.sets.iter().all(|other| !other.meets(&set) || other.within(&set) || set.within(other));
                prop_assert_eq!(shelf.accept(&set), fits);
            }
        }
    }
}
