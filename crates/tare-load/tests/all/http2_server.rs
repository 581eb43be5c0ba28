//! An HTTP/2 server of few lines, written frame by frame, so that it can misbehave.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tare_load::{LoadSpec, Protocol};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const GOAWAY: u8 = 7;
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
/// `:status: 200`, `:status: 404` and `:status: 500` as HPACK's own table has them.
pub const OK: u8 = 0x88;
pub const NOT_FOUND: u8 = 0x8d;
pub const BROKEN: u8 = 0x8e;

/// What is done about a request.
#[derive(Clone, Copy)]
pub enum Act {
    /// A status, by its number in HPACK's table, and no body.
    Status(u8),
    /// 200 with these bytes and an end, after a head that promises so many.
    Body(&'static [u8], Option<usize>),
    /// 302 to `/end`.
    Redirect,
    /// The stream is reset with this code.
    Reset(u32),
    /// Half an answer, then the same.
    HalfThenReset(u32),
    /// The connection is ended with this code, this request and those after it untouched; then closed.
    GoAway(u32),
    /// The connection is closed.
    Close,
    /// Bytes that are no frame.
    Nonsense,
    Silence,
    /// The body is taken, after a pause for each piece, and answered with 200 if it is [`upload`], else with 404.
    Take(Duration),
}

/// Byte `k` of a body; no other one is like it.
pub fn upload(k: usize) -> u8 {
    (k % 251) as u8
}

pub struct Server {
    pub address: SocketAddr,
    pub seen: Arc<Seen>,
}

/// What came, of all connections.
#[derive(Default)]
pub struct Seen {
    pub accepted: AtomicU64,
    pub requests: AtomicU64,
    /// Most streams that were ever open at once on a connection.
    pub streams_max: AtomicU64,
    pub body_bytes: AtomicU64,
    pub resets: AtomicU64,
}

impl Server {
    /// Does with request `n` (over all connections, from 0) what `script` says, and allows `streams` at once.
    pub fn start(streams: Option<u32>, script: impl Fn(u64) -> Act + Send + Sync + 'static) -> Server {
        Server::start_with(None, streams, script)
    }

    /// The same with TLS.
    pub fn start_with(
        tls: Option<Arc<rustls::ServerConfig>>,
        streams: Option<u32>,
        script: impl Fn(u64) -> Act + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Server { address: listener.local_addr().unwrap(), seen: Arc::default() };
        let (script, seen) = (Arc::new(script), Arc::clone(&server.seen));
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                seen.accepted.fetch_add(1, Ordering::SeqCst);
                let (script, seen) = (Arc::clone(&script), Arc::clone(&seen));
                let tls = tls.clone();
                // It ends with its connection, however that ends.
                std::thread::spawn(move || {
                    let connection = connection?;
                    connection.set_nodelay(true)?;
                    match tls {
                        None => serve(connection, streams, &*script, &seen),
                        Some(config) => {
                            let server = rustls::ServerConnection::new(config).unwrap();
                            let stream = rustls::StreamOwned::new(server, connection);
                            serve(stream, streams, &*script, &seen)
                        }
                    }
                });
            }
        });
        server
    }

    pub fn spec(&self) -> LoadSpec {
        LoadSpec {
            protocol: Protocol::Http2,
            ..crate::epoll::support::spec(&format!("http://{}/", self.address))
        }
    }
}

fn frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    out.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

