//! One thread's loop over its connections: what is done with each, whatever [`crate::backend`] moves its bytes.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tare_http::write::Stamp;
use tare_sys::file::send_file;
use tare_sys::net;
use tare_sys::time::monotonic_ns;

use crate::architecture::Intake;
use crate::backend::{Backend, Happening};
use crate::config::Config;
use crate::connection::{Engine, Waiting};
use crate::connections::Admission;
use crate::patience::{Patience, TICK_NS};
use crate::peers::{Outbox, Peer, Peers, Place};
use crate::routes::Routes;
use crate::stop::{Signal, StopHandle};
use crate::tail::Tail;

/// Connections accepted in a row before the open ones are served again.
const ACCEPTS_MAX: usize = 64;
/// Receives in a row from one connection before the others are served.
const ROUNDS_MAX: usize = 4;

/// Bytes of a file in one call: as much as a CPU's own cache holds. Calls of 1 MiB cost a quarter more for each byte.
const SENDFILE_BYTES_MAX: usize = 256 * 1024;

/// Room for output before it has to grow: more than a connection writes before it is held back, but for the last answer.
const OUTPUT_BYTES: usize = 128 * 1024;

/// Source of `/bytes/N` bodies.
static FILLING: [u8; 64 * 1024] = [b'x'; 64 * 1024];

pub(crate) struct EventLoop<B> {
    backend: B,
    config: Arc<Config>,
    accepting: Accepting,
    signal: Arc<Signal>,
    stop: StopHandle,
    engine: Engine,
    peers: Peers,
    /// Connections that were left with more to do, for the fairness of the others.
    again: Vec<Place>,
    batch: Vec<Place>,
    output: Vec<u8>,
    clocks: Clocks,
}

/// Where connections come from, and whether they are let in.
struct Accepting {
    /// `None` once the end has closed it.
    intake: Option<Intake>,
    paused_until_ns: Option<u64>,
}

/// The time, and when each thing is due; CLOCK_MONOTONIC.
#[derive(Default)]
struct Clocks {
    now_ns: u64,
    /// Until then the loop looks for events instead of sleeping.
    busy_until_ns: u64,
    busy_poll_ns: u64,
    stamp_until_ns: u64,
    next_tick_ns: u64,
    drain_until_ns: u64,
}

impl<B: Backend> EventLoop<B> {
    pub(crate) fn new(
        config: Arc<Config>,
        routes: Arc<Routes>,
        intake: Intake,
        signal: Arc<Signal>,
        stop: StopHandle,
    ) -> io::Result<EventLoop<B>> {
        let busy_poll_ns = u64::try_from(config.busy_poll.as_nanos()).unwrap_or(u64::MAX);
        Ok(EventLoop {
            backend: B::new()?,
            engine: Engine::of_server(routes, &config, stop.bodies()),
            config,
            accepting: Accepting { intake: Some(intake), paused_until_ns: None },
            signal,
            stop,
            peers: Peers::default(),
            again: Vec::new(),
            batch: Vec::new(),
            output: Vec::with_capacity(OUTPUT_BYTES),
            clocks: Clocks { busy_poll_ns, drain_until_ns: u64::MAX, ..Clocks::default() },
        })
    }

    pub(crate) fn run(mut self) -> io::Result<()> {
        loop {
            self.watch()?;
            self.backend.wait(self.patience())?;
            self.read_clocks();
            let mut quiet = true;
            while let Some(happening) = self.backend.next(&mut self.peers, &mut self.engine) {
                quiet = false;
                self.clocks.busy_until_ns = self.clocks.now_ns.saturating_add(self.clocks.busy_poll_ns);
                match happening {
                    Happening::Ready(place) => self.drive(place),
                    Happening::Accepted(Ok(fd)) => {
                        self.admit(fd);
                        if self.stop.connections().is_full() {
                            self.pause_accepting();
                        }
                    }
                    Happening::Accepted(Err(_)) => self.pause_accepting(),
                    Happening::Intake => {
                        self.take_in();
                    }
                    Happening::Lost(place) => self.close(place),
                    Happening::Woken => {
                        self.signal.waker.drain();
                    }
                }
            }
            self.go_on();
            // At the end all that has arrived is read before anything counts as late: a slow handler may have kept it waiting.
            if self.clocks.now_ns >= self.clocks.next_tick_ns && (quiet || !self.engine.draining) {
                self.tick();
            }
            if self.stop.is_stopping() && self.drain() {
                return Ok(());
            }
            self.publish();
        }
    }

