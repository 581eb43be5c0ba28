//! Bandwidth of memory for one thread and more, and its latency, idle and loaded.

use super::kind::{Kind, Opened};
use std::rc::Rc;
use tare_machine::probes::bandwidth::Work;
use tare_machine::probes::memory;
use tare_model::Missing;
use tare_model::probes::MemoryLatency;

const WORKS: [(Work, &str, &str); 3] = [
    (Work::Read, "read", "memory read"),
    (Work::Copy, "copy", "memory copied (memcpy; bytes read and bytes written)"),
    (Work::Triad, "triad", "a[i] = b[i] + s·c[i] as STREAM has it (24 bytes each)"),
];
/// The load goes on so much longer than the latency is measured: threads and buffers are made first.
const MORE_NS: u64 = 20_000_000;

pub(super) fn kinds(cpus: usize) -> Vec<Kind> {
    let bandwidth = WORKS.into_iter().flat_map(|(work, name, what)| {
        threads(cpus).into_iter().map(move |threads| {
            let about = format!("{what}, {threads} thread{}", if threads == 1 { "" } else { "s" });
            Kind::opened(format!("memory-{name}-{threads}"), "B/s", about, move |ground| {
                let bandwidth = ground.bandwidth()?;
                let note = ground.beyond_caches(threads)?;
                Ok(Opened { sample: Box::new(move |ns| bandwidth.run(work, threads, ns)), note })
            })
        })
    });
    let idle =
        Kind::new("memory-latency-idle", "s", "a load from memory, nobody else loading it", |ground, ns| {
            latency_s(memory::beyond_caches(ground.cpu(), ns))
        });
    let loaded = Kind::opened(
        "memory-latency-loaded",
        "s",
        "a load from memory while a thread on each other CPU copies",
        |ground| {
            let (bandwidth, ground) = (ground.bandwidth()?, Rc::clone(ground));
            let others = bandwidth.threads().saturating_sub(1);
            if others == 0 {
                return Err(Missing::new("one CPU alone: nobody else can load the memory"));
            }
            let note = ground.beyond_caches(others)?;
            let sample = move |ns: u64| {
                let load = bandwidth.begin(Work::Copy, 0..others, ns + MORE_NS);
                let found = latency_s(memory::beyond_caches(ground.cpu(), ns));
                load.bytes_per_s().and(found)
            };
            Ok(Opened { sample: Box::new(sample), note })
        },
    );
    bandwidth.chain([idle, loaded]).collect()
}

fn latency_s(found: MemoryLatency) -> Result<f64, Missing> {
    found.load_ns.ok().map(|ns| ns.median / 1e9)
}

/// 1, 2, 4, … and all.
fn threads(cpus: usize) -> Vec<usize> {
    let mut threads: Vec<usize> = std::iter::successors(Some(1), |threads| Some(threads * 2))
        .take_while(|threads| *threads < cpus)
        .collect();
    threads.push(cpus.max(1));
    threads
}

#[cfg(test)]
mod tests {
    #[test]
    fn threads_double_up_to_all() {
        for (cpus, threads) in [(0, vec![1]), (1, vec![1]), (2, vec![1, 2]), (6, vec![1, 2, 4, 6])] {
            assert_eq!(super::threads(cpus), threads);
        }
    }
}
