//! A machine and who runs where on it, as text: a line for each last-level cache, or node where no cache is known.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use tare_model::placement::CpuPlan;
use tare_model::topology::{Cache, CacheKind, CoreKind, CpuPlace, NumaNode, Topology};
use tare_model::{CpuSet, Reading};

/// Draws the machine and the plan, and the variables to start a SUT with.
pub fn draw(topology: &Topology, plan: &CpuPlan, environment: &[(&'static str, String)]) -> String {
    let mut text = summary(topology);
    let lines = lines(topology, plan);
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2)];
    let mut package = String::new();
    for line in &lines {
        if line[4] != package {
            package.clone_from(&line[4]);
            let _ = writeln!(text, "\n{package}");
        }
        let row = format!(
            "  {:<w0$}  {:<w1$}  {:<w2$}  {}",
            line[0],
            line[1],
            line[2],
            line[3],
            w0 = widths[0],
            w1 = widths[1],
            w2 = widths[2]
        );
        let _ = writeln!(text, "{}", row.trim_end());
    }
    let _ = write!(text, "\n{}", roles(plan));
    if !environment.is_empty() {
        text.push_str("\nStart a SUT on them with (tare run --fit-runtime does):\n");
        for (name, value) in environment {
            let quoted = if value.contains(' ') { format!("'{value}'") } else { value.clone() };
            let _ = writeln!(text, "  {name}={quoted}");
        }
    }
    text
}

fn summary(topology: &Topology) -> String {
    let count = |reading: &Reading<u32>, one: &str, many: &str| match reading {
        Reading::Measured(1) => format!("1 {one}"),
        Reading::Measured(count) => format!("{count} {many}"),
        _ => format!("{many}: not known"),
    };
    let mut text = [
        count(&topology.packages, "package", "packages"),
        count(&topology.numa_nodes, "NUMA node", "NUMA nodes"),
        count(&topology.cores, "core", "cores"),
        count(&topology.threads, "thread", "threads"),
    ]
    .join(", ");
    text.push('\n');
    let barred = topology.online.value().map(|online| online.minus(&topology.allowed_cpus()));
    let sets = [
        ("not allowed", barred.as_ref()),
        ("offline", topology.offline.value()),
        ("isolated", topology.isolated.value()),
        ("without ticks", topology.nohz_full.value()),
    ];
    for (what, set) in sets {
        if let Some(set) = set.filter(|set| !set.is_empty()) {
            let _ = writeln!(text, "{what}: CPUs {set}");
        }
    }
    let kinds = topology.kinds.value().map(Vec::as_slice).unwrap_or_default();
    if kinds.len() > 1 {
        for kind in kinds {
            let _ = writeln!(text, "{}", kind_words(kind));
        }
    }
    text
}

fn kind_words(kind: &CoreKind) -> String {
    let capacity = kind.capacity.value().map(|capacity| format!(", capacity {capacity}"));
    let clock = kind.frequency_max_hz.value().map(|&hz| format!(", up to {:.1} GHz", hz as f64 / 1e9));
    let words = [capacity, clock].into_iter().flatten().collect::<String>();
    // A name from somewhere else.
    let name = kind.name.replace(char::is_control, "?");
    format!("kind {name}: CPUs {}{words}", kind.cpus)
}

/// Node, cache, CPUs, roles, package: of each last-level cache.
fn lines(topology: &Topology, plan: &CpuPlan) -> Vec<[String; 5]> {
    let mut lines = Vec::new();
    let mut seen: BTreeSet<CpuSet> = BTreeSet::new();
    for place in &topology.cpus {
        let node = node_of(topology, place.cpu);
        let cache = last_level(topology, place.cpu);
        let near = || node.map(|node| node.cpus.clone());
        let all = cache.map(|cache| cache.cpus.clone()).or_else(near).unwrap_or_else(|| nowhere(topology));
        // Nodes may share a cache, and packages a node: a line for each part.
        let cpus = part_of(topology, &all, place, node);
        if seen.insert(cpus.clone()) {
            let package = place
                .package
                .value()
                .map_or_else(|| "package not known".into(), |id| format!("package {id}"));
            let order = (place.package.value().copied(), place.node.value().copied(), cpus.lowest());
            let row = [
                node_words(node),
                cache.map_or_else(String::new, |cache| cache_words(cache, &cpus)),
                cpus.to_string(),
                shares(plan, &cpus),
                package,
            ];
            lines.push((order, row));
        }
    }
    for node in topology.numa.value().into_iter().flatten().filter(|node| node.cpus.is_empty()) {
        let row =
            [node_words(Some(node)), String::new(), "no CPUs".into(), String::new(), "memory alone".into()];
        lines.push(((Some(u32::MAX), Some(node.id), None), row));
    }
    lines.sort_by_key(|(order, _)| *order);
    lines.into_iter().map(|(_, row)| row).collect()
}