    /// How long to wait for events: not at all with work left over, to the next check of deadlines, or without end.
    fn patience(&self) -> Option<Duration> {
        if !self.again.is_empty() || self.clocks.now_ns < self.clocks.busy_until_ns {
            Some(Duration::ZERO)
        } else if self.peers.len() == 0 && self.accepting.paused_until_ns.is_none() && !self.engine.draining {
            None
        } else {
            Some(Duration::from_nanos(
                self.clocks.next_tick_ns.saturating_sub(self.clocks.now_ns).clamp(1, TICK_NS),
            ))
        }
    }

    /// Once a turn: the monotonic clock; and the wall clock when its second is over.
    #[inline]
    fn read_clocks(&mut self) {
        self.clocks.now_ns = monotonic_ns();
        if self.clocks.now_ns >= self.clocks.stamp_until_ns {
            let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            self.engine.stamp = Stamp::new(wall.as_secs());
            self.clocks.stamp_until_ns = self.clocks.now_ns + 1_000_000_000 - u64::from(wall.subsec_nanos());
        }
    }

    fn publish(&mut self) {
        self.engine.counts.open = self.peers.len() as u64;
        self.signal.counters.publish(&self.engine.counts);
    }

    #[inline]
    fn watch(&mut self) -> io::Result<()> {
        let Some(intake) = &self.accepting.intake else { return Ok(()) };
        let open = self.accepting.paused_until_ns.is_none() && !self.engine.draining;
        self.backend.watch(intake, open, &self.signal.waker)
    }

    /// Takes in what waits in the intake; whether nothing is left there.
    fn take_in(&mut self) -> bool {
        for _ in 0..ACCEPTS_MAX {
            if self.stop.connections().is_full() {
                self.pause_accepting();
                return false;
            }
            let accepted = match &self.accepting.intake {
                None => return true,
                Some(Intake::Listener(listener)) => net::accept(listener),
                Some(Intake::Queue(queue)) => {
                    // Drained before the queue is emptied: what comes in between wakes again.
                    queue.waker.drain();
                    queue.pop().ok_or_else(|| io::ErrorKind::WouldBlock.into())
                }
            };
            match accepted {
                Ok(fd) => self.admit(fd),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return true,
                // The peer gave up while it waited.
                Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => {}
                // Out of descriptors or memory: trying at once would spin.
                Err(_) => {
                    self.pause_accepting();
                    return false;
                }
            }
        }
        // Level-triggered listeners report again; a queue's eventfd was drained.
        if let Some(Intake::Queue(queue)) = &self.accepting.intake {
            let _ = queue.waker.wake();
        }
        false
    }

    fn pause_accepting(&mut self) {
        self.engine.counts.accept_pauses += 1;
        self.accepting.paused_until_ns = Some(self.clocks.now_ns + TICK_NS);
    }

    fn admit(&mut self, fd: OwnedFd) {
        self.engine.counts.accepted += 1;
        let admission = self.stop.connections().enter();
        let deadline_ns =
            Patience::Idle.deadline_ns(self.clocks.now_ns, &self.config.timeouts, self.engine.draining);
        let place = self.peers.insert(Peer::new(fd, admission, &self.engine), deadline_ns);
        let Some(peer) = self.peers.get(place) else { return };
        if self.backend.admit(place, peer).is_err() {
            return self.close(place);
        }
        if admission == Admission::TurnedAway {
            self.engine.counts.turned_away += 1;
            peer.turn_away(&mut self.output, &mut self.engine);
            if self.send_output(place) {
                self.drive(place);
            }
        }
    }

    /// Goes on with the connections that were interrupted for fairness.
    fn go_on(&mut self) {
        std::mem::swap(&mut self.again, &mut self.batch);
        while let Some(place) = self.batch.pop() {
            self.drive(place);
        }
    }

