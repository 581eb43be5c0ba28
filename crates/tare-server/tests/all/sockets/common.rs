//! A server in threads of the test, and a client that reads to the end.
#![allow(dead_code, reason = "each copy is used in part")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use tare_server::{BackendChoice, Builder, Config, Listening, Report, Server, ServerError, StopHandle};

pub struct Running {
    pub address: SocketAddr,
    pub stop: StopHandle,
    thread: Option<JoinHandle<Result<Report, ServerError>>>,
}

/// The backend that this copy of the tests is about: the name of the module around them says it.
const BACKEND: BackendChoice = if module_path!().as_bytes()["all::".len()] == b'i' {
    BackendChoice::IoUring
} else {
    BackendChoice::Epoll
};

pub fn config() -> Config {
    Config { backend: BACKEND, ..Config::new("127.0.0.1:0".parse().unwrap()) }
}

/// So many loops, each free to run anywhere.
pub fn threads(threads: usize) -> Listening {
    Listening { threads, ..config().listening }
}

pub fn start(builder: Builder, config: Config) -> Running {
    let wanted = config.backend;
    let server = builder.bind(config).unwrap();
    assert_eq!(server.backend().name(), wanted.name(), "{:?}", server.backend());
    let (address, stop) = (server.local_addr(), server.stop_handle());
    Running { address, stop, thread: Some(std::thread::spawn(move || server.run())) }
}

pub fn start_builtin(config: Config) -> Running {
    start(Server::builder().builtin_routes(), config)
}

impl Running {
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// Sends, and reads until the server closes.
    pub fn exchange(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        stream.write_all(bytes).unwrap();
        read_all(&mut stream)
    }

    pub fn finish(mut self) -> Report {
        self.stop.stop();
        self.thread.take().unwrap().join().unwrap().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

pub fn read_all(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

pub fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n")
}

pub fn last_get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n")
}

/// Polls until it holds; fails after 20 s.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("not within 20 s: {what}");
}
