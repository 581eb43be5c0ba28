//! Readiness by epoll.
//!
//! Each socket is added once, edge-triggered for both directions, and never changed. One read and one write
//! per round trip; one clock reading after each read: that stamp ends the latencies of the answers in it and
//! begins those of the requests that follow at once. So latency counts from just before the send call to just
//! after the receive call that brought the last byte, and includes the time that the answer waited in the
//! socket while this thread served others.

use super::channel::Channel;
use super::event_loop::{EventLoop, SENDS_MAX};
use crate::client::{BUFFER_BYTES_MIN, Verdict};
use crate::connections::Stage;
use crate::fault::Fault;
use crate::tls::Context;
use crate::worker::Worker;
use std::io;
use std::time::Duration;
use tare_sys::epoll::{Epoll, Event, Events, Interest};
use tare_sys::time::monotonic_ns;
use tare_sys::{net, slack};

/// The waker's token; connections count from 0.
const WAKER: u64 = u64::MAX;
/// Bytes read at once.
const BUFFER_BYTES: usize = 64 * 1024;
const _: () = assert!(BUFFER_BYTES >= BUFFER_BYTES_MIN);
/// Events taken at once.
const EVENTS: usize = 256;

/// Full buffers that are read from one socket before the others, the timeouts and the caller are served: an answer
/// without end may come as fast as it is read.
const READS_MAX: usize = 16;

/// A worker's sockets and the loop around them.
pub(crate) struct EpollEngine {
    worker: Worker,
    epoll: Epoll,
    /// By connection; those that are being opened or are open.
    channels: Vec<Option<Channel>>,
    tls: Option<Context>,
    buffer: Vec<u8>,
    /// Connections whose sockets have more to read, or take more, and whether the end of their stream follows: no event
    /// reports them again.
    unfinished: Vec<(u32, bool)>,
}

impl EpollEngine {
    /// Opens nothing yet.
    pub(crate) fn new(worker: Worker) -> io::Result<Self> {
        let epoll = Epoll::new()?;
        epoll.add(worker.waker(), Interest::READ, WAKER)?;
        let channels = (0..worker.connections()).map(|_| None).collect();
        let tls = worker.tls();
        let buffer = vec![0; BUFFER_BYTES];
        Ok(EpollEngine { worker, epoll, channels, tls, buffer, unfinished: Vec::new() })
    }

    pub(crate) fn run(&mut self) -> io::Result<()> {
        if self.worker.keeps_time() {
            slack::set_timer_slack_ns(1)?;
        }
        let mut events = Events::with_capacity(EVENTS);
        self.open_waiting();
        loop {
            let is_done = self.unfinished.is_empty();
            self.epoll
                .wait(&mut events, Some(if is_done { self.worker.patience() } else { Duration::ZERO }))?;
            if events.is_empty() {
                self.worker.now_ns = monotonic_ns();
            }
            let mut woken = false;
            for event in events.iter() {
                if event.token == WAKER {
                    woken = true;
                } else {
                    self.serve(event.token as u32, event);
                    if self.worker.keeps_time() {
                        self.send_due()?;
                    }
                }
            }
            self.read_on();
            if self.end_pass(woken)? {
                return Ok(());
            }
        }
    }

    /// Goes on with those that had more to read than one pass takes.
    #[inline]
    fn read_on(&mut self) {
        for (c, end_follows) in std::mem::take(&mut self.unfinished) {
            if self.worker.stage(c) == Stage::Open {
                self.read(c, end_follows);
                self.flush(c);
            }
        }
    }

    /// Something happened to the socket of `c`.
    #[inline]
    fn serve(&mut self, c: u32, event: Event) {
        match self.worker.stage(c) {
            Stage::Open => {
                if let Some(channel) = &mut self.channels[c as usize]
                    && let Err(error) = channel.wake()
                {
                    self.worker.client.broke(c, Fault::broken(&error));
                    return self.reopen(c);
                }
            }
            Stage::Connecting { .. } => self.finish_connecting(c),
            _ => return,
        }
        if self.worker.stage(c) != Stage::Open {
            return;
        }
        if event.readable() {
            self.read(c, event.peer_closed());
        }
        self.flush(c);
    }

