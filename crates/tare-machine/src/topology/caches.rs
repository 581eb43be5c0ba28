//! `/sys/devices/system/cpu/cpu*/cache`: the caches.

use super::files::{self, CPU_DIR};
use super::nested_sets::NestedSets;
use crate::root::{Root, nonsense};
use std::collections::HashSet;
use tare_model::topology::{Cache, CacheKind};
use tare_model::{CpuSet, Missing};

/// Deepest level that is believed.
const LEVEL_MAX: u32 = 8;

/// Every cache of the online CPUs.
pub(super) fn read(root: &Root, online: &CpuSet, nested: &mut NestedSets) -> Result<Vec<Cache>, Missing> {
    let mut caches = Vec::new();
    let mut seen: HashSet<(u32, CacheKind, CpuSet)> = HashSet::new();
    let mut error = None;
    for cpu in online.iter() {
        let dir = format!("{CPU_DIR}/cpu{cpu}/cache");
        let names = match root.names(&dir) {
            Ok(names) => names,
            Err(missing) => {
                error.get_or_insert(missing);
                continue;
            }
        };
        for name in names.iter().filter(|name| name.starts_with("index")) {
            match cache(root, &format!("{dir}/{name}"), online, cpu) {
                Ok(cache) => {
                    let key = (cache.level, cache.kind, cache.cpus.clone());
                    if is_real(&cache) && seen.insert(key) && nested.accept(&cache.cpus) {
                        caches.push(cache);
                    }
                }
                Err(missing) => _ = error.get_or_insert(missing),
            }
        }
    }
    if caches.is_empty() {
        let missing = error.unwrap_or_else(|| Missing::new(format!("{CPU_DIR}/cpu*/cache shows no cache")));
        return Err(Missing::new(format!("this kernel shows no caches ({})", missing.why)));
    }
    Ok(caches)
}

fn cache(root: &Root, dir: &str, online: &CpuSet, cpu: u32) -> Result<Cache, Missing> {
    let level_path = format!("{dir}/level");
    let level: u32 = root.value(&level_path)?;
    if level == 0 || level > LEVEL_MAX {
        return Err(nonsense(level_path.as_ref(), &level.to_string()));
    }
    let kind_path = format!("{dir}/type");
    let kind = match root.text(&kind_path) {
        Ok(text) => match text.trim() {
            "Data" => CacheKind::Data,
            "Instruction" => CacheKind::Instruction,
            "Unified" => CacheKind::Unified,
            _ => return Err(nonsense(kind_path.as_ref(), &text)),
        },
        Err(missing) if root.exists(&kind_path) => return Err(missing),
        // Kernels leave out what they do not know; what tells no side serves both.
        Err(_) => CacheKind::Unified,
    };
    let shared = files::set(root, dir, &[("shared_cpu_map", "shared_cpu_list")])?.and(online);
    // Many Itanium kernels name no CPU at all, or others: then it is this CPU's own.
    let cpus = if shared.contains(cpu) { shared } else { [cpu].into_iter().collect() };
    Ok(Cache { level, kind, size_bytes: size_bytes(root, dir).into(), cpus })
}

/// Kernels have shown a last level of no size, shared by all, where a processor has none.
fn is_real(cache: &Cache) -> bool {
    cache.level < 3 || cache.size_bytes.value() != Some(&0)
}

/// `512K`; kernels leave the file out where they do not know.
fn size_bytes(root: &Root, dir: &str) -> Result<u64, Missing> {
    let path = format!("{dir}/size");
    let text = root.text(&path)?;
    let digits = text.trim();
    let (digits, unit) = match digits.strip_suffix(['K', 'k']) {
        Some(digits) => (digits, 1024),
        None => match digits.strip_suffix('M') {
            Some(digits) => (digits, 1 << 20),
            None => (digits, 1),
        },
    };
    let bytes = digits.trim().parse::<u64>().ok().and_then(|count| count.checked_mul(unit));
    bytes.ok_or_else(|| nonsense(path.as_ref(), &text))
}
