//! How many bytes memory moves in a second for one thread and for several: arrays that no cache holds, read, copied, or
//! combined as STREAM's triad does (McCalpin, 1995), on threads that keep their arrays from sample to sample.

use super::place::pin;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use tare_model::Missing;
use tare_sys::time::{monotonic_ns, sleep_until_ns};

/// Numbers of an array that are gone through between two looks at the clock: 256 KiB.
const CHUNK: usize = 32 << 10;
/// How much later than asked for a thread may be, and how long it may take to make its arrays.
const GRACE: Duration = Duration::from_millis(400);
const MADE_WITHIN: Duration = Duration::from_secs(10);
/// All threads begin so long after they were asked.
const BEGIN_NS: u64 = 300_000;

/// What is done with the arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Every number is read: 8 bytes each.
    Read,
    /// `a[i] = b[i]` (`memcpy`): 16 bytes each, 8 read and 8 written.
    Copy,
    /// `a[i] = b[i] + s·c[i]`: 24 bytes each, 16 read and 8 written, as STREAM counts.
    Triad,
}

/// Threads with their arrays, one on each CPU. Dropping it ends them.
pub struct Bandwidth {
    workers: Vec<Worker>,
}

struct Worker {
    cpu: u32,
    ask: Sender<Asked>,
}

struct Asked {
    work: Work,
    begin_ns: u64,
    end_ns: u64,
    answer: Sender<f64>,
}

/// Work that goes on.
pub struct Pending {
    answers: Vec<(u32, Receiver<f64>)>,
    end_ns: u64,
}

impl Bandwidth {
    /// Threads on these CPUs, each with three arrays of so many bytes, on the memory of its own node.
    ///
    /// # Errors
    /// Why a thread could not be made, could not run on its CPU, or got no memory.
    pub fn new(cpus: &[u32], array_bytes: usize) -> Result<Bandwidth, Missing> {
        let mut workers = Vec::new();
        let mut made = Vec::new();
        for &cpu in cpus {
            let (ask, asked) = channel();
            let (ready, is_ready) = channel();
            let work = move || match pin(cpu).and_then(|()| Arrays::new(array_bytes / size_of::<f64>())) {
                Ok(arrays) => {
                    let _ = ready.send(Ok(()));
                    arrays.serve(&asked);
                }
                Err(missing) => _ = ready.send(Err(missing)),
            };
            let spawned = std::thread::Builder::new().name("tare-probe".into()).spawn(work);
            spawned.map_err(|error| Missing::new(format!("no thread for the probe: {error}")))?;
            workers.push(Worker { cpu, ask });
            made.push((cpu, is_ready));
        }
        for (cpu, ready) in made {
            ready.recv_timeout(MADE_WITHIN).map_err(|error| late(cpu, error))??;
        }
        Ok(Bandwidth { workers })
    }

    /// How many threads there are.
    pub fn threads(&self) -> usize {
        self.workers.len()
    }

    /// Has the threads of a range do something for `duration_ns`, while the caller does something else.
    pub fn begin(&self, work: Work, workers: std::ops::Range<usize>, duration_ns: u64) -> Pending {
        let begin_ns = monotonic_ns().saturating_add(BEGIN_NS);
        let end_ns = begin_ns.saturating_add(duration_ns);
        let asked = self.workers.get(workers).unwrap_or_default().iter().map(|worker| {
            let (answer, answers) = channel();
            // Nobody answers for a thread that has ended.
            let _ = worker.ask.send(Asked { work, begin_ns, end_ns, answer });
            (worker.cpu, answers)
        });
        Pending { answers: asked.collect(), end_ns }
    }

    /// Bytes per second of the first so many threads together.
    ///
    /// # Errors
    /// That one of them got too little of its CPU.
    pub fn run(&self, work: Work, threads: usize, duration_ns: u64) -> Result<f64, Missing> {
        self.begin(work, 0..threads, duration_ns).bytes_per_s()
    }
}

impl Pending {
    /// Bytes per second of all of them together, once they have ended.
    ///
    /// # Errors
    /// That one of them got too little of its CPU.
    pub fn bytes_per_s(self) -> Result<f64, Missing> {
        let deadline_ns = self.end_ns.saturating_add(GRACE.as_nanos() as u64);
        let mut sum = 0.0;
        for (cpu, answer) in self.answers {
            let left = Duration::from_nanos(deadline_ns.saturating_sub(monotonic_ns()));
            sum += answer.recv_timeout(left).map_err(|error| late(cpu, error))?;
        }
        Ok(sum)
    }
}

