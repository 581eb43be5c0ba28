//! One generator thread without its I/O: the life of its connections around a [`Client`], when to look after
//! them, and its side door. An engine drives it: it says what happened to which connection, and does what it
//! is told.

use crate::client::{Client, Verdict};
use crate::endpoint::Endpoint;
use crate::live::Live;
use crate::pacing::Schedule;
use crate::shared::Shared;
use crate::spec::{LoadSpec, Pacing};
use crate::tls::Context;
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;
use tare_model::trial::ErrorKind;
use tare_sys::epoll::Waker;
use tare_sys::net::Connecting;
use tare_sys::time::{monotonic_ns, monotonic_raw_ns, thread_cpu_ns};

/// Connections of one thread that are being opened at once: the ramp, so that accept queues do not overflow.
const CONNECTING_MAX: u32 = 128;
/// Rest after a second failure in a row, doubled with each one more.
const REST_NS_MIN: u64 = 10_000_000;
const REST_NS_MAX: u64 = 1_000_000_000;
/// Between looks at timeouts: at least and at most.
const HOUSEKEEPING_NS_MIN: u64 = 1_000_000;
const HOUSEKEEPING_NS_MAX: u64 = 100_000_000;

/// Where a connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// In the queue of those to be opened.
    Waiting,
    /// Failed; to be opened later.
    Resting {
        until_ns: u64,
    },
    /// Closed until there is a request for it.
    Idle,
    Connecting {
        since_ns: u64,
    },
    Open,
}

/// What a thread reports once: every connection was tried.
#[derive(Debug)]
pub(crate) struct Settled {
    /// Those that are open.
    pub(crate) open: u32,
    /// What the last failing one met.
    pub(crate) why: Option<io::Error>,
}

/// One thread's part of the load.
pub(crate) struct Worker {
    pub(crate) client: Client,
    /// The last clock reading.
    pub(crate) now_ns: u64,
    spec: Arc<LoadSpec>,
    thread: u32,
    /// Places in the client that each connection has: one, or with HTTP/2 one for each stream.
    lanes: u32,
    /// Of those, so many as the server allowed last.
    allowed: u32,
    endpoint: Arc<Endpoint>,
    shared: Arc<Shared>,
    stages: Vec<Stage>,
    waiting: VecDeque<u32>,
    connecting: u32,
    resting: u32,
    housekeeping_ns: u64,
    /// Of the windows before this one.
    before: Live,
    arrivals_before: u64,
    /// When the last of a bounded number of requests was answered.
    finished_ns: Option<u64>,
    settled: Option<Sender<Settled>>,
    refusal: Option<io::Error>,
}

impl Worker {
    /// Thread `thread` of the validated `spec`, with its share of the connections.
    pub(crate) fn new(
        spec: Arc<LoadSpec>,
        thread: u32,
        endpoint: Arc<Endpoint>,
        shared: Arc<Shared>,
        mut client: Client,
        settled: Sender<Settled>,
    ) -> Self {
        let connections = spec.connections_of(thread);
        client.tally.begin_clocks(clocks_ns());
        Worker {
            client,
            now_ns: monotonic_ns(),
            stages: vec![Stage::Waiting; connections as usize],
            waiting: (0..connections).collect(),
            connecting: 0,
            resting: 0,
            housekeeping_ns: 0,
            before: Live::default(),
            arrivals_before: 0,
            finished_ns: None,
            settled: Some(settled),
            refusal: None,
            lanes: spec.lanes(),
            allowed: spec.lanes(),
            spec,
            thread,
            endpoint,
            shared,
        }
    }

    /// What wakes the engine for [`Worker::answer_the_door`].
    pub(crate) fn waker(&self) -> &Waker {
        &self.shared.waker
    }

    pub(crate) fn connections(&self) -> u32 {
        self.stages.len() as u32
    }

    /// The client's places of connection `c`.
    pub(crate) fn lanes(&self, c: u32) -> Range<u32> {
        c * self.lanes..(c + 1) * self.lanes
    }

    #[inline]
    pub(crate) fn stage(&self, c: u32) -> Stage {
        self.stages[c as usize]
    }

    /// Whether requests have times of their own.
    #[inline]
    pub(crate) fn keeps_time(&self) -> bool {
        self.spec.pacing != Pacing::Closed
    }

    /// How long an answer may take.
    #[cfg(feature = "http2")]
    pub(crate) fn timeout_ns(&self) -> u64 {
        self.spec.timeout_ns
    }

    /// Whether connections end with a reset, once they carried all that was asked: a port that waits in `TIME_WAIT` after each
    /// request would soon be missing.
    pub(crate) fn resets_on_close(&self) -> bool {
        !self.spec.keep_alive
    }