    /// Reads until the socket is empty, or enough for one pass. A short read means that it is, unless the end of the stream
    /// follows.
    #[inline]
    fn read(&mut self, c: u32, end_follows: bool) {
        for _ in 0..READS_MAX {
            let Some(channel) = &mut self.channels[c as usize] else { return };
            let client = &mut self.worker.client;
            let restored = client.restore(c, &mut self.buffer);
            let got = channel.recv(&mut self.buffer[restored..], end_follows);
            let now_ns = monotonic_ns();
            self.worker.now_ns = now_ns;
            let verdict = match &got {
                // What was restored was never an answer.
                Ok(0) => client.ended(c, restored > 0, now_ns),
                Ok(fresh) => client.received(c, &self.buffer[..restored + fresh], *fresh, now_ns),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return client.keep(c, &self.buffer[..restored]),
                    _ => client.broke(c, Fault::broken(error)),
                },
            };
            if verdict == Verdict::Reopen {
                return self.reopen(c);
            }
            client.fill(c, now_ns);
            if got.is_ok_and(|fresh| restored + fresh < BUFFER_BYTES) && !end_follows && channel.is_plain() {
                return;
            }
        }
        self.come_back(c, end_follows);
    }

    /// Sends what connection `c` has to send, as far as its socket takes it; the rest goes when it has room.
    #[inline]
    fn flush(&mut self, c: u32) {
        for _ in 0..SENDS_MAX {
            let Some(channel) = &mut self.channels[c as usize] else { return };
            if self.worker.stage(c) != Stage::Open {
                return;
            }
            let sent = match self.worker.client.unsent(c) {
                Ok([]) => return,
                Ok(unsent) => channel.send(unsent),
                Err(_) => {
                    self.worker.client.cannot_be_sent(c);
                    return self.reopen(c);
                }
            };
            match sent {
                Ok(bytes) => self.worker.sent(c, bytes),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => return self.take_last_words(c, &error),
            }
        }
        self.come_back(c, false);
    }

    /// No event may report that `c` has more to read or to send.
    #[cold]
    fn come_back(&mut self, c: u32, end_follows: bool) {
        if !self.unfinished.iter().any(|(known, _)| *known == c) {
            self.unfinished.push((c, end_follows));
        }
    }

    /// The socket takes nothing more: what the server had said before is there to be read.
    #[cold]
    fn take_last_words(&mut self, c: u32, error: &io::Error) {
        self.read(c, true);
        if self.worker.stage(c) == Stage::Open {
            self.worker.client.broke(c, Fault::broken(error));
            self.reopen(c);
        }
    }

    /// Opens waiting connections, as many at once as the ramp allows.
    fn open_waiting(&mut self) {
        while let Some(c) = self.worker.next_to_open() {
            match Channel::begin(&mut self.worker, &self.epoll, self.tls.as_ref(), c) {
                Ok(channel) => self.channels[c as usize] = Some(channel),
                Err(why) => self.worker.refused(c, why),
            }
        }
    }

    fn finish_connecting(&mut self, c: u32) {
        let Some(channel) = &mut self.channels[c as usize] else { return };
        let reached = channel.is_through();
        self.worker.now_ns = monotonic_ns();
        match reached {
            Ok(true) => self.worker.opened(c),
            Ok(false) => return self.worker.reached(),
            Err(why) => {
                self.channels[c as usize] = None;
                self.worker.refused(c, why);
            }
        }
        self.open_waiting();
    }

    /// Closes connection `c`, which the client has given up, and sees that it is opened again.
    #[cold]
    fn reopen(&mut self, c: u32) {
        if let Some(Channel { socket, .. }) = self.channels[c as usize].take()
            && self.worker.resets_on_close()
        {
            // A failure costs a port for a minute, and is no error.
            net::set_reset_on_close(&socket).ok();
        }
        self.worker.gave_up(c);
        self.open_waiting();
    }
}

impl EventLoop for EpollEngine {
    #[inline]
    fn worker(&mut self) -> &mut Worker {
        &mut self.worker
    }

    #[inline]
    fn send_from(&mut self, c: u32) -> io::Result<()> {
        if self.worker.wake_idle(c) {
            self.open_waiting();
        }
        self.flush(c);
        Ok(())
    }

    #[cold]
    fn keep_house(&mut self) {
        let channels = &mut self.channels;
        self.worker.keep_house(|c| channels[c as usize] = None);
        self.open_waiting();
    }
}
