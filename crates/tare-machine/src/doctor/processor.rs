//! CPUs, caches and nodes.

use super::draft::{Draft, Examined, Topic, each, note, ok, several, warn};
use super::words::{list, percent, short, things, time};
use tare_model::check::Area;
use tare_model::probes::{Company, MemoryPlace, Probes, Smt, Transfer};
use tare_model::survey::{CachePart, Mitigation};
use tare_model::topology::{NumaNode, Topology};

pub(super) static TOPIC: Topic = Topic {
    area: Area::Processor,
    ids: &[
        "smt",
        "smt-worth",
        "core-shared",
        "core-to-core-latency",
        "hybrid",
        "numa",
        "offline",
        "cache-parts",
        "mitigations",
        "memory-latency",
        "syscall",
    ],
    look,
};

/// Less than this of the time is no company to speak of.
const OVERSUBSCRIBED: f64 = 0.02;
/// Between two cores a cache line takes more than this (30 ns and more on what is sold as servers), between two threads of one
/// some 20 ns.
const ONE_CORE_NS: f64 = 27.0;
/// The kernel's distance to a node's own memory.
const LOCAL: f64 = 10.0;

fn look(examined: &Examined) -> Vec<Draft> {
    let topology = examined.topology;
    let mut drafts = smt(topology);
    drafts.extend(several("hybrid", &topology.kinds, |kinds| {
        let names: Vec<String> = kinds.iter().map(|kind| format!("{} ({})", kind.name, kind.cpus)).collect();
        match kinds.len() {
            0 | 1 => Vec::new(),
            _ => vec![
                warn("hybrid", format!("cores of several kinds: {}", list(&names, 4)))
                    .effect("which core a thread lands on decides how fast it is: runs differ by half")
                    .fix("hold the server on cores of one kind, the generator on the others"),
            ],
        }
    }));
    drafts.extend(several("numa", &topology.numa, |nodes| numa(nodes)));
    if let Some(offline) = topology.offline.value().filter(|offline| !offline.is_empty()) {
        drafts.push(note("offline", format!("CPUs {offline} are off")).effect("figures are of the rest"));
    }
    drafts.extend(cache_parts(examined.survey.processor.cache_parts.value().map_or(&[], Vec::as_slice)));
    drafts
        .extend(several("mitigations", &examined.survey.processor.mitigations, |all| vec![mitigations(all)]));
    drafts.extend(examined.probes.map_or_else(Vec::new, probed));
    drafts
}

fn smt(topology: &Topology) -> Vec<Draft> {
    let (Some(cores), Some(threads)) = (topology.cores.value(), topology.threads.value()) else {
        return each("smt", &topology.cores, |cores| ok("smt", format!("{cores} cores")));
    };
    if threads <= cores {
        return vec![ok("smt", format!("{}, no two CPUs share one", things(*cores as usize, "core")))];
    }
    let pair = topology.cpus.iter().find(|cpu| cpu.siblings.len() > 1).map(|cpu| cpu.siblings.to_string());
    let pair = pair.map_or_else(String::new, |pair| format!(" (such as {pair})"));
    vec![
        note("smt", format!("{cores} cores, {threads} CPUs: SMT siblings share a core{pair}"))
            .effect(format!(
                "beyond {cores} busy threads each adds 0.02 to 0.7 of a core, by workload; a generator on the server's siblings \
                 takes from it"
            ))
            .fix("server and generator on different cores, never on siblings (tare run does so)"),
    ]
}

/// Groups that may not fill all of a cache.
fn cache_parts(parts: &[CachePart]) -> Option<Draft> {
    let held: Vec<String> = parts
        .iter()
        .filter(|part| part.ratio < 1.0)
        .map(|part| {
            let group = if part.group.is_empty() { "all others" } else { part.group.as_str() };
            format!("{group} {} of {} {}", percent(part.ratio), part.cache, part.id)
        })
        .collect();
    (!held.is_empty()).then(|| {
        note("cache-parts", format!("programs are held to parts of caches (resctrl): {}", list(&held, 3)))
            .effect(
                "a server with less of the cache takes longer for the same work; compare in the same group",
            )
    })
}

