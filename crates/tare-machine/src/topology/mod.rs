//! How the machine is put together, and which part of it a process may use.

use crate::root::Root;
use tare_record::topology::{Cache, CacheKind, CoreKind, CpuPlace, NumaNode, Topology};
use tare_record::{CpuSet, Missing, Reading};

const CPU_DIR: &str = "/sys/devices/system/cpu";
const NODE_DIR: &str = "/sys/devices/system/node";

/// Reads the part of the machine that process `pid` may use (`None`: the reader itself). What cannot be read is
/// missing, with the reason.
pub fn read(root: &Root, pid: Option<u32>) -> Topology {
    let online = list(root, &format!("{CPU_DIR}/online"));
    let allowed = online.clone().and_then(|online| Ok(online.and(&allowed(root, pid)?)));
    let set = allowed.clone().unwrap_or_default();
    let cpus: Vec<CpuPlace> = set.iter().map(|cpu| place(root, &set, cpu)).collect();
    let count = |ids: Option<Vec<(u32, u32)>>| -> Reading<u32> {
        match ids {
            Some(mut ids) if !ids.is_empty() => {
                ids.sort_unstable();
                ids.dedup();
                Reading::Measured(ids.len() as u32)
            }
            _ => Reading::missing(format!("{CPU_DIR}/cpu*/topology does not tell it")),
        }
    };
    let packages = cpus.iter().map(|cpu| Some((*cpu.package.value()?, 0))).collect();
    let cores = cpus.iter().map(|cpu| Some((*cpu.package.value()?, *cpu.core.value()?))).collect();
    let numa = nodes(root, &set);
    Topology {
        packages: count(packages),
        numa_nodes: Reading::from(numa.clone()).map(|nodes| nodes.len() as u32),
        cores: count(cores),
        threads: Reading::from(allowed.clone()).map(|allowed| allowed.len() as u32),
        online: online.into(),
        allowed: allowed.clone().into(),
        caches: caches(root, &set).into(),
        numa: numa.into(),
        offline: list(root, &format!("{CPU_DIR}/offline")).into(),
        isolated: list(root, &format!("{CPU_DIR}/isolated")).into(),
        nohz_full: list(root, &format!("{CPU_DIR}/nohz_full")).into(),
        kinds: allowed.map(kinds).into(),
        cpus,
    }
}

fn list(root: &Root, path: &str) -> Result<CpuSet, Missing> {
    let text = root.text(path)?;
    CpuSet::from_list(&text).ok_or_else(|| crate::root::nonsense(path.as_ref(), &text))
}

fn allowed(root: &Root, pid: Option<u32>) -> Result<CpuSet, Missing> {
    let path = format!("/proc/{}/status", pid.map_or("self".to_string(), |pid| pid.to_string()));
    let text = root.text(&path)?;
    let field = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    field.and_then(CpuSet::from_list).ok_or_else(|| Missing::new(format!("{path} has no Cpus_allowed_list")))
}

fn place(root: &Root, allowed: &CpuSet, cpu: u32) -> CpuPlace {
    let topology = |file: &str| format!("{CPU_DIR}/cpu{cpu}/topology/{file}");
    let siblings = list(root, &topology("thread_siblings_list")).map(|set| set.and(allowed));
    CpuPlace {
        cpu,
        package: root.value(topology("physical_package_id")).into(),
        die: root.value(topology("die_id")).into(),
        cluster: root.value(topology("cluster_id")).into(),
        core: root.value(topology("core_id")).into(),
        node: Reading::missing("not read"),
        siblings: siblings
            .ok()
            .filter(|set| set.contains(cpu))
            .unwrap_or_else(|| [cpu].into_iter().collect()),
    }
}

fn caches(root: &Root, allowed: &CpuSet) -> Result<Vec<Cache>, Missing> {
    let mut caches: Vec<Cache> = Vec::new();
    for cpu in allowed.iter() {
        for name in root.names(format!("{CPU_DIR}/cpu{cpu}/cache"))? {
            let file = |file: &str| format!("{CPU_DIR}/cpu{cpu}/cache/{name}/{file}");
            let Ok(level) = root.value(file("level")) else { continue };
            let kind = match root.text(file("type"))?.trim() {
                "Data" => CacheKind::Data,
                "Instruction" => CacheKind::Instruction,
                _ => CacheKind::Unified,
            };
            let cpus = list(root, &file("shared_cpu_list"))?.and(allowed);
            let size_bytes = root.text(file("size")).and_then(|text| {
                let kib = text.trim().strip_suffix('K').and_then(|kib| kib.parse::<u64>().ok());
                kib.map(|kib| kib * 1024).ok_or_else(|| Missing::new("no size"))
            });
            if cpus.lowest() == Some(cpu) {
                caches.push(Cache { level, kind, size_bytes: size_bytes.into(), cpus });
            }
        }
    }
    caches.sort_by_key(|cache| (cache.level, cache.kind, cache.cpus.lowest()));
    Ok(caches)
}

fn nodes(root: &Root, allowed: &CpuSet) -> Result<Vec<NumaNode>, Missing> {
    let mut nodes = Vec::new();
    for id in list(root, &format!("{NODE_DIR}/online"))?.iter() {
        let distances = root.text(format!("{NODE_DIR}/node{id}/distance")).and_then(|text| {
            let all: Result<Vec<u32>, _> = text.split_whitespace().map(str::parse).collect();
            all.map_err(|_| Missing::new("nonsense"))
        });
        nodes.push(NumaNode {
            id,
            cpus: list(root, &format!("{NODE_DIR}/node{id}/cpulist"))?.and(allowed),
            memory_bytes: Reading::missing("not read"),
            distances: distances.into(),
        });
    }
    Ok(nodes)
}

fn kinds(cpus: CpuSet) -> Vec<CoreKind> {
    let missing = || "not read".to_string();
    vec![CoreKind {
        name: "cores".to_string(),
        cpus,
        capacity: Reading::missing(missing()),
        frequency_max_hz: Reading::missing(missing()),
    }]
}
