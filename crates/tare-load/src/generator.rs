//! The generator as its driver sees it: start, watch, cut, stop.

use crate::client::Client;
use crate::engine::{self, Engine};
use crate::error::LoadError;
use crate::files::Table;
use crate::live::Live;
use crate::merge::{merge, missing};
use crate::quota::Quota;
use crate::ramp::Ramp;
use crate::request::Requests;
use crate::shared::Shared;
use crate::spec::{LoadSpec, Pacing, SpecError};
use crate::tally::Tally;
use crate::way::Way;
use crate::worker::Worker;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tare_model::load::TlsCertificate;
use tare_model::trial::HttpSample;
use tare_sys::time::monotonic_ns;
use tare_sys::{affinity, process};

/// Longest that [`Generator::cut`] waits for a thread. They answer within microseconds unless they get no CPU.
const CUT_MAX: Duration = Duration::from_secs(10);
/// Longest that stopping waits for a thread.
const STOP_MAX: Duration = Duration::from_secs(5);
/// Longest that what was sent is waited for before its connections are closed.
const ANSWERED_MAX: Duration = Duration::from_secs(2);
/// How often a thread is looked at whose end is waited for.
const POLL: Duration = Duration::from_micros(200);
/// Load being made by threads of this process, named `tare-load-0`, `tare-load-1` …
///
/// Dropping it stops the load.
#[derive(Debug)]
pub struct Generator {
    spec: Arc<LoadSpec>,
    threads: Vec<Thread>,
    tls_certificate: Option<TlsCertificate>,
}

/// What the threads counted until they were asked; [`Generator::sum`] makes figures of it.
#[derive(Debug)]
#[must_use = "the threads count in these again once they are summed"]
pub struct Cut {
    end_ns: u64,
    tallies: Vec<Option<Box<Tally>>>,
}

#[derive(Debug)]
struct Thread {
    tid: u32,
    shared: Arc<Shared>,
    handle: Option<JoinHandle<io::Result<()>>>,
}

impl Generator {
    /// Opens the connections, then begins to send, on all threads from the same instant.
    ///
    /// # Errors
    /// [`LoadError`] when the spec or its target cannot be used, a thread cannot be made or pinned, or not one
    /// connection could be opened. Connections that fail while others open are counted and tried again.
    pub fn start(spec: &LoadSpec) -> Result<Generator, LoadError> {
        Generator::start_unless(spec, &AtomicBool::new(false))
    }

