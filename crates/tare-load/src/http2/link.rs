//! One connection.

use super::exchange::Exchange;
use super::message::Ask;
use super::upload::Upload;
use super::wire::{TlsEnd, Transport, Wire};
use crate::body_file::PIECE_BYTES;
use bytes::Bytes;
use h2::client::{Builder, Connection, SendRequest};
use h2::{Ping, PingPong};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tare_http::response::HEAD_BYTES_MAX;

/// What a server may send before it was taken in: it never waits for us, and memory has a bound.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
const WINDOW_BYTES: u32 = 16 << 20;
/// Streams that were given up are remembered for so long, so that a late answer can be distinguished from a protocol error.
const GIVEN_UP_FOR: Duration = Duration::from_secs(30);
const GIVEN_UP_MAX: usize = 1 << 16;

type Client<T> = (SendRequest<Bytes>, Connection<Wire<T>, Bytes>);
type Greeting<T> = Pin<Box<dyn Future<Output = Result<Client<T>, h2::Error>>>>;

/// One connection and its streams.
pub(crate) struct Link<T> {
    wire: Wire<T>,
    state: State<T>,
}

enum State<T> {
    Greeting(Greeting<T>),
    Up {
        send: SendRequest<Bytes>,
        connection: Box<Connection<Wire<T>, Bytes>>,
        /// Until the answer to a ping has come: it comes after the server's settings.
        settling: Option<PingPong>,
    },
    Over,
}

/// What became of a request that was to be sent.
pub(crate) enum Sent {
    /// It is on its way.
    Under(Exchange),
    /// The server allows no more streams for now.
    NotYet,
    /// The connection takes no more requests.
    Never,
}

impl<T: Transport + 'static> Link<T> {
    /// Of a connected transport, for so many streams at once.
    pub(crate) fn new(wire: Wire<T>, streams: u32) -> Self {
        let mut builder = Builder::new();
        builder
            .enable_push(false)
            .initial_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES)
            .initial_max_send_streams(streams as usize)
            .max_header_list_size(HEAD_BYTES_MAX as u32)
            // Of a body that is sent piece by piece no more than one is held.
            .max_send_buffer_size(PIECE_BYTES)
            .max_concurrent_reset_streams(GIVEN_UP_MAX)
            .reset_stream_duration(GIVEN_UP_FOR)
            .max_local_error_reset_streams(None);
        let handshake = Box::pin(builder.handshake(wire.clone()));
        Link { wire, state: State::Greeting(handshake) }
    }

    pub(crate) fn wire(&self) -> &Wire<T> {
        &self.wire
    }

    /// Why TLS ended it, if it did.
    pub(crate) fn tls_end(&self) -> TlsEnd {
        self.wire.metered().tls_end.clone()
    }

    /// The wire that it used, without a last message to the server.
    pub(crate) fn into_wire(self) -> Wire<T> {
        self.wire
    }

    /// Goes on greeting; ready when the server's settings are known: how many streams it takes at once.
    pub(crate) fn greet(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<u32>> {
        let tls_end = self.tls_end();
        let no_http2 = |error| no_http2(error, &tls_end);
        if let State::Greeting(greeting) = &mut self.state {
            let greeted = ready!(greeting.as_mut().poll(cx));
            // A future that is done must not be asked again.
            self.state = State::Over;
            let (send, mut connection) = greeted.map_err(no_http2)?;
            let mut settling = connection.ping_pong();
            if let Some(pings) = &mut settling {
                // Refused only while another one is on its way.
                pings.send_ping(Ping::opaque()).ok();
            }
            self.state = State::Up { send, connection: Box::new(connection), settling };
        }
        let State::Up { send, connection, settling } = &mut self.state else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        if let Poll::Ready(over) = Pin::new(connection).poll(cx) {
            return Poll::Ready(Err(over.map_or_else(no_http2, |()| ended())));
        }
        if let Some(pings) = settling {
            ready!(pings.poll_pong(cx)).map_err(no_http2)?;
        }
        *settling = None;
        Poll::Ready(Ok(u32::try_from(send.current_max_send_streams()).unwrap_or(u32::MAX)))
    }

    /// Takes in what came and sends what is to be sent; ready when the connection is over.
    pub(crate) fn advance(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let State::Up { connection, .. } = &mut self.state else { return Poll::Ready(()) };
        // Each stream gets to know why it ended.
        Pin::new(connection).poll(cx).map(drop)
    }

    /// Gives it a request, which leaves with the next [`Link::advance`].
    pub(crate) fn send(&mut self, ask: Ask, cx: &mut Context<'_>) -> Sent {
        let tls_end = self.tls_end();
        let State::Up { send, .. } = &mut self.state else { return Sent::Never };
        match send.poll_ready(cx) {
            Poll::Pending => return Sent::NotYet,
            Poll::Ready(Err(_)) => return Sent::Never,
            Poll::Ready(Ok(())) => {}
        }
        let Ask { request, body, upload } = ask;
        let is_whole = body.is_empty() && upload.is_none();
        let Ok((response, mut stream)) = send.send_request(request, is_whole) else {
            return Sent::Never;
        };
        if let Some(file) = upload {
            return Sent::Under(Exchange::new(response, Some(Upload::new(stream, file)), tls_end));
        }
        // A stream that ended meanwhile learns it when its answer is asked for.
        if !body.is_empty() {
            stream.send_data(body, true).ok();
        }
        Sent::Under(Exchange::new(response, None, tls_end))
    }
}

/// Why a connection never became one of HTTP/2. A server of HTTP/1 may close it and send nothing.
fn no_http2(error: h2::Error, tls_end: &TlsEnd) -> io::Error {
    // With TLS 1.3 a server says only after the handshake what it thinks of a client's certificate.
    if let Some(why) = tls_end.error() {
        return why;
    }
    match error.get_io() {
        None if error.is_go_away() && error.is_remote() => {
            io::Error::new(io::ErrorKind::ConnectionAborted, error)
        }
        Some(why) => io::Error::new(why.kind(), format!("it ended before the server spoke HTTP/2 ({why})")),
        None => io::Error::new(io::ErrorKind::Unsupported, error),
    }
}

fn ended() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "it ended before the server spoke HTTP/2")
}