fn serve(
    mut connection: impl Read + Write,
    streams: Option<u32>,
    script: &dyn Fn(u64) -> Act,
    seen: &Seen,
) -> io::Result<()> {
    let mut preface = [0; 24];
    connection.read_exact(&mut preface)?;
    assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    let (mut out, mut open, mut taken) = (Vec::new(), BTreeSet::new(), BTreeMap::new());
    // One that allows few streams has large windows, the other one those of the protocol.
    let settings = streams
        .map(|streams| [&[0, 3][..], &streams.to_be_bytes(), &[0, 4], &(4u32 << 20).to_be_bytes()].concat());
    frame(&mut out, SETTINGS, 0, 0, &settings.unwrap_or_default());
    if streams.is_some() {
        frame(&mut out, WINDOW_UPDATE, 0, 0, &(64u32 << 20).to_be_bytes());
    }
    loop {
        connection.write_all(&out)?;
        out.clear();
        let mut head = [0; 9];
        connection.read_exact(&mut head)?;
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        connection.read_exact(&mut payload)?;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        match (head[3], head[4]) {
            (SETTINGS, 0) => frame(&mut out, SETTINGS, ACK, 0, &[]),
            (PING, 0) => frame(&mut out, PING, ACK, 0, &payload),
            (RST_STREAM, _) => {
                seen.resets.fetch_add(1, Ordering::SeqCst);
                open.remove(&stream);
                taken.remove(&stream);
            }
            (DATA, flags) => {
                seen.body_bytes.fetch_add(payload.len() as u64, Ordering::SeqCst);
                let room = (payload.len() as u32).to_be_bytes();
                if !payload.is_empty() {
                    frame(&mut out, WINDOW_UPDATE, 0, 0, &room);
                }
                // What still comes after an early answer is of no use, and must not hold the others up.
                let Some((at, is_right, pause)) = taken.get_mut(&stream) else { continue };
                std::thread::sleep(*pause);
                *is_right &= payload.iter().enumerate().all(|(k, byte)| *byte == upload(*at + k));
                *at += payload.len();
                if flags & END_STREAM != 0 {
                    let status = if *is_right { OK } else { NOT_FOUND };
                    answer(&mut out, stream, Act::Status(status));
                    open.remove(&stream);
                    taken.remove(&stream);
                } else if !payload.is_empty() {
                    frame(&mut out, WINDOW_UPDATE, 0, stream, &room);
                }
            }
            (HEADERS, _) => {
                open.insert(stream);
                seen.streams_max.fetch_max(open.len() as u64, Ordering::SeqCst);
                let n = seen.requests.fetch_add(1, Ordering::SeqCst);
                let act = script(n);
                if !answer(&mut out, stream, act) {
                    return connection.write_all(&out);
                }
                match act {
                    Act::Take(pause) => drop(taken.insert(stream, (0, true, pause))),
                    Act::Silence => {}
                    _ => drop(open.remove(&stream)),
                }
            }
            _ => {}
        }
    }
}

/// Whether the connection stays.
fn answer(out: &mut Vec<u8>, stream: u32, act: Act) -> bool {
    match act {
        Act::Status(status) => frame(out, HEADERS, END_HEADERS | END_STREAM, stream, &[status]),
        Act::Body(body, promised) => {
            let mut head = vec![OK];
            if let Some(promised) = promised {
                // `content-length` is entry 28 of the table; its value is spelt out.
                let digits = promised.to_string();
                head.extend_from_slice(&[0x0f, 28 - 15, digits.len() as u8]);
                head.extend_from_slice(digits.as_bytes());
            }
            frame(out, HEADERS, END_HEADERS, stream, &head);
            frame(out, DATA, END_STREAM, stream, body);
        }
        Act::Redirect => {
            // `:status` is entry 8 of the table, `location` 46.
            let mut head = vec![0x08, 3];
            head.extend_from_slice(b"302");
            head.extend_from_slice(&[0x0f, 46 - 15, 4]);
            head.extend_from_slice(b"/end");
            frame(out, HEADERS, END_HEADERS | END_STREAM, stream, &head);
        }
        Act::Reset(code) => frame(out, RST_STREAM, 0, stream, &code.to_be_bytes()),
        Act::HalfThenReset(code) => {
            frame(out, HEADERS, END_HEADERS, stream, &[OK]);
            frame(out, DATA, 0, stream, b"half");
            frame(out, RST_STREAM, 0, stream, &code.to_be_bytes());
        }
        Act::GoAway(code) => {
            let last = stream.saturating_sub(2);
            frame(out, GOAWAY, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat());
            return false;
        }
        Act::Close => return false,
        Act::Nonsense => out.extend_from_slice(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        Act::Silence | Act::Take(_) => {}
    }
    true
}
