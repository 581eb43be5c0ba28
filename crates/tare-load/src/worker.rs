//! One generator thread: an epoll loop around a [`Session`].
//!
//! Each socket is added once, edge-triggered for both directions, and never changed. One read and one write
//! per round trip; one clock reading after each read: that stamp ends the latencies of the answers in it and
//! begins those of the requests that follow at once. So latency counts from just before the send call to just
//! after the receive call that brought the last byte, and includes the time that the answer waited in the
//! socket while this thread served others.

use crate::pacing::Schedule;
use crate::session::{BUFFER_BYTES_MIN, Session, Verdict};
use crate::shared::Shared;
use crate::spec::{LoadSpec, Pacing};
use crate::tally::Tally;
use std::collections::VecDeque;
use std::io::{self, ErrorKind::WouldBlock};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;
use tare_sys::epoll::{Epoll, Event, Events, Interest};
use tare_sys::net;
use tare_sys::slack;
use tare_sys::time::monotonic_ns;

/// The waker's token; connections count from 0.
const WAKER: u64 = u64::MAX;
/// Bytes read at once.
const BUFFER_BYTES: usize = 64 * 1024;
const _: () = assert!(BUFFER_BYTES >= BUFFER_BYTES_MIN);
/// Events taken at once.
const EVENTS: usize = 256;
/// Connections of one thread that are being opened at once: the ramp, so that accept queues do not overflow.
const CONNECTING_MAX: u32 = 128;
/// Rest after a second failure in a row, doubled with each one more.
const REST_NS_MIN: u64 = 10_000_000;
const REST_NS_MAX: u64 = 1_000_000_000;
/// Between looks at timeouts: at least and at most.
const HOUSEKEEPING_NS_MIN: u64 = 1_000_000;
const HOUSEKEEPING_NS_MAX: u64 = 100_000_000;

/// Where a connection stands.
#[derive(Debug)]
enum Link {
    /// In the queue of those to be opened.
    Waiting,
    /// Failed; to be opened later.
    Resting {
        until_ns: u64,
    },
    Connecting {
        socket: OwnedFd,
        since_ns: u64,
    },
    Open {
        socket: OwnedFd,
    },
}

/// What a thread reports once: every connection was tried.
#[derive(Debug)]
pub(crate) struct Settled {
    /// Those that are open.
    pub(crate) open: u32,
    /// What the last failing one met.
    pub(crate) why: Option<io::Error>,
}

/// One thread's connections and its loop.
pub(crate) struct Worker {
    spec: Arc<LoadSpec>,
    thread: u32,
    address: SocketAddr,
    shared: Arc<Shared>,
    epoll: Epoll,
    session: Session,
    links: Vec<Link>,
    buffer: Vec<u8>,
    waiting: VecDeque<u32>,
    connecting: u32,
    resting: u32,
    /// The last clock reading.
    now_ns: u64,
    housekeeping_ns: u64,
    /// Answers, errors and arrivals of the windows before this one.
    before: (u64, u64, u64),
    settled: Option<Sender<Settled>>,
    refusal: Option<io::Error>,
}

impl Worker {
    /// Thread `thread` of the validated `spec`, with its share of the connections; opens nothing yet.
    pub(crate) fn new(
        spec: Arc<LoadSpec>,
        thread: u32,
        address: SocketAddr,
        shared: Arc<Shared>,
        settled: Sender<Settled>,
    ) -> io::Result<Self> {
        let connections = connections_of(thread, &spec);
        let epoll = Epoll::new()?;
        epoll.add(&shared.waker, Interest::READ, WAKER)?;
        Ok(Worker {
            session: Session::new(&spec, connections, Box::new(Tally::new())),
            links: (0..connections).map(|_| Link::Waiting).collect(),
            buffer: vec![0; BUFFER_BYTES],
            waiting: (0..connections).collect(),
            connecting: 0,
            resting: 0,
            now_ns: monotonic_ns(),
            housekeeping_ns: 0,
            before: (0, 0, 0),
            settled: Some(settled),
            refusal: None,
            spec,
            thread,
            address,
            shared,
            epoll,
        })
    }

