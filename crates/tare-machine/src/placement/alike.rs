//! Cores of one kind: who gets fast cores and slow ones has no figure that holds for either.

use super::cores::Core;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The cores of the fastest kind that fits; of the kind with most CPUs where none does. They stay in order.
pub(super) fn of_one_kind(cores: &[Core], fits: impl Fn(&[&Core]) -> bool) -> Vec<Core> {
    let mut kinds: BTreeMap<Reverse<usize>, Vec<&Core>> = BTreeMap::new();
    for core in cores {
        kinds.entry(Reverse(core.speed)).or_default().push(core);
    }
    let largest =
        || kinds.iter().max_by_key(|(speed, kind)| (cpus(kind), Reverse(**speed))).map(|(_, kind)| kind);
    let chosen = kinds.values().find(|kind| fits(kind)).or_else(largest);
    chosen.into_iter().flatten().map(|core| (*core).clone()).collect()
}

/// How many CPUs these cores have.
pub(super) fn cpus(cores: &[&Core]) -> usize {
    cores.iter().map(|core| core.threads.len()).sum()
}
