//! Memory: huge pages, swap, pressure.

use super::draft::{Draft, Examined, Topic, each, note, ok, several, unknown, warn};
use super::words::{bytes, percent};
use tare_model::check::Area;
use tare_model::survey::{HugePages, Memory, Pressure, PressureKind, Swap};
use tare_model::{Missing, Reading};

pub(super) static TOPIC: Topic = Topic {
    area: Area::Memory,
    ids: &[
        "memory",
        "page-cache",
        "swap",
        "same-page-merging",
        "thp",
        "huge-pages",
        "numa-balancing",
        "pressure",
    ],
    look,
};

/// Below this share of memory the kernel begins to look for more while programs wait.
const SCARCE: f64 = 0.1;
/// A page cache beyond this is worth dropping before cold and warm runs are compared.
const LARGE_CACHE: f64 = 0.5;

fn look(examined: &Examined) -> Vec<Draft> {
    let memory = &examined.survey.memory;
    let total = examined.survey.machine.memory_bytes.value().copied();
    let mut drafts = available(memory, total);
    drafts.extend(each("swap", &memory.swap_bytes, |size| swap(*size, memory)));
    if memory.same_page_merging.value() == Some(&true) {
        drafts.push(
            warn("same-page-merging", "the kernel looks for equal pages and makes them one (KSM)")
                .effect("a thread of the kernel takes CPU time and caches, and who writes to such a page waits for a copy")
                .fix("echo 2 > /sys/kernel/mm/ksm/run while measuring"),
        );
    }
    drafts.extend(each("thp", &memory.thp, |mode| thp(mode)));
    drafts.extend(several("huge-pages", &memory.huge_pages, |pools| huge_pages(pools)));
    let nodes = examined.topology.numa_nodes.value().copied().unwrap_or(1);
    if nodes > 1 {
        drafts.extend(each("numa-balancing", &memory.numa_balancing, |on| match on {
            true => warn("numa-balancing", "the kernel moves pages between NUMA nodes while programs run")
                .effect("page faults on purpose and copies: pauses, and a first half minute that differs from the rest")
                .fix("off while measuring, with each service within one node")
                .setting("numa-balancing"),
            false => ok("numa-balancing", "off"),
        }));
    }
    drafts.extend(several("pressure", &memory.pressure, |kinds| pressure(kinds)));
    drafts
}

fn available(memory: &Memory, total: Option<u64>) -> Vec<Draft> {
    let mut drafts = each("memory", &memory.available_bytes, |free| {
        let Some(total) = total.filter(|total| *total > 0) else {
            return unknown("memory", &Missing::new("/proc/meminfo does not tell how much memory there is"));
        };
        let found = format!("{} of {} are available", bytes(*free), bytes(total));
        match (*free as f64) < SCARCE * total as f64 {
            true => warn("memory", found)
                .effect("programs stop while the kernel looks for pages")
                .fix("end what is not needed; under WSL 2, wsl --shutdown"),
            false => ok("memory", found),
        }
    });
    let cached = memory.cached_bytes.value().copied().unwrap_or(0);
    if total.is_some_and(|total| cached as f64 > LARGE_CACHE * total as f64) {
        drafts.push(
            note("page-cache", format!("{} of files in memory", bytes(cached)))
                .effect("a first run after a restart reads from disk what this one has in memory")
                .fix("drop it before each run, or before none")
                .setting("drop-caches"),
        );
    }
    drafts
}

fn swap(size: u64, memory: &Memory) -> Draft {
    match (size, &memory.swap_used_bytes) {
        (0, _) => ok("swap", "no swap"),
        (_, Reading::Missing(missing)) => unknown("swap", missing),
        (size, used) => {
            let used = used.value().copied().unwrap_or(0);
            let found = format!("{} of {} swap in use", bytes(used), bytes(size));
            if used == 0 {
                return ok("swap", found);
            }
            let fix = "swapoff -a, with enough memory free; vm.swappiness=1";
            let swaps = memory.swaps.value().map(Vec::as_slice).unwrap_or_default();
            let used: Vec<&Swap> = swaps.iter().filter(|swap| swap.used_bytes > 0).collect();
            if used.is_empty() {
                let why = match &memory.swaps {
                    Reading::Missing(missing) => missing.why.as_str(),
                    _ => "/proc/swaps lists none that is used",
                };
                return warn("swap", format!("{found}; where it lies is missing: {why}"))
                    .effect("a page that comes back takes some microseconds from compressed memory, 0.1 to 10 ms from a disk")
                    .fix(fix);
            }
            if used.iter().all(|swap| swap.compressed) {
                return warn("swap", format!("{found}, all of it compressed memory (zram)"))
                    .effect("a page that comes back takes some microseconds of CPU time to unpack: CPU per request rises")
                    .fix(fix);
            }
            warn("swap", found)
                .effect("a page that comes back from disk takes 0.1 to 10 ms: p99 shows it")
                .fix(fix)
        }
    }
}

fn thp(mode: &str) -> Draft {
    let found = format!("transparent huge pages: {mode}");
    match mode {
        "always" => note("thp", found)
            .effect("memory may double and the kernel stops programs to make room; fewer TLB misses (80 to 14 % of fetches seen, \
                     for less than 10 % of throughput)")
            .fix("madvise, unless the program was tried with it")
            .setting("thp"),
        "never" => note("thp", found)
            .effect("large heaps miss the TLB more: up to 10 % of throughput")
            .fix("madvise: programs that ask for huge pages get them")
            .setting("thp"),
        _ => ok("thp", found),
    }
}

fn huge_pages(pools: &[HugePages]) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = Vec::new();
    for pool in pools {
        let (Some(total), Some(free)) = (pool.total.value(), pool.free.value()) else { continue };
        if *total == 0 {
            continue;
        }
        let found = format!("{total} huge pages of {}, {free} free", bytes(pool.size_bytes));
        let unused = free.saturating_mul(pool.size_bytes);
        drafts.push(match free {
            0 => ok("huge-pages", found),
            _ => note("huge-pages", found)
                .effect(format!(
                    "{} are nobody's: programs that do not ask for huge pages cannot have them",
                    bytes(unused)
                ))
                .setting("huge-pages"),
        });
    }
    if drafts.is_empty() && !pools.is_empty() {
        drafts.push(ok("huge-pages", "no pool of huge pages is reserved"));
    }
    drafts
}

fn pressure(kinds: &[Pressure]) -> Vec<Draft> {
    let mut drafts = Vec::new();
    for pressure in kinds {
        let (name, limit, effect) = match pressure.kind {
            PressureKind::Cpu => {
                ("CPU", 0.10, "threads wait for a CPU: others are here, or more threads than CPUs")
            }
            PressureKind::Memory => ("memory", 0.01, "programs stop while pages are looked for"),
            PressureKind::Io => ("disk", 0.10, "programs wait for the disk"),
        };
        drafts.extend(each("pressure", &pressure.some_10s, |share| {
            let found = format!("{name}: some task waited for it in {} of the last 10 s", percent(*share));
            match *share > limit {
                true => warn("pressure", found)
                    .effect(effect)
                    .fix("see who else is here (top, iotop), and wait until it is over"),
                false => ok("pressure", found),
            }
        }));
    }
    drafts
}