    /// Makes load until told to stop.
    ///
    /// # Errors
    /// Only what would make epoll itself useless; whatever happens to a connection is counted.
    pub(crate) fn run(&mut self) -> io::Result<()> {
        if self.spec.pacing != Pacing::Closed {
            slack::set_timer_slack_ns(1)?;
        }
        let mut events = Events::with_capacity(EVENTS);
        self.connect_waiting();
        loop {
            self.epoll.wait(&mut events, Some(self.patience()))?;
            if events.is_empty() {
                self.now_ns = monotonic_ns();
            }
            let mut woken = false;
            for event in events.iter() {
                if event.token == WAKER {
                    woken = true;
                } else {
                    self.serve(event.token as u32, event);
                }
            }
            self.send_due();
            if self.now_ns >= self.housekeeping_ns {
                self.keep_house();
            }
            let tally = &self.session.tally;
            let errors: u64 = tally.errors.iter().sum();
            self.shared.publish(self.before.0 + tally.answers, self.before.1 + errors);
            if woken && self.answer_the_door() {
                return Ok(());
            }
        }
    }

    /// How long nothing needs to be done unless something happens.
    #[inline]
    fn patience(&self) -> Duration {
        if self.spec.busy_poll {
            return Duration::ZERO;
        }
        let next_ns = self.session.schedule.next_due_ns().unwrap_or(u64::MAX).min(self.housekeeping_ns);
        Duration::from_nanos(next_ns.saturating_sub(self.now_ns))
    }

    /// Something happened to the socket of `c`.
    #[inline]
    fn serve(&mut self, c: u32, event: Event) {
        match &self.links[c as usize] {
            Link::Open { .. } => {}
            Link::Connecting { .. } => self.finish_connecting(c),
            Link::Waiting | Link::Resting { .. } => return,
        }
        if event.readable() {
            self.read(c, event.peer_closed());
        }
        self.flush(c);
    }

    /// Reads until the socket is empty. A short read means that it is, unless the end of the stream follows.
    #[inline]
    fn read(&mut self, c: u32, end_follows: bool) {
        while let Link::Open { socket } = &self.links[c as usize] {
            let restored = self.session.restore(c, &mut self.buffer);
            let got = net::recv(socket, &mut self.buffer[restored..]);
            self.now_ns = monotonic_ns();
            let verdict = match got {
                Ok(0) => {
                    // What was restored was never an answer.
                    self.session.ended(c, restored > 0, self.now_ns)
                }
                Ok(fresh) => self.session.received(c, &self.buffer[..restored + fresh], fresh, self.now_ns),
                Err(error) if error.kind() == WouldBlock => {
                    self.session.keep(c, &self.buffer[..restored]);
                    return;
                }
                Err(_) => self.session.broke(c),
            };
            if verdict == Verdict::Reopen {
                return self.reopen(c);
            }
            self.session.fill(c, self.now_ns);
            if got.is_ok_and(|fresh| restored + fresh < BUFFER_BYTES) && !end_follows {
                return;
            }
        }
    }

    /// Sends what connection `c` has to send, as far as its socket takes it; the rest goes when it has room.
    #[inline]
    fn flush(&mut self, c: u32) {
        while let Link::Open { socket } = &self.links[c as usize] {
            let unsent = self.session.unsent(c);
            if unsent.is_empty() {
                return;
            }
            match net::send(socket, unsent) {
                Ok(bytes) => self.session.sent(c, bytes),
                Err(error) if error.kind() == WouldBlock => return,
                Err(_) => {
                    self.session.broke(c);
                    return self.reopen(c);
                }
            }
        }
    }

    /// Hands requests that are due to free connections, each with a stamp of its own.
    #[inline]
    fn send_due(&mut self) {
        if self.session.schedule.next_due_ns().is_some() {
            self.now_ns = monotonic_ns();
        }
        while let Some(c) = self.session.assign(self.now_ns) {
            self.flush(c);
            self.now_ns = monotonic_ns();
        }
    }

    /// Opens waiting connections, as many at once as the ramp allows.
    fn connect_waiting(&mut self) {
        while self.connecting < CONNECTING_MAX
            && let Some(c) = self.waiting.pop_front()
        {
            // Its completion is an event in any case: the socket becomes writable.
            let begun = net::connect(self.address, None).and_then(|(socket, _)| {
                net::set_nodelay(&socket, true)?;
                self.epoll.add(&socket, Interest::READ_WRITE.edge(), u64::from(c))?;
                Ok(socket)
            });
            match begun {
                Ok(socket) => {
                    self.connecting += 1;
                    self.links[c as usize] = Link::Connecting { socket, since_ns: self.now_ns };
                }
                Err(why) => self.refused(c, why),
            }
        }
        if self.connecting == 0
            && self.waiting.is_empty()
            && let Some(settled) = self.settled.take()
        {
            let open = self.session.open_connections();
            // Nobody listens any more when the start was given up.
            settled.send(Settled { open, why: self.refusal.take() }).ok();
        }
    }

