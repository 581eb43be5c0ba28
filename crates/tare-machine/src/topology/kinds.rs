//! Kinds of core: hybrid processors, big and little ones.

use super::files::{self, CPU_DIR};
use super::midr;
use crate::root::Root;
use std::collections::BTreeMap;
use tare_model::topology::CoreKind;
use tare_model::{CpuSet, Missing, Reading};

/// Between two kinds there is a step of more than this: the best of a die may be clocked a few per cent higher than the
/// next.
const ALIKE: f64 = 1.1;

/// Kinds of the given CPUs, slowest first: by name or design, and within one by capacity, else by highest frequency. Between
/// designs the frequency says little: a small core may be clocked higher than a large one.
pub(super) fn read(root: &Root, cpus: &CpuSet) -> Vec<CoreKind> {
    let speeds: BTreeMap<u32, Speed> = cpus.iter().zip(speeds(root, cpus)).collect();
    let alike = |(name, set): (String, CpuSet)| {
        by_speed(&speeds, &set).into_iter().map(move |cpus| (name.clone(), cpus))
    };
    let mut kinds: Vec<CoreKind> = designs(root, cpus)
        .into_iter()
        .flat_map(alike)
        .map(|(name, cpus)| kind(&speeds, name, cpus))
        .collect();
    // Capacities are compared with capacities only, sizes with sizes, and frequencies with frequencies; where none is known
    // of all, the order is that of the designs.
    if kinds.iter().all(|kind| kind.capacity.value().is_some()) {
        kinds.sort_by_key(|kind| (kind.capacity.value().copied(), kind.frequency_max_hz.value().copied()));
        return kinds;
    }
    if kinds.iter().all(|kind| kind.frequency_max_hz.value().is_some()) {
        kinds.sort_by_key(|kind| kind.frequency_max_hz.value().copied());
    }
    if kinds.iter().all(|kind| midr::size(&kind.name).is_some()) {
        // Within one size, the order of frequencies stays.
        kinds.sort_by_key(|kind| midr::size(&kind.name));
    }
    kinds
}

/// As the kernel names them, slowest first, else by the identification register, else all as one.
fn designs(root: &Root, cpus: &CpuSet) -> Vec<(String, CpuSet)> {
    let named = named(root, cpus);
    if named.len() > 1 && named.iter().fold(CpuSet::new(), |all, (_, set)| all.or(set)) == *cpus {
        return named;
    }
    let designs = midr::read(root, cpus);
    if designs.len() < cpus.len() || cpus.is_empty() {
        return vec![("cores".to_string(), cpus.clone())];
    }
    let mut groups: BTreeMap<midr::Design, CpuSet> = BTreeMap::new();
    for (cpu, design) in designs {
        groups.entry(design).or_default().insert(cpu);
    }
    let mut groups: Vec<(String, CpuSet)> =
        groups.into_iter().map(|(design, set)| (design.name(), set)).collect();
    // Kernels mostly number small cores first.
    groups.sort_by_key(|(_, set)| set.lowest());
    groups
}