    /// Does for a connection all that can be done without waiting.
    fn drive(&mut self, place: Place) {
        for _ in 0..ROUNDS_MAX {
            match self.step(place) {
                Step::More => {}
                Step::Wait => return self.set_patience(place),
                Step::Close => return self.close(place),
            }
        }
        self.set_patience(place);
        self.again.push(place);
    }

    /// One step: send what is left, answer what is there, or receive.
    #[inline]
    fn step(&mut self, place: Place) -> Step {
        let Some(peer) = self.peers.get(place) else { return Step::Wait };
        if peer.asked.send {
            return Step::Wait;
        }
        if peer.has_unsent() {
            return self.flush(place);
        }
        if peer.connection.is_held_back() {
            peer.resume(&mut self.output, &mut self.engine);
            return self.sent_step(place);
        }
        if peer.waiting() == Waiting::End && !peer.lingering {
            if peer.ended || net::shutdown_write(&peer.fd).is_err() {
                return Step::Close;
            }
            peer.lingering = true;
        }
        if peer.ended {
            return Step::Close;
        }
        if !peer.readable {
            return Step::Wait;
        }
        match self.backend.receive(place, peer, &mut self.engine.pool) {
            Ok([]) => {
                peer.ended = true;
                Step::More
            }
            Ok(_) if peer.lingering => Step::More,
            Ok(bytes) => {
                peer.receive(bytes, &mut self.output, &mut self.engine);
                self.sent_step(place)
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                peer.readable = false;
                Step::More
            }
            Err(_) => Step::Close,
        }
    }

    /// Sends the output; what to do next.
    #[inline]
    fn sent_step(&mut self, place: Place) -> Step {
        if !self.send_output(place) {
            return Step::Close;
        }
        let Some(peer) = self.peers.get(place) else { return Step::Wait };
        if peer.is_at_rest() { Step::Wait } else { Step::More }
    }

    /// Sends the output; what the socket does not take goes to the outbox. False where the connection is lost.
    #[inline]
    fn send_output(&mut self, place: Place) -> bool {
        let Some(peer) = self.peers.get(place) else { return true };
        if self.output.is_empty() {
            return true;
        }
        // The head of a large body waits in the kernel for the first of it, so that they travel together.
        let more = peer.connection.tail.left() > 0;
        let sent = match self.backend.send(place, peer, &self.output, more) {
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => 0,
            Err(_) => {
                self.output.clear();
                return false;
            }
        };
        self.engine.counts.sent_bytes += sent as u64;
        if sent < self.output.len() {
            peer.outbox = Outbox::new(self.engine.pool.copy_of(&self.output[sent..]));
        }
        self.output.clear();
        true
    }

    /// Sends from the outbox, then from the tail.
    fn flush(&mut self, place: Place) -> Step {
        let Some(peer) = self.peers.get(place) else { return Step::Wait };
        let tail_left = peer.connection.tail.left();
        let result = if !peer.outbox.is_empty() {
            let piece = peer.outbox.left();
            let send = if tail_left > 0 { net::send_more } else { net::send };
            (piece.len(), send(&peer.fd, piece))
        } else {
            let most = usize::try_from(tail_left).unwrap_or(usize::MAX);
            match &peer.connection.tail {
                Tail::Fill { .. } => {
                    let piece = &FILLING[..FILLING.len().min(most)];
                    (piece.len(), net::send(&peer.fd, piece))
                }
                Tail::File { file, offset, .. } => {
                    let wanted = most.min(SENDFILE_BYTES_MAX);
                    (wanted, send_file(&peer.fd, file, *offset, wanted))
                }
                Tail::None => return Step::More,
            }
        };
        let (wanted, sent) = match result {
            // The file is shorter than was promised: only the end of the connection can tell.
            (_, Ok(0)) => return Step::Close,
            (wanted, Ok(n)) => (wanted, n),
            (_, Err(e)) if e.kind() == io::ErrorKind::WouldBlock => return self.await_room(place),
            (_, Err(_)) => return Step::Close,
        };
        self.engine.counts.sent_bytes += sent as u64;
        peer.sent_since_deadline += sent;
        if !peer.outbox.is_empty() {
            peer.outbox.advance(sent, &mut self.engine.pool);
        } else {
            peer.connection.tail.advance(sent as u64);
        }
        // A short send filled the socket.
        if sent < wanted { self.await_room(place) } else { Step::More }
    }

