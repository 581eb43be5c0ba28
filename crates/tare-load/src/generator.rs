//! The generator as its driver sees it: start, look, cut, stop.

use crate::error::LoadError;
use crate::shared::Shared;
use crate::spec::LoadSpec;
use crate::tally::{ERROR_KINDS, Slices, Tally};
use crate::worker::{Settled, Worker};
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tare_record::Reading;
use tare_record::latency::Latencies;
use tare_record::trial::HttpSample;
use tare_sys::time::monotonic_ns;
use tare_sys::{affinity, process};

/// Longest that [`Generator::start`] waits for connections; those that come later join in then.
const RAMP_MAX: Duration = Duration::from_secs(5);
/// Longest that [`Generator::cut`] waits for a thread. They answer within microseconds unless starved.
const CUT_MAX: Duration = Duration::from_secs(10);
/// Longest that stopping waits for a thread.
const STOP_MAX: Duration = Duration::from_secs(5);
/// Files that a process needs besides its connections, and that each thread needs.
const FILES_BESIDES: u64 = 64;
const FILES_PER_THREAD: u64 = 4;

/// Load being made by threads of this process, named `tare-load-0`, `tare-load-1` …
///
/// Dropping it stops the load.
#[derive(Debug)]
pub struct Generator {
    threads: Vec<Thread>,
}

#[derive(Debug)]
struct Thread {
    tid: u32,
    shared: Arc<Shared>,
    handle: Option<JoinHandle<io::Result<()>>>,
}

/// How far a generator has come since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Live {
    /// Whole answers, errors of status included.
    pub answers: u64,
    /// Errors of all kinds.
    pub errors: u64,
}

impl Generator {
    /// Opens the connections, then begins to send, on all threads from the same instant.
    ///
    /// # Errors
    /// [`LoadError`] when the spec or its target cannot be used, a thread cannot be made or pinned, or not one
    /// connection could be opened. Connections that fail while others open are counted and tried again.
    pub fn start(spec: &LoadSpec) -> Result<Generator, LoadError> {
        spec.validate()?;
        let needed = u64::from(spec.connections) + FILES_PER_THREAD * u64::from(spec.threads) + FILES_BESIDES;
        let limit = process::raise_open_files_limit().map_err(|why| LoadError::Thread { why })?;
        if limit < needed {
            return Err(LoadError::OpenFiles { needed, limit });
        }
        let address = choose_address(&spec.target.resolve()?);
        let spec = Arc::new(spec.clone());
        let (settled, reports) = mpsc::channel();
        let mut generator = Generator { threads: Vec::new() };
        for thread in 0..spec.threads {
            generator.threads.push(Thread::spawn(&spec, thread, address, settled.clone())?);
        }
        drop(settled);
        await_connections(&reports, spec.threads, address)?;
        let begin_ns = monotonic_ns();
        for thread in &generator.threads {
            thread.shared.begin(begin_ns).map_err(|why| LoadError::Thread { why })?;
        }
        Ok(generator)
    }

    /// The kernel's ids of the threads.
    pub fn thread_ids(&self) -> Vec<u32> {
        self.threads.iter().map(|thread| thread.tid).collect()
    }

    /// How far it has come since it began: a few loads, as recent as each thread's last batch of events.
    pub fn live(&self) -> Live {
        self.threads.iter().map(|thread| thread.shared.live()).fold(
            Live::default(),
            |sum, (answers, errors)| Live { answers: sum.answers + answers, errors: sum.errors + errors },
        )
    }

    /// Everything counted since the last cut (the first time: since it began); nothing falls between two cuts.
    ///
    /// Each thread closes its own window when it is woken for this, microseconds apart; `elapsed_ns` is such
    /// that requests over it is the sum of the threads' own rates. If a thread does not answer (it ended by
    /// itself, or did not run for 10 s), the figures are missing.
    pub fn cut(&mut self) -> HttpSample {
        let end_ns = monotonic_ns();
        for thread in &self.threads {
            // A thread that cannot be woken is found missing below.
            thread.shared.ask(end_ns).ok();
        }
        let deadline = Instant::now() + CUT_MAX;
        let tallies: Vec<Option<Box<Tally>>> =
            self.threads.iter().map(|thread| thread.collect(deadline)).collect();
        let sample = match tallies.iter().map(|tally| tally.as_deref()).collect::<Option<Vec<&Tally>>>() {
            Some(all) => merge(&all, end_ns),
            None => missing(),
        };
        for (thread, tally) in self.threads.iter().zip(tallies) {
            if let Some(tally) = tally {
                thread.shared.give_back(tally);
            }
        }
        sample
    }

    /// Ends the load and its threads.
    ///
    /// # Errors
    /// [`LoadError::Thread`] when a thread ended by itself before, or does not end within 5 s.
    pub fn stop(mut self) -> Result<(), LoadError> {
        self.stop_threads().map_err(|why| LoadError::Thread { why })
    }

    fn stop_threads(&mut self) -> io::Result<()> {
        let mut result = Ok(());
        for thread in &self.threads {
            result = result.and(thread.shared.stop());
        }
        let deadline = Instant::now() + STOP_MAX;
        for thread in &mut self.threads {
            result = result.and(thread.join(deadline));
        }
        result
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        // Who wants to know calls `stop`.
        self.stop_threads().ok();
    }
}

