//! Kinds of core: hybrid processors, big and little ones.

use super::files::{self, CPU_DIR};
use crate::root::Root;
use std::collections::BTreeMap;
use tare_model::topology::CoreKind;
use tare_model::{CpuSet, Missing, Reading};

/// Kinds of the given CPUs, slowest first: as named by the kernel, else by capacity, else one.
pub(super) fn read(root: &Root, cpus: &CpuSet) -> Vec<CoreKind> {
    let mut kinds = named(root, cpus);
    if kinds.iter().fold(CpuSet::new(), |all, (_, set)| all.or(set)) != *cpus || kinds.len() < 2 {
        kinds = by_capacity(root, cpus);
    }
    let mut kinds: Vec<CoreKind> = kinds.into_iter().map(|(name, cpus)| kind(root, name, cpus)).collect();
    let speed = |kind: &CoreKind| (kind.capacity.value().copied(), kind.frequency_max_hz.value().copied());
    kinds.sort_by_key(|kind| (speed(kind), kind.cpus.lowest()));
    kinds
}

/// `cpu_core` and `cpu_atom` are the PMUs of Intel's hybrids; others stand under `types`.
fn named(root: &Root, cpus: &CpuSet) -> Vec<(String, CpuSet)> {
    let pmu = |name: &str| {
        Some((name.to_string(), files::list(root, &format!("/sys/devices/cpu_{name}/cpus")).ok()?))
    };
    let typed = |name: String| {
        let set = files::set(root, &format!("{CPU_DIR}/types/{name}"), &[("cpumap", "cpulist")]).ok()?;
        Some((name, set))
    };
    let types = root.names(format!("{CPU_DIR}/types")).unwrap_or_default();
    let all = ["atom", "core"].into_iter().filter_map(pmu).chain(types.into_iter().filter_map(typed));
    let mut taken = CpuSet::new();
    let mut kinds = Vec::new();
    for (name, set) in all {
        let set = set.and(cpus).minus(&taken);
        if !set.is_empty() {
            taken = taken.or(&set);
            kinds.push((name, set));
        }
    }
    kinds
}

fn by_capacity(root: &Root, cpus: &CpuSet) -> Vec<(String, CpuSet)> {
    let mut groups: BTreeMap<Option<u32>, CpuSet> = BTreeMap::new();
    for cpu in cpus.iter() {
        groups.entry(capacity(root, cpu).ok()).or_default().insert(cpu);
    }
    groups.into_values().map(|set| ("cores".to_string(), set)).collect()
}

fn kind(root: &Root, name: String, cpus: CpuSet) -> CoreKind {
    let largest = |read: &dyn Fn(u32) -> Result<u64, Missing>| -> Reading<u64> {
        let found: Result<Vec<u64>, Missing> = cpus.iter().map(read).collect();
        found.and_then(|all| all.into_iter().max().ok_or_else(|| Missing::new("no CPU"))).into()
    };
    let hz = |cpu: u32| {
        let khz: u64 = root.value(format!("{CPU_DIR}/cpu{cpu}/cpufreq/cpuinfo_max_freq"))?;
        khz.checked_mul(1000)
            .ok_or_else(|| Missing::new(format!("cpuinfo_max_freq of CPU {cpu} is too large")))
    };
    CoreKind {
        name,
        capacity: largest(&|cpu| capacity(root, cpu).map(u64::from)).map(|value| value as u32),
        frequency_max_hz: largest(&hz),
        cpus,
    }
}

fn capacity(root: &Root, cpu: u32) -> Result<u32, Missing> {
    root.value(format!("{CPU_DIR}/cpu{cpu}/cpu_capacity"))
}
