//! Groups of CPUs that firmware and kernel name, kept only where they do not contradict each other.

use super::files::CPU_DIR;
use std::collections::{HashMap, HashSet};
use tare_model::{CpuSet, Missing};

/// Sets of CPUs that can all be true: any two lie one in the other or apart. Firmware has said otherwise; what
/// contradicts a set that is already there is not believed.
#[derive(Default)]
pub(super) struct NestedSets {
    sets: Vec<CpuSet>,
    /// For each CPU, the sets that hold it.
    holding: HashMap<u32, Vec<usize>>,
}

impl NestedSets {
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
    pub fn groups(
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
            let mut nested = NestedSets::default();
            for set in &sets {
                let set: CpuSet = set.iter().copied().collect();
                let fits = nested.sets.iter().all(|other| !other.meets(&set) || other.within(&set) || set.within(other));
                prop_assert_eq!(nested.accept(&set), fits);
            }
        }
    }
}
