//! One request on one connection before any load: does the server answer, and which process is it?

mod connection;
#[cfg(feature = "http2")]
mod http2;
mod redirect;

use crate::body_file::PIECE_BYTES;
use crate::endpoint::Endpoint;
use crate::error::LoadError;
use crate::request::First;
use crate::spec::{LoadSpec, Protocol, SpecError};
use crate::target::Target;
use crate::way::Way;
use connection::{Connection, Socket, connect, left};
use redirect::{Location, REDIRECTS_MAX};
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tare_http::response::{Answer, AnswerReader, End, Heads, Step};
use tare_model::load::TlsCertificate;

/// An answer, and a connection to its giver that stays open until this is dropped, so that the server's end
/// can be looked up meanwhile.
#[derive(Debug)]
pub struct Preflight {
    /// What was asked for: where redirects led, if they were followed.
    pub target: Target,
    /// How many redirects led there.
    pub redirects: u32,
    /// Our end of the connection; `None` on a Unix socket.
    pub local_addr: Option<SocketAddr>,
    /// The server's end; `None` on a Unix socket.
    pub peer_addr: Option<SocketAddr>,
    /// Unix socket: the process that made it listen; `None` in another PID namespace.
    pub peer_pid: Option<u32>,
    /// The status of the answer.
    pub status: u16,
    /// `https`: whether the server's certificate was verified.
    pub tls_certificate: Option<TlsCertificate>,
    _connection: Connection,
}

/// Asks once, with `spec`'s own request, within `timeout`; where that is asked for, again where a redirect leads.
///
/// # Errors
/// [`LoadError`]: what cannot be asked for, who cannot be reached, no answer, or a redirect that leads where no load may go.
pub fn preflight(spec: &LoadSpec, timeout: Duration) -> Result<Preflight, LoadError> {
    let mut deadline = Instant::now() + timeout;
    let (mut found, mut next) = once(spec, &mut deadline)?;
    while let Some(target) = next {
        let redirects = found.redirects + 1;
        if redirects > REDIRECTS_MAX {
            let why =
                format!("these are more than {REDIRECTS_MAX} redirects (hint: do they go in a circle?)");
            return Err(LoadError::Redirect { from: found.target.to_string(), to: target.to_string(), why });
        }
        // The connection before is not the one that stays.
        drop(found);
        (found, next) = once(&spec.aimed_at(target), &mut deadline)?;
        found.redirects = redirects;
    }
    Ok(found)
}

/// Asks once; where the answer leads then. An upload that goes on moves the deadline.
fn once(spec: &LoadSpec, deadline: &mut Instant) -> Result<(Preflight, Option<Target>), LoadError> {
    let mut location = Location::default();
    let request = First::of(spec).map_err(SpecError::from)?;
    let way = Way::find(spec)?;
    let endpoint = &way.endpoint;
    let connection = connect(&way, *deadline)?;
    let (answer, connection) = match spec.protocol {
        Protocol::Http1 => ask(connection, &request, endpoint, deadline, &mut location)?,
        #[cfg(feature = "http2")]
        Protocol::Http2 => {
            http2::ask(connection, (&request, spec.route.target.is_tls()), endpoint, deadline, &mut location)?
        }
        #[cfg(not(feature = "http2"))]
        Protocol::Http2 => return Err(SpecError::NoHttp2.into()),
    };
    let connection = match connection {
        Some(connection) => connection,
        // The server is closing that one: another, with nothing asked on it, stays.
        None => connect(&way, *deadline)?,
    };
    let (addresses, peer_pid) = match &connection.socket {
        Socket::Tcp(tcp) => (tcp.local_addr().ok().zip(tcp.peer_addr().ok()), None),
        Socket::Unix(unix) => (None, tare_sys::unix::peer_pid(unix).ok().flatten()),
    };
    let next = if spec.route.follow { location.leads(spec, answer.status)? } else { None };
    let found = Preflight {
        target: spec.route.target.clone(),
        redirects: 0,
        local_addr: addresses.map(|(local, _)| local),
        peer_addr: addresses.map(|(_, peer)| peer),
        peer_pid,
        status: answer.status,
        tls_certificate: way.tls.as_ref().map(|tls| tls.check),
        _connection: connection,
    };
    Ok((found, next))
}

/// Asks by HTTP/1; gives the connection back if it stays open.
fn ask(
    mut connection: Connection,
    request: &First,
    endpoint: &Endpoint,
    deadline: &mut Instant,
    location: &mut Location,
) -> Result<(Answer, Option<Connection>), LoadError> {
    let no_answer = |why| LoadError::NoAnswer { address: endpoint.to_string(), why };
    connection.set_timeout(left(*deadline) / 2).map_err(no_answer)?;
    // A server may answer before it has read all (413), and read no more.
    let cut_off = send(&mut connection, request, deadline).err();
    let to_head = request.bytes.starts_with(b"HEAD ");
    let (mut heads, mut reader) = (Heads::new(to_head), AnswerReader::default());
    let (mut buffer, mut filled) = (vec![0; crate::client::BUFFER_BYTES_MIN], 0);
    loop {
        if Instant::now() >= *deadline {
            return Err(no_answer(io::ErrorKind::TimedOut.into()));
        }
        connection.set_timeout(left(*deadline)).map_err(no_answer)?;
        let fresh = match connection.read(&mut buffer[filled..]) {
            Ok(fresh) => fresh,
            Err(why) if why.kind() == io::ErrorKind::Interrupted => continue,
            // Few servers end TLS before they close: as without it, what came decides.
            Err(why) if why.kind() == io::ErrorKind::UnexpectedEof => 0,
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => {
                return Err(no_answer(io::ErrorKind::TimedOut.into()));
            }
            // With TLS 1.3 a server says what it thinks of a client's certificate when the handshake is over.
            Err(why) if why.kind() == io::ErrorKind::InvalidData => {
                return Err(LoadError::refused(endpoint, why));
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
        match reader.read_to(&mut heads, &buffer[..filled], location) {
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

/// Sends all of a request. While the server takes a long body piece by piece it keeps the time that it had.
fn send(connection: &mut Connection, request: &First, deadline: &mut Instant) -> io::Result<()> {
    let patience = left(*deadline);
    connection.write_all(&request.bytes)?;
    let Some(body) = &request.upload else { return Ok(()) };
    let (mut at, mut buffer) = (0, vec![0; PIECE_BYTES]);
    while at < body.bytes() {
        let piece = body.piece(at, &mut buffer)?;
        connection.write_all(piece)?;
        at += piece.len() as u64;
        *deadline = Instant::now() + patience;
    }
    Ok(())
}
