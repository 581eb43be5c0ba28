//! One connection that blocks.

use crate::endpoint::Endpoint;
use crate::error::LoadError;
use crate::tls;
use crate::way::Way;
use rustls::{ClientConnection, Stream};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// How soon a full queue is tried again.
const AGAIN: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) socket: Socket,
    tls: Option<Box<ClientConnection>>,
}

impl Connection {
    pub(super) fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.socket.set_timeout(timeout)
    }

    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            Some(tls) => Stream::new(tls.as_mut(), &mut self.socket).read(buffer),
            None => self.socket.read(buffer),
        }
    }

    /// Writes some of it.
    #[cfg(feature = "http2")]
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            Some(tls) => Stream::new(tls.as_mut(), &mut self.socket).write(bytes),
            None => self.socket.write(bytes),
        }
    }

    pub(super) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.tls {
            Some(tls) => Stream::new(tls.as_mut(), &mut self.socket).write_all(bytes),
            None => self.socket.write_all(bytes),
        }
    }
}

impl Socket {
    fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        let timeout = Some(timeout);
        match self {
            Socket::Tcp(tcp) => tcp.set_read_timeout(timeout).and_then(|()| tcp.set_write_timeout(timeout)),
            Socket::Unix(unix) => {
                unix.set_read_timeout(timeout).and_then(|()| unix.set_write_timeout(timeout))
            }
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(tcp) => tcp.read(buffer),
            Socket::Unix(unix) => unix.read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(tcp) => tcp.write(bytes),
            Socket::Unix(unix) => unix.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Opens one.
pub(super) fn connect(way: &Way, deadline: Instant) -> Result<Connection, LoadError> {
    let socket = match &way.endpoint {
        Endpoint::Tcp { remote, .. } => TcpStream::connect_timeout(remote, left(deadline)).map(Socket::Tcp),
        Endpoint::Unix(path) => unix(path, deadline).map(Socket::Unix),
    };
    let refused = |why| LoadError::refused(&way.endpoint, why);
    let mut socket = socket.map_err(refused)?;
    let Some(handshakes) = &way.tls else { return Ok(Connection { socket, tls: None }) };
    let mut client = handshakes.context().client().map_err(refused)?;
    match shake_hands(&mut client, &mut socket, deadline) {
        Ok(()) => Ok(Connection { socket, tls: Some(Box::new(client)) }),
        // The connection is there, and nobody at its other end speaks TLS.
        Err(why) if matches!(why.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
            let why = io::Error::new(io::ErrorKind::TimedOut, "the TLS handshake was not answered");
            Err(LoadError::NoAnswer { address: way.endpoint.to_string(), why })
        }
        Err(why) => Err(refused(why)),
    }
}

fn shake_hands(client: &mut ClientConnection, socket: &mut Socket, deadline: Instant) -> io::Result<()> {
    while client.is_handshaking() || client.wants_write() {
        if Instant::now() >= deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        socket.set_timeout(left(deadline))?;
        let moved = if client.wants_write() { client.write_tls(socket) } else { client.read_tls(socket) };
        match moved {
            Ok(0) => return Err(tls::unfinished()),
            Err(why) if why.kind() != io::ErrorKind::Interrupted => return Err(why),
            _ => {}
        }
        if let Err(why) = client.process_new_packets() {
            // The server learns why, if it still listens.
            client.write_tls(socket).ok();
            return Err(tls::failure(why));
        }
    }
    Ok(())
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
