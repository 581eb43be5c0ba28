//! A window of requests to one server, on a schedule that does not wait for answers.

use super::client::Client;
use super::fault::ProbeFault;
use super::open::Opener;
use super::schedule::instants;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Connections of one probe, at most: what is answered later than so many slots delays the next request, which is sent late, after the
/// window where it must be, and whose time counts from when it was due all the same.
pub const WORKERS: usize = 4;
/// The longest sleep: how soon the user who has had enough is heard.
const SLEEP_MAX: Duration = Duration::from_millis(50);
/// Kinds of failures that are kept apart.
const REASONS_MAX: usize = 20;

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// Requests per second.
    pub rate_hz: f64,
    /// A new connection for each.
    pub fresh: bool,
    /// Longest that each may take.
    pub timeout: Duration,
}

/// What came of a window.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observed {
    /// Response times of the answers, seconds.
    pub times_s: Vec<f64>,
    /// Requests that were not answered within the time limit, from when they were due: those behind them may have had no time to be sent.
    pub timed_out: u64,
    /// Other failures.
    pub failures: BTreeMap<String, u64>,
    /// How late the thread woke, seconds, for each request that waited for nothing else.
    pub own_lateness_s: Vec<f64>,
}

/// Asks one server.
pub struct Prober {
    opener: Opener,
    asked: Asked,
    workers: Vec<Worker>,
}

#[derive(Default)]
struct Worker {
    client: Option<Box<dyn Client>>,
}

impl Prober {
    /// Connects to nobody yet.
    pub fn new(opener: Opener, asked: Asked) -> Prober {
        let asked = Asked { fresh: asked.fresh || opener.is_always_fresh(), ..asked };
        Prober { opener, asked, workers: (0..WORKERS).map(|_| Worker::default()).collect() }
    }

    /// Connects where a connection is kept, and asks once on each: nothing of that is counted. A server that does not answer is
    /// found out in the window.
    pub fn warm_up(&mut self) {
        let (opener, asked) = (&self.opener, self.asked);
        if asked.fresh {
            return;
        }
        std::thread::scope(|scope| {
            for worker in &mut self.workers {
                let warm = move || drop(worker.ask(opener, &asked, Instant::now() + asked.timeout));
                // Without a thread the connection is opened with the first request.
                std::thread::Builder::new().name("tare-probe".into()).spawn_scoped(scope, warm).ok();
            }
        });
    }

    /// Asks for so long, from `begin` on, at instants drawn by `seed`, and waits for what is under way: the time limit longer at most. Ends early
    /// where `stop` is set.
    pub fn window(&mut self, begin: Instant, window: Duration, seed: u64, stop: &AtomicBool) -> Observed {
        let (opener, asked) = (&self.opener, self.asked);
        let count = self.workers.len();
        let mut all = Observed::default();
        std::thread::scope(|scope| {
            let each = self.workers.iter_mut().enumerate().map(|(at, worker)| {
                let due = instants(asked.rate_hz, window, at, count, seed);
                let not_asked = due.len() as u64;
                let ask = move || worker.window(opener, &asked, &due, begin, stop);
                let name = std::thread::Builder::new().name("tare-probe".into());
                (name.spawn_scoped(scope, ask), not_asked)
            });
            let started: Vec<_> = each.collect();
            for (thread, count) in started {
                match thread.map(|thread| thread.join()) {
                    Ok(Ok(observed)) => all.add(observed),
                    _ => all.fail("no thread could be started for it", count),
                }
            }
        });
        all
    }
}

impl Worker {
    fn window(
        &mut self,
        opener: &Opener,
        asked: &Asked,
        due: &[Duration],
        begin: Instant,
        stop: &AtomicBool,
    ) -> Observed {
        // Sleeps end on time, not gathered by the kernel.
        tare_sys::slack::set_timer_slack_ns(1).ok();
        let mut observed = Observed::default();
        for due in due {
            let due = begin + *due;
            let was_free = Instant::now() < due;
            if !sleep_until(due, stop) {
                return observed;
            }
            let now = Instant::now();
            // What the answer before it delayed counts from when it was due; what woke late is the probe's own fault, and is said.
            let from = if was_free { now } else { due };
            if was_free {
                observed.own_lateness_s.push(now.saturating_duration_since(due).as_secs_f64());
            } else if now >= from + asked.timeout {
                // However soon it were answered now, that would be too late.
                observed.timed_out += 1;
                continue;
            }
            match self.ask(opener, asked, from + asked.timeout) {
                Ok(()) => observed.times_s.push(from.elapsed().as_secs_f64()),
                Err(fault) => observed.fail_with(&fault),
            }
        }
        observed
    }

    /// Asks once. A kept connection that was closed while nobody asked is opened anew first.
    fn ask(&mut self, opener: &Opener, asked: &Asked, deadline: Instant) -> Result<(), ProbeFault> {
        let kept = self.client.take().filter(|_| !asked.fresh);
        let kept = kept.and_then(|mut client| client.is_usable().then_some(client));
        if let Some(mut client) = kept {
            match client.ask(deadline) {
                // Closed in the very moment, as a server may close what it has kept: the next connection shows whether it answers.
                Err(ProbeFault::Closed) => {}
                asked => {
                    self.client = asked.is_ok().then_some(client);
                    return asked;
                }
            }
        }
        let mut client = opener.open(deadline)?;
        client.ask(deadline)?;
        self.client = Some(client);
        Ok(())
    }
}

impl Observed {
    fn add(&mut self, other: Observed) {
        self.times_s.extend(other.times_s);
        self.own_lateness_s.extend(other.own_lateness_s);
        self.timed_out += other.timed_out;
        for (why, count) in other.failures {
            self.fail(&why, count);
        }
    }

    fn fail_with(&mut self, fault: &ProbeFault) {
        match fault {
            ProbeFault::TimedOut => self.timed_out += 1,
            other => self.fail(&other.to_string(), 1),
        }
    }

    fn fail(&mut self, why: &str, count: u64) {
        let is_known = self.failures.contains_key(why) || self.failures.len() < REASONS_MAX;
        let why = if is_known { why } else { "other reasons" };
        *self.failures.entry(why.to_owned()).or_default() += count;
    }
}

/// Whether the instant was reached, and not the user's end.
fn sleep_until(instant: Instant, stop: &AtomicBool) -> bool {
    loop {
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        let left = instant.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(SLEEP_MAX));
    }
}
