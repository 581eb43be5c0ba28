//! The observers there are.

use crate::observer::Observer;
use crate::scene::Scene;
use crate::{
    aperf, client, clock, connections, core_latency, cpus, downstream, energy, exits, groups, jvm, link,
    load_connections, memory, network, open_files, pmu, pressure, reclaim, softirqs, stacks, switches, tasks,
    thermal, wakeups,
};

/// Every observer, in the order in which edges are read: the CPUs' first, as close to the stamp of the window
/// as can be. Threads are listed by `tasks`, so what is known of them comes after it.
pub(crate) static REGISTRY: &[Open] = &[
    cpus::open,
    // Before the threads: it says whose some of them are.
    downstream::open,
    tasks::open,
    exits::open,
    groups::open,
    network::open,
    client::open,
    connections::open,
    load_connections::open,
    link::open,
    open_files::open,
    jvm::open,
    clock::open,
    core_latency::open,
    aperf::open,
    wakeups::open,
    pmu::open,
    pressure::open,
    memory::open,
    reclaim::open,
    softirqs::open,
    thermal::open,
    energy::open,
    stacks::open,
    switches::open,
];

/// For windows in which nothing but call stacks is to be seen.
pub(crate) static STACKS_ALONE: &[Open] = &[stacks::open];

/// How an observer is made; it opens what it can.
pub(crate) type Open = fn(&Scene) -> Box<dyn Observer>;
