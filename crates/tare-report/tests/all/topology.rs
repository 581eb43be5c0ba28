//! How a machine and who runs on it are drawn.

use tare_model::placement::{CpuPlan, Policy};
use tare_model::topology::{Cache, CacheKind, CpuPlace, NumaNode, Topology};
use tare_model::{CpuSet, Reading};

fn set(list: &str) -> CpuSet {
    CpuSet::from_list(list).unwrap_or_default()
}

/// Two nodes of two cores with two threads, a cache each; CPU 7 is not ours to use.
fn topology() -> Topology {
    let node = |id: u32, list: &str, distances: [u32; 2]| NumaNode {
        id,
        cpus: set(list),
        memory_bytes: Reading::Measured(16 << 30),
        distances: Reading::Measured(distances.to_vec()),
    };
    let cache = |list: &str| Cache {
        level: 3,
        kind: CacheKind::Unified,
        size_bytes: Reading::Measured(8 << 20),
        cpus: set(list),
    };
    let place = |cpu: u32| CpuPlace {
        cpu,
        package: Reading::Measured(0),
        die: Reading::missing("none"),
        cluster: Reading::missing("none"),
        core: Reading::Measured(cpu % 4),
        node: Reading::Measured(cpu % 4 / 2),
        siblings: [cpu % 4, cpu % 4 + 4].into_iter().collect(),
    };
    Topology {
        packages: Reading::Measured(1),
        numa_nodes: Reading::Measured(2),
        cores: Reading::Measured(4),
        threads: Reading::Measured(7),
        online: Reading::Measured(set("0-7")),
        allowed: Reading::Measured(set("0-6")),
        caches: Reading::Measured(vec![cache("0-1,4-5"), cache("2-3,6")]),
        numa: Reading::Measured(vec![node(0, "0-1,4-5", [10, 21]), node(1, "2-3,6", [21, 10])]),
        offline: Reading::missing("not reported"),
        isolated: Reading::Measured(CpuSet::new()),
        nohz_full: Reading::Measured(CpuSet::new()),
        kinds: Reading::missing("not reported"),
        cpus: (0..7).map(place).collect(),
    }
}

#[test]
fn a_line_for_each_cache_says_who_runs_there() {
    let plan = CpuPlan {
        policy: Policy::Auto,
        sut: set("0-1"),
        services: vec![set("0-1")],
        generator: set("2"),
        observers: set("3"),
        irqs: set("3"),
        notes: vec!["observers and interrupts share a core".into()],
    };
    let environment = [("GOMAXPROCS", "2".to_string()), ("JAVA_TOOL_OPTIONS", "-XX:A -XX:B".to_string())];
    let drawn = tare_report::topology::draw(&topology(), &plan, &environment);
    let wanted = "\
1 package, 2 NUMA nodes, 4 cores, 7 threads
not allowed: CPUs 7

package 0
  node 0 16 GiB (10 21)  L3 8 MiB  0-1,4-5  SUT 0-1 · left idle 4-5
  node 1 16 GiB (21 10)  L3 8 MiB  2-3,6    generator 2 · observers 3 · IRQs 3 · left idle 6

Placement (auto):
  SUT        0-1
  generator  2
  observers  3
  IRQs       3
  note: observers and interrupts share a core

Start a SUT on them with (tare run --fit-runtime does):
  GOMAXPROCS=2
  JAVA_TOOL_OPTIONS='-XX:A -XX:B'
";
    assert_eq!(drawn, wanted);
}
