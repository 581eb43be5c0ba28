//! Completions by io_uring, for plain connections.
//!
//! A pass is one system call: it gives the kernel all that is to be sent, and comes back when something came. One
//! clock reading after it ends the latencies of all answers that it brought, which were there by then; one before
//! the next begins those of the requests that go with it. So latency includes the time in which the kernel sent the
//! requests of the same pass before, as with epoll it includes the time that the answer waited in the socket while
//! this thread served others.
//!
//! The kernel reports how a send went before it reports what came afterwards, so an answer never overtakes its
//! request. What one connection has to send goes in one send after the other.

use super::event_loop::{EventLoop, SENDS_MAX};
use crate::client::{BUFFER_BYTES_MIN, Verdict};
use crate::connections::Stage;
use crate::fault::Fault;
use crate::spec::CONNECTIONS_MAX;
use crate::worker::Worker;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;
use tare_sys::time::monotonic_ns;
use tare_sys::uring::{Completion, Outcome, Readiness, Ring, RingSizes};
use tare_sys::{net, slack};

/// 128 buffers of 16 KiB: few stay in the caches, and a pass seldom brings more answers.
pub(crate) const SIZES: RingSizes = RingSizes {
    requests: 512,
    completions: 4096,
    buffers: 128,
    buffer_bytes: BUFFER_BYTES as u32,
    outgoing_bytes: 512 * 1024,
};
const BUFFER_BYTES: usize = 16 * 1024;
/// A longer request has a system call of its own: a copy would take more CPU time, and a socket may not take it whole.
const RING_SEND_BYTES_MAX: usize = 16 * 1024;

/// Connections that are closed before the ring is read, at the end.
const CLOSED_AT_ONCE: usize = 128;
/// Longest that is waited for their ends: they take less, and those that do not come with the next ones.
const CLOSING_MAX: Duration = Duration::from_millis(1);

/// A token is a connection's number and, above it, the serial number of its socket, from 1: what is reported of a socket
/// that is closed is not taken for the next one's.
const CONNECTION_BITS: u32 = 20;
const _: () = assert!(CONNECTIONS_MAX <= 1 << CONNECTION_BITS);
const WAKER: u64 = 0;

/// One socket, and what the ring was asked for and has not reported as ended.
struct Link {
    socket: OwnedFd,
    token: u64,
    receiving: bool,
    sending: bool,
    /// Until it is connected or has room.
    watched: bool,
    /// Among those that are served when the pass ends.
    touched: bool,
    /// It takes nothing more; what the server said before comes by itself, and then the end.
    broken: bool,
}

/// A worker's sockets and the loop around them.
pub(crate) struct IoUringEngine {
    // Dropped before the sockets: its requests refer to them.
    ring: Ring,
    worker: Worker,
    /// By connection; those that are being opened or are open.
    links: Vec<Option<Link>>,
    /// Connections that may have something to send, in the order in which something came.
    touched: Vec<u32>,
    /// Serial number of the last socket.
    serial: u64,
    /// The start of an answer's head, and what came behind it.
    buffer: Vec<u8>,
}

impl IoUringEngine {
    /// Opens nothing yet. `ring` is the calling thread's.
    pub(crate) fn new(worker: Worker, ring: Ring) -> Self {
        let connections = worker.connections() as usize;
        IoUringEngine {
            ring,
            worker,
            links: (0..connections).map(|_| None).collect(),
            touched: Vec::with_capacity(connections),
            serial: 0,
            buffer: vec![0; BUFFER_BYTES_MIN + BUFFER_BYTES],
        }
    }

    pub(crate) fn run(&mut self) -> io::Result<()> {
        if self.worker.keeps_time() {
            slack::set_timer_slack_ns(1)?;
        }
        self.ring.watch(self.worker.waker(), Readiness::Readable, WAKER)?;
        self.open_waiting()?;
        loop {
            // In other arms' turns: once all have come, not for each.
            let (answers, patience) =
                self.worker.sleep_through().unwrap_or_else(|| (1, self.worker.patience()));
            self.ring.wait_beyond_sends(answers, Some(patience))?;
            self.worker.now_ns = monotonic_ns();
            let woken = self.take_in()?;
            self.send_out()?;
            if self.end_pass(woken)? {
                return self.close_all();
            }
            self.open_waiting()?;
        }
    }

