//! One request on one connection before any load: does the server answer, and where does it live?

#[cfg(feature = "http2")]
mod http2;

use crate::endpoint::Endpoint;
use crate::error::LoadError;
use crate::request::request_bytes;
use crate::spec::{LoadSpec, Protocol, SpecError};
use crate::tls::Context;
use rustls::{ClientConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use tare_http::response::{Answer, AnswerReader, End, Heads, Step};

/// An answer, and a connection to its giver that stays open until this is dropped, so that the server's end
/// can be looked up meanwhile.
#[derive(Debug)]
pub struct Preflight {
    /// Our end of the connection; `None` on a Unix socket.
    pub local_addr: Option<SocketAddr>,
    /// The server's end; `None` on a Unix socket.
    pub peer_addr: Option<SocketAddr>,
    /// Unix socket: the process that made it listen; `None` in another PID namespace.
    pub peer_pid: Option<u32>,
    /// The status of the answer.
    pub status: u16,
    _connection: Connection,
}

#[derive(Debug)]
enum Connection {
    Tcp(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
    Unix(UnixStream),
}

impl Connection {
    fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
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

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Connection::Tcp(tcp) => tcp.read(buffer),
            Connection::Tls(tls) => tls.read(buffer),
            Connection::Unix(unix) => unix.read(buffer),
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Connection::Tcp(tcp) => tcp.write_all(bytes),
            Connection::Tls(tls) => tls.write_all(bytes),
            Connection::Unix(unix) => unix.write_all(bytes),
        }
    }
}

fn connect(spec: &LoadSpec, endpoint: &Endpoint, deadline: Instant) -> Result<Connection, LoadError> {
    let connection = match endpoint {
        Endpoint::Tcp { remote, .. } => {
            TcpStream::connect_timeout(remote, left(deadline)).map(Connection::Tcp)
        }
        Endpoint::Unix(path) => UnixStream::connect(path).map(Connection::Unix),
    };
    let connection = connection.map_err(|why| LoadError::refused(endpoint, why))?;
    match connection {
        Connection::Tcp(tcp) if spec.target.is_tls() => {
            let context = Context::new(&spec.target.host(), false, spec.alpn());
            let client = context.and_then(|context| context.client());
            let client = client.map_err(|why| LoadError::refused(endpoint, why))?;
            Ok(Connection::Tls(Box::new(StreamOwned::new(client, tcp))))
        }
        other => Ok(other),
    }
}

/// Asks once, with `spec`'s own request, within `timeout`.
///
/// # Errors
/// [`LoadError::Spec`], [`LoadError::Target`], [`LoadError::NoConnection`], [`LoadError::NoAnswer`] or [`LoadError::Malformed`].
pub fn preflight(spec: &LoadSpec, timeout: Duration) -> Result<Preflight, LoadError> {
    let deadline = Instant::now() + timeout;
    let request = request_bytes(spec).map_err(SpecError::from)?;
    let endpoint = Endpoint::resolve(spec)?;
    let connection = connect(spec, &endpoint, deadline)?;
    let (answer, connection) = match spec.protocol {
        Protocol::Http1 => {
            let request = (request.as_slice(), request.starts_with(b"HEAD "));
            ask(connection, request, &endpoint, deadline)?
        }
        #[cfg(feature = "http2")]
        Protocol::Http2 => http2::ask(connection, (&request, spec.target.is_tls()), &endpoint, deadline)?,
        #[cfg(not(feature = "http2"))]
        Protocol::Http2 => return Err(SpecError::NoHttp2.into()),
    };
    let connection = match connection {
        Some(connection) => connection,
        // The server is closing that one: another, with nothing asked on it, stays.
        None => connect(spec, &endpoint, deadline)?,
    };
    let tcp = match &connection {
        Connection::Tcp(tcp) => Some(tcp),
        Connection::Tls(tls) => Some(&tls.sock),
        Connection::Unix(_) => None,
    };
    let addresses = tcp.and_then(|tcp| Some((tcp.local_addr().ok()?, tcp.peer_addr().ok()?)));
    let peer_pid = match &connection {
        Connection::Unix(unix) => tare_sys::unix::peer_pid(unix).ok().flatten(),
        Connection::Tcp(_) | Connection::Tls(_) => None,
    };
    Ok(Preflight {
        local_addr: addresses.map(|(local, _)| local),
        peer_addr: addresses.map(|(_, peer)| peer),
        peer_pid,
        status: answer.status,
        _connection: connection,
    })
}

/// Asks by HTTP/1; gives the connection back if it stays open.
fn ask(
    mut connection: Connection,
    (request, to_head): (&[u8], bool),
    endpoint: &Endpoint,
    deadline: Instant,
) -> Result<(Answer, Option<Connection>), LoadError> {
    let no_answer = |why| LoadError::NoAnswer { address: endpoint.to_string(), why };
    connection.set_timeout(left(deadline)).map_err(no_answer)?;
    connection.write_all(request).map_err(no_answer)?;
    let (mut heads, mut reader) = (Heads::new(to_head), AnswerReader::default());
    let (mut buffer, mut filled) = (vec![0; crate::session::BUFFER_BYTES_MIN], 0);
    loop {
        if Instant::now() >= deadline {
            return Err(no_answer(io::ErrorKind::TimedOut.into()));
        }
        connection.set_timeout(left(deadline)).map_err(no_answer)?;
        let fresh = match connection.read(&mut buffer[filled..]) {
            Ok(fresh) => fresh,
            Err(why) if why.kind() == io::ErrorKind::Interrupted => continue,
            // Few servers end TLS before they close: as without it, what came decides.
            Err(why) if why.kind() == io::ErrorKind::UnexpectedEof => 0,
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => {
                return Err(no_answer(io::ErrorKind::TimedOut.into()));
            }
            Err(why) => return Err(no_answer(why)),
        };
        if fresh == 0 {
            return match reader.end(filled > 0) {
                End::Answer(answer) => Ok((answer, None)),
                _ => Err(no_answer(io::ErrorKind::UnexpectedEof.into())),
            };
        }
        filled += fresh;
        match reader.read(&mut heads, &buffer[..filled]) {
            Ok(Step::Answer { answer, .. }) => return Ok((answer, answer.keep_alive.then_some(connection))),
            Ok(Step::More { used }) => {
                buffer.copy_within(used..filled, 0);
                filled -= used;
            }
            Err(why) => return Err(LoadError::Malformed { address: endpoint.to_string(), why }),
        }
    }
}

/// What is left until the deadline; never zero, which sockets take for ever.
fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
}
