//! One connection that blocks.

use crate::endpoint::Endpoint;
use crate::error::LoadError;
use crate::spec::LoadSpec;
use crate::tls::Context;
use rustls::{ClientConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// How soon a full queue is tried again.
const AGAIN: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(super) enum Connection {
    Tcp(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
    Unix(UnixStream),
}

impl Connection {
    pub(super) fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        let timeout = Some(timeout);
        match self {
            Connection::Tls(tls) => {
                tls.sock.set_read_timeout(timeout).and_then(|()| tls.sock.set_write_timeout(timeout))
            }
            Connection::Tcp(tcp) => {
                tcp.set_read_timeout(timeout).and_then(|()| tcp.set_write_timeout(timeout))
            }
            Connection::Unix(unix) => {
                unix.set_read_timeout(timeout).and_then(|()| unix.set_write_timeout(timeout))
            }
        }
    }

    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Connection::Tcp(tcp) => tcp.read(buffer),
            Connection::Tls(tls) => tls.read(buffer),
            Connection::Unix(unix) => unix.read(buffer),
        }
    }

    pub(super) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Connection::Tcp(tcp) => tcp.write_all(bytes),
            Connection::Tls(tls) => tls.write_all(bytes),
            Connection::Unix(unix) => unix.write_all(bytes),
        }
    }
}

/// Opens one to where `spec` says.
pub(super) fn connect(
    spec: &LoadSpec,
    endpoint: &Endpoint,
    deadline: Instant,
) -> Result<Connection, LoadError> {
    let connection = match endpoint {
        Endpoint::Tcp { remote, .. } => {
            TcpStream::connect_timeout(remote, left(deadline)).map(Connection::Tcp)
        }
        Endpoint::Unix(path) => unix(path, deadline).map(Connection::Unix),
    };
    let connection = connection.map_err(|why| LoadError::refused(endpoint, why))?;
    match connection {
        Connection::Tcp(tcp) if spec.route.target.is_tls() => {
            let context = Context::new(&spec.route.target.host(), false, spec.is_multiplexed());
            let client = context.and_then(|context| context.client());
            let client = client.map_err(|why| LoadError::refused(endpoint, why))?;
            Ok(Connection::Tls(Box::new(StreamOwned::new(client, tcp))))
        }
        other => Ok(other),
    }
}

/// Connects to a Unix socket within a time: a blocking connect waits for ever for a place in the queue of those to be accepted.
fn unix(path: &Path, deadline: Instant) -> io::Result<UnixStream> {
    loop {
        match tare_sys::unix::connect(path) {
            Ok((socket, _)) => {
                let socket = UnixStream::from(socket);
                socket.set_nonblocking(false)?;
                return Ok(socket);
            }
            Err(full) if full.kind() == io::ErrorKind::WouldBlock => {
                if Instant::now() >= deadline {
                    let why = "its queue of connections stayed full, so nobody accepts them";
                    return Err(io::Error::new(io::ErrorKind::TimedOut, why));
                }
                std::thread::sleep(AGAIN);
            }
            Err(error) => return Err(error),
        }
    }
}

/// What is left until the deadline; never zero, which sockets take for ever.
pub(super) fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
}
