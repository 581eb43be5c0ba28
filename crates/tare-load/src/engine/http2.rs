//! HTTP/2 over sockets that epoll reports.
//!
//! Each stream is a place of the client with one request in flight. An answer's latency ends when the piece that
//! brought its last frame came; all that came together is taken in before the first of it is read.

use super::channel::Channel;
use super::event_loop::EventLoop;
use crate::client::Verdict;
use crate::connections::Stage;
use crate::fault::Fault;
use crate::http2::{Asks, Exchange, Failure, Link, Sent, Transport, Wire, Woken, is_broken};
use crate::tls::Context as TlsContext;
use crate::worker::Worker;
use std::io;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tare_http::response::Answer;
use tare_model::trial::ErrorKind;
use tare_sys::epoll::{Epoll, Event, Events, Interest};
use tare_sys::time::monotonic_ns;
use tare_sys::{net, slack};

/// The waker's token; connections count from 0.
const WAKER: u64 = u64::MAX;
/// Events taken at once.
const EVENTS: usize = 256;

/// A connected socket.
struct Carrier {
    channel: Channel,
    /// The end of the stream is known to follow.
    end_follows: bool,
}

impl Transport for Carrier {
    fn recv(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.channel.recv(buffer, self.end_follows)
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.channel.send(bytes);
        // What was said before is there, though no event has reported it yet.
        self.end_follows |= sent.as_ref().is_err_and(is_broken);
        sent
    }
}

/// What a connection's socket carries.
enum Peer {
    /// Connecting, or shaking hands.
    Channel(Channel),
    Link {
        link: Link<Carrier>,
        /// Whether any request was answered on it.
        answered: bool,
    },
}

impl Peer {
    fn link(&mut self) -> Option<&mut Link<Carrier>> {
        match self {
            Peer::Link { link, .. } => Some(link),
            Peer::Channel(_) => None,
        }
    }
}

/// A worker's connections, their streams, and the loop around them.
pub(crate) struct Http2Engine {
    worker: Worker,
    epoll: Epoll,
    tls: Option<TlsContext>,
    asks: Asks,
    /// By connection; those that are being opened or are open.
    peers: Vec<Option<Peer>>,
    /// By place; those with a request in flight.
    exchanges: Vec<Option<Exchange>>,
    /// Requests that the server allowed no stream for yet, by connection.
    held_back: Vec<Vec<u32>>,
    /// Connections by their number, places by theirs behind those.
    woken: Woken,
}

impl Http2Engine {
    /// Opens nothing yet.
    pub(crate) fn new(worker: Worker) -> io::Result<Self> {
        let epoll = Epoll::new()?;
        epoll.add(worker.waker(), Interest::READ, WAKER)?;
        let connections = worker.connections();
        let places = worker.lanes(connections).start;
        let tls = worker.tls();
        Ok(Http2Engine {
            epoll,
            asks: Asks::new(tls.is_some(), worker.client.upload()),
            tls,
            peers: (0..connections).map(|_| None).collect(),
            exchanges: (0..places).map(|_| None).collect(),
            held_back: vec![Vec::new(); connections as usize],
            woken: Woken::new(connections + places),
            worker,
        })
    }

    pub(crate) fn run(&mut self) -> io::Result<()> {
        if self.worker.keeps_time() {
            slack::set_timer_slack_ns(1)?;
        }
        let mut events = Events::with_capacity(EVENTS);
        self.open_waiting();
        loop {
            let patience = if self.woken.len() > 0 { Duration::ZERO } else { self.worker.patience() };
            self.epoll.wait(&mut events, Some(patience))?;
            self.worker.now_ns = monotonic_ns();
            let mut called = false;
            for event in events.iter() {
                if event.token == WAKER {
                    called = true;
                } else {
                    self.serve(event.token as u32, event);
                    self.go_on()?;
                }
            }
            self.go_on()?;
            if self.end_pass(called)? {
                return Ok(());
            }
        }
    }

