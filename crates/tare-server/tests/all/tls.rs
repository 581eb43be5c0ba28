//! TLS on real sockets, with a certificate made on the spot.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use crate::epoll::common::{Running, config, get, last_get, start, start_builtin, until};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion};
use tare_server::{BackendChoice, Config, Server, ServerError, Timeouts, Tls};
use tempfile::TempDir;

type Stream = StreamOwned<ClientConnection, TcpStream>;

struct Pair {
    folder: TempDir,
    certificate: CertificateDer<'static>,
}

fn pair() -> Pair {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(folder.path().join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    Pair { folder, certificate: made.cert.der().clone() }
}

impl Pair {
    fn config(&self) -> Config {
        let file = |name: &str| self.folder.path().join(name);
        Config { tls: Some(Tls::from_pem(&file("cert.pem"), &file("key.pem")).unwrap()), ..config() }
    }

    fn connect(&self, server: &Running, version: &'static SupportedProtocolVersion) -> Stream {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            ClientConfig::builder_with_provider(provider).with_protocol_versions(&[version]).unwrap();
        let config = config.with_root_certificates(roots).with_no_client_auth();
        let client = ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap();
        StreamOwned::new(client, server.connect())
    }

    /// Sends and reads until the server's farewell, without which rustls calls it an error.
    fn exchange(&self, server: &Running, request: &[u8]) -> Vec<u8> {
        let mut stream = self.connect(server, &rustls::version::TLS13);
        stream.write_all(request).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        answer
    }
}

#[test]
fn requests_are_answered_as_in_the_clear() {
    let pair = pair();
    for backend in [BackendChoice::Epoll, BackendChoice::IoUring] {
        let sealed = start_builtin(Config { backend, ..pair.config() });
        check_answers(&pair, &sealed, &start_builtin(config()));
    }
}

fn check_answers(pair: &Pair, sealed: &Running, clear: &Running) {
    for (path, version) in [
        ("/plaintext", &rustls::version::TLS13),
        ("/json", &rustls::version::TLS12),
        ("/bytes/10", &rustls::version::TLS12),
        ("/bytes/3000000", &rustls::version::TLS13),
        ("/status/204", &rustls::version::TLS13),
        ("/nothing", &rustls::version::TLS13),
    ] {
        let request = format!("{}{}", get(path), last_get(path));
        let mut stream = pair.connect(sealed, version);
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let without_date = |text: &str| {
            let lines: Vec<&str> = text.split("\r\n").filter(|line| !line.starts_with("Date: ")).collect();
            lines.join("\r\n")
        };
        let wanted = clear.exchange(request.as_bytes());
        assert!(without_date(&String::from_utf8(answer).unwrap()) == without_date(&wanted), "{path}");
    }
}

#[test]
fn bodies_pipelines_and_pieces_of_a_byte_arrive() {
    let pair = pair();
    let server = start_builtin(pair.config());
    let mut stream = pair.connect(&server, &rustls::version::TLS13);
    let post = "GET /plaintext HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";
    for byte in format!("{post}{}", get("/plaintext")).bytes() {
        stream.write_all(&[byte]).unwrap();
        stream.flush().unwrap();
    }
    // More answers than may wait at once.
    stream.write_all(get("/bytes/4000").repeat(200).as_bytes()).unwrap();
    stream.write_all(last_get("/json").as_bytes()).unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).unwrap();
    assert_eq!(answers.matches("HTTP/1.1 200 OK\r\n").count(), 203);
    assert!(answers.ends_with(r#"{"message":"Hello, World!"}"#));
}

#[test]
fn files_and_their_parts_arrive() {
    let pair = pair();
    let root = tempfile::tempdir().unwrap();
    let big: Vec<u8> = (0..3_000_000u32).map(|i| (i % 251) as u8).collect();
    std::fs::write(root.path().join("big.bin"), &big).unwrap();
    let server = start(Server::builder().files(root.path()).unwrap(), pair.config());
    let ask = |fields: &str| {
        let request = format!("GET /big.bin HTTP/1.1\r\nHost: h\r\nConnection: close\r\n{fields}\r\n");
        let answer = pair.exchange(&server, request.as_bytes());
        let end = answer.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 4;
        answer[end..].to_vec()
    };
    assert!(ask("") == big);
    assert!(ask("Range: bytes=70000-2000000\r\n") == big[70_000..=2_000_000]);
    let parts = ask("Range: bytes=0-99999,200000-399999\r\n");
    for part in [&big[..100_000], &big[200_000..400_000]] {
        assert!(parts.windows(part.len()).any(|window| window == part));
    }
}

#[test]
fn what_is_no_tls_gets_an_alert_and_the_server_goes_on() {
    let pair = pair();
    let server = start_builtin(pair.config());
    for nonsense in [get("/plaintext").as_bytes(), b"\x16\x03\x01\xff\xff", &[0x16; 500], &[0; 70_000]] {
        let mut stream = server.connect();
        let _ = stream.write_all(nonsense);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(!answer.starts_with(b"HTTP"), "{:?}", String::from_utf8_lossy(&answer));
    }
    assert!(pair.exchange(&server, last_get("/plaintext").as_bytes()).ends_with(b"Hello, World!"));
    until("all are gone", || server.stop.report().sum().open == 0);
}

#[test]
fn what_is_no_tls_is_closed_without_waiting_for_its_end() {
    let pair = pair();
    let timeouts = Timeouts { head: Duration::from_secs(3600), ..Timeouts::default() };
    for backend in [BackendChoice::Epoll, BackendChoice::IoUring] {
        let server = start_builtin(Config { backend, timeouts, ..pair.config() });
        let mut stream = server.connect();
        stream.write_all(get("/plaintext").as_bytes()).unwrap();
        let mut alert = Vec::new();
        stream.read_to_end(&mut alert).expect("the server closes");
        assert_eq!(alert.first(), Some(&0x15));
    }
}

#[test]
fn handshakes_that_drip_are_cut_off() {
    let pair = pair();
    let short = Duration::from_millis(300);
    let timeouts = Timeouts { head: short, linger: short, ..Timeouts::default() };
    let server = start_builtin(Config { timeouts, ..pair.config() });
    // The start of a record of 16 kB, a byte at a time; and one that is cut within a request.
    let mut silent = pair.connect(&server, &rustls::version::TLS13);
    silent.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    let mut dripping = server.connect();
    dripping.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    dripping.write_all(b"\x16\x03\x01\x40\x00").unwrap();
    let mut ended = false;
    until("the handshake is cut off", || {
        let _ = dripping.write_all(b"a");
        ended |= match dripping.read(&mut [0; 100]) {
            Ok(n) => n == 0,
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        };
        ended
    });
    let mut answer = String::new();
    silent.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
}

#[test]
fn a_stopped_server_answers_what_has_arrived() {
    let pair = pair();
    let server = start_builtin(pair.config());
    let mut streams: Vec<Stream> = (0..10).map(|_| pair.connect(&server, &rustls::version::TLS13)).collect();
    for stream in &mut streams {
        stream.write_all(get("/plaintext").as_bytes()).unwrap();
    }
    server.stop.stop();
    for stream in &mut streams {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.ends_with("Hello, World!"), "{answer:?}");
    }
}

#[test]
fn files_that_are_no_certificate_are_refused_with_a_hint() {
    let (one, other) = (pair(), pair());
    let file = |pair: &Pair, name: &str| pair.folder.path().join(name);
    for (certificate, key) in [
        (file(&one, "none.pem"), file(&one, "key.pem")),
        (file(&one, "key.pem"), file(&one, "key.pem")),
        (file(&one, "cert.pem"), file(&one, "cert.pem")),
        (file(&one, "cert.pem"), file(&other, "key.pem")),
    ] {
        let error = Tls::from_pem(&certificate, &key).err().unwrap();
        assert!(matches!(error, ServerError::Tls { .. }) && error.to_string().contains("hint:"), "{error}");
    }
}
