//! `/sys/devices/system/node`: memory, and which CPUs are near it.

use super::files::{self, NODE_DIR};
use crate::root::{Root, nonsense};
use std::collections::HashSet;
use tare_model::{CpuSet, Missing};

/// Most graphics cards whose memory is looked for among the nodes.
const CARDS_MAX: usize = 256;

#[derive(Clone)]
pub(super) struct Node {
    pub id: u32,
    /// Its own CPUs that are online; none for a node of memory alone.
    pub cpus: CpuSet,
    /// The CPUs that are nearest to its memory: its own, else those that the kernel calls its initiators, else
    /// those of the nearest nodes. Empty where nothing tells.
    pub near: CpuSet,
    pub memory_bytes: Result<u64, Missing>,
    /// To each node that is online, ascending.
    pub distances: Result<Vec<u32>, Missing>,
}

/// Each node that is online; one with all CPUs where the kernel has none.
pub(super) fn read(root: &Root, online: &CpuSet) -> Result<Vec<Node>, Missing> {
    let path = format!("{NODE_DIR}/online");
    let ids = match files::list(root, &path) {
        Ok(ids) if !ids.is_empty() => ids,
        Ok(_) => return Err(Missing::new(format!("{path} is empty"))),
        Err(missing) if root.exists(&path) => return Err(missing),
        Err(_) => folders(root),
    };
    if ids.is_empty() {
        return Ok(vec![undivided(root, online)]);
    }
    let mut taken = CpuSet::new();
    let mut nodes = Vec::new();
    let mut without_cpus = Vec::new();
    for id in ids.iter() {
        let names = [("cpumap", "cpulist")];
        let Ok(all) = files::set(root, &format!("{NODE_DIR}/node{id}"), &names) else { continue };
        // A CPU is in one node. Firmware has put all CPUs in every node: the first is believed, the rest not.
        if all.meets(&taken) {
            continue;
        }
        taken = taken.or(&all);
        if all.is_empty() {
            without_cpus.push(nodes.len());
        }
        let cpus = all.and(online);
        nodes.push(Node {
            id,
            near: cpus.clone(),
            cpus,
            memory_bytes: memory_bytes(root, id),
            distances: Err(Missing::new("not read")),
        });
    }
    if nodes.is_empty() {
        return Err(Missing::new(format!("no node under {NODE_DIR} tells its CPUs")));
    }
    read_distances(root, &ids, &mut nodes);
    for nth in without_cpus {
        nodes[nth].near = near_memory(root, &nodes, nth);
    }
    let cards = memory_of_cards(root);
    nodes.retain(|node| !cards.contains(&node.id));
    Ok(nodes)
}

/// Why it is not known how many nodes there are: one is listed, and the tree holds nothing of it.
pub(super) fn not_shown(root: &Root) -> Option<Missing> {
    let listed = files::list(root, &format!("{NODE_DIR}/online")).ok()?;
    let id = listed.minus(&folders(root)).lowest()?;
    Some(Missing::new(format!("{NODE_DIR}/online lists node {id}, and {NODE_DIR}/node{id} is not there")))
}

/// The node of a CPU.
pub(super) fn of_cpu(nodes: &Result<Vec<Node>, Missing>, cpu: u32) -> Result<u32, Missing> {
    let nodes = nodes.as_ref().map_err(Clone::clone)?;
    let node = nodes.iter().find(|node| node.cpus.contains(cpu));
    node.map(|node| node.id).ok_or_else(|| Missing::new(format!("no NUMA node lists CPU {cpu}")))
}

fn folders(root: &Root) -> CpuSet {
    let names = root.names(NODE_DIR).unwrap_or_default();
    names.iter().filter_map(|name| name.strip_prefix("node")?.parse().ok()).collect()
}

fn undivided(root: &Root, online: &CpuSet) -> Node {
    Node {
        id: 0,
        cpus: online.clone(),
        near: online.clone(),
        memory_bytes: mem_total(root, "/proc/meminfo", ""),
        distances: Ok(vec![10]),
    }
}

fn memory_bytes(root: &Root, id: u32) -> Result<u64, Missing> {
    mem_total(root, &format!("{NODE_DIR}/node{id}/meminfo"), &format!("Node {id} "))
}

fn mem_total(root: &Root, path: &str, before: &str) -> Result<u64, Missing> {
    let text = root.text(path)?;
    let line = text.lines().find_map(|line| line.strip_prefix(before)?.strip_prefix("MemTotal:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.and_then(|kib| kib.checked_mul(1024)).ok_or_else(|| Missing::new(format!("{path} has no MemTotal")))
}

/// The kernel writes one distance for each node that is online; those of nodes that are not believed are left
/// out, so that places are those in `nodes`.
fn read_distances(root: &Root, ids: &CpuSet, nodes: &mut [Node]) {
    let kept: Vec<usize> = (0..)
        .zip(ids.iter())
        .filter(|(_, id)| nodes.iter().any(|node| node.id == *id))
        .map(|(nth, _)| nth)
        .collect();
    for node in nodes {
        let path = format!("{NODE_DIR}/node{}/distance", node.id);
        node.distances = root.text(&path).and_then(|text| {
            let all: Option<Vec<u32>> = text.split_whitespace().map(|word| word.parse().ok()).collect();
            let all =
                all.filter(|all| all.len() == ids.len()).ok_or_else(|| nonsense(path.as_ref(), &text))?;
            Ok(kept.iter().map(|&nth| all[nth]).collect())
        });
    }
}

/// Whose CPUs are near a node that has none: initiators, else the nearest nodes unless all are as near.
fn near_memory(root: &Root, nodes: &[Node], nth: usize) -> CpuSet {
    let by_initiators = initiators(root, nodes[nth].id)
        .into_iter()
        .filter_map(|id| nodes.iter().find(|node| node.id == id))
        .fold(CpuSet::new(), |near, node| near.or(&node.cpus));
    if !by_initiators.is_empty() {
        return by_initiators;
    }
    let Ok(distances) = &nodes[nth].distances else { return CpuSet::new() };
    let others = || (0..nodes.len()).filter(|&other| other != nth);
    let Some(least) = others().filter_map(|other| distances.get(other)).min() else { return CpuSet::new() };
    let nearest: Vec<usize> = others().filter(|&other| distances.get(other) == Some(least)).collect();
    match nearest.len() < nodes.len() - 1 {
        true => nearest.iter().fold(CpuSet::new(), |near, &other| near.or(&nodes[other].cpus)),
        false => CpuSet::new(),
    }
}

/// The nodes that reach this one's memory fastest. Class 1 counts CPUs alone; class 0 other devices as well.
fn initiators(root: &Root, id: u32) -> Vec<u32> {
    for class in ["access1", "access0"] {
        let Ok(names) = root.names(format!("{NODE_DIR}/node{id}/{class}/initiators")) else { continue };
        return names.iter().filter_map(|name| name.strip_prefix("node")?.parse().ok()).collect();
    }
    Vec::new()
}

/// Nodes that are the memory of graphics cards, as NVIDIA's driver tells.
fn memory_of_cards(root: &Root) -> HashSet<u32> {
    const DIR: &str = "/proc/driver/nvidia/gpus";
    let cards = root.names(DIR).unwrap_or_default();
    let node = |card: &String| {
        let text = root.text(format!("{DIR}/{card}/numa_status")).ok()?;
        text.lines().find_map(|line| line.strip_prefix("Node:")?.trim().parse().ok())
    };
    cards.iter().take(CARDS_MAX).filter_map(node).collect()
}
