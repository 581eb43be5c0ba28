//! SIGTERM under load, the real binary: every request whose bytes had arrived is answered.

use crate::serving::Serve;
use crate::support::alone;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Architecture, threads and backend; the last have tables of descriptors of their own.
const SERVERS: [(&str, &str, &str, bool); 8] = [
    ("reactor", "1", "epoll", false),
    ("shared-nothing", "3", "epoll", false),
    ("dispatch", "3", "epoll", false),
    ("reactor", "1", "io-uring", false),
    ("shared-nothing", "3", "io-uring", false),
    ("dispatch", "3", "io-uring", false),
    ("shared-nothing", "3", "epoll", true),
    ("shared-nothing", "3", "io-uring", true),
];

fn start((arch, threads, backend, own_tables): (&str, &str, &str, bool)) -> Serve {
    let arguments = ["--arch", arch, "--threads", threads, "--backend", backend];
    if !own_tables {
        return Serve::start(&arguments);
    }
    let server = Serve::start_limited(1000, &[&arguments[..], &["--max-connections", "1500"]].concat());
    assert!(server.first_line.contains("each with its own table"), "{}", server.first_line);
    server
}

/// A client that this machine has held up for longer may find its connection closed: it was at rest.
const AT_REST: Duration = Duration::from_millis(100);
const REQUEST: &[u8] = b"GET /plaintext HTTP/1.1\r\nHost: h\r\n\r\n";

fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    Ok(stream)
}

/// Reads one answer of `/plaintext`; whether the connection stays.
fn read_answer(stream: &mut TcpStream) -> Result<bool, String> {
    let (mut answer, mut chunk) = (Vec::new(), [0; 512]);
    while !answer.ends_with(b"Hello, World!") {
        match stream.read(&mut chunk) {
            Ok(0) => return Err(format!("closed after {:?}", String::from_utf8_lossy(&answer))),
            Ok(n) => answer.extend_from_slice(&chunk[..n]),
            Err(error) => return Err(format!("{error} after {:?}", String::from_utf8_lossy(&answer))),
        }
    }
    Ok(!answer.windows(19).any(|w| w == b"Connection: close\r\n"))
}

/// All of these wait while the loops are held up: in the accept queue of a listener, in the queue of a loop, or
/// with their bytes in a socket.
#[test]
fn whoever_waits_when_the_signal_comes_is_answered() {
    let _alone = alone();
    for of in SERVERS {
        let ((arch, _, backend, _), server) = (of, start(of));
        let mut open: Vec<TcpStream> = (0..60).map(|_| connect(server.address).unwrap()).collect();
        for stream in &mut open {
            stream.write_all(REQUEST).unwrap();
            assert!(read_answer(stream).unwrap());
        }
        // So many that the hash gives some to each loop.
        let holding: Vec<TcpStream> = (0..12)
            .map(|_| {
                let mut stream = connect(server.address).unwrap();
                stream.write_all(b"GET /sleep?us=100000 HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
                stream
            })
            .collect();
        open.extend((0..100).map(|_| connect(server.address).unwrap()));
        for stream in &mut open {
            stream.write_all(REQUEST).unwrap();
        }
        server.signal("TERM");
        for (i, stream) in open.iter_mut().enumerate() {
            let answered = read_answer(stream);
            assert!(answered.is_ok(), "{arch} {backend}, connection {i}: {answered:?}");
            let mut rest = Vec::new();
            let end = stream.read_to_end(&mut rest);
            assert!(end.is_ok() && rest.is_empty(), "{arch} {backend}, connection {i} ends well: {end:?}");
        }
        drop((open, holding));
        server.end();
    }
}

/// What a client of a closed loop saw.
#[derive(Debug, Default)]
struct Seen {
    answers: u64,
    lost: Vec<String>,
}

/// Asks again as soon as it is answered, until the server says that it is the last; then nobody is there.
fn keep_asking(address: SocketAddr, answers: &AtomicU64) -> Seen {
    let mut seen = Seen::default();
    let mut stream = connect(address).unwrap();
    let mut answered = Instant::now();
    loop {
        let sent = stream.write_all(REQUEST).map_err(|error| error.to_string());
        let was_late = answered.elapsed() > AT_REST;
        match sent.and_then(|()| read_answer(&mut stream)) {
            Ok(stays) => {
                answered = Instant::now();
                seen.answers += 1;
                answers.fetch_add(1, Ordering::Relaxed);
                if !stays {
                    return seen;
                }
            }
            Err(_) if was_late => return seen,
            Err(error) => {
                seen.lost.push(error);
                return seen;
            }
        }
    }
}

/// A connection for each request, until nobody is there. Only what was sent before `stopped` has to be answered.
fn keep_connecting(address: SocketAddr, begin: Instant, stopped_ns: &AtomicU64) -> Seen {
    let mut seen = Seen::default();
    loop {
        let sent = connect(address).and_then(|mut stream| stream.write_all(REQUEST).map(|()| stream));
        let sent_ns = begin.elapsed().as_nanos() as u64;
        let Ok(mut stream) = sent else { return seen };
        match read_answer(&mut stream) {
            Ok(_) => seen.answers += 1,
            Err(_) if sent_ns >= stopped_ns.load(Ordering::Acquire) => return seen,
            Err(error) => {
                seen.lost.push(error);
                return seen;
            }
        }
    }
}

#[test]
fn a_closed_loop_loses_nothing_to_the_signal() {
    let _alone = alone();
    for of in SERVERS {
        let ((arch, threads, backend, _), server) = (of, start(of));
        let (address, begin) = (server.address, Instant::now());
        let (stopped_ns, answers) = (AtomicU64::new(u64::MAX), AtomicU64::new(0));
        let all: Vec<Seen> = std::thread::scope(|scope| {
            let (stopped_ns, answers) = (&stopped_ns, &answers);
            let mut clients: Vec<_> =
                (0..24).map(|_| scope.spawn(move || keep_asking(address, answers))).collect();
            clients.extend((0..4).map(|_| scope.spawn(move || keep_connecting(address, begin, stopped_ns))));
            crate::support::eventually("the load runs", || answers.load(Ordering::Relaxed) > 2000);
            stopped_ns.store(begin.elapsed().as_nanos() as u64, Ordering::Release);
            server.signal("TERM");
            clients.into_iter().map(|client| client.join().unwrap()).collect()
        });
        for seen in &all {
            assert!(seen.lost.is_empty(), "{arch} {backend}: {:?} after {} answers", seen.lost, seen.answers);
        }
        let said = server.end();
        // The server counts what the clients counted, and perhaps the last of those who came too late to be sure.
        let column = if threads == "1" { "0 " } else { "all " };
        let row = said.lines().rfind(|line| line.starts_with(column)).unwrap();
        let counted: u64 = row.split_whitespace().rev().nth(2).unwrap().parse().unwrap();
        let got: u64 = all.iter().map(|seen| seen.answers).sum();
        assert!(
            counted >= got && counted <= got + 4,
            "{arch} {backend}: {counted} answered, {got} received\n{said}"
        );
    }
}