fn late(cpu: u32, error: RecvTimeoutError) -> Missing {
    match error {
        RecvTimeoutError::Timeout => Missing::with_remedy(
            format!("the probe got too little of CPU {cpu} to end in time"),
            "see what else runs there (ps -eLo psr,cls,rtprio,pcpu,comm), or what quota holds this process back",
        ),
        RecvTimeoutError::Disconnected => Missing::new("the probe's thread ended early"),
    }
}

/// `a`, `b` and `c` of STREAM.
struct Arrays {
    a: Vec<f64>,
    b: Vec<f64>,
    c: Vec<f64>,
}

impl Arrays {
    fn new(numbers: usize) -> Result<Arrays, Missing> {
        let array = |value: f64| {
            let mut array = Vec::new();
            array.try_reserve_exact(numbers).map_err(|_| {
                Missing::with_remedy("no memory for the arrays", "free some memory, or raise the limit on it")
            })?;
            array.resize(numbers, value);
            Ok(array)
        };
        Ok(Arrays { a: array(1.0)?, b: array(2.0)?, c: array(0.5)? })
    }

    /// Until nobody can ask any more.
    fn serve(mut self, asked: &Receiver<Asked>) {
        while let Ok(Asked { work, begin_ns, end_ns, answer }) = asked.recv() {
            sleep_until_ns(begin_ns);
            let _ = answer.send(self.bytes_per_s(work, end_ns));
        }
    }

    fn bytes_per_s(&mut self, work: Work, end_ns: u64) -> f64 {
        let begun_ns = monotonic_ns();
        let mut done = 0;
        loop {
            let passes = self.a.chunks_mut(CHUNK).zip(self.b.chunks(CHUNK)).zip(self.c.chunks(CHUNK));
            for ((a, b), c) in passes {
                done += chunk(work, a, b, c);
                let now_ns = monotonic_ns();
                if now_ns >= end_ns {
                    return done as f64 * 1e9 / (now_ns - begun_ns).max(1) as f64;
                }
            }
            if self.a.is_empty() {
                return 0.0;
            }
        }
    }
}

/// Bytes that were moved.
fn chunk(work: Work, a: &mut [f64], b: &[f64], c: &[f64]) -> usize {
    let bytes = size_of_val(b);
    match work {
        Work::Read => {
            for array in [&*a, b, c] {
                // Integers may be combined in any order, so that the compiler uses wide registers.
                let all = array.iter().fold(0u64, |all, number| all ^ number.to_bits());
                std::hint::black_box(all);
            }
            3 * bytes
        }
        Work::Copy => {
            a.copy_from_slice(b);
            std::hint::black_box(a);
            2 * bytes
        }
        Work::Triad => {
            let scale = std::hint::black_box(3.0);
            a.iter_mut().zip(b).zip(c).for_each(|((a, b), c)| *a = b + scale * c);
            std::hint::black_box(a);
            3 * bytes
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_moves_bytes_on_every_cpu() {
        let cpus = tare_sys::affinity::get(0).unwrap();
        let bandwidth = Bandwidth::new(&cpus, 1 << 20).unwrap();
        assert_eq!(bandwidth.threads(), cpus.len());
        for work in [Work::Read, Work::Copy, Work::Triad] {
            for threads in [1, cpus.len()] {
                let per_s = bandwidth.run(work, threads, 2_000_000).unwrap();
                assert!(per_s > 1e6 && per_s.is_finite(), "{work:?} {threads}: {per_s}");
            }
        }
    }

    #[test]
    fn triad_is_what_it_says() {
        let mut a = [0.0; 4];
        assert_eq!(chunk(Work::Triad, &mut a, &[1.0; 4], &[2.0; 4]), 96);
        assert_eq!(a, [7.0; 4]);
        assert_eq!(chunk(Work::Copy, &mut a, &[1.0; 4], &[2.0; 4]), 64);
        assert_eq!(a, [1.0; 4]);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_missing() {
        assert!(Bandwidth::new(&[tare_sys::affinity::CPUS_MAX - 1], 1 << 10).is_err());
        assert_eq!(Bandwidth::new(&[], 0).unwrap().run(Work::Read, 1, 1).unwrap(), 0.0);
    }
}
