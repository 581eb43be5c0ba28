//! How long a load takes from each cache and from memory: dependent loads in an order that no prefetcher guesses.
//!
//! A cache is read through a buffer that its inner neighbour cannot hold. Memory is read through lines that were
//! driven out of all caches just before: the buffer needs not be larger than the last cache, which on a server may
//! have hundreds of megabytes that are shared with strangers. Page tables are kept out of it.

use super::clock_cost::clock_cost_ns;
use super::place::on_cpu;
use crate::root::Root;
use tare_model::probes::{MemoryLatency, MemoryPlace, Spread};
use tare_model::{Missing, Reading};
use tare_sys::chase::{BLOCK_BYTES, Chase};
use tare_sys::time::monotonic_ns;

/// Loads of one sample, at least.
const SAMPLE_LOADS: usize = 4096;
/// Samples that are kept, at most.
const SAMPLES_MAX: usize = 10_000;
/// Of every block of the buffer one line is used.
const BYTES_PER_LINE_BYTE: u64 = BLOCK_BYTES as u64 / 64;
/// Largest buffer; a cache that would need more is missing.
const BUFFER_BYTES_MAX: u64 = 256 << 20;
/// From this share of memory's time on a cache is none.
const BORROWED: f64 = 0.7;
/// Buffer for memory: a few windows in turn.
const MEMORY_BUFFER_BYTES: u64 = 2 << 20;

/// Each level of `cpu`'s caches and memory, `duration_ns` in all.
pub fn run(root: &Root, cpu: u32, duration_ns: u64) -> Vec<MemoryLatency> {
    let levels = levels(root, cpu);
    let each_ns = duration_ns / (levels.len() as u64 + 1);
    let mut found: Vec<MemoryLatency> =
        (0..levels.len()).map(|at| cache(&levels, at, cpu, each_ns)).collect();
    found.push(beyond_caches(cpu, each_ns));
    warn_of_borrowed_cache(&mut found);
    found
}

/// A guest sees the size of the host's last cache, and may have no part of it to speak of: then it is no faster than memory.
fn warn_of_borrowed_cache(found: &mut [MemoryLatency]) {
    let median = |one: &MemoryLatency| one.load_ns.value().map(|spread| spread.median);
    let Some(([.., last], [memory])) = found.split_last_chunk_mut::<1>() else { return };
    if let (Some(last_ns), Some(memory_ns)) = (median(last), median(memory))
        && last_ns >= BORROWED * memory_ns
    {
        last.warning = Some(format!(
            "as slow as memory ({last_ns:.0} of {memory_ns:.0} ns): of the cache that is reported this machine has less than the \
             {} of the test",
            crate::value::bytes(last.buffer_bytes / BYTES_PER_LINE_BYTE)
        ));
    }
}

/// Memory alone.
pub fn beyond_caches(cpu: u32, duration_ns: u64) -> MemoryLatency {
    let load_ns = on_cpu(cpu, duration_ns, move || beyond_caches_here(duration_ns));
    MemoryLatency {
        place: MemoryPlace::Memory,
        cpu,
        buffer_bytes: MEMORY_BUFFER_BYTES,
        load_ns: load_ns.into(),
        warning: None,
    }
}

/// Median nanoseconds of a load from memory on the CPU that this runs on.
pub(super) fn load_ns(duration_ns: u64) -> Result<f64, Missing> {
    beyond_caches_here(duration_ns).map(|spread| spread.median)
}

fn beyond_caches_here(duration_ns: u64) -> Result<Spread, Missing> {
    let chase = Chase::new(MEMORY_BUFFER_BYTES as usize);
    let prepare = |window| {
        chase
            .flush(window)
            .then_some(())
            .ok_or_else(|| Missing::new("a program cannot drive data out of the caches on this architecture"))
    };
    samples(&chase, duration_ns, prepare)
}