fn numa(nodes: &[NumaNode]) -> Vec<Draft> {
    if nodes.len() < 2 {
        return Vec::new();
    }
    let distances = nodes.iter().filter_map(|node| node.distances.value()).flatten();
    let Some(farthest) = distances.copied().max() else {
        return vec![note("numa", format!("{} NUMA nodes, at distances that are not known", nodes.len()))];
    };
    let row = nodes[0].distances.value().map_or_else(String::new, |row| {
        format!(
            ", from node {}: {}",
            nodes[0].id,
            row.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
        )
    });
    if f64::from(farthest) <= LOCAL {
        return vec![note("numa", format!("{} NUMA nodes, all equally far{row}", nodes.len()))];
    }
    vec![
        warn("numa", format!("{} NUMA nodes{row}", nodes.len()))
            .effect(format!(
                "by the firmware's table the farthest memory takes {} times as long as a node's own; a service that is spread \
                 over nodes loses some 15 %, and differs from run to run",
                short(f64::from(farthest) / LOCAL)
            ))
            .fix("each service within one node: taskset or cpuset, and numactl --membind"),
    ]
}

fn mitigations(all: &[Mitigation]) -> Draft {
    let state = |mitigation: &Mitigation| mitigation.state.value().cloned().unwrap_or_default();
    let on: Vec<String> =
        all.iter().filter(|one| state(one).starts_with("Mitigation")).map(|one| one.name.clone()).collect();
    let open: Vec<String> =
        all.iter().filter(|one| state(one).contains("ulnerable")).map(|one| one.name.clone()).collect();
    let open = if open.is_empty() { String::new() } else { format!("; open: {}", list(&open, 3)) };
    if on.is_empty() {
        return ok("mitigations", format!("none is in force{open}"));
    }
    note("mitigations", format!("{} in force: {}{open}", on.len(), list(&on, 4)))
        .effect("system calls and switches cost more: compare only with machines that have the same")
}

fn probed(probes: &Probes) -> Vec<Draft> {
    let mut drafts = each("smt-worth", &probes.smt.found, smt_worth);
    drafts.extend(each("core-shared", &probes.company.found, core_shared));
    drafts.extend(each("core-to-core-latency", &probes.transfer.found, |transfer| {
        core_to_core_latency(probes, transfer)
    }));
    drafts.extend(each("syscall", &probes.syscall.found, |syscall| {
        ok("syscall", format!("the cheapest system call takes {}", time(syscall.call_ns.median)))
    }));
    drafts.extend(several("memory-latency", &probes.memory.found, |places| {
        let known: Vec<String> = places
            .iter()
            .filter_map(|place| {
                let name = match place.place {
                    MemoryPlace::Cache(level) => format!("L{level}"),
                    MemoryPlace::Memory => "memory".to_owned(),
                };
                Some(format!("{name} {}", time(place.load_ns.value()?.median)))
            })
            .collect();
        if known.is_empty() {
            Vec::new()
        } else {
            vec![ok("memory-latency", format!("a load takes: {}", known.join(", ")))]
        }
    }));
    drafts
}

fn smt_worth(smt: &Smt) -> Draft {
    let found = format!(
        "a second thread on a core adds {} of a core (arithmetic, CPUs {} and {})",
        percent(smt.second_thread_cores.max(0.0)),
        smt.cpus[0],
        smt.cpus[1]
    );
    note("smt-worth", found).effect("twice the CPUs are not twice the throughput")
}

fn core_shared(company: &Company) -> Draft {
    let Some(slower_by) = company.slower_by.filter(|_| company.oversubscribed_ratio >= OVERSUBSCRIBED) else {
        return ok("core-shared", format!("CPU {} had its core to itself", company.cpu));
    };
    let found = format!(
        "somebody else computed on the core of CPU {} for {} of the time: a loop that takes all of it took {} times as long then",
        company.cpu,
        percent(company.oversubscribed_ratio),
        short(slower_by)
    );
    warn("core-shared", found)
        .effect("CPU time per request jumps by a third and more, for milliseconds or seconds, and neither steal nor the clock shows it")
        .fix("compare interleaved (tare compare); keep the core's other hyperthread idle; on a virtual machine, rent whole cores")
}

fn core_to_core_latency(probes: &Probes, transfer: &Transfer) -> Draft {
    let ns = transfer.transfer_ns;
    let [one, other] = transfer.cpus;
    let found =
        format!("a cache line takes {} from CPU {one} to CPU {other}, which share no core", time(ns.median));
    let is_guest = probes.exit.found.value().is_some_and(|exit| exit.hypervisor);
    if ns.median < ONE_CORE_NS && is_guest {
        return note("core-to-core-latency", format!("{found} by what the hypervisor says: so fast are two threads of one"))
            .effect("the two slow each other down, and what passes between them is cheap; the hypervisor may part them at any moment")
            .fix("look again during a measurement: the trials of a result tell it (tare report)");
    }
    ok("core-to-core-latency", found)
}