    /// Serves all completions; whether somebody woke this thread.
    #[inline]
    fn take_in(&mut self) -> io::Result<bool> {
        let mut woken = false;
        while let Some(done) = self.ring.next() {
            match done {
                Completion::Received { token, outcome, more } => self.received(token, outcome, more),
                Completion::Sent { token, outcome } => self.sent(token, outcome)?,
                Completion::Ready { token: WAKER, more } => {
                    woken = true;
                    if !more {
                        self.ring.watch(self.worker.waker(), Readiness::Readable, WAKER)?;
                    }
                }
                Completion::Ready { token, .. } => self.ready(token),
                // This engine opens no listening socket.
                Completion::Accepted { .. } => {}
            }
        }
        Ok(woken)
    }

    #[inline]
    fn received(&mut self, token: u64, outcome: Outcome, more: bool) {
        let Some((c, link)) = find(&mut self.links, token) else { return };
        link.receiving = more;
        let (client, now_ns) = (&mut self.worker.client, self.worker.now_ns);
        let verdict = match outcome.count() {
            // What was restored was never an answer.
            Ok(0) => {
                let in_head = client.restore(c, &mut self.buffer) > 0;
                client.ended(c, in_head, now_ns)
            }
            Ok(_) => {
                let fresh = self.ring.bytes();
                let restored = client.restore(c, &mut self.buffer);
                if restored == 0 {
                    client.received(c, fresh, fresh.len(), now_ns)
                } else {
                    let end = restored + fresh.len();
                    self.buffer[restored..end].copy_from_slice(fresh);
                    client.received(c, &self.buffer[..end], fresh.len(), now_ns)
                }
            }
            Err(_) if outcome.may_begin_again() => Verdict::Keep,
            Err(error) => client.broke(c, Fault::broken(&error)),
        };
        match verdict {
            Verdict::Keep => self.touch(c),
            Verdict::Reopen => self.reopen(c),
        }
    }

