//! Memory: how much, in what pages, under what pressure.

use super::files;
use crate::root::Root;
use tare_model::Missing;
use tare_model::survey::{HugePages, Memory, Pressure, PressureKind, Swap};

const THP: &str = "/sys/kernel/mm/transparent_hugepage";
const HUGE: &str = "/sys/kernel/mm/hugepages";
const KIB: u64 = 1024;

pub(super) fn read(root: &Root) -> Memory {
    let meminfo = root.text("/proc/meminfo");
    let bytes = |key: &str| meminfo.as_ref().map_err(Missing::clone).and_then(|text| kib(text, key));
    let swap = bytes("SwapTotal:");
    let swap_used = swap.clone().and_then(|total| Ok(total.saturating_sub(bytes("SwapFree:")?)));
    Memory {
        available_bytes: bytes("MemAvailable:").into(),
        cached_bytes: bytes("Cached:").into(),
        swap_bytes: swap.into(),
        swap_used_bytes: swap_used.into(),
        swaps: swaps(root).into(),
        // 2 takes apart what was merged before.
        same_page_merging: root.value("/sys/kernel/mm/ksm/run").map(|mode: u32| mode == 1).into(),
        swappiness: root.value("/proc/sys/vm/swappiness").into(),
        thp: files::chosen(root, &format!("{THP}/enabled"), '[', ']').into(),
        thp_defrag: files::chosen(root, &format!("{THP}/defrag"), '[', ']').into(),
        thp_bytes: bytes("AnonHugePages:").into(),
        huge_pages: huge_pages(root).into(),
        // 2 balances between tiers of memory only, which moves pages all the same.
        numa_balancing: root.value("/proc/sys/kernel/numa_balancing").map(|mode: u32| mode > 0).into(),
        pressure: pressure(root).into(),
    }
}

fn kib(text: &str, key: &str) -> Result<u64, Missing> {
    let value =
        files::field(text, key).and_then(|value| value.strip_suffix("kB")?.trim().parse::<u64>().ok());
    value
        .and_then(|kib| kib.checked_mul(KIB))
        .ok_or_else(|| Missing::new(format!("/proc/meminfo has no {}", key.trim_end_matches(':'))))
}

/// A line for each below the heads of columns: `/dev/zram0  partition  8388604  0  100`, sizes in KiB.
fn swaps(root: &Root) -> Result<Vec<Swap>, Missing> {
    const PATH: &str = "/proc/swaps";
    let text = root.text(PATH)?;
    let mut lines = text.lines();
    lines
        .next()
        .filter(|heads| heads.starts_with("Filename"))
        .ok_or_else(|| crate::root::nonsense(PATH.as_ref(), &text))?;
    let swap = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let path = fields.next()?.to_string();
        let mut bytes = fields.skip(1).map(|field| field.parse::<u64>().ok()?.checked_mul(KIB));
        let compressed = path.rsplit('/').next().is_some_and(|name| name.starts_with("zram"));
        Some(Swap { path, size_bytes: bytes.next()??, used_bytes: bytes.next()??, compressed })
    };
    lines.map(|line| swap(line).ok_or_else(|| crate::root::nonsense(PATH.as_ref(), line))).collect()
}

fn huge_pages(root: &Root) -> Result<Vec<HugePages>, Missing> {
    let mut pools = Vec::new();
    for name in root.names(HUGE)? {
        let size =
            name.strip_prefix("hugepages-").and_then(|name| name.strip_suffix("kB")?.parse::<u64>().ok());
        let Some(size_bytes) = size.and_then(|kib| kib.checked_mul(KIB)) else { continue };
        let count = |file: &str| root.value(format!("{HUGE}/{name}/{file}")).into();
        pools.push(HugePages { size_bytes, total: count("nr_hugepages"), free: count("free_hugepages") });
    }
    pools.sort_by_key(|pool| pool.size_bytes);
    Ok(pools)
}

fn pressure(root: &Root) -> Result<Vec<Pressure>, Missing> {
    let kinds = [(PressureKind::Cpu, "cpu"), (PressureKind::Memory, "memory"), (PressureKind::Io, "io")];
    let read = |(kind, file): (PressureKind, &str)| {
        let path = format!("/proc/pressure/{file}");
        let text = root.text(&path)?;
        let share = |key: &str| {
            let field = files::field(&text, "some ")
                .and_then(|line| line.split_ascii_whitespace().find_map(|field| field.strip_prefix(key)));
            let percent = field.and_then(|value| value.parse::<f64>().ok());
            let valid =
                percent.filter(|percent| (0.0..=100.0).contains(percent)).map(|percent| percent / 100.0);
            valid.ok_or_else(|| crate::root::nonsense(path.as_ref(), &text))
        };
        Ok(Pressure { kind, some_10s: share("avg10=").into(), some_60s: share("avg60=").into() })
    };
    kinds.into_iter().map(read).collect::<Result<_, Missing>>().map_err(|missing: Missing| {
        Missing::with_remedy(missing.why, "boot a kernel with CONFIG_PSI and psi=1")
    })
}
