//! `/proc/cpuinfo`: all there is on kernels without `/sys`, and in containers that hide it.

use super::traits::CpuTraits;
use crate::root::Root;
use std::collections::BTreeMap;
use tare_model::{CpuSet, Missing};

/// The CPUs that are listed: `processor : 3`, on s390 `processor 3: version = …`.
pub(super) fn numbers(root: &Root) -> Result<CpuSet, Missing> {
    let text = root.text("/proc/cpuinfo")?;
    let set: CpuSet = text.lines().filter_map(number).collect();
    if set.is_empty() { Err(Missing::new("/proc/cpuinfo lists no processors")) } else { Ok(set) }
}

fn number(line: &str) -> Option<u32> {
    let (key, value) = line.strip_prefix("processor")?.split_once(':')?;
    let key = key.trim();
    let text = if key.is_empty() { value } else { key };
    text.trim().parse().ok()
}

/// What it says of each of these CPUs: `physical id` and `core id`, on x86.
pub(super) fn cpus(root: &Root, online: &CpuSet) -> BTreeMap<u32, CpuTraits> {
    let text = root.text("/proc/cpuinfo").unwrap_or_default();
    let mut all: BTreeMap<u32, CpuTraits> = online.iter().map(|cpu| (cpu, unknown())).collect();
    let mut current = None;
    for line in text.lines() {
        if let Some(cpu) = number(line) {
            current = Some(cpu);
        }
        let Some(one) = current.and_then(|cpu| all.get_mut(&cpu)) else { continue };
        let Some((key, value)) = line.split_once(':') else { continue };
        match (key.trim(), value.trim().parse::<u32>()) {
            ("physical id", Ok(id)) => one.package = Ok(id),
            ("core id", Ok(id)) => one.core = Ok(id),
            _ => {}
        }
    }
    all
}

fn unknown() -> CpuTraits {
    let missing = || Missing::new("neither /sys/devices/system/cpu/cpu*/topology nor /proc/cpuinfo tells it");
    CpuTraits {
        package: Err(missing()),
        die: Err(missing()),
        cluster: Err(missing()),
        core: Err(missing()),
        node: Err(missing()),
        siblings: Err(missing()),
        package_cpus: Err(missing()),
    }
}

/// Whether this is a processor of modules (AMD family 15h or 16h).
pub(super) fn splits_modules(root: &Root) -> bool {
    let text = root.text("/proc/cpuinfo").unwrap_or_default();
    field(&text, "vendor_id") == Some("AuthenticAMD")
        && matches!(field(&text, "cpu family"), Some("21" | "22"))
}

/// The first value under `key`.
pub(super) fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        let value = value.trim();
        (found.trim() == key && !value.is_empty()).then_some(value)
    })
}