    /// How long nothing needs to be done unless something happens.
    #[inline]
    pub(crate) fn patience(&mut self) -> Duration {
        if self.spec.workers.busy_poll && !self.client.is_out_of_turn(self.now_ns) {
            return Duration::ZERO;
        }
        let next_ns = self.client.next_due_ns().unwrap_or(u64::MAX).min(self.housekeeping_ns);
        Duration::from_nanos(next_ns.saturating_sub(self.now_ns))
    }

    /// What to sleep through while others have their turns: so many answers, for so long at most.
    #[inline]
    pub(crate) fn sleep_through(&mut self) -> Option<(u32, Duration)> {
        let (until_ns, answers) = self.client.sleeps_until_ns(self.now_ns)?;
        let until_ns = until_ns.min(self.housekeeping_ns);
        Some((answers, Duration::from_nanos(until_ns.saturating_sub(self.now_ns))))
    }

    /// The next connection to open now, if the ramp allows one more; it counts as being opened from here on.
    pub(crate) fn next_to_open(&mut self) -> Option<u32> {
        while self.connecting < CONNECTING_MAX
            && let Some(c) = self.waiting.pop_front()
        {
            if !self.spec.keep_alive && !self.client.is_held() && !self.client.has_request(c, self.now_ns) {
                self.stages[c as usize] = Stage::Idle;
                continue;
            }
            self.connecting += 1;
            self.stages[c as usize] = Stage::Connecting { since_ns: self.now_ns };
            return Some(c);
        }
        self.settle();
        None
    }

    /// What TLS handshakes begin with, where the target wants them.
    pub(crate) fn tls(&self) -> io::Result<Option<Context>> {
        let target = &self.spec.route.target;
        let context = || Context::new(&target.host(), self.spec.route.tls_resume, self.spec.is_multiplexed());
        target.is_tls().then(context).transpose()
    }

    /// A socket on its way to the server, for connection `c`.
    pub(crate) fn connect(&self, c: u32) -> io::Result<(OwnedFd, Connecting)> {
        // Threads take local addresses in turn as well.
        self.endpoint.connect(c * self.spec.workers.threads + self.thread)
    }

    /// Connection `c` can be used.
    pub(crate) fn opened(&mut self, c: u32) {
        self.opened_in_part(c, self.lanes);
    }

    /// Connection `c` can be used, for so many requests at once.
    pub(crate) fn opened_in_part(&mut self, c: u32, lanes: u32) {
        if let Stage::Connecting { since_ns } = self.stages[c as usize] {
            self.connecting -= 1;
            self.client.tally.connect.record(self.now_ns.saturating_sub(since_ns));
        }
        self.stages[c as usize] = Stage::Open;
        self.shared.opened();
        self.allowed = lanes.min(self.lanes);
        for lane in self.lanes(c).take(lanes as usize) {
            self.client.opened(lane, self.now_ns);
        }
    }

    /// Connection `c` could not be opened.
    pub(crate) fn refused(&mut self, c: u32, why: io::Error) {
        if let Stage::Connecting { .. } = self.stages[c as usize] {
            self.connecting -= 1;
        }
        let kind = match why.kind() {
            // A Unix socket's queue is full: no failure, but nothing to hurry for.
            io::ErrorKind::WouldBlock => None,
            io::ErrorKind::AddrNotAvailable | io::ErrorKind::AddrInUse => Some(ErrorKind::PortsExhausted),
            io::ErrorKind::InvalidData => Some(ErrorKind::Tls),
            // Another protocol.
            io::ErrorKind::Unsupported => Some(ErrorKind::Malformed),
            _ => Some(ErrorKind::Connect),
        };
        if let Some(kind) = kind {
            self.client.refused(self.lanes(c), kind);
        }
        self.refusal = Some(why);
        self.rest(c);
    }

    /// The client has given up connection `c` and the engine closed it: opened again at once after an answer
    /// or a first failure.
    #[cold]
    pub(crate) fn gave_up(&mut self, c: u32) {
        if self.failures(c) > 1 {
            return self.rest(c);
        }
        self.queue(c);
    }

    /// Whether connection `c` was idle, and is to be opened now for the request it was given.
    #[inline]
    pub(crate) fn wake_idle(&mut self, c: u32) -> bool {
        let idle = self.stages[c as usize] == Stage::Idle;
        if idle {
            self.queue(c);
        }
        idle
    }

    fn queue(&mut self, c: u32) {
        self.stages[c as usize] = Stage::Waiting;
        self.waiting.push_back(c);
    }

    /// Failures of `c` in a row, without any answer between them.
    fn failures(&self, c: u32) -> u32 {
        self.lanes(c).map(|lane| self.client.failures(lane)).max().unwrap_or(0)
    }

    fn open_connections(&self) -> u32 {
        self.stages.iter().filter(|stage| **stage == Stage::Open).count() as u32
    }

    /// Requests that connections hold in flight: those that are open, or soon will be again.
    fn room(&self) -> u64 {
        let held = |stage: &&Stage| matches!(stage, Stage::Open | Stage::Connecting { .. } | Stage::Waiting);
        let connections = self.stages.iter().filter(held).count() as u64;
        connections * u64::from(self.allowed * self.spec.depth())
    }

