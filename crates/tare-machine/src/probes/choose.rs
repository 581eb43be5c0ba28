//! Which CPUs are probed: on a machine of hundreds a few of each node, so that the time is bounded.

use std::collections::BTreeMap;
use tare_model::machine::CpuFacts;
use tare_model::{Missing, Reading};

/// At most `max` (at least 1) of the allowed CPUs, ascending: every node gets one before any gets two, and within a
/// node they stand as far apart as they can, so that on most machines they share no core.
pub(super) fn spread_out(facts: &[CpuFacts], allowed: &[u32], max: usize) -> Vec<u32> {
    let mut nodes: BTreeMap<Option<u32>, Vec<u32>> = BTreeMap::new();
    for &cpu in allowed {
        let fact = facts.iter().find(|fact| fact.cpu == cpu);
        nodes.entry(fact.and_then(|fact| fact.node.value().copied())).or_default().push(cpu);
    }
    let max = max.clamp(1, allowed.len().max(1));
    let mut shares = vec![0usize; nodes.len()];
    let mut left = max;
    while left > 0 {
        let before = left;
        for (share, cpus) in shares.iter_mut().zip(nodes.values()) {
            if left > 0 && *share < cpus.len() {
                *share += 1;
                left -= 1;
            }
        }
        if left == before {
            break;
        }
    }
    let of_node = |(share, cpus): (&usize, &Vec<u32>)| -> Vec<u32> {
        (0..*share).map(|at| cpus[at * cpus.len() / share]).collect()
    };
    let mut chosen: Vec<u32> = shares.iter().zip(nodes.values()).flat_map(of_node).collect();
    chosen.sort_unstable();
    chosen
}

/// Two allowed CPUs of one core.
pub(super) fn siblings(facts: &[CpuFacts], allowed: &[u32]) -> Reading<[u32; 2]> {
    let of_allowed = || facts.iter().filter(|fact| allowed.contains(&fact.cpu));
    for fact in of_allowed() {
        let siblings = fact.siblings.value().into_iter().flatten();
        if let Some(&other) =
            siblings.into_iter().find(|&other| *other != fact.cpu && allowed.contains(other))
        {
            return Reading::Measured([fact.cpu, other]);
        }
    }
    match of_allowed().find_map(|fact| fact.siblings.clone().ok().err()) {
        Some(missing) => Reading::Missing(missing),
        None if of_allowed().next().is_none() => Reading::missing("it is not known which CPUs share a core"),
        None => Reading::NotApplicable {
            not_applicable: "no SMT siblings here: no two of the CPUs that this process may use share a core"
                .into(),
        },
    }
}

/// Two allowed CPUs of two cores, of one node where that can be.
pub fn apart(facts: &[CpuFacts], allowed: &[u32]) -> Result<[u32; 2], Missing> {
    let of_allowed: Vec<&CpuFacts> = facts.iter().filter(|fact| allowed.contains(&fact.cpu)).collect();
    let [first, rest @ ..] = of_allowed.as_slice() else {
        return Err(Missing::new("the CPUs are not known"));
    };
    let shares_core = |other: &CpuFacts| first.siblings.value().is_some_and(|all| all.contains(&other.cpu));
    let candidates = || rest.iter().filter(|other| !shares_core(other));
    let other = candidates().find(|other| other.node == first.node).or_else(|| candidates().next());
    other.map(|other| [first.cpu, other.cpu]).ok_or_else(|| {
        Missing::new("this process may use only one core: no wake-up crosses from one to another")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `nodes` × `cores` × 2 threads, numbered as on most servers: all first threads, then all second ones.
    fn machine(nodes: u32, cores: u32) -> Vec<CpuFacts> {
        let first_threads = nodes * cores;
        let fact = |cpu: u32| CpuFacts {
            cpu,
            package: Reading::Measured(0),
            core: Reading::Measured(cpu % first_threads),
            node: Reading::Measured(cpu % first_threads / cores),
            siblings: Reading::Measured(vec![cpu % first_threads, cpu % first_threads + first_threads]),
        };
        (0..first_threads * 2).map(fact).collect()
    }

    fn all(facts: &[CpuFacts]) -> Vec<u32> {
        facts.iter().map(|fact| fact.cpu).collect()
    }

    #[test]
    fn every_node_has_its_turn() {
        let facts = machine(4, 8);
        assert_eq!(spread_out(&facts, &all(&facts), 8), [0, 8, 16, 24, 32, 40, 48, 56]);
        assert_eq!(spread_out(&facts, &all(&facts), 2), [0, 8]);
        assert_eq!(spread_out(&facts, &[3, 4], 8), [3, 4]);
        assert_eq!(spread_out(&[], &[0, 1, 2, 3], 2), [0, 2]);
        assert_eq!(spread_out(&[], &[], 2), Vec::<u32>::new());
    }

    #[test]
    fn siblings_and_strangers() {
        let facts = machine(2, 2);
        assert_eq!(siblings(&facts, &all(&facts)), Reading::Measured([0, 4]));
        assert_eq!(apart(&facts, &all(&facts)), Ok([0, 1]));
        assert_eq!(apart(&facts, &[0, 4, 2]), Ok([0, 2]));
        assert!(apart(&facts, &[0, 4]).unwrap_err().why.contains("only one core"));
        assert!(matches!(siblings(&facts, &[0, 1]), Reading::NotApplicable { .. }));
        assert!(matches!(siblings(&[], &[0, 1]), Reading::Missing(_)));
    }

    proptest! {
        #[test]
        fn what_is_chosen_is_allowed_and_bounded(
            nodes in 1u32..9, cores in 1u32..33, max in 0usize..20, keep in proptest::collection::vec(any::<bool>(), 512),
        ) {
            let facts = machine(nodes, cores);
            let allowed: Vec<u32> = all(&facts).into_iter().filter(|&cpu| keep[cpu as usize]).collect();
            let chosen = spread_out(&facts, &allowed, max);
            prop_assert_eq!(chosen.len(), max.max(1).min(allowed.len()));
            prop_assert!(chosen.is_sorted_by(|a, b| a < b) && chosen.iter().all(|cpu| allowed.contains(cpu)));
        }
    }
}