fn cache(levels: &[Level], at: usize, cpu: u32, duration_ns: u64) -> MemoryLatency {
    let place = MemoryPlace::Cache(levels[at].level);
    let bytes = match buffer_bytes(levels, at) {
        Ok(bytes) => bytes,
        Err(missing) => {
            return MemoryLatency {
                place,
                cpu,
                buffer_bytes: 0,
                load_ns: Reading::Missing(missing),
                warning: None,
            };
        }
    };
    let load_ns = on_cpu(cpu, duration_ns, move || {
        let chase = Chase::new(bytes as usize);
        (0..chase.windows()).for_each(|window| chase.run(window, chase.window_loads()));
        samples(&chase, duration_ns, |window| {
            chase.touch_pages(window);
            Ok(())
        })
    });
    let is_shared = at > 0 && at + 1 == levels.len();
    let warning = is_shared
        .then(|| "shared with other CPUs, of the host as well: theirs may push ours out".to_string());
    MemoryLatency { place, cpu, buffer_bytes: bytes, load_ns: load_ns.into(), warning }
}

/// Nanoseconds a load, each sample over several windows; only the loads are timed, not `prepare`.
fn samples(
    chase: &Chase,
    duration_ns: u64,
    mut prepare: impl FnMut(usize) -> Result<(), Missing>,
) -> Result<Spread, Missing> {
    let clock_ns = clock_cost_ns();
    // A single window stays where it is from one time round to the next; of several, each is gone through once.
    let loads = if chase.windows() == 1 { SAMPLE_LOADS } else { chase.window_loads() };
    let end_ns = monotonic_ns().saturating_add(duration_ns);
    let (mut samples, mut window) = (Vec::new(), 0);
    while samples.len() < SAMPLES_MAX {
        let (mut taken_ns, mut done) = (0.0, 0);
        while done < SAMPLE_LOADS {
            prepare(window)?;
            let start_ns = monotonic_ns();
            chase.run(window, loads);
            taken_ns += ((monotonic_ns() - start_ns) as f64 - clock_ns).max(0.0);
            done += loads.next_multiple_of(16);
            window += 1;
        }
        samples.push(taken_ns / done as f64);
        if monotonic_ns() >= end_ns {
            break;
        }
    }
    Spread::of(&samples).ok_or_else(|| Missing::new("no sample in the time given"))
}

/// A data or unified cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Level {
    level: u8,
    bytes: u64,
}

/// The data caches that `cpu` has, innermost first.
fn levels(root: &Root, cpu: u32) -> Vec<Level> {
    let dir = format!("/sys/devices/system/cpu/cpu{cpu}/cache");
    let level = |name: &String| {
        let file = |file: &str| root.text(format!("{dir}/{name}/{file}")).ok();
        let holds_data = matches!(file("type")?.trim(), "Data" | "Unified");
        let level = file("level")?.trim().parse().ok()?;
        let bytes = file("size")?.trim().strip_suffix('K')?.parse::<u64>().ok()?.checked_mul(1024)?;
        (holds_data && bytes > 0).then_some(Level { level, bytes })
    };
    let names = root.names(&dir).unwrap_or_default();
    let mut levels: Vec<Level> =
        names.iter().filter(|name| name.starts_with("index")).filter_map(level).collect();
    levels.sort_by_key(|level| level.level);
    levels.dedup_by_key(|level| level.level);
    levels
}

/// Bytes of the last cache that `cpu` has, as the machine reports it; `None` where it reports none.
pub fn last_cache_bytes(root: &Root, cpu: u32) -> Option<u64> {
    levels(root, cpu).last().map(|level| level.bytes)
}