/// `cpu_core`, `cpu_atom` and `cpu_lowpower` are the PMUs of Intel's hybrids; others stand under `types`.
fn named(root: &Root, cpus: &CpuSet) -> Vec<(String, CpuSet)> {
    let pmu = |name: &str| {
        Some((name.to_string(), files::list(root, &format!("/sys/devices/cpu_{name}/cpus")).ok()?))
    };
    let typed = |name: String| {
        let set = files::set(root, &format!("{CPU_DIR}/types/{name}"), &[("cpumap", "cpulist")]).ok()?;
        Some((name, set))
    };
    let types = root.names(format!("{CPU_DIR}/types")).unwrap_or_default();
    let all =
        ["lowpower", "atom", "core"].into_iter().filter_map(pmu).chain(types.into_iter().filter_map(typed));
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

/// How fast a CPU can be.
struct Speed {
    /// 1024 for the fastest.
    capacity: Result<u32, Missing>,
    frequency_max_hz: Result<u64, Missing>,
}

/// Of each CPU, in their order.
fn speeds(root: &Root, cpus: &CpuSet) -> Vec<Speed> {
    let policies = policies(root);
    let hz = |cpu: u32| {
        let own = format!("{CPU_DIR}/cpu{cpu}/cpufreq");
        // A captured tree may be without the links from the CPUs to their policies.
        let policy = policies.iter().find(|(_, set)| set.contains(cpu)).map(|(dir, _)| dir);
        let dir = if root.exists(&own) { &own } else { policy.unwrap_or(&own) };
        let path = format!("{dir}/cpuinfo_max_freq");
        let khz: u64 = root.value(&path)?;
        khz.checked_mul(1000)
            .filter(|hz| *hz > 0)
            .ok_or_else(|| Missing::new(format!("{path} is no frequency")))
    };
    let capacity = |cpu: u32| {
        let path = format!("{CPU_DIR}/cpu{cpu}/cpu_capacity");
        root.value(&path).and_then(|capacity: u32| match capacity {
            0 => Err(crate::root::nonsense(path.as_ref(), "0")),
            capacity => Ok(capacity),
        })
    };
    cpus.iter().map(|cpu| Speed { capacity: capacity(cpu), frequency_max_hz: hz(cpu) }).collect()
}

/// Folders of cpufreq policies, and the CPUs of each.
fn policies(root: &Root) -> Vec<(String, CpuSet)> {
    let dir = format!("{CPU_DIR}/cpufreq");
    let names = root.names(&dir).unwrap_or_default();
    let policy = |name: &String| {
        let dir = format!("{dir}/{name}");
        let text = ["related_cpus", "affected_cpus"]
            .iter()
            .find_map(|file| root.text(format!("{dir}/{file}")).ok())?;
        let cpus: Option<CpuSet> = text.split_ascii_whitespace().map(|cpu| cpu.parse::<u32>().ok()).collect();
        Some((dir, cpus?))
    };
    names.iter().filter(|name| name.starts_with("policy")).filter_map(policy).collect()
}

/// Apart where capacities, or else highest frequencies, are known of all and differ by more than those of one kind do.
fn by_speed(speeds: &BTreeMap<u32, Speed>, cpus: &CpuSet) -> Vec<CpuSet> {
    let known = |of: &dyn Fn(&Speed) -> Option<f64>| -> Option<Vec<(f64, u32)>> {
        let mut all: Vec<(f64, u32)> =
            cpus.iter().map(|cpu| Some((of(speeds.get(&cpu)?)?, cpu))).collect::<Option<_>>()?;
        all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        Some(all)
    };
    let capacities = known(&|speed| speed.capacity.as_ref().ok().map(|&capacity| f64::from(capacity)));
    let Some(ordered) =
        capacities.or_else(|| known(&|speed| speed.frequency_max_hz.as_ref().ok().map(|&hz| hz as f64)))
    else {
        return vec![cpus.clone()];
    };
    let mut groups: Vec<(f64, CpuSet)> = Vec::new();
    for (speed, cpu) in ordered {
        match groups.last_mut() {
            Some((fastest, set)) if speed < *fastest * ALIKE => {
                set.insert(cpu);
                *fastest = speed;
            }
            _ => groups.push((speed, [cpu].into_iter().collect())),
        }
    }
    groups.into_iter().map(|(_, set)| set).collect()
}

fn kind(speeds: &BTreeMap<u32, Speed>, name: String, cpus: CpuSet) -> CoreKind {
    let of_all = || cpus.iter().filter_map(|cpu| speeds.get(&cpu));
    let capacities: Result<Vec<u32>, Missing> = of_all().map(|speed| speed.capacity.clone()).collect();
    let frequencies: Result<Vec<u64>, Missing> =
        of_all().map(|speed| speed.frequency_max_hz.clone()).collect();
    let none = || Missing::new("no CPU");
    let capacity = capacities.and_then(|all| all.into_iter().max().ok_or_else(none));
    let frequency_max_hz: Reading<u64> =
        frequencies.and_then(|all| all.into_iter().max().ok_or_else(none)).into();
    CoreKind { name, capacity: capacity.into(), frequency_max_hz, cpus }
}