    /// Something happened to the socket of `c`.
    fn serve(&mut self, c: u32, event: Event) {
        match (self.worker.stage(c), &mut self.peers[c as usize]) {
            (Stage::Connecting { .. }, Some(Peer::Channel(_))) => self.finish_connecting(c),
            (Stage::Connecting { .. } | Stage::Open, Some(Peer::Link { link, .. })) => {
                let carrier = &mut link.wire().metered().transport;
                carrier.end_follows |= event.peer_closed();
                // An error of its send shows when it is to send more.
                carrier.channel.wake().ok();
                self.woken.wake(c);
            }
            _ => {}
        }
    }

    /// Polls what is woken now; what falls due meanwhile is sent. What this wakes is for the next pass: on a fast connection
    /// there is always more, and the other connections, timeouts and the caller wait too.
    fn go_on(&mut self) -> io::Result<()> {
        for _ in 0..self.woken.len() {
            let Some(number) = self.woken.next() else { break };
            match number.checked_sub(self.worker.connections()) {
                None => match self.worker.stage(number) {
                    Stage::Open => self.advance(number),
                    Stage::Connecting { .. } => self.greet(number),
                    _ => {}
                },
                Some(place) => self.listen(place),
            }
            if self.worker.keeps_time() {
                self.send_due()?;
            }
        }
        Ok(())
    }

    /// Takes in what came on connection `c`, and sends what is to be sent.
    fn advance(&mut self, c: u32) {
        let Some(link) = self.peers[c as usize].as_mut().and_then(Peer::link) else { return };
        let waker = self.woken.waker(c);
        let over = link.advance(&mut Context::from_waker(&waker)).is_ready();
        let mut metered = link.wire().metered();
        let (bytes_in, bytes_out) = (metered.bytes_in, metered.bytes_out);
        (metered.bytes_in, metered.bytes_out) = (0, 0);
        drop(metered);
        self.worker.client.passed(bytes_in, bytes_out);
        if over {
            return self.end(c);
        }
        for place in std::mem::take(&mut self.held_back[c as usize]) {
            self.send(place);
        }
        if self.worker.client.uploads() {
            // Their wakers may be lost: `Upload::poll` says why.
            let is_uploading =
                |place: &u32| self.exchanges[*place as usize].as_ref().is_some_and(Exchange::is_uploading);
            let places = self.worker.lanes(c).filter(is_uploading);
            places.for_each(|place| self.woken.wake(self.worker.connections() + place));
        }
    }

    /// Goes on with the answer at `place`.
    fn listen(&mut self, place: u32) {
        let c = self.connection_of(place);
        let Some(exchange) = &mut self.exchanges[place as usize] else { return };
        let Some(link) = self.peers[c as usize].as_mut().and_then(Peer::link) else { return };
        let now_ns = link.wire().metered().received_ns;
        let waker = self.woken.waker(self.worker.connections() + place);
        let client = &mut self.worker.client;
        let came = exchange.poll(&mut Context::from_waker(&waker), client.listener(place));
        if exchange.went_on() {
            client.went_on(place, monotonic_ns());
        }
        match came {
            Poll::Pending if exchange.has_begun() => client.began(place, now_ns),
            Poll::Pending => {}
            Poll::Ready(outcome) => {
                if let Some(location) = exchange.location.take() {
                    client.saw_redirect(location.as_bytes());
                }
                self.exchanges[place as usize] = None;
                match self.settle(c, place, outcome, now_ns) {
                    Verdict::Keep => self.send(place),
                    Verdict::Reopen => self.reopen(c),
                }
            }
        }
    }