/// Those of the CPUs that are in the same node and package.
fn part_of(topology: &Topology, all: &CpuSet, place: &CpuPlace, node: Option<&NumaNode>) -> CpuSet {
    let alike = |other: &&CpuPlace| {
        all.contains(other.cpu)
            && other.package.value() == place.package.value()
            && node_of(topology, other.cpu).map(|node| node.id) == node.map(|node| node.id)
    };
    topology.cpus.iter().filter(alike).map(|other| other.cpu).collect()
}

/// CPUs of which neither cache nor node is known.
fn nowhere(topology: &Topology) -> CpuSet {
    let lost = |cpu: &u32| last_level(topology, *cpu).is_none() && node_of(topology, *cpu).is_none();
    topology.cpus.iter().map(|place| place.cpu).filter(lost).collect()
}

fn node_of(topology: &Topology, cpu: u32) -> Option<&NumaNode> {
    topology.numa.value()?.iter().find(|node| node.cpus.contains(cpu))
}

fn last_level(topology: &Topology, cpu: u32) -> Option<&Cache> {
    let caches = topology.caches.value()?.iter();
    let holds = |cache: &&Cache| cache.kind != CacheKind::Instruction && cache.cpus.contains(cpu);
    caches.filter(holds).max_by_key(|cache| cache.level).filter(|cache| cache.level > 1)
}

fn node_words(node: Option<&NumaNode>) -> String {
    let Some(node) = node else { return String::new() };
    let memory = node.memory_bytes.value().map_or_else(String::new, |&bytes| format!(" {}", size(bytes)));
    let distances = node.distances.value().filter(|all| all.len() > 1).map_or_else(String::new, |all| {
        format!(" ({})", all.iter().map(u32::to_string).collect::<Vec<_>>().join(" "))
    });
    format!("node {}{memory}{distances}", node.id)
}

fn cache_words(cache: &Cache, cpus: &CpuSet) -> String {
    let bytes = cache.size_bytes.value().map_or_else(String::new, |&bytes| format!(" {}", size(bytes)));
    let shared = if cache.cpus == *cpus { String::new() } else { format!(" of {}", cache.cpus) };
    format!("L{}{bytes}{shared}", cache.level)
}

fn size(bytes: u64) -> String {
    let units = [("GiB", 1u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let Some((unit, of)) = units.into_iter().find(|(_, of)| bytes >= *of) else {
        return format!("{bytes} B");
    };
    let value = bytes as f64 / of as f64;
    if value.fract() < 0.05 || value >= 100.0 {
        format!("{value:.0} {unit}")
    } else {
        format!("{value:.1} {unit}")
    }
}

/// Who has which of these CPUs.
fn shares(plan: &CpuPlan, cpus: &CpuSet) -> String {
    let roles = [
        ("SUT", &plan.sut),
        ("generator", &plan.generator),
        ("observers", &plan.observers),
        ("IRQs", &plan.irqs),
    ];
    let given = roles.iter().fold(CpuSet::new(), |all, (_, set)| all.or(set));
    let idle = cpus.minus(&given);
    let words = roles.into_iter().chain([("left idle", &idle)]).filter_map(|(role, set)| {
        let here = set.and(cpus);
        (!here.is_empty()).then(|| format!("{role} {here}"))
    });
    words.collect::<Vec<_>>().join(" · ")
}

fn roles(plan: &CpuPlan) -> String {
    let mut text = format!("Placement ({}):\n", plan.policy);
    let none = |set: &CpuSet| if set.is_empty() { "none".to_string() } else { set.to_string() };
    for (role, set) in [
        ("SUT", &plan.sut),
        ("generator", &plan.generator),
        ("observers", &plan.observers),
        ("IRQs", &plan.irqs),
    ] {
        let _ = writeln!(text, "  {role:<10} {}", none(set));
    }
    for note in &plan.notes {
        let _ = writeln!(text, "  note: {note}");
    }
    text
}
