//! One generator thread without its I/O: the life of its connections around a [`Client`], when to look after
//! them, and the requests of other threads to it. An engine drives it: it says what happened to which connection, and does what the
//! worker says.

use crate::client::{Client, Verdict};
use crate::connections::{Connections, Stage};
use crate::fault::Fault;
use crate::live::Live;
use crate::pacing::Schedule;
use crate::shared::Shared;
use crate::spec::{LoadSpec, Pacing};
use crate::tally::AtEnd;
use crate::tls::{Context, Handshakes};
use crate::way::Way;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;
use tare_sys::epoll::Waker;
use tare_sys::net::Connecting;
use tare_sys::time::{monotonic_ns, monotonic_raw_ns, thread_cpu_ns};

/// Rest after a second failure in a row, doubled with each one more.
const REST_NS_MIN: u64 = 10_000_000;
const REST_NS_MAX: u64 = 1_000_000_000;
/// Between two checks of timeouts: at least and at most.
const HOUSEKEEPING_NS_MIN: u64 = 1_000_000;
const HOUSEKEEPING_NS_MAX: u64 = 100_000_000;

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
    lanes: Lanes,
    way: Arc<Way>,
    shared: Arc<Shared>,
    connections: Connections,
    housekeeping_ns: u64,
    /// Of the windows before this one.
    before: Before,
    /// When the last of a bounded number of requests was answered.
    finished_ns: Option<u64>,
    report: Report,
}

/// Places in the client that each connection has: one, or with HTTP/2 one for each stream.
#[derive(Debug, Clone, Copy)]
struct Lanes {
    each: u32,
    /// Of those, so many as the server allowed last.
    allowed: u32,
}

/// What was counted in the windows before this one.
#[derive(Debug, Default)]
struct Before {
    live: Live,
    arrivals: u64,
}

/// What is left to report at the beginning.
#[derive(Debug)]
struct Report {
    settled: Option<Sender<Settled>>,
    refusal: Option<io::Error>,
}

impl Worker {
    /// Thread `thread` of the validated `spec`, with its share of the connections.
    pub(crate) fn new(
        spec: Arc<LoadSpec>,
        thread: u32,
        way: Arc<Way>,
        shared: Arc<Shared>,
        mut client: Client,
        settled: Sender<Settled>,
    ) -> Self {
        let connections = spec.connections_of(thread);
        client.tally.begin_clocks(clocks_ns());
        Worker {
            client,
            now_ns: monotonic_ns(),
            lanes: Lanes { each: spec.lanes(), allowed: spec.lanes() },
            spec,
            thread,
            way,
            shared,
            connections: Connections::new(connections),
            housekeeping_ns: 0,
            before: Before::default(),
            finished_ns: None,
            report: Report { settled: Some(settled), refusal: None },
        }
    }

    /// What wakes the engine for [`Worker::answer_the_door`].
    pub(crate) fn waker(&self) -> &Waker {
        &self.shared.waker
    }

    pub(crate) fn connections(&self) -> u32 {
        self.connections.count()
    }

    /// The client's places of connection `c`.
    pub(crate) fn lanes(&self, c: u32) -> Range<u32> {
        c * self.lanes.each..(c + 1) * self.lanes.each
    }