    /// Counts what came of the request of `place` on connection `c`, and takes the next one.
    fn settle(&mut self, c: u32, place: u32, outcome: Result<Answer, Failure>, now_ns: u64) -> Verdict {
        let client = &mut self.worker.client;
        match outcome {
            Ok(answer) => {
                if let Some(Peer::Link { answered, .. }) = &mut self.peers[c as usize] {
                    *answered = true;
                }
                let verdict = client.was_answered(place, answer, now_ns);
                if verdict == Verdict::Keep {
                    client.fill(place, now_ns);
                }
                return verdict;
            }
            // The connection takes no more: this waits for the next one.
            Err(Failure::Untouched) => client.interrupted(place),
            Err(Failure::Lost(fault)) => {
                client.lost(place, fault);
                client.opened(place, now_ns);
            }
        }
        Verdict::Keep
    }

    /// Sends the request of `place`, if it has one that is not on its way.
    fn send(&mut self, place: u32) {
        let c = self.connection_of(place);
        let Some(link) = self.peers[c as usize].as_mut().and_then(Peer::link) else { return };
        let client = &mut self.worker.client;
        if !client.has_unsent(place) {
            return;
        }
        let waker = self.woken.waker(c);
        // The head of an upload, whose body stays in its file, or all of another request.
        let Ok(bytes) = client.unsent(place) else {
            client.cannot_be_sent(place);
            return self.reopen(c);
        };
        let ask = self.asks.of(bytes);
        let sent = match ask {
            Some(ask) => link.send(ask, &mut Context::from_waker(&waker)),
            None => {
                client.lost(place, Fault::malformed("a request that HTTP/2 cannot carry"));
                client.opened(place, self.worker.now_ns);
                self.hold_back(c, place);
                return self.woken.wake(c);
            }
        };
        match sent {
            Sent::Under(exchange) => {
                client.gave_away(place);
                self.exchanges[place as usize] = Some(exchange);
                self.woken.wake(self.worker.connections() + place);
                self.woken.wake(c);
            }
            Sent::NotYet => self.hold_back(c, place),
            Sent::Never => client.interrupted(place),
        }
    }

    /// `place` is tried again when its connection advances next; one that timed out meanwhile may be there already.
    fn hold_back(&mut self, c: u32, place: u32) {
        let held_back = &mut self.held_back[c as usize];
        if !held_back.contains(&place) {
            held_back.push(place);
        }
    }

    fn connection_of(&self, place: u32) -> u32 {
        place / self.worker.lanes(0).end
    }

    /// Opens waiting connections, as many at once as the ramp allows.
    fn open_waiting(&mut self) {
        while let Some(c) = self.worker.next_to_open() {
            match Channel::begin(&mut self.worker, &self.epoll, self.tls.as_ref(), c) {
                Ok(channel) => self.peers[c as usize] = Some(Peer::Channel(channel)),
                Err(why) => self.worker.refused(c, why),
            }
        }
    }

    fn finish_connecting(&mut self, c: u32) {
        let Some(Peer::Channel(mut channel)) = self.peers[c as usize].take() else { return };
        let reached = channel.is_through();
        let speaks = channel.tls.as_ref().is_none_or(|tls| tls.chose_http2());
        match reached {
            Ok(false) => {
                self.worker.reached();
                self.peers[c as usize] = Some(Peer::Channel(channel));
            }
            Ok(true) if speaks => {
                let carrier = Carrier { channel, end_follows: false };
                let link = Link::new(Wire::new(carrier), self.worker.lanes(0).end);
                self.peers[c as usize] = Some(Peer::Link { link, answered: false });
                self.greet(c);
            }
            Ok(true) => {
                let why = "the server did not choose HTTP/2 in the TLS handshake (ALPN)";
                self.refuse(c, io::Error::new(io::ErrorKind::Unsupported, why));
            }
            Err(why) => self.refuse(c, why),
        }
    }

    /// Goes on greeting on connection `c`.
    fn greet(&mut self, c: u32) {
        let Some(link) = self.peers[c as usize].as_mut().and_then(Peer::link) else { return };
        let waker = self.woken.waker(c);
        match link.greet(&mut Context::from_waker(&waker)) {
            Poll::Pending => self.worker.reached(),
            Poll::Ready(Ok(streams)) => {
                self.worker.now_ns = monotonic_ns();
                self.worker.opened_in_part(c, streams);
                for place in self.worker.lanes(c) {
                    self.send(place);
                }
                self.advance(c);
                self.open_waiting();
            }
            Poll::Ready(Err(why)) => self.refuse(c, why),
        }
    }