impl Thread {
    fn spawn(
        spec: &Arc<LoadSpec>,
        thread: u32,
        address: SocketAddr,
        settled: Sender<Settled>,
    ) -> Result<Thread, LoadError> {
        let failed = |why| LoadError::Thread { why };
        let shared = Arc::new(Shared::new().map_err(failed)?);
        let cpu = spec.cpus.get(thread as usize % spec.cpus.len().max(1)).copied();
        let (started, start) = mpsc::channel();
        let (spec, inner) = (Arc::clone(spec), Arc::clone(&shared));
        let body = move || {
            // Pinned first, so that its memory is allocated from its own node.
            let worker = pin(cpu).and_then(|()| {
                Worker::new(spec, thread, address, inner, settled).map_err(|why| LoadError::Thread { why })
            });
            match worker {
                Ok(mut worker) => {
                    started.send(Ok(process::gettid())).ok();
                    worker.run()
                }
                Err(error) => {
                    started.send(Err(error)).ok();
                    Ok(())
                }
            }
        };
        let builder = std::thread::Builder::new().name(format!("tare-load-{thread}"));
        let handle = builder.spawn(body).map_err(failed)?;
        let tid = start.recv().map_err(|_| failed(io::Error::other("it ended at once")))??;
        Ok(Thread { tid, shared, handle: Some(handle) })
    }

    fn collect(&self, deadline: Instant) -> Option<Box<Tally>> {
        let ended = self.handle.as_ref().is_none_or(JoinHandle::is_finished);
        let patience =
            if ended { Duration::ZERO } else { deadline.saturating_duration_since(Instant::now()) };
        self.shared.collect(patience)
    }

    fn join(&mut self, deadline: Instant) -> io::Result<()> {
        let Some(handle) = self.handle.take() else { return Ok(()) };
        while !handle.is_finished() {
            if Instant::now() > deadline {
                return Err(io::Error::other("it does not stop"));
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        handle.join().unwrap_or_else(|_| Err(io::Error::other("it panicked")))
    }
}

fn pin(cpu: Option<u32>) -> Result<(), LoadError> {
    match cpu {
        None => Ok(()),
        Some(cpu) => affinity::set(0, &[cpu]).map_err(|why| LoadError::Pin { cpu, why }),
    }
}

/// The first address that takes a connection, else the first one: a name may lead to both families while the
/// server listens on one.
pub(crate) fn choose_address(addresses: &[SocketAddr]) -> SocketAddr {
    let takes = |address: &&SocketAddr| TcpStream::connect_timeout(address, Duration::from_secs(1)).is_ok();
    let chosen = if addresses.len() > 1 { addresses.iter().find(takes) } else { None };
    *chosen.unwrap_or(&addresses[0])
}

/// Waits until every thread has tried all of its connections, within a bound.
fn await_connections(
    reports: &Receiver<Settled>,
    threads: u32,
    address: SocketAddr,
) -> Result<(), LoadError> {
    let deadline = Instant::now() + RAMP_MAX;
    let (mut open, mut settled, mut why) = (0, 0, None);
    while settled < threads
        && let Ok(report) = reports.recv_timeout(deadline.saturating_duration_since(Instant::now()))
    {
        settled += 1;
        open += report.open;
        why = report.why.or(why);
    }
    if settled == threads && open == 0 {
        let why = why.unwrap_or_else(|| io::ErrorKind::TimedOut.into());
        return Err(LoadError::NoConnection { address, why });
    }
    Ok(())
}

/// One sample of all threads' windows.
fn merge(tallies: &[&Tally], end_ns: u64) -> HttpSample {
    let mut latency = Latencies::new();
    let mut lateness: Option<Latencies> = None;
    let mut errors = BTreeMap::new();
    let mut scheduled: Option<u64> = None;
    for tally in tallies {
        latency.merge(&tally.latency);
        if let Some(count) = tally.scheduled {
            scheduled = Some(scheduled.unwrap_or(0) + count);
            lateness.get_or_insert_default().merge(&tally.lateness);
        }
        for (kind, count) in ERROR_KINDS.into_iter().zip(tally.errors) {
            if count > 0 {
                *errors.entry(kind).or_insert(0) += count;
            }
        }
    }
    HttpSample {
        elapsed_ns: elapsed_ns(tallies),
        requests: Reading::Measured(tallies.iter().map(|tally| tally.answers).sum()),
        errors,
        latency: Reading::Measured(latency),
        printed_quantiles_ns: Vec::new(),
        bytes_in: Reading::Measured(tallies.iter().map(|tally| tally.bytes_in).sum()),
        in_flight: Reading::Measured(tallies.iter().map(|tally| tally.in_flight).sum()),
        connections: Reading::Measured(tallies.iter().map(|tally| tally.connections).sum()),
        scheduled,
        lateness,
        slices: Slices::sum(tallies.iter().map(|tally| &tally.slices), end_ns),
    }
}

/// The time in which all threads together would have counted what they did at the sum of their rates.
fn elapsed_ns(tallies: &[&Tally]) -> u64 {
    let window_ns = |tally: &Tally| tally.end_ns.saturating_sub(tally.begin_ns).max(1) as f64;
    let answers: f64 = tallies.iter().map(|tally| tally.answers as f64).sum();
    let rate_per_ns: f64 = tallies.iter().map(|tally| tally.answers as f64 / window_ns(tally)).sum();
    let mean_ns = tallies.iter().map(|tally| window_ns(tally)).sum::<f64>() / tallies.len().max(1) as f64;
    let elapsed_ns = if answers > 0.0 { answers / rate_per_ns } else { mean_ns };
    elapsed_ns.round() as u64
}

/// A sample of a window that a thread did not report.
fn missing() -> HttpSample {
    const WHY: &str = "a generator thread did not answer";
    HttpSample {
        elapsed_ns: 0,
        requests: Reading::missing(WHY),
        errors: BTreeMap::new(),
        latency: Reading::missing(WHY),
        printed_quantiles_ns: Vec::new(),
        bytes_in: Reading::missing(WHY),
        in_flight: Reading::missing(WHY),
        connections: Reading::missing(WHY),
        scheduled: None,
        lateness: None,
        slices: Vec::new(),
    }
}
