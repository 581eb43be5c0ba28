//! A server of few lines whose every answer is scripted.
#![allow(dead_code, reason = "each copy is used in part")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tare_load::{EngineChoice, Generator, Live, LoadSpec, Target, Workers};
use tare_model::trial::HttpSample;

/// The engine that this copy of the tests is about: the name of the module around them says it.
const ENGINE: EngineChoice = if module_path!().as_bytes()["all::".len()] == b'i' {
    EngineChoice::IoUring
} else {
    EngineChoice::Epoll
};

/// One connection's load on `url` by the engine that is tested.
pub fn spec(url: &str) -> LoadSpec {
    LoadSpec {
        workers: Workers { engine: ENGINE, ..Workers::default() },
        ..LoadSpec::new(Target::parse(url).unwrap())
    }
}

/// What the server sends back, and what it does then.
pub enum Reply {
    /// These bytes; the connection stays.
    Keep(Vec<u8>),
    /// These bytes, then the connection is closed.
    Close(Vec<u8>),
    /// These bytes, then the connection is reset.
    Reset(Vec<u8>),
}

pub struct Server {
    pub address: SocketAddr,
    pub accepted: Arc<AtomicU64>,
    pub requests: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Server {
    /// Answers request `n` (over all connections, from 0) with what `script` says.
    pub fn start(script: impl Fn(u64, &[u8]) -> Reply + Send + Sync + 'static) -> Server {
        Server::start_at("127.0.0.1:0".parse().unwrap(), script)
    }

    pub fn start_at(
        address: SocketAddr,
        script: impl Fn(u64, &[u8]) -> Reply + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind(address).unwrap();
        let server = Server {
            address: listener.local_addr().unwrap(),
            accepted: Arc::default(),
            requests: Arc::default(),
            stop: Arc::default(),
        };
        let (accepted, requests, stop) =
            (Arc::clone(&server.accepted), Arc::clone(&server.requests), Arc::clone(&server.stop));
        let script = Arc::new(script);
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(connection) = connection else { continue };
                accepted.fetch_add(1, Ordering::SeqCst);
                let (script, requests, stop) =
                    (Arc::clone(&script), Arc::clone(&requests), Arc::clone(&stop));
                std::thread::spawn(move || serve(connection, &*script, &requests, &stop));
            }
        });
        server
    }

    pub fn spec(&self) -> LoadSpec {
        spec(&format!("http://{}/", self.address))
    }

    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        TcpStream::connect(self.address).ok();
    }
}

fn serve(
    mut connection: TcpStream,
    script: &dyn Fn(u64, &[u8]) -> Reply,
    requests: &AtomicU64,
    stop: &AtomicBool,
) {
    connection.set_nodelay(true).ok();
    connection.set_read_timeout(Some(Duration::from_millis(20))).ok();
    let (mut buffer, mut piece) = (Vec::new(), [0; 16 * 1024]);
    while !stop.load(Ordering::SeqCst) {
        match connection.read(&mut piece) {
            Ok(0) => return,
            Ok(n) => buffer.extend_from_slice(&piece[..n]),
            Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock) => continue,
            Err(_) => return,
        }
        let mut out = Vec::new();
        while let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            let request: Vec<u8> = buffer.drain(..end + 4).collect();
            match script(requests.fetch_add(1, Ordering::SeqCst), &request) {
                Reply::Keep(bytes) => out.extend_from_slice(&bytes),
                Reply::Close(bytes) => {
                    out.extend_from_slice(&bytes);
                    connection.write_all(&out).ok();
                    return;
                }
                Reply::Reset(bytes) => {
                    out.extend_from_slice(&bytes);
                    connection.write_all(&out).ok();
                    tare_sys::net::set_reset_on_close(&connection).ok();
                    return;
                }
            }
        }
        if connection.write_all(&out).is_err() {
            return;
        }
    }
}

pub const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

pub fn hello() -> Reply {
    Reply::Keep(HELLO.into())
}

/// Waits until `enough` says so of the counts, for at most half a minute.
pub fn run_until(generator: &Generator, enough: impl Fn(Live) -> bool) {
    wait_until(|| enough(generator.live()), || format!("{:?}", generator.live()));
}

pub fn wait_until(mut condition: impl FnMut() -> bool, state: impl Fn() -> String) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < deadline, "not within 30 s: {}", state());
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Runs until there were this many answers and errors, then cuts.
pub fn sample(spec: &LoadSpec, answers: u64, errors: u64) -> HttpSample {
    cut_after(spec, |generator| run_until(generator, |live| live.answers >= answers && live.errors >= errors))
}

/// Runs until as many requests as the spec has are answered.
pub fn whole(spec: &LoadSpec) -> HttpSample {
    cut_after(spec, |generator| wait_until(|| generator.finished(), || format!("{:?}", generator.live())))
}

fn cut_after(spec: &LoadSpec, wait: impl FnOnce(&Generator)) -> HttpSample {
    let mut generator = Generator::start(spec).unwrap();
    wait(&generator);
    let sample = generator.cut();
    generator.stop().unwrap();
    sample
}

pub fn requests(sample: &HttpSample) -> u64 {
    *sample.requests.value().unwrap()
}

/// Answers each piece that comes with [`HELLO`], until the end of the stream.
pub fn echo_hello(mut connection: impl Read + Write) {
    let mut piece = [0; 4096];
    while connection.read(&mut piece).is_ok_and(|read| read > 0)
        && connection.write_all(HELLO.as_bytes()).is_ok()
    {}
}