    fn rest(&mut self, c: u32) {
        let doublings = self.failures(c).saturating_sub(1).min(16);
        let rest_ns = (REST_NS_MIN << doublings).min(REST_NS_MAX);
        self.stages[c as usize] = Stage::Resting { until_ns: self.now_ns + rest_ns };
        self.resting += 1;
        self.housekeeping_ns = self.housekeeping_ns.min(self.now_ns + REST_NS_MIN);
    }

    /// Reports once, when every connection was tried.
    fn settle(&mut self) {
        if self.connecting == 0
            && self.waiting.is_empty()
            && let Some(settled) = self.settled.take()
        {
            let open = self.open_connections();
            // Nobody listens any more when the start was given up.
            settled.send(Settled { open, why: self.refusal.take() }).ok();
        }
    }

    #[inline]
    pub(crate) fn is_housekeeping_due(&self) -> bool {
        self.now_ns >= self.housekeeping_ns
    }

    /// Looks after what no event tells of: timeouts, and rests that are over. The engine is told what to `close`, and
    /// asks for what is [to open](Worker::next_to_open) afterwards. Streams of a connection are the engine's to look after.
    #[cold]
    pub(crate) fn keep_house(&mut self, mut close: impl FnMut(u32)) {
        let timeout_ns = self.spec.timeout_ns;
        for c in 0..self.connections() {
            match self.stages[c as usize] {
                Stage::Open
                    if !self.spec.is_multiplexed()
                        && self.client.expire(c, self.now_ns) == Verdict::Reopen =>
                {
                    close(c);
                    self.gave_up(c);
                }
                Stage::Resting { until_ns } if until_ns <= self.now_ns => {
                    self.resting -= 1;
                    self.queue(c);
                }
                Stage::Connecting { since_ns } if self.now_ns.saturating_sub(since_ns) > timeout_ns => {
                    close(c);
                    self.refused(c, io::ErrorKind::TimedOut.into());
                }
                _ => {}
            }
        }
        let mut pause_ns = (timeout_ns / 20).clamp(HOUSEKEEPING_NS_MIN, HOUSEKEEPING_NS_MAX);
        if self.resting > 0 {
            pause_ns = pause_ns.min(REST_NS_MIN);
        }
        self.housekeeping_ns = self.now_ns + pause_ns;
    }

    /// After each round of events: tells how far it has come.
    #[inline]
    pub(crate) fn end_turn(&mut self) {
        self.shared.publish(self.before + self.client.tally.live());
        if self.finished_ns.is_none() && self.client.finished() {
            self.finished_ns = Some(self.now_ns);
            self.shared.finish();
        }
    }

    /// Somebody woke this thread: begins, hands over what was counted, or stops (then true).
    #[cold]
    pub(crate) fn answer_the_door(&mut self) -> bool {
        self.shared.waker.drain();
        if self.shared.stopping() {
            return true;
        }
        if self.client.is_held()
            && let Some(begin_ns) = self.shared.begin_ns()
        {
            let users = self.stages.len() * self.spec.pipeline as usize;
            let schedule = Schedule::new(&self.spec, self.thread, begin_ns, users);
            self.client.begin(schedule, begin_ns);
            // The first window begins when the schedule does, not when this thread was woken for it.
            self.client.tally.begin(begin_ns, begin_ns);
            self.client.tally.begin_clocks(clocks_ns());
        }
        if let Some(origin_ns) = self.shared.asked_ns() {
            self.hand_over(origin_ns);
        }
        false
    }

    fn hand_over(&mut self, origin_ns: u64) {
        let clocks_ns = clocks_ns();
        let now_ns = clocks_ns.0;
        let scheduled = self.client.scheduled(now_ns);
        let (in_flight, connections) = (self.client.in_flight(now_ns), self.open_connections());
        let (allowed, room) = (self.allowed, self.room());
        let tally = &mut self.client.tally;
        tally.end_ns = self.finished_ns.unwrap_or(now_ns).clamp(tally.begin_ns, now_ns);
        tally.end_clocks(clocks_ns);
        tally.in_flight = in_flight;
        tally.connections = connections;
        tally.allowed = allowed;
        tally.room = room;
        tally.scheduled = scheduled.map(|scheduled| scheduled - self.arrivals_before);
        let (counted, arrived) = (tally.live(), tally.scheduled.unwrap_or(0));
        if self.shared.hand_over(&mut self.client.tally) {
            self.client.tally.begin(origin_ns, now_ns);
            self.client.tally.begin_clocks(clocks_ns);
            self.before = self.before + counted;
            self.arrivals_before += arrived;
        }
    }
}

/// Monotonic, raw, and the calling thread's CPU time, read together.
fn clocks_ns() -> (u64, u64, u64) {
    (monotonic_ns(), monotonic_raw_ns(), thread_cpu_ns())
}
