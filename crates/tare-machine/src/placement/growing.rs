//! In which order CPUs are added, where their number is what is varied.

use super::cores::Cores;
use tare_model::scaling::OrderedCpu;
use tare_model::topology::Topology;

/// What the first CPU of a core adds.
const CORE: &str = "core";
/// What each further one adds.
const SIBLING: &str = "smt-sibling";

/// All CPUs that may be used: physical cores first, then their second threads, and so on; each time node by node, and within a node the
/// fastest kind of core first. So every step up to the number of cores adds a core, and a step beyond it an SMT sibling.
pub fn growing(topology: &Topology) -> Vec<OrderedCpu> {
    let cores = Cores::of(topology);
    let one_node = topology.numa_nodes.value().is_none_or(|nodes| *nodes <= 1);
    let mut ranked: Vec<_> = cores
        .all
        .iter()
        .flat_map(|core| {
            let slowness = std::cmp::Reverse(core.speed);
            let place = move |rank| (rank, core.node, slowness, core.package, core.index);
            core.threads.iter().enumerate().map(move |(rank, cpu)| (place(rank), *cpu, core.node))
        })
        .collect();
    ranked.sort_unstable();
    ranked
        .into_iter()
        .map(|((rank, ..), cpu, node)| OrderedCpu {
            cpu,
            adds: if rank == 0 { CORE } else { SIBLING }.to_owned(),
            node: (!one_node).then_some(node),
        })
        .collect()
}