    #[inline]
    fn sent(&mut self, token: u64, outcome: Outcome) -> io::Result<()> {
        let Some((c, link)) = find(&mut self.links, token) else { return Ok(()) };
        link.sending = false;
        match outcome.count() {
            Ok(bytes) => self.worker.sent(c, bytes),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                self.cannot_send(c, &error);
                return Ok(());
            }
        }
        if !self.ring.bytes().is_empty() {
            return await_room(&mut self.ring, link);
        }
        if self.worker.client.has_unsent(c) {
            self.touch(c);
        }
        Ok(())
    }

    /// A socket that was watched is connected, or could not be, or has room again.
    fn ready(&mut self, token: u64) {
        let Some((c, link)) = find(&mut self.links, token) else { return };
        link.watched = false;
        if let Stage::Connecting { .. } = self.worker.stage(c) {
            match net::take_error(&link.socket) {
                Ok(None) => self.worker.opened(c),
                Ok(Some(why)) | Err(why) => {
                    close(&mut self.ring, &mut self.links, c);
                    return self.worker.refused(c, why);
                }
            }
        }
        self.touch(c);
    }

    /// The end of the pass serves connection `c`.
    #[inline]
    fn touch(&mut self, c: u32) {
        if let Some(link) = &mut self.links[c as usize]
            && !link.touched
        {
            link.touched = true;
            self.touched.push(c);
        }
    }

    /// Connections to which something happened go on receiving, and send what they then have to.
    #[inline]
    fn send_out(&mut self) -> io::Result<()> {
        if self.touched.is_empty() {
            return Ok(());
        }
        self.worker.now_ns = monotonic_ns();
        for at in 0..self.touched.len() {
            let c = self.touched[at];
            let Some(link) = &mut self.links[c as usize] else { continue };
            link.touched = false;
            if !link.receiving {
                self.ring.receive(&link.socket, link.token)?;
                link.receiving = true;
            }
            self.worker.client.fill(c, self.worker.now_ns);
            self.flush(c)?;
        }
        self.touched.clear();
        Ok(())
    }

    /// Sends what connection `c` has to send, unless something of it is on its way; the rest goes when that is over.
    #[inline]
    fn flush(&mut self, c: u32) -> io::Result<()> {
        for _ in 0..SENDS_MAX {
            let Some(link) = &mut self.links[c as usize] else { return Ok(()) };
            if link.sending || link.watched || link.broken {
                return Ok(());
            }
            let Ok(unsent) = self.worker.client.unsent(c) else {
                self.worker.client.cannot_be_sent(c);
                self.reopen(c);
                return Ok(());
            };
            if unsent.is_empty() {
                return Ok(());
            }
            if unsent.len() <= RING_SEND_BYTES_MAX && self.ring.send(&link.socket, unsent, link.token)? {
                link.sending = true;
                return Ok(());
            }
            match net::send(&link.socket, unsent) {
                Ok(bytes) => self.worker.sent(c, bytes),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return await_room(&mut self.ring, link);
                }
                Err(error) => self.cannot_send(c, &error),
            }
            // That took time: the next requests begin later.
            self.worker.now_ns = monotonic_ns();
        }
        // Others are served before the ring reports that there still is room.
        self.links[c as usize].as_mut().map_or(Ok(()), |link| await_room(&mut self.ring, link))
    }

    /// Whoever is being received from says why, or has answered already.
    #[cold]
    fn cannot_send(&mut self, c: u32, error: &io::Error) {
        match &mut self.links[c as usize] {
            Some(link) if link.receiving => link.broken = true,
            _ => {
                self.worker.client.broke(c, Fault::broken(error));
                self.reopen(c);
            }
        }
    }

    /// Opens waiting connections, as many at once as the ramp allows.
    fn open_waiting(&mut self) -> io::Result<()> {
        while let Some(c) = self.worker.next_to_open() {
            match self.worker.connect(c) {
                Ok((socket, _)) => {
                    self.serial += 1;
                    let token = self.serial << CONNECTION_BITS | u64::from(c);
                    self.ring.watch(&socket, Readiness::Writable, token)?;
                    self.links[c as usize] = Some(Link {
                        socket,
                        token,
                        receiving: false,
                        sending: false,
                        watched: true,
                        touched: false,
                        broken: false,
                    });
                }
                Err(why) => self.worker.refused(c, why),
            }
            self.worker.now_ns = monotonic_ns();
        }
        Ok(())
    }

    /// Closes connection `c`, which the client has given up, and sees that it is opened again.
    #[cold]
    fn reopen(&mut self, c: u32) {
        if let Some(link) = &self.links[c as usize]
            && self.worker.resets_on_close()
        {
            // A failure costs a port for a minute, and is no error.
            net::set_reset_on_close(&link.socket).ok();
        }
        close(&mut self.ring, &mut self.links, c);
        self.worker.gave_up(c);
    }

    /// Ends what connections wait for, few at a time: to end all requests of a ring at once takes the kernel time that
    /// grows as the square of their number, seconds for thousands.
    #[cold]
    fn close_all(&mut self) -> io::Result<()> {
        for first in (0..self.worker.connections()).step_by(CLOSED_AT_ONCE) {
            let mut ends = 0;
            for c in (first..self.worker.connections()).take(CLOSED_AT_ONCE) {
                // The cancelling ends, and so does what it cancels.
                ends += self.links[c as usize].as_ref().map_or(0, |link| 2 * u32::from(link.receiving));
                close(&mut self.ring, &mut self.links, c);
            }
            self.ring.wait_for(ends, CLOSING_MAX)?;
            while self.ring.next().is_some() {}
        }
        Ok(())
    }
}

impl EventLoop for IoUringEngine {
    #[inline]
    fn worker(&mut self) -> &mut Worker {
        &mut self.worker
    }

    #[inline]
    fn send_from(&mut self, c: u32) -> io::Result<()> {
        self.worker.wake_idle(c);
        self.flush(c)
    }

    #[cold]
    fn keep_house(&mut self) {
        let (ring, links) = (&mut self.ring, &mut self.links);
        self.worker.keep_house(|c| close(ring, links, c));
    }
}

/// The connection whose socket `token` stands for, unless that is closed.
#[inline]
fn find(links: &mut [Option<Link>], token: u64) -> Option<(u32, &mut Link)> {
    let c = token & ((1 << CONNECTION_BITS) - 1);
    let link = links.get_mut(c as usize)?.as_mut()?;
    (link.token == token).then_some((c as u32, link))
}

/// The socket is full.
fn await_room(ring: &mut Ring, link: &mut Link) -> io::Result<()> {
    link.watched = true;
    ring.watch(&link.socket, Readiness::Writable, link.token)
}

fn close(ring: &mut Ring, links: &mut [Option<Link>], c: u32) {
    if let Some(link) = links[c as usize].take() {
        ring.close(link.socket, link.token, link.receiving, link.watched);
    }
}
