//! Which CPUs are whose.

use tare_explain::instances::Beside;
use tare_model::scaling::OrderedCpu;
use tare_model::topology::Topology;

/// The CPUs of an instance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// Its own.
    pub cpus: Vec<u32>,
    /// Of these the ones that another instance has as well.
    pub shared: Vec<u32>,
    /// Those of its load generator; empty where none are left that no instance has.
    pub load_cpus: Vec<u32>,
}

/// The places of so many instances with so many CPUs each: the first takes the first ones in the order, the next those behind them, and where
/// there are no more the first ones again. What no instance has is divided among their generators; where it is less than one for each,
/// all have all of it.
pub(super) fn places(order: &[OrderedCpu], count: usize, each: usize) -> Vec<Place> {
    let cpus: Vec<u32> = order.iter().map(|next| next.cpu).collect();
    if cpus.is_empty() {
        return vec![Place::default(); count];
    }
    let each = each.clamp(1, cpus.len());
    let rest = cpus.get(count * each..).unwrap_or_default();
    let part = rest.len() / count.max(1);
    let own = |i: usize| sorted((0..each).map(|at| cpus[(i * each + at) % cpus.len()]).collect());
    let all: Vec<Vec<u32>> = (0..count).map(own).collect();
    let is_shared = |cpu: &u32| all.iter().filter(|cpus| cpus.contains(cpu)).count() > 1;
    let place = |(i, cpus): (usize, &Vec<u32>)| Place {
        cpus: cpus.clone(),
        shared: cpus.iter().copied().filter(is_shared).collect(),
        load_cpus: match part {
            0 => sorted(rest.to_vec()),
            part => sorted(rest[i * part..(i + 1) * part].to_vec()),
        },
    };
    all.iter().enumerate().map(place).collect()
}

/// Who else uses the CPUs of instance `i` (from 0), or siblings of them.
pub(super) fn beside(places: &[Place], i: usize, topology: &Topology) -> Beside {
    let Some(own) = places.get(i) else { return Beside::default() };
    let siblings = |cpu: &u32| -> Vec<u32> {
        let place = topology.cpus.iter().find(|place| place.cpu == *cpu);
        place.map(|place| place.siblings.iter().collect()).unwrap_or_default()
    };
    let of_own: Vec<u32> = own.cpus.iter().flat_map(siblings).filter(|cpu| !own.cpus.contains(cpu)).collect();
    let others = places.iter().enumerate().filter(|(other, _)| *other != i).map(|(_, place)| place);
    let shares_cores = others.flat_map(|place| &place.cpus).any(|cpu| of_own.contains(cpu));
    Beside { shares_cpus: !own.shared.is_empty(), shares_cores }
}