/// A buffer whose lines that are used do not fit into the next inner cache (four times, or at least twice its size)
/// and take no more than half of this one.
fn buffer_bytes(levels: &[Level], at: usize) -> Result<u64, Missing> {
    let Level { level, bytes } = levels[at];
    let inner = at.checked_sub(1).map(|inner| levels[inner].bytes);
    let lines_bytes = match inner {
        None => Some(bytes / 4),
        Some(inner) => {
            [4, 2].iter().map(|times| inner.saturating_mul(*times)).find(|wanted| *wanted <= bytes / 2)
        }
    };
    let wanted = lines_bytes.and_then(|lines| lines.checked_mul(BYTES_PER_LINE_BYTE));
    wanted.filter(|wanted| (1..=BUFFER_BYTES_MAX).contains(wanted)).ok_or_else(|| {
        Missing::new(format!(
            "cache level {level} ({} KiB) cannot be distinguished from the one inside it",
            bytes >> 10
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn caches(sizes: &[u64]) -> Vec<Level> {
        (1..).zip(sizes).map(|(level, &bytes)| Level { level, bytes }).collect()
    }

    #[test]
    fn a_buffer_fits_its_cache_and_not_the_one_inside() {
        let xeon = caches(&[48 << 10, 2 << 20, 260 << 20]);
        assert_eq!(buffer_bytes(&xeon, 0), Ok(48 << 10));
        assert_eq!(buffer_bytes(&xeon, 1), Ok(768 << 10));
        assert_eq!(buffer_bytes(&xeon, 2), Ok(32 << 20));
        let small = caches(&[32 << 10, 1 << 20, (1 << 20) + (512 << 10)]);
        assert!(buffer_bytes(&small, 2).unwrap_err().why.contains("level 3"));
        assert!(buffer_bytes(&caches(&[1 << 40, 1 << 50]), 1).is_err());
    }

    #[test]
    fn a_cache_that_is_as_slow_as_memory_is_not_ours() {
        let spread =
            |ns: f64| Spread::of(&[ns, ns, ns]).map_or_else(|| Reading::missing("none"), Reading::Measured);
        let latency = |place, ns| MemoryLatency {
            place,
            cpu: 0,
            buffer_bytes: 64 << 20,
            load_ns: spread(ns),
            warning: None,
        };
        let run = |last_ns| {
            let mut found =
                vec![latency(MemoryPlace::Cache(3), last_ns), latency(MemoryPlace::Memory, 100.0)];
            warn_of_borrowed_cache(&mut found);
            found.remove(0).warning
        };
        assert_eq!(run(40.0), None);
        assert!(run(90.0).is_some_and(|warning| warning.starts_with("as slow as memory (90 of 100 ns)")));
        warn_of_borrowed_cache(&mut []);
    }

    #[test]
    fn caches_are_read_and_nonsense_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        for (index, level, kind, size) in [
            (0, "1", "Data", "32K"),
            (1, "1", "Instruction", "32K"),
            (2, "2", "Unified", "512K"),
            (3, "3", "Unified", "x"),
        ] {
            let path = dir.path().join(format!("sys/devices/system/cpu/cpu3/cache/index{index}"));
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join("level"), level).unwrap();
            fs::write(path.join("type"), kind).unwrap();
            fs::write(path.join("size"), size).unwrap();
        }
        assert_eq!(levels(&Root::at(dir.path()), 3), caches(&[32 << 10, 512 << 10]));
        assert_eq!(levels(&Root::at(dir.path()), 4), []);
        let root = Root::at(dir.path());
        assert_eq!((last_cache_bytes(&root, 3), last_cache_bytes(&root, 4)), (Some(512 << 10), None));
    }

    #[test]
    fn memory_is_farther_than_the_innermost_cache() {
        let cpu = tare_sys::affinity::get(0).unwrap()[0];
        let found = run(&Root::live(), cpu, 40_000_000);
        let load_ns = |place| {
            let level = found.iter().find(|level| level.place == place)?;
            level.load_ns.value().map(|spread| spread.median)
        };
        if let (Some(inner), Some(memory)) = (load_ns(MemoryPlace::Cache(1)), load_ns(MemoryPlace::Memory)) {
            assert!(inner > 0.0 && memory > 2.0 * inner, "{found:?}");
        }
    }
}
