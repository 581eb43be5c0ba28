//! `/sys/devices/system/cpu`: which CPUs are online, and what each says of itself.

use super::cpuinfo;
use super::files::{self, CPU_DIR};
use super::traits::CpuTraits;
use crate::root::Root;
use tare_model::{CpuSet, Missing};

/// CPUs that are online. Kernels without the list have a folder for each CPU, with a switch in it; some keep the
/// folder of a CPU that is off and take its `topology` away. A tree may be without the folders of CPUs that are listed:
/// they are there, and what they are is missing.
pub(super) fn online(root: &Root) -> Result<CpuSet, Missing> {
    let path = format!("{CPU_DIR}/online");
    let listed = match files::list(root, &path) {
        Ok(list) if list.is_empty() => return Err(Missing::new(format!("{path} is empty"))),
        Err(missing) if root.exists(&path) => return Err(missing),
        listed => listed.ok(),
    };
    let folders = folders(root);
    let with_topology: CpuSet =
        folders.iter().filter(|&cpu| root.exists(format!("{CPU_DIR}/cpu{cpu}/topology"))).collect();
    let there = if with_topology.is_empty() { &folders } else { &with_topology };
    let is_on = |cpu: u32| there.contains(cpu) && !is_off(root, cpu);
    let found = match listed {
        Some(list) => list.iter().filter(|&cpu| !folders.contains(cpu) || is_on(cpu)).collect(),
        None if there.is_empty() => cpuinfo::numbers(root)?,
        None => there.iter().filter(|&cpu| is_on(cpu)).collect(),
    };
    if found.is_empty() {
        return Err(Missing::new(format!("{CPU_DIR} shows no CPU that is online")));
    }
    Ok(found)
}

/// CPUs that are there and switched off. The kernel's own list also has those that may still be plugged in.
pub(super) fn offline(root: &Root, online: &Result<CpuSet, Missing>) -> Result<CpuSet, Missing> {
    let listed = files::list(root, &format!("{CPU_DIR}/online")).ok().filter(|list| !list.is_empty());
    let online = listed.map_or_else(|| online.clone(), Ok)?;
    let path = format!("{CPU_DIR}/present");
    let off = files::list(root, &format!("{CPU_DIR}/offline")).ok();
    match files::list(root, &path) {
        Ok(present) if present.is_empty() => Err(Missing::new(format!("{path} is empty"))),
        // A container may see a shorter list of those online, which makes the others not off.
        Ok(present) => Ok(off.map_or_else(|| present.minus(&online), |off| present.and(&off).minus(&online))),
        Err(missing) if root.exists(&path) => Err(missing),
        Err(missing) => match folders(root) {
            folders if folders.is_empty() => Err(missing),
            folders => Ok(folders.minus(&online)),
        },
    }
}

fn folders(root: &Root) -> CpuSet {
    let names = root.names(CPU_DIR).unwrap_or_default();
    names.iter().filter_map(|name| name.strip_prefix("cpu")?.parse().ok()).collect()
}

fn is_off(root: &Root, cpu: u32) -> bool {
    root.value::<u32>(format!("{CPU_DIR}/cpu{cpu}/online")) == Ok(0)
}

/// Whether the kernel tells of the CPUs' places here at all.
pub(super) fn has_topology(root: &Root, cpus: &CpuSet) -> bool {
    cpus.iter().any(|cpu| root.exists(format!("{CPU_DIR}/cpu{cpu}/topology")))
}

pub(super) fn read(root: &Root, online: &CpuSet, cpu: u32) -> CpuTraits {
    let dir = format!("{CPU_DIR}/cpu{cpu}/topology");
    let id = |file: &str| root.value::<u32>(format!("{dir}/{file}"));
    let group = |names: &[(&str, &str)]| {
        let set = files::set(root, &dir, names)?.and(online);
        if set.contains(cpu) {
            return Ok(set);
        }
        // A set without the CPU itself would make it nobody's sibling.
        Err(Missing::new(format!("{dir}/{} does not hold CPU {cpu}", names[names.len() - 1].1)))
    };
    CpuTraits {
        package: id("physical_package_id"),
        die: id("die_id"),
        cluster: id("cluster_id"),
        core: id("core_id"),
        node: Err(Missing::new("not read")),
        siblings: group(&[("core_cpus", "core_cpus_list"), ("thread_siblings", "thread_siblings_list")]),
        package_cpus: group(&[
            ("package_cpus", "package_cpus_list"),
            ("core_siblings", "core_siblings_list"),
        ]),
    }
}