    fn finish_connecting(&mut self, c: u32) {
        let Link::Connecting { socket, .. } = std::mem::replace(&mut self.links[c as usize], Link::Waiting)
        else {
            return;
        };
        self.connecting -= 1;
        self.now_ns = monotonic_ns();
        match net::take_error(&socket) {
            Ok(None) => {
                self.links[c as usize] = Link::Open { socket };
                self.session.opened(c, self.now_ns);
            }
            Ok(Some(why)) | Err(why) => self.refused(c, why),
        }
        self.connect_waiting();
    }

    fn refused(&mut self, c: u32, why: io::Error) {
        self.refusal = Some(why);
        self.session.refused(c);
        self.rest(c);
    }

    /// Closes connection `c`, which the session has given up, and sees that it is opened again: at once after
    /// an answer or a first failure.
    #[cold]
    fn reopen(&mut self, c: u32) {
        if self.session.failures(c) > 1 {
            return self.rest(c);
        }
        self.links[c as usize] = Link::Waiting;
        self.waiting.push_back(c);
        self.connect_waiting();
    }

    fn rest(&mut self, c: u32) {
        let doublings = self.session.failures(c).saturating_sub(1).min(16);
        let rest_ns = (REST_NS_MIN << doublings).min(REST_NS_MAX);
        self.links[c as usize] = Link::Resting { until_ns: self.now_ns + rest_ns };
        self.resting += 1;
        self.housekeeping_ns = self.housekeeping_ns.min(self.now_ns + REST_NS_MIN);
    }

    /// Looks after what no event tells of: timeouts, and rests that are over.
    #[cold]
    fn keep_house(&mut self) {
        let timeout_ns = self.spec.timeout_ns;
        for c in 0..self.links.len() as u32 {
            match self.links[c as usize] {
                Link::Open { .. } => self.expire(c),
                Link::Resting { until_ns } if until_ns <= self.now_ns => {
                    self.resting -= 1;
                    self.links[c as usize] = Link::Waiting;
                    self.waiting.push_back(c);
                }
                Link::Connecting { since_ns, .. } if self.now_ns.saturating_sub(since_ns) > timeout_ns => {
                    self.connecting -= 1;
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
        self.connect_waiting();
    }

    fn expire(&mut self, c: u32) {
        if self.session.expire(c, self.now_ns) == Verdict::Reopen {
            self.reopen(c);
        }
    }

    /// Somebody woke this thread: begins, hands over what was counted, or stops (then true).
    #[cold]
    fn answer_the_door(&mut self) -> bool {
        self.shared.waker.drain();
        if self.shared.stopping() {
            return true;
        }
        if matches!(self.session.schedule, Schedule::Held)
            && let Some(begin_ns) = self.shared.begin_ns()
        {
            self.session.schedule = Schedule::new(&self.spec, self.thread, begin_ns);
            // The first window begins when the schedule does, not when this thread was woken for it.
            self.session.tally.begin(begin_ns, begin_ns);
            self.send_due();
        }
        if let Some(origin_ns) = self.shared.asked_ns() {
            self.hand_over(origin_ns);
        }
        false
    }

    fn hand_over(&mut self, origin_ns: u64) {
        let now_ns = monotonic_ns();
        let due = self.session.schedule.due(now_ns);
        let (in_flight, connections) = (self.session.in_flight(now_ns), self.session.open_connections());
        let tally = &mut self.session.tally;
        tally.end_ns = now_ns;
        tally.in_flight = in_flight;
        tally.connections = connections;
        tally.scheduled = due.map(|due| due.scheduled - self.before.2);
        let counted = (tally.answers, tally.errors.iter().sum::<u64>(), tally.scheduled.unwrap_or(0));
        if self.shared.hand_over(&mut self.session.tally) {
            self.session.tally.begin(origin_ns, now_ns);
            let before = self.before;
            self.before = (before.0 + counted.0, before.1 + counted.1, before.2 + counted.2);
        }
    }
}

/// Connections of one thread: even shares, the first threads take what is left over.
pub(crate) fn connections_of(thread: u32, spec: &LoadSpec) -> u32 {
    spec.connections / spec.threads + u32::from(thread < spec.connections % spec.threads)
}
