//! What a placement keeps to, on every gathered machine and on those of the field reports.

use crate::machines::{fixtures, hwloc_trees};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tare_machine::placement::{Ask, PlacementError, plan};
use tare_machine::{Root, topology};
use tare_model::CpuSet;
use tare_model::placement::{CpuPlan, Policy};
use tare_model::topology::Topology;

fn all_machines() -> impl Iterator<Item = (String, Topology)> {
    let read = |tree: crate::machines::Tree| {
        let topology = topology::read(&Root::at(&tree.dir), None);
        (tree.name, topology)
    };
    hwloc_trees().chain(fixtures()).map(read)
}

fn fixture(name: &str) -> Topology {
    let tree = fixtures().find(|tree| tree.name == name).unwrap();
    topology::read(&Root::at(&tree.dir), None)
}

fn asks() -> impl Strategy<Value = Ask> {
    let policy = prop_oneof![
        Just(Policy::Auto),
        Just(Policy::Spread),
        Just(Policy::SameNode),
        Just(Policy::SmtPairs),
        any::<u64>().prop_map(Policy::Random),
    ];
    let quota = prop_oneof![Just(None), (0.05f64..20.0).prop_map(Some)];
    (policy, 1u32..20, proptest::option::of(0u32..40), quota, prop_oneof![0u32..20, Just(u32::MAX)]).prop_map(
        |(policy, services, cpus_each, quota_cpus, generator)| Ask {
            policy,
            services,
            cpus_each,
            quota_cpus,
            generator,
        },
    )
}

fn cores_of(topology: &Topology, cpus: &CpuSet) -> CpuSet {
    cpus.iter().fold(CpuSet::new(), |all, cpu| all.or(&topology.core_of(cpu)))
}

fn core_count(topology: &Topology) -> usize {
    let allowed = topology.allowed_cpus();
    allowed.iter().filter(|&cpu| topology.core_of(cpu).lowest() == Some(cpu)).count()
}

fn check(topology: &Topology, ask: &Ask, plan: &CpuPlan) -> Result<(), TestCaseError> {
    let allowed = topology.allowed_cpus();
    for (role, cpus) in [
        ("sut", &plan.sut),
        ("generator", &plan.generator),
        ("observers", &plan.observers),
        ("irqs", &plan.irqs),
    ] {
        prop_assert!(cpus.within(&allowed), "{role} {cpus} beyond {allowed}");
    }
    let all = plan.services.iter().fold(CpuSet::new(), |all, set| all.or(set));
    prop_assert_eq!(&all, &plan.sut);
    prop_assert_eq!(plan.services.iter().map(CpuSet::len).sum::<usize>(), plan.sut.len(), "services overlap");
    prop_assert!(plan.services.iter().all(|set| !set.is_empty()));
    if let Some(quota) = ask.quota_cpus {
        prop_assert!(plan.services.iter().all(|set| set.len() <= (quota.ceil() as usize).max(1)));
    }
    // Cores for all: those of the SUT, one for each CPU of the generator, one each for observers and interrupts.
    let sut_cores = cores_of(topology, &plan.sut);
    let used = sut_cores.iter().filter(|&cpu| topology.core_of(cpu).lowest() == Some(cpu)).count();
    let free = core_count(topology) - used;
    let wanted = if ask.generator == u32::MAX { 1 } else { ask.generator as usize };
    if free >= wanted.max(1) {
        prop_assert!(!cores_of(topology, &plan.generator).meets(&sut_cores), "{:?}", plan);
        prop_assert!(!cores_of(topology, &plan.observers).meets(&sut_cores), "{:?}", plan);
        prop_assert!(!cores_of(topology, &plan.irqs).meets(&sut_cores), "{:?}", plan);
    }
    if free >= wanted + 2 {
        let roles = [&plan.generator, &plan.observers, &plan.irqs].map(|cpus| cores_of(topology, cpus));
        prop_assert!(!roles[0].meets(&roles[1]) && !roles[0].meets(&roles[2]) && !roles[1].meets(&roles[2]));
        prop_assert!(!roles[1].is_empty() && !roles[2].is_empty());
    }
    if plan.generator.meets(&plan.sut) {
        prop_assert!(free == 0 && !plan.notes.is_empty());
    }
    Ok(())
}

#[test]
fn placements_keep_to_the_rules_on_every_machine() {
    std::thread::scope(|scope| {
        for (name, topology) in all_machines() {
            scope.spawn(move || placements_keep_to_the_rules(&name, &topology));
        }
    });
}

fn placements_keep_to_the_rules(name: &str, topology: &Topology) {
    assert!(!topology.allowed_cpus().is_empty(), "{name}");
    let mut runner = TestRunner::new(ProptestConfig::with_cases(64));
    let result = runner.run(&asks(), |ask| {
        match plan(topology, &ask) {
            Ok(found) => {
                let again = plan(topology, &ask).unwrap();
                prop_assert_eq!(&found, &again);
                check(topology, &ask, &found)?;
            }
            Err(PlacementError::TooMany { wanted, have }) => {
                prop_assert!(wanted > have && ask.services > 1)
            }
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        }
        Ok(())
    });
    assert!(result.is_ok(), "{name}: {}", result.unwrap_err());
}