    /// As [`Generator::start`], unless the user has had enough while the host is looked up or the connections open.
    ///
    /// # Errors
    /// As there, and [`LoadError::Interrupted`] soon after `interrupt` is set.
    pub fn start_unless(spec: &LoadSpec, interrupt: &AtomicBool) -> Result<Generator, LoadError> {
        let program = Arc::new(spec.compile()?);
        let limit = process::raise_open_files_limit().map_err(|why| LoadError::Thread { why })?;
        let table = Table::of(spec, limit)?;
        let way = Arc::new(Way::find_unless(spec, interrupt)?);
        let spec = Arc::new(spec.clone());
        let quotas = spec.requests_max.map(|max| Arc::new(AtomicU64::new(max)));
        let (settled, reports) = mpsc::channel();
        let tls_certificate = way.tls.as_ref().map(|tls| tls.check);
        let mut generator = Generator { spec: Arc::clone(&spec), threads: Vec::new(), tls_certificate };
        for thread in 0..spec.workers.threads {
            let (spec, program, quotas) = (Arc::clone(&spec), Arc::clone(&program), quotas.clone());
            let (way, settled) = (Arc::clone(&way), settled.clone());
            let worker = move |shared| {
                let requests = Requests::new(&spec, &program, thread).map_err(SpecError::from)?;
                let places = spec.connections_of(thread) * spec.lanes();
                let client = Client::new(
                    &spec,
                    places,
                    requests,
                    Quota::new(quotas, spec.pacing != Pacing::Closed),
                    &program.heads(),
                );
                Ok(Worker::new(spec, thread, way, shared, client, settled))
            };
            generator.threads.push(Thread::spawn(&generator.spec, thread, table, worker)?);
        }
        drop(settled);
        let threads = generator.threads.iter().map(|thread| Arc::clone(&thread.shared)).collect();
        Ramp { spec: &spec, way: &way, threads, interrupt }.wait(&reports)?;
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

    /// `https`: whether the server's certificate is verified.
    pub fn tls_certificate(&self) -> Option<TlsCertificate> {
        self.tls_certificate
    }

    /// How far it has come since it began: a few loads, as recent as each thread's last batch of events.
    pub fn live(&self) -> Live {
        self.threads.iter().map(|thread| thread.shared.live()).fold(Live::default(), std::ops::Add::add)
    }

    /// Whether [`LoadSpec::requests_max`] requests were sent and all of them answered or failed; the window then ends
    /// with the last of them, whenever it is cut.
    pub fn finished(&self) -> bool {
        self.threads.iter().all(|thread| thread.shared.finished())
    }

    /// Everything counted since the last cut (the first time: since it began); nothing falls between two cuts.
    ///
    /// Each thread closes its own window when it is woken for this, microseconds apart; `elapsed_ns` is such
    /// that requests over it is the sum of the threads' own rates. If a thread does not answer (it ended by
    /// itself, or did not run for 10 s), the figures are missing.
    pub fn cut(&mut self) -> HttpSample {
        let cut = self.collect();
        self.sum(cut)
    }

    /// The first half of [`Generator::cut`], for whoever has little time for it: nothing that is counted afterwards is in it. Summing
    /// takes longer, up to milliseconds; the next cut must wait for it.
    pub fn collect(&mut self) -> Cut {
        let end_ns = monotonic_ns();
        for thread in &self.threads {
            // A thread that cannot be woken is found missing below.
            thread.shared.ask(end_ns).ok();
        }
        let deadline = Instant::now() + CUT_MAX;
        Cut { end_ns, tallies: self.threads.iter().map(|thread| thread.collect(deadline)).collect() }
    }

    /// The second half of [`Generator::cut`].
    pub fn sum(&mut self, cut: Cut) -> HttpSample {
        let Cut { end_ns, tallies } = cut;
        let sample = match tallies.iter().map(|tally| tally.as_deref()).collect::<Option<Vec<&Tally>>>() {
            Some(all) => merge(&all, &self.thread_ids(), end_ns, &self.spec),
            None => missing(),
        };
        for (thread, tally) in self.threads.iter().zip(tallies) {
            if let Some(tally) = tally {
                thread.shared.give_back(tally);
            }
        }
        sample
    }

    /// Sends nothing more. Who stops several says so to all of them first: each gets its answers in its own turn.
    pub fn end(&self) {
        for thread in &self.threads {
            // `stop` finds one that cannot be woken.
            thread.shared.end().ok();
        }
    }

    /// Ends the load and its threads. What was sent may still be answered, for 2 s at most: a server would work off requests whose
    /// connections are closed in whatever is measured next.
    ///
    /// # Errors
    /// [`LoadError::Thread`] when a thread ended by itself before, or does not end within 5 s.
    pub fn stop(mut self) -> Result<(), LoadError> {
        self.end();
        let deadline = Instant::now() + ANSWERED_MAX;
        while !self.threads.iter().all(Thread::is_done) && Instant::now() < deadline {
            std::thread::sleep(POLL);
        }
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
    /// A thread for the worker that `worker` makes in it: so its memory and its files are the thread's own.
    fn spawn(
        spec: &LoadSpec,
        thread: u32,
        table: Table,
        worker: impl FnOnce(Arc<Shared>) -> Result<Worker, LoadError> + Send + 'static,
    ) -> Result<Thread, LoadError> {
        let failed = |why| LoadError::Thread { why };
        let shared = Arc::new(Shared::new().map_err(failed)?);
        let cpu = spec.workers.cpus.get(thread as usize % spec.workers.cpus.len().max(1)).copied();
        let (started, start) = mpsc::channel();
        let (choice, inner) = (engine::choose(spec), Arc::clone(&shared));
        let body = move || {
            let made = || {
                // Pinned first, so that its memory is allocated from its own node.
                pin(cpu)?;
                table.take(&inner.waker).map_err(failed)?;
                Engine::new(worker(inner)?, choice)
            };
            match made() {
                Ok(engine) => {
                    started.send(Ok(process::gettid())).ok();
                    engine.run()
                }
                Err(error) => started.send(Err(error)).map_err(io::Error::other),
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

    /// Whether all that it sent is answered, or it has ended.
    fn is_done(&self) -> bool {
        self.shared.finished() || self.handle.as_ref().is_none_or(JoinHandle::is_finished)
    }

    fn join(&mut self, deadline: Instant) -> io::Result<()> {
        let Some(handle) = self.handle.take() else { return Ok(()) };
        while !handle.is_finished() {
            if Instant::now() > deadline {
                return Err(io::Error::other("it does not stop"));
            }
            std::thread::sleep(POLL);
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