    fn refuse(&mut self, c: u32, why: io::Error) {
        self.peers[c as usize] = None;
        self.worker.now_ns = monotonic_ns();
        self.worker.refused(c, why);
        self.open_waiting();
    }

    /// Connection `c` is over: every stream reports what became of its request.
    #[cold]
    fn end(&mut self, c: u32) {
        let Some(link) = self.peers[c as usize].as_mut().and_then(Peer::link) else { return };
        let now_ns = link.wire().metered().received_ns;
        let mut context = Context::from_waker(Waker::noop());
        for place in self.worker.lanes(c) {
            let client = &mut self.worker.client;
            if let Some(mut exchange) = self.exchanges[place as usize].take() {
                match exchange.poll(&mut context, client.listener(place)) {
                    Poll::Ready(Ok(answer)) => drop(client.was_answered(place, answer, now_ns)),
                    Poll::Ready(Err(Failure::Untouched)) => {}
                    Poll::Ready(Err(Failure::Lost(fault))) => client.lost(place, fault),
                    Poll::Pending => client.lost(place, ErrorKind::Io),
                }
            }
        }
        self.reopen(c);
    }

    /// Closes connection `c` and sees that it is opened again; what is in flight then goes first.
    #[cold]
    fn reopen(&mut self, c: u32) {
        let Some(Peer::Link { link, answered }) = self.peers[c as usize].take() else { return };
        for place in self.worker.lanes(c) {
            self.exchanges[place as usize] = None;
            self.worker.client.disconnected(place, answered);
        }
        self.held_back[c as usize].clear();
        if self.worker.resets_on_close() {
            // A failure costs a port for a minute, and is no error.
            net::set_reset_on_close(&link.wire().metered().transport.channel.socket).ok();
        }
        drop(link);
        self.worker.now_ns = monotonic_ns();
        self.worker.gave_up(c);
        self.open_waiting();
    }

    /// Fails what has waited too long on connection `c`, and the connection where nothing came on it meanwhile.
    fn expire(&mut self, c: u32) {
        let now_ns = self.worker.now_ns;
        let late =
            |engine: &mut Self, place: &u32| engine.worker.client.expire(*place, now_ns) == Verdict::Reopen;
        let places: Vec<u32> = self.worker.lanes(c).filter(|place| late(self, place)).collect();
        let Some(link) = self.peers[c as usize].as_mut().and_then(Peer::link) else { return };
        if places.is_empty() {
            return;
        }
        let metered = link.wire().metered();
        // A server that takes a body may have nothing to say.
        let moved_ns = if self.worker.client.uploads() { metered.sent_ns } else { 0 };
        let silent_ns = now_ns.saturating_sub(metered.received_ns.max(moved_ns));
        drop(metered);
        if silent_ns > self.worker.timeout_ns() {
            return self.reopen(c);
        }
        for place in places {
            // Dropped, its stream is reset.
            self.exchanges[place as usize] = None;
            self.worker.client.opened(place, now_ns);
            self.send(place);
        }
        self.advance(c);
    }
}

impl EventLoop for Http2Engine {
    fn worker(&mut self) -> &mut Worker {
        &mut self.worker
    }

    fn send_from(&mut self, place: u32) -> io::Result<()> {
        let c = self.connection_of(place);
        if self.worker.wake_idle(c) {
            self.open_waiting();
        }
        self.send(place);
        self.advance(c);
        Ok(())
    }

    #[cold]
    fn keep_house(&mut self) {
        for c in 0..self.worker.connections() {
            if self.worker.stage(c) == Stage::Open {
                self.expire(c);
            }
        }
        let peers = &mut self.peers;
        self.worker.keep_house(|c| peers[c as usize] = None);
        self.open_waiting();
    }
}
