//! One request on one connection before any load: does the server answer, and which process is it?

mod connection;
#[cfg(feature = "http2")]
mod http2;

use crate::endpoint::Endpoint;
use crate::error::LoadError;
use crate::request::request_bytes;
use crate::spec::{LoadSpec, Protocol, SpecError};
use connection::{Connection, connect, left};
use std::io;
use std::net::SocketAddr;
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
        Protocol::Http2 => {
            http2::ask(connection, (&request, spec.route.target.is_tls()), &endpoint, deadline)?
        }
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
    connection.set_timeout(left(deadline) / 2).map_err(no_answer)?;
    // A server may answer before it has read all (413), and read no more.
    let cut_off = connection.write_all(request).err();
    let (mut heads, mut reader) = (Heads::new(to_head), AnswerReader::default());
    let (mut buffer, mut filled) = (vec![0; crate::client::BUFFER_BYTES_MIN], 0);
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
            Err(why) => return Err(no_answer(cut_off.unwrap_or(why))),
        };
        if fresh == 0 {
            return match reader.end(filled > 0) {
                End::Answer(answer) => Ok((answer, None)),
                _ => Err(no_answer(io::ErrorKind::UnexpectedEof.into())),
            };
        }
        filled += fresh;
        match reader.read(&mut heads, &buffer[..filled]) {
            Ok(Step::Answer { answer, .. }) => {
                let stays = answer.keep_alive && cut_off.is_none();
                return Ok((answer, stays.then_some(connection)));
            }
            Ok(Step::More { used }) => {
                buffer.copy_within(used..filled, 0);
                filled -= used;
            }
            Err(why) => return Err(LoadError::Malformed { address: endpoint.to_string(), why }),
        }
    }
}