    #[inline]
    pub(crate) fn stage(&self, c: u32) -> Stage {
        self.connections.stage(c)
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

    /// What to sleep through while other loops have their turns: so many answers, for so long at most.
    #[inline]
    pub(crate) fn sleep_through(&mut self) -> Option<(u32, Duration)> {
        let (until_ns, answers) = self.client.sleeps_until_ns(self.now_ns)?;
        let until_ns = until_ns.min(self.housekeeping_ns);
        Some((answers, Duration::from_nanos(until_ns.saturating_sub(self.now_ns))))
    }

    /// The next connection to open now, if the ramp allows one more; it counts as being opened from here on.
    pub(crate) fn next_to_open(&mut self) -> Option<u32> {
        while let Some(c) = self.connections.next_waiting() {
            if !self.spec.keep_alive && !self.client.is_held() && !self.client.has_request(c, self.now_ns) {
                self.connections.idle(c);
                continue;
            }
            self.connections.connect(c, self.now_ns);
            return Some(c);
        }
        self.settle();
        None
    }

    /// What TLS handshakes begin with, where the target wants them.
    pub(crate) fn tls(&self) -> Option<Context> {
        self.way.tls.as_ref().map(Handshakes::context)
    }

    /// A socket on its way to the server, for connection `c`.
    pub(crate) fn connect(&self, c: u32) -> io::Result<(OwnedFd, Connecting)> {
        // Each thread uses the local addresses one after the other.
        self.way.endpoint.connect(c * self.spec.workers.threads + self.thread)
    }

    /// The server took a connection, and has to agree on TLS or HTTP/2 before it can be used.
    pub(crate) fn reached(&self) {
        self.shared.reached();
    }

    /// Connection `c` can be used.
    pub(crate) fn opened(&mut self, c: u32) {
        self.opened_in_part(c, self.lanes.each);
    }

    /// Connection `c` can be used, for so many requests at once.
    pub(crate) fn opened_in_part(&mut self, c: u32, lanes: u32) {
        if let Some(since_ns) = self.connections.open(c) {
            self.client.tally.times.connect.record(self.now_ns.saturating_sub(since_ns));
        }
        self.shared.opened();
        self.lanes.allowed = lanes.min(self.lanes.each);
        for lane in self.lanes(c).take(lanes as usize) {
            self.client.opened(lane, self.now_ns);
        }
    }

    /// The socket of `c` took `bytes` of what it has to send.
    #[inline]
    pub(crate) fn sent(&mut self, c: u32, bytes: usize) {
        self.client.sent(c, bytes);
        if self.client.uploads() {
            self.now_ns = monotonic_ns();
            self.client.went_on(c, self.now_ns);
        }
    }

    /// Connection `c` could not be opened.
    pub(crate) fn refused(&mut self, c: u32, why: io::Error) {
        if let Some(fault) = Fault::unopened(&why) {
            self.client.refused(self.lanes(c), fault);
        }
        // An immediate retry would find the same.
        self.report.refusal = Some(why);
        self.rest(c);
    }

    /// The client has given up connection `c` and the engine closed it: opened again at once after an answer
    /// or a first failure.
    #[cold]
    pub(crate) fn gave_up(&mut self, c: u32) {
        if self.failures(c) > 1 {
            return self.rest(c);
        }
        self.connections.queue(c);
    }

    /// Whether connection `c` was idle, and is to be opened now for the request it was given.
    #[inline]
    pub(crate) fn wake_idle(&mut self, c: u32) -> bool {
        let idle = self.stage(c) == Stage::Idle;
        if idle {
            self.connections.queue(c);
        }
        idle
    }

    /// Failures of `c` in a row, without any answer between them.
    fn failures(&self, c: u32) -> u32 {
        self.lanes(c).map(|lane| self.client.failures(lane)).max().unwrap_or(0)
    }

    /// Requests that connections hold in flight: those that are open, or soon will be again.
    fn room(&self) -> u64 {
        self.connections.count_held() * u64::from(self.lanes.allowed * self.spec.depth())
    }

    fn rest(&mut self, c: u32) {
        let doublings = self.failures(c).saturating_sub(1).min(16);
        let rest_ns = (REST_NS_MIN << doublings).min(REST_NS_MAX);
        self.connections.rest(c, self.now_ns + rest_ns);
        self.housekeeping_ns = self.housekeeping_ns.min(self.now_ns + REST_NS_MIN);
    }

    /// Reports once, when every connection was tried.
    fn settle(&mut self) {
        if self.connections.are_tried()
            && let Some(settled) = self.report.settled.take()
        {
            let open = self.connections.count_open();
            // Nobody listens any more when the start was given up.
            settled.send(Settled { open, why: self.report.refusal.take() }).ok();
        }
    }

    #[inline]
    pub(crate) fn is_housekeeping_due(&self) -> bool {
        self.now_ns >= self.housekeeping_ns
    }

    /// Looks after what no event reports: timeouts, and rests that are over. It says what the engine is to `close`; the engine
    /// asks for what is [to open](Worker::next_to_open) afterwards. Streams of a connection are the engine's to look after.
    #[cold]
    pub(crate) fn keep_house(&mut self, mut close: impl FnMut(u32)) {
        let timeout_ns = self.spec.timeout_ns;
        for c in 0..self.connections.count() {
            match self.stage(c) {
                Stage::Open
                    if !self.spec.is_multiplexed()
                        && self.client.expire(c, self.now_ns) == Verdict::Reopen =>
                {
                    close(c);
                    self.gave_up(c);
                }
                Stage::Resting { until_ns } if until_ns <= self.now_ns => self.connections.queue(c),
                Stage::Connecting { since_ns } if self.now_ns.saturating_sub(since_ns) > timeout_ns => {
                    close(c);
                    self.refused(c, io::ErrorKind::TimedOut.into());
                }
                _ => {}
            }
        }
        let mut pause_ns = (timeout_ns / 20).clamp(HOUSEKEEPING_NS_MIN, HOUSEKEEPING_NS_MAX);
        if self.connections.any_rests() {
            pause_ns = pause_ns.min(REST_NS_MIN);
        }
        self.housekeeping_ns = self.now_ns + pause_ns;
    }

    /// After each pass: publishes how far it has come.
    #[inline]
    pub(crate) fn end_pass(&mut self) {
        self.shared.publish(self.before.live + self.client.tally.live());
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
        if self.shared.ending() {
            self.client.end();
        }
        if self.client.is_held()
            && let Some(begin_ns) = self.shared.begin_ns()
        {
            let users = self.connections.count() as usize * self.spec.pipeline as usize;
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
        let scheduled = self.client.scheduled(now_ns).map(|scheduled| scheduled - self.before.arrivals);
        let at_end = AtEnd {
            scheduled,
            in_flight: self.client.in_flight(now_ns),
            connections: self.connections.count_open(),
            room: self.room(),
            allowed: self.lanes.allowed,
            redirected_to: self.client.redirected_to(),
        };
        let tally = &mut self.client.tally;
        tally.window.end_ns = self.finished_ns.unwrap_or(now_ns).clamp(tally.window.begin_ns, now_ns);
        tally.end_clocks(clocks_ns);
        tally.at_end = at_end;
        let (counted, arrived) = (tally.live(), tally.at_end.scheduled.unwrap_or(0));
        if self.shared.hand_over(&mut self.client.tally) {
            self.client.tally.begin(origin_ns, now_ns);
            self.client.tally.begin_clocks(clocks_ns);
            self.before.live = self.before.live + counted;
            self.before.arrivals += arrived;
        }
    }
}

/// Monotonic, raw, and the calling thread's CPU time, read together.
fn clocks_ns() -> (u64, u64, u64) {
    (monotonic_ns(), monotonic_raw_ns(), thread_cpu_ns())
}
