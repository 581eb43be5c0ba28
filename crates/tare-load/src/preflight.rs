//! One request on one connection before any load: does the server answer, and where does it live?

use crate::error::LoadError;
use crate::generator::choose_address;
use crate::request::request_bytes;
use crate::spec::LoadSpec;
use crate::target::Target;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use tare_http::response::{Answer, AnswerReader, End, Heads, Step};

/// An answer, and a connection to its giver that stays open until this is dropped, so that the server's end
/// can be looked up meanwhile.
#[derive(Debug)]
pub struct Preflight {
    /// Our end of the connection.
    pub local_addr: SocketAddr,
    /// The server's end.
    pub peer_addr: SocketAddr,
    /// The status of the answer.
    pub status: u16,
    _connection: TcpStream,
}

/// Asks `target` once with `GET`, within `timeout`.
///
/// # Errors
/// [`LoadError::Target`], [`LoadError::NoConnection`], [`LoadError::NoAnswer`] or [`LoadError::Malformed`].
pub fn preflight(target: &Target, timeout: Duration) -> Result<Preflight, LoadError> {
    let deadline = Instant::now() + timeout;
    let address = choose_address(&target.resolve()?);
    let mut connection = connect(address, deadline)?;
    let answer = ask(&mut connection, &request_bytes(&LoadSpec::new(target.clone())), address, deadline)?;
    if !answer.keep_alive {
        // The server is closing this one: another, with nothing asked on it, stays.
        connection = connect(address, deadline)?;
    }
    let no_connection = |why| LoadError::NoConnection { address, why };
    Ok(Preflight {
        local_addr: connection.local_addr().map_err(no_connection)?,
        peer_addr: connection.peer_addr().map_err(no_connection)?,
        status: answer.status,
        _connection: connection,
    })
}

fn connect(address: SocketAddr, deadline: Instant) -> Result<TcpStream, LoadError> {
    TcpStream::connect_timeout(&address, left(deadline))
        .map_err(|why| LoadError::NoConnection { address, why })
}

fn ask(
    connection: &mut TcpStream,
    request: &[u8],
    address: SocketAddr,
    deadline: Instant,
) -> Result<Answer, LoadError> {
    let no_answer = |why| LoadError::NoAnswer { address, why };
    connection.set_write_timeout(Some(left(deadline))).map_err(no_answer)?;
    connection.write_all(request).map_err(no_answer)?;
    let (mut heads, mut reader) = (Heads::new(false), AnswerReader::default());
    let (mut buffer, mut filled) = (vec![0; crate::session::BUFFER_BYTES_MIN], 0);
    loop {
        if Instant::now() >= deadline {
            return Err(no_answer(io::ErrorKind::TimedOut.into()));
        }
        connection.set_read_timeout(Some(left(deadline))).map_err(no_answer)?;
        let fresh = match connection.read(&mut buffer[filled..]) {
            Ok(fresh) => fresh,
            Err(why) if why.kind() == io::ErrorKind::Interrupted => continue,
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => {
                return Err(no_answer(io::ErrorKind::TimedOut.into()));
            }
            Err(why) => return Err(no_answer(why)),
        };
        if fresh == 0 {
            return match reader.end(filled > 0) {
                End::Answer(answer) => Ok(answer),
                _ => Err(no_answer(io::ErrorKind::UnexpectedEof.into())),
            };
        }
        filled += fresh;
        match reader.read(&mut heads, &buffer[..filled]) {
            Ok(Step::Answer { answer, .. }) => return Ok(answer),
            Ok(Step::More { used }) => {
                buffer.copy_within(used..filled, 0);
                filled -= used;
            }
            Err(why) => return Err(LoadError::Malformed { address, why }),
        }
    }
}

/// What is left until the deadline; never zero, which sockets take for ever.
fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
}
