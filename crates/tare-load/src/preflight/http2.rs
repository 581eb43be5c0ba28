//! The same by HTTP/2: on a socket that blocks, it waits where nothing else can be done.

use super::connection::{Connection, left};
use super::redirect::Location;
use crate::endpoint::Endpoint;
use crate::error::LoadError;
use crate::http2::{Asks, Failure, Link, Sent, Transport, Wire, is_broken};
use crate::request::First;
use std::io;
use std::task::{Context, Poll, Waker};
use std::time::Instant;
use tare_http::response::Answer;

struct Blocking {
    connection: Connection,
    deadline: Instant,
    /// Whether the next read may wait for what comes.
    may_wait: bool,
}

impl Transport for Blocking {
    fn recv(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !std::mem::take(&mut self.may_wait) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.connection.set_timeout(left(self.deadline))?;
        match self.connection.read(buffer) {
            Err(why) if why.kind() == io::ErrorKind::Interrupted => Err(io::ErrorKind::WouldBlock.into()),
            result => result,
        }
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.connection.set_timeout(left(self.deadline))?;
        let sent = self.connection.write(bytes);
        // Who takes no more may have said why: nothing further comes, so that reading it does not wait.
        self.may_wait |= sent.as_ref().is_err_and(is_broken);
        sent
    }
}

/// Asks by HTTP/2; gives the connection back.
pub(super) fn ask(
    connection: Connection,
    (request, tls): (&First, bool),
    endpoint: &Endpoint,
    deadline: &mut Instant,
    location: &mut Location,
) -> Result<(Answer, Option<Connection>), LoadError> {
    let silent = |why: io::Error| LoadError::NoAnswer { address: endpoint.to_string(), why };
    let no_answer = |why: io::ErrorKind| silent(why.into());
    let mut cx = Context::from_waker(Waker::noop());
    let patience = left(*deadline);
    let wire = Wire::new(Blocking { connection, deadline: *deadline, may_wait: false });
    let mut link = Link::new(wire, 1);
    while link.greet(&mut cx).map_err(|why| LoadError::refused(endpoint, why))?.is_pending() {
        wait(&link, *deadline).map_err(no_answer)?;
    }
    // What TLS says is the reason, as by HTTP/1.
    let tls_end = link.tls_end();
    let ended = |why: io::Error| match tls_end.error() {
        Some(why) => LoadError::refused(endpoint, why),
        None => silent(why),
    };
    let mut asks = Asks::new(tls, request.upload.clone());
    let asked = asks.of(&request.bytes).ok_or_else(|| no_answer(io::ErrorKind::InvalidInput))?;
    let Sent::Under(mut exchange) = link.send(asked, &mut cx) else {
        return Err(ended(io::ErrorKind::NotConnected.into()));
    };
    let answer = loop {
        let over = link.advance(&mut cx).is_ready();
        match exchange.poll(&mut cx, Some(&mut *location)) {
            Poll::Ready(Ok(answer)) => break answer,
            Poll::Ready(Err(Failure::Untouched)) => return Err(no_answer(io::ErrorKind::ConnectionAborted)),
            Poll::Ready(Err(Failure::Lost(fault))) => {
                return Err(ended(io::Error::other(fault.to_string())));
            }
            // What left is to be sent before anything is waited for.
            Poll::Pending if exchange.went_on() && !over => {
                *deadline = Instant::now() + patience;
                link.wire().metered().transport.deadline = *deadline;
            }
            Poll::Pending if over => return Err(ended(io::ErrorKind::UnexpectedEof.into())),
            Poll::Pending => wait(&link, *deadline).map_err(no_answer)?,
        }
    };
    drop(exchange);
    // A body that the server did not wait for ends here.
    let _ = link.advance(&mut cx);
    Ok((answer, link.into_wire().into_transport().map(|blocking| blocking.connection)))
}

/// Lets the next read wait for what comes, unless the time is over.
fn wait(link: &Link<Blocking>, deadline: Instant) -> Result<(), io::ErrorKind> {
    if Instant::now() >= deadline {
        return Err(io::ErrorKind::TimedOut);
    }
    let mut metered = link.wire().metered();
    metered.transport.deadline = deadline;
    metered.transport.may_wait = true;
    Ok(())
}