fn nodes_of(topology: &Topology, cpus: &CpuSet) -> usize {
    topology.numa.value().unwrap().iter().filter(|node| node.cpus.meets(cpus)).count()
}

#[test]
fn sixteen_services_of_four_cpus_stay_in_their_nodes() {
    let hygon = fixture("hygon-64");
    for policy in [Policy::Auto, Policy::SameNode, Policy::SmtPairs] {
        let ask = Ask { policy, services: 16, cpus_each: Some(4), generator: 0, ..Ask::default() };
        let fleet = plan(&hygon, &ask).unwrap();
        assert_eq!((fleet.services.len(), fleet.sut.len()), (16, 64));
        for service in &fleet.services {
            assert_eq!((service.len(), nodes_of(&hygon, service)), (4, 1), "{service}");
            assert_eq!(cores_of(&hygon, service), *service, "{service} shares a core");
        }
        assert_eq!(fleet.notes, ["no CPU is left for the observers outside the server's"]);
    }
    // On half of the machine each thread has a core to itself.
    let ask = Ask { services: 8, cpus_each: Some(3), generator: 0, ..Ask::default() };
    let fleet = plan(&hygon, &ask).unwrap();
    assert!(fleet.services.iter().all(|set| nodes_of(&hygon, set) == 1 && cores_of(&hygon, set).len() == 6));
    let ask = Ask { services: 17, ..ask };
    let ask = Ask { cpus_each: Some(4), ..ask };
    assert_eq!(plan(&hygon, &ask).unwrap_err(), PlacementError::TooMany { wanted: 68, have: 64 });
}

#[test]
fn policies_on_the_hygon_host() {
    let hygon = fixture("hygon-64");
    let sut = |policy, each| {
        let ask = Ask { policy, cpus_each: Some(each), generator: 4, ..Ask::default() };
        plan(&hygon, &ask).unwrap()
    };
    let auto = sut(Policy::Auto, 4);
    assert_eq!(auto.sut.to_string(), "0-3", "one last-level cache");
    assert_eq!(auto.generator.to_string(), "4-7", "the other cache of the node");
    assert!(auto.notes.is_empty() && auto.observers != auto.irqs, "{auto:?}");
    assert_eq!(sut(Policy::Spread, 4).sut.to_string(), "0,8,16,24");
    assert_eq!(sut(Policy::SmtPairs, 4).sut.to_string(), "0-1,32-33");
    assert_eq!(sut(Policy::SameNode, 4).sut.to_string(), "0-3");
    assert_eq!(sut(Policy::SameNode, 12).sut.to_string(), "0-7,32-35");
    assert_eq!(sut(Policy::Auto, 12).sut.to_string(), "0-11", "cores before siblings, in one package");
    assert_eq!(sut(Policy::Random(1), 4), sut(Policy::Random(1), 4));
    assert_ne!(sut(Policy::Random(1), 4).sut, sut(Policy::Random(2), 4).sut);
}

#[test]
fn a_quota_bounds_the_cpus() {
    let kunpeng = fixture("kunpeng-920");
    let cpus = |quota_cpus| plan(&kunpeng, &Ask { quota_cpus, ..Ask::default() }).unwrap().sut.len();
    assert_eq!([cpus(Some(1.5)), cpus(Some(0.3)), cpus(Some(2.0)), cpus(None)], [2, 1, 2, 48]);
}

#[test]
fn a_laptop_keeps_siblings_in_one_role() {
    let laptop = fixture("laptop-11800h-wsl2");
    let plan = plan(&laptop, &Ask::default()).unwrap();
    assert_eq!(plan.sut.to_string(), "0,2,4,6");
    assert!(!cores_of(&laptop, &plan.sut).meets(&plan.generator));
    assert!(plan.notes.is_empty(), "{:?}", plan.notes);
}

/// Each step up to the number of cores adds one, and no core gets its last thread before all have had as many as they could.
#[test]
fn cpus_are_added_core_by_core_then_sibling_by_sibling() {
    for (name, topology) in all_machines() {
        let order = tare_machine::placement::growing(&topology);
        let added: Vec<u32> = order.iter().map(|next| next.cpu).collect();
        let all: CpuSet = added.iter().copied().collect();
        let isolated = topology.isolated.value().cloned().unwrap_or_default();
        let usable = topology.allowed_cpus().minus(&isolated);
        let usable = if usable.is_empty() { topology.allowed_cpus() } else { usable };
        assert_eq!((all.len(), &all), (added.len(), &usable), "{name}");
        let mut reached = CpuSet::new();
        for (at, next) in order.iter().enumerate() {
            let core = topology.core_of(next.cpu);
            assert_eq!(next.adds == "core", !core.meets(&reached), "{name}: CPU {}", next.cpu);
            assert!(at == 0 || order[at - 1].adds == "core" || next.adds == "smt-sibling", "{name}");
            reached.insert(next.cpu);
        }
        let nodes: Vec<Option<u32>> =
            order.iter().filter(|next| next.adds == "core").map(|next| next.node).collect();
        assert!(nodes.is_sorted(), "{name}: {nodes:?}");
    }
}