    fn await_room(&mut self, place: Place) -> Step {
        let Some(peer) = self.peers.get(place) else { return Step::Wait };
        match self.backend.await_room(place, peer) {
            Ok(()) => Step::Wait,
            Err(_) => Step::Close,
        }
    }

    /// Sets the deadline by what the connection waits for now.
    #[inline]
    fn set_patience(&mut self, place: Place) {
        let Some(peer) = self.peers.get(place) else { return };
        if let Some(patience) = peer.renew_patience() {
            let deadline_ns =
                patience.deadline_ns(self.clocks.now_ns, &self.config.timeouts, self.engine.draining);
            self.peers.set_deadline(place, deadline_ns);
        }
    }

    fn close(&mut self, place: Place) {
        let Some(peer) = self.peers.remove(place) else { return };
        self.stop.connections().leave(peer.admission);
        self.engine.pool.give(peer.outbox.bytes);
        self.engine.pool.give(peer.aside);
        peer.connection.retire(&mut self.engine.pool);
        self.backend.close(place, peer.fd, peer.asked);
    }

    /// Every quarter of a second: late connections, and accepting again after a pause.
    fn tick(&mut self) {
        self.clocks.next_tick_ns = self.clocks.now_ns + TICK_NS;
        if self.accepting.paused_until_ns.is_some_and(|until| self.clocks.now_ns >= until) {
            self.accepting.paused_until_ns = None;
            // What came meanwhile was reported before.
            self.take_in();
        }
        let mut from = 0;
        while let Some(place) = self.peers.next_late(from, self.clocks.now_ns) {
            from = place.index + 1;
            self.time_out(place);
        }
    }

    fn time_out(&mut self, place: Place) {
        let Some(peer) = self.peers.get(place) else { return };
        if peer.patience == Patience::Write || peer.patience == Patience::Linger {
            self.engine.counts.timed_out += 1;
            return self.close(place);
        }
        // An idle connection ends without an answer. A request that has begun gets one, even if it came since the
        // last event.
        if peer.patience == Patience::Idle {
            let before = self.engine.counts.received_bytes;
            peer.readable = true;
            self.drive(place);
            if self.engine.counts.received_bytes != before {
                return;
            }
        } else {
            self.engine.counts.timed_out += 1;
        }
        let Some(peer) = self.peers.get(place) else { return };
        peer.time_out(&mut self.output, &mut self.engine);
        match self.send_output(place) {
            true => self.drive(place),
            false => self.close(place),
        }
    }

    /// The graceful end, called each turn once it has begun; whether it is over.
    fn drain(&mut self) -> bool {
        if !self.engine.draining {
            self.engine.draining = true;
            // The turn may have been a long one; what is at rest gets its time from now on.
            self.clocks.now_ns = monotonic_ns();
            self.clocks.drain_until_ns =
                self.clocks.now_ns.saturating_add(self.config.timeouts.drain.as_nanos() as u64);
        }
        if self.accepting.intake.is_some() && self.accepting.paused_until_ns.is_none() {
            // All that the kernel has accepted is taken in: closing a listener resets what waits in its queue.
            let emptied = self.take_in();
            let more_may_come =
                matches!(&self.accepting.intake, Some(Intake::Queue(queue)) if !queue.is_finished());
            if emptied && !more_may_come && self.backend.intake_rests() {
                self.accepting.intake = None;
            }
            // What arrived before the end is answered; what is at rest after that is closed.
            self.visit_all();
        }
        let done = self.accepting.intake.is_none() && self.peers.len() == 0;
        let over = done || self.clocks.now_ns >= self.clocks.drain_until_ns;
        if over {
            self.publish();
        }
        over
    }

    fn visit_all(&mut self) {
        let mut from = 0;
        while let Some(place) = self.peers.next_open(from) {
            from = place.index + 1;
            if let Some(peer) = self.peers.get(place) {
                peer.readable = true;
            }
            self.drive(place);
        }
    }
}

/// What to do with a connection after a step.
enum Step {
    /// Another step may get further.
    More,
    /// Nothing, until the socket is ready or a deadline passes.
    Wait,
    /// End it.
    Close,
}