fn sorted(mut cpus: Vec<u32>) -> Vec<u32> {
    cpus.sort_unstable();
    cpus
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tare_explain::smt_worth::smt_worth;
    use tare_machine::{Root, placement, topology};
    use tare_model::Reading;
    use tare_model::scaling::ScaleLevel;
    use tare_model::topology::CpuPlace;

    fn order(count: u32) -> Vec<OrderedCpu> {
        (0..count).map(|cpu| OrderedCpu { cpu, adds: "core".to_owned(), node: None }).collect()
    }

    #[test]
    fn each_has_its_own_cpus_and_generators_have_the_rest() {
        let four = places(&order(8), 3, 2);
        let cpus: Vec<&[u32]> = four.iter().map(|place| place.cpus.as_slice()).collect();
        assert_eq!(cpus, [[0, 1], [2, 3], [4, 5]]);
        assert!(four.iter().all(|place| place.shared.is_empty() && place.load_cpus == [6, 7]));
        let two = places(&order(8), 2, 2);
        assert_eq!((two[0].load_cpus.as_slice(), two[1].load_cpus.as_slice()), (&[4, 5][..], &[6, 7][..]));
        assert!(places(&order(2), 2, 1).iter().all(|place| place.load_cpus.is_empty()));
    }

    #[test]
    fn where_there_are_too_few_some_are_shared() {
        let three = places(&order(2), 3, 1);
        let cpus: Vec<&[u32]> = three.iter().map(|place| place.cpus.as_slice()).collect();
        let shared: Vec<&[u32]> = three.iter().map(|place| place.shared.as_slice()).collect();
        assert_eq!(cpus, [[0], [1], [0]]);
        assert_eq!(shared, [&[0][..], &[], &[0]]);
        // More than there are.
        assert_eq!(places(&order(2), 1, 8)[0].cpus, [0, 1]);
        assert_eq!(places(&[], 2, 1), vec![Place::default(); 2]);
    }

    fn recorded(name: &str) -> Topology {
        let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../tare-machine/tests/fixtures");
        topology::read(&Root::at(format!("{fixtures}/{name}")), None)
    }

    fn level(n: usize, x: f64) -> ScaleLevel {
        tare_explain::scaling::level(n as f64, vec![x], "events/s")
    }

    /// The machine of field report R4, 32 cores with two threads each: the figures that were recorded there, in the order of its CPUs.
    #[test]
    fn what_an_smt_thread_was_worth_on_the_machine_of_field_report_r4() {
        let order = placement::growing(&recorded("hygon-64"));
        assert_eq!(order.len(), 64);
        let worth = |levels: &[ScaleLevel]| smt_worth(levels, &order).value().map(|worth| worth.value);
        // openssl speed -multi: × 1.8 from 16 to 32, × 1.2 from 32 to 64. sysbench cpu: linear to 32, then flat.
        let openssl = worth(&[level(16, 16.0), level(32, 28.8), level(64, 34.56)]).unwrap();
        let sysbench = worth(&[level(16, 16.0), level(32, 32.0), level(64, 32.64)]).unwrap();
        assert!((openssl - 0.2).abs() < 1e-9 && (sysbench - 0.02).abs() < 1e-9, "{openssl} {sysbench}");
        // Kunpeng 920 has no SMT.
        let without = placement::growing(&recorded("kunpeng-920"));
        assert!(matches!(smt_worth(&[level(48, 48.0), level(96, 96.0)], &without), Reading::Missing(_)));
    }

    /// A machine with two threads a core. Threads of a core have numbers beside each other, or those of all cores come first.
    fn generated(nodes: u32, cores_each: u32, beside_each_other: bool) -> Topology {
        let cores = nodes * cores_each;
        let cpu_of = |core: u32, thread: u32| match beside_each_other {
            true => 2 * core + thread,
            false => core + thread * cores,
        };
        let place = |(core, thread): (u32, u32)| CpuPlace {
            cpu: cpu_of(core, thread),
            package: Reading::Measured(0),
            die: Reading::missing("made up"),
            cluster: Reading::missing("made up"),
            core: Reading::Measured(core),
            node: Reading::Measured(core / cores_each),
            siblings: [cpu_of(core, 0), cpu_of(core, 1)].into_iter().collect(),
        };
        let mut cpus: Vec<CpuPlace> = (0..cores).flat_map(|core| [(core, 0), (core, 1)]).map(place).collect();
        cpus.sort_by_key(|place| place.cpu);
        Topology {
            numa_nodes: Reading::Measured(nodes),
            allowed: Reading::Measured(cpus.iter().map(|place| place.cpu).collect()),
            isolated: Reading::missing("made up"),
            caches: Reading::missing("made up"),
            kinds: Reading::missing("made up"),
            numa: Reading::missing("made up"),
            cpus,
            ..recorded("hygon-64")
        }
    }

    proptest! {
        /// The rate is a core's for each core at work, and `worth` more for each core with both threads at work, whichever CPUs those are.
        #[test]
        fn an_smt_thread_is_worth_what_it_adds_on_any_machine(
            nodes in 1u32..4, cores_each in 1u32..9, beside_each_other in any::<bool>(), worth in -0.3..0.9f64,
        ) {
            let topology = generated(nodes, cores_each, beside_each_other);
            let order = placement::growing(&topology);
            let cores = (nodes * cores_each) as usize;
            prop_assert_eq!(order.len(), 2 * cores);
            let rate = |count: usize| {
                let held: Vec<u32> = order.iter().take(count).map(|next| next.cpu).collect();
                let of_cpu = |place: &&CpuPlace| held.contains(&place.cpu);
                let both = |place: &&CpuPlace| place.siblings.iter().all(|cpu| held.contains(&cpu));
                let first = |place: &&CpuPlace| place.siblings.iter().find(|cpu| held.contains(cpu)) == Some(place.cpu);
                let at_work = topology.cpus.iter().filter(of_cpu).filter(first).count();
                let doubled = topology.cpus.iter().filter(first).filter(both).count();
                at_work as f64 + worth * doubled as f64
            };
            let levels = [cores, cores + cores.div_ceil(2), 2 * cores].map(|n| level(n, rate(n)));
            let found = smt_worth(&levels, &order).value().map(|found| found.value);
            prop_assert!(found.is_some_and(|found| (found - worth).abs() < 1e-9), "{:?} for {}", found, worth);
        }
    }

    #[test]
    fn who_is_on_a_sibling_shares_the_core() {
        let topology = recorded("hygon-64");
        let order = placement::growing(&topology);
        // 8 instances of 4 CPUs are on 32 cores; the ninth is on siblings of the first one's.
        let eight = places(&order, 8, 4);
        assert!((0..8).all(|i| beside(&eight, i, &topology) == Beside::default()));
        let nine = places(&order, 9, 4);
        let shares = |i: usize| beside(&nine, i, &topology);
        assert!(shares(0).shares_cores && shares(8).shares_cores && !shares(1).shares_cores, "{nine:?}");
        assert!(!shares(0).shares_cpus && beside(&places(&order, 17, 4), 0, &topology).shares_cpus);
    }
}
