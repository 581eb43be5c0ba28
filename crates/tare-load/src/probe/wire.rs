//! One connection that blocks until a deadline, with a bounded buffer of what came.

use super::fault::ProbeFault;
use crate::tls;
use rustls::ClientConnection;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Most that is kept of what came and is not done with: more than any answer to a probe of a database.
const BUFFER_BYTES_MAX: usize = 64 << 10;
/// What is asked of the kernel at once.
const READ_BYTES: usize = 16 << 10;

/// A connection.
pub(super) struct Wire {
    socket: TcpStream,
    tls: Option<Box<ClientConnection>>,
    /// What came and is not done with.
    came: Vec<u8>,
    deadline: Instant,
}

impl Wire {
    /// Connects by a deadline.
    pub fn open(address: SocketAddr, deadline: Instant) -> Result<Wire, ProbeFault> {
        let socket =
            TcpStream::connect_timeout(&address, left(deadline)?).map_err(|error| match error.kind() {
                ErrorKind::TimedOut | ErrorKind::WouldBlock => ProbeFault::TimedOut,
                _ => ProbeFault::Connect(error.to_string()),
            })?;
        socket.set_nodelay(true)?;
        Ok(Wire { socket, tls: None, came: Vec::new(), deadline })
    }

    /// Speaks TLS from here on.
    pub fn secured(mut self, mut client: ClientConnection) -> Result<Wire, ProbeFault> {
        while client.is_handshaking() || client.wants_write() {
            self.limit()?;
            let moved = match client.wants_write() {
                true => client.write_tls(&mut self.socket)?,
                false => client.read_tls(&mut self.socket)?,
            };
            if moved == 0 {
                return Err(ProbeFault::Connect(tls::unfinished().to_string()));
            }
            client
                .process_new_packets()
                .map_err(|error| ProbeFault::Connect(tls::failure(error).to_string()))?;
        }
        self.tls = Some(Box::new(client));
        Ok(self)
    }

    /// How long from now on anything may take.
    pub fn until(&mut self, deadline: Instant) {
        self.deadline = deadline;
    }

    /// Sends all of it.
    pub fn send(&mut self, mut bytes: &[u8]) -> Result<(), ProbeFault> {
        while !bytes.is_empty() {
            self.limit()?;
            let sent = match &mut self.tls {
                Some(tls) => sealed(tls, &mut self.socket, bytes),
                None => self.socket.write(bytes),
            };
            match sent {
                Ok(0) => return Err(ProbeFault::Closed),
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// What came and is not done with.
    pub fn came(&self) -> &[u8] {
        &self.came
    }

    /// So many bytes are done with.
    pub fn used(&mut self, count: usize) {
        self.came.drain(..count.min(self.came.len()));
    }

    /// Waits for more. `Ok(false)`: there will be none, the server closed.
    pub fn more(&mut self) -> Result<bool, ProbeFault> {
        if self.came.len() >= BUFFER_BYTES_MAX {
            return Err(ProbeFault::Io(format!("more than {BUFFER_BYTES_MAX} bytes came in one piece")));
        }
        let mut buffer = [0; READ_BYTES];
        loop {
            self.limit()?;
            let read = match &mut self.tls {
                Some(tls) => opened(tls, &mut self.socket, &mut buffer),
                None => self.socket.read(&mut buffer),
            };
            match read {
                // Only a part of a record, of which nothing can be read yet.
                Err(error)
                    if error.kind() == ErrorKind::WouldBlock && self.tls.is_some() && self.is_in_time() => {}
                Ok(0) => return Ok(false),
                Ok(count) => {
                    self.came.extend(&buffer[..count]);
                    return Ok(true);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits until so many bytes are there.
    pub fn have(&mut self, count: usize) -> Result<&[u8], ProbeFault> {
        while self.came.len() < count {
            if !self.more()? {
                return Err(ProbeFault::Closed);
            }
        }
        Ok(&self.came[..count])
    }

    /// Takes so many bytes.
    pub fn take(&mut self, count: usize) -> Result<Vec<u8>, ProbeFault> {
        self.have(count)?;
        Ok(self.came.drain(..count).collect())
    }

    /// Whether something came that nobody asked for, or the server has closed: such a connection cannot be used again.
    pub fn is_stale(&mut self) -> bool {
        let mut byte = [0; 1];
        let quiet = self.came.is_empty()
            && self.socket.set_nonblocking(true).is_ok()
            && matches!(self.socket.peek(&mut byte), Err(error) if error.kind() == ErrorKind::WouldBlock);
        // With TLS, tickets may come at any time.
        let quiet = quiet || self.tls.is_some() && matches!(self.socket.peek(&mut byte), Ok(1));
        !(self.socket.set_nonblocking(false).is_ok() && quiet)
    }

    fn is_in_time(&self) -> bool {
        Instant::now() < self.deadline
    }

    /// The socket's own limits: what is left of the time.
    fn limit(&mut self) -> io::Result<()> {
        let left = left(self.deadline)?;
        self.socket.set_read_timeout(Some(left))?;
        self.socket.set_write_timeout(Some(left))
    }
}

/// Sends some of it through TLS.
fn sealed(tls_state: &mut ClientConnection, socket: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
    let count = tls_state.writer().write(bytes)?;
    while tls_state.wants_write() {
        tls_state.write_tls(socket)?;
    }
    Ok(count)
}

/// Reads once from the socket, and what can be read of it then. `WouldBlock`: nothing yet.
fn opened(tls_state: &mut ClientConnection, socket: &mut TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    match tls_state.reader().read(buffer) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
        read => return read,
    }
    if tls_state.read_tls(socket)? == 0 {
        return Ok(0);
    }
    tls_state.process_new_packets().map_err(tls::failure)?;
    tls_state.reader().read(buffer)
}

/// What is left until a deadline.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}
