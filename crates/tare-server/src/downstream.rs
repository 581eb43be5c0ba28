//! A handler that asks another server before it answers, on one kept connection for each thread: the usual shape of a service.

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use tare_http::response::{Framing, Heads};
use tare_http::status::Status;

use crate::handler::{Answer, Request, Responder};

/// Longest answer that is taken, head included.
const ANSWER_BYTES_MAX: usize = 16 * 1024;
/// How long the other server may take.
const PATIENCE: Duration = Duration::from_secs(30);

thread_local! {
    // Each thread its own: it may have a table of descriptors of its own too.
    static CONNECTION: RefCell<Option<TcpStream>> = const { RefCell::new(None) };
}

/// `/downstream?us=N`: answered when the other server has answered `/sleep?us=N`. Holds up its event loop meanwhile.
pub(crate) fn handler(other: SocketAddr) -> impl Fn(&Request<'_>, Responder<'_>) -> Answer + Send + Sync {
    move |request, answer| {
        let Some(us) = request.query_value("us").and_then(|us| us.parse::<u64>().ok()) else {
            return answer.status(Status::BAD_REQUEST).content_type("text/plain").body(b"hint: ?us=N");
        };
        match CONNECTION.with_borrow_mut(|kept| ask_again(kept, other, us)) {
            Ok(200) => answer.ok().content_type("text/plain").body(b"done"),
            _ => answer.plain(Status::BAD_GATEWAY),
        }
    }
}

/// Asks, once more on a new connection where the other side has closed the one that was kept.
fn ask_again(kept: &mut Option<TcpStream>, other: SocketAddr, us: u64) -> io::Result<u16> {
    if let Some(connection) = kept
        && let Ok(status) = ask(connection, other, us)
    {
        return Ok(status);
    }
    *kept = None;
    let mut connection = TcpStream::connect_timeout(&other, PATIENCE)?;
    connection.set_nodelay(true)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    let status = ask(&mut connection, other, us)?;
    *kept = Some(connection);
    Ok(status)
}

fn ask(connection: &mut TcpStream, other: SocketAddr, us: u64) -> io::Result<u16> {
    connection.write_all(format!("GET /sleep?us={us} HTTP/1.1\r\nHost: {other}\r\n\r\n").as_bytes())?;
    let bad = || io::Error::from(io::ErrorKind::InvalidData);
    let mut heads = Heads::new(false);
    let (mut bytes, mut length) = ([0; ANSWER_BYTES_MAX], 0);
    loop {
        let count = connection.read(bytes.get_mut(length..).unwrap_or_default())?;
        if count == 0 {
            return Err(bad());
        }
        length += count;
        let Some(head) = heads.parse(&bytes[..length]).map_err(|_| bad())? else { continue };
        let Framing::Length(body) = head.framing else { return Err(bad()) };
        if (length - head.len) as u64 >= body {
            return Ok(head.status);
        }
    }
}
