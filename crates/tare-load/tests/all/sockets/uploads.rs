//! Bodies that are sent from their file, piece by piece.

use super::answers::only;
use super::support::{requests, sample, spec, whole};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tare_load::{Generator, LoadSpec, SpecError, preflight};
use tare_model::trial::ErrorKind;

const BYTES: usize = 3 << 20;
/// Before each MiB of a slow server.
const PAUSE: Duration = Duration::from_millis(50);
const DONE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
const TOO_LARGE: &[u8] = b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

fn body() -> Vec<u8> {
    (0..BYTES).map(|k| (k / 3 + k / 70_000) as u8).collect()
}

fn file() -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&body()).unwrap();
    file
}

/// What a server does with an upload.
#[derive(Clone, Copy, PartialEq)]
enum Act {
    /// Reads all of it.
    Take,
    /// Reads so many MiB, a pause before each.
    Slowly(usize),
    /// Answers when this much has come; takes what comes until the connection is closed.
    Early(usize),
    /// Closes then.
    CutOff(usize),
    /// Reads nothing of the body and says nothing.
    Stall,
}

struct Server {
    address: SocketAddr,
    /// Bodies that came whole and right.
    right: Arc<AtomicU64>,
}

fn serve(act: Act) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, right) = (listener.local_addr().unwrap(), Arc::new(AtomicU64::new(0)));
    let (count, sent) = (Arc::clone(&right), Arc::new(body()));
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let (count, sent) = (Arc::clone(&count), Arc::clone(&sent));
            std::thread::spawn(move || {
                let mut connection = connection?;
                while take(&mut connection, act, &sent)? {
                    count.fetch_add(1, Ordering::SeqCst);
                    connection.write_all(DONE)?;
                }
                std::io::Result::Ok(())
            });
        }
    });
    Server { address, right }
}

/// Whether a body came whole and right.
fn take(connection: &mut TcpStream, act: Act, sent: &[u8]) -> std::io::Result<bool> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        connection.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let length = format!("Content-Length: {BYTES}\r\n");
    let is_long = matches!(act, Act::Early(_) | Act::Slowly(_));
    assert!(is_long || String::from_utf8_lossy(&head).contains(&length), "another length");
    if let Act::Slowly(count) = act {
        let mut piece = vec![0; 1 << 20];
        for _ in 0..count {
            std::thread::sleep(PAUSE);
            connection.read_exact(&mut piece)?;
        }
        return Ok(true);
    }
    let most = match act {
        Act::Early(most) | Act::CutOff(most) => most,
        Act::Take | Act::Slowly(_) => BYTES,
        Act::Stall => 0,
    };
    let mut body = vec![0; most];
    connection.read_exact(&mut body)?;
    match act {
        Act::Take | Act::Slowly(_) => Ok(body == sent),
        Act::Early(_) => {
            connection.write_all(TOO_LARGE)?;
            // What was not read when a connection is closed resets it, and the answer may be lost.
            std::io::copy(connection, &mut std::io::sink()).map(|_| false)
        }
        Act::CutOff(_) => Ok(false),
        Act::Stall => {
            std::thread::sleep(Duration::from_secs(60));
            Ok(false)
        }
    }
}

fn upload(server: &Server, file: &tempfile::NamedTempFile) -> LoadSpec {
    let mut spec = spec(&format!("http://{}/", server.address));
    spec.content.method = "PUT".to_owned();
    spec.content.body_file = Some(file.path().to_path_buf());
    (spec.connections, spec.timeout_ns) = (3, 20_000_000_000);
    spec
}

#[test]
fn a_file_of_any_length_is_sent_whole_on_each_connection() {
    let (server, file) = (serve(Act::Take), file());
    let mut spec = upload(&server, &file);
    assert_eq!(preflight(&spec, Duration::from_secs(10)).unwrap().status, 200);
    for keep_alive in [true, false] {
        (spec.keep_alive, spec.requests_max) = (keep_alive, Some(20));
        let before = server.right.load(Ordering::SeqCst);
        let sample = whole(&spec);
        assert_eq!((requests(&sample), sample.errors.len()), (20, 0), "{:?}", sample.errors);
        assert_eq!(server.right.load(Ordering::SeqCst) - before, 20);
        let sent = sample.detail.unwrap().bytes_out;
        assert!((20 * BYTES as u64..20 * (BYTES as u64 + 200)).contains(&sent), "{sent}");
    }
}

#[test]
fn a_server_that_takes_it_slowly_has_its_time_with_each_piece() {
    // The whole takes longer than the timeout; what buffers hold of it at the end, ten MiB or so, by far not.
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(70 << 20).unwrap();
    let mut spec = upload(&serve(Act::Slowly(70)), &file);
    (spec.connections, spec.timeout_ns, spec.requests_max) = (1, 70 * PAUSE.as_nanos() as u64 - 1, Some(1));
    let sample = whole(&spec);
    assert_eq!((requests(&sample), sample.errors.len()), (1, 0), "{:?}", sample.errors);
    assert!(sample.latency.value().unwrap().max_ns().unwrap() > spec.timeout_ns);
}

#[test]
fn a_server_that_takes_nothing_is_given_up() {
    let (server, file) = (serve(Act::Stall), file());
    let mut spec = upload(&server, &file);
    spec.timeout_ns = 50_000_000;
    assert!(only(&sample(&spec, 0, 6), ErrorKind::Timeout) >= 6);
}

#[test]
fn an_answer_before_the_end_is_an_answer_and_the_rest_is_not_sent() {
    // A gigabyte that takes no room on the disk.
    let long = tempfile::NamedTempFile::new().unwrap();
    long.as_file().set_len(1 << 30).unwrap();
    for most in [0, 100_000, 1 << 20] {
        let sample = sample(&upload(&serve(Act::Early(most)), &long), 10, 10);
        assert_eq!(only(&sample, ErrorKind::Status), requests(&sample), "{:?}", sample.errors);
        assert!(sample.detail.unwrap().bytes_out < 5 << 30, "ten of them, and three under way");
    }
    let spec = upload(&serve(Act::Early(100_000)), &long);
    assert_eq!(preflight(&spec, Duration::from_secs(10)).unwrap().status, 413);
}

#[test]
fn an_upload_that_is_cut_off_is_an_error() {
    let (server, file) = (serve(Act::CutOff(200_000)), file());
    assert!(only(&sample(&upload(&server, &file), 0, 10), ErrorKind::Io) >= 10);
}

#[test]
fn a_file_that_becomes_shorter_is_an_error_and_nothing_hangs() {
    let (server, file) = (serve(Act::Take), file());
    let spec = upload(&server, &file);
    let generator = Generator::start(&spec).unwrap();
    super::support::run_until(&generator, |live| live.answers >= 5);
    file.as_file().set_len(1000).unwrap();
    super::support::run_until(&generator, |live| live.errors >= 5);
    // As long again, and other bytes: what is there is sent.
    file.as_file().set_len(BYTES as u64 + 1).unwrap();
    generator.stop().unwrap();

    file.as_file().set_len(BYTES as u64).unwrap();
    let mut generator = Generator::start(&spec).unwrap();
    file.as_file().set_len(0).unwrap();
    generator.cut();
    super::support::run_until(&generator, |live| live.errors >= 12);
    let sample = generator.cut();
    generator.stop().unwrap();
    assert_eq!(sample.errors.keys().copied().collect::<Vec<_>>(), [ErrorKind::BodyFile]);
}

#[test]
fn what_cannot_be_sent_from_a_file_is_refused() {
    let (server, file) = (serve(Act::Stall), file());
    let fault = |change: fn(&mut LoadSpec)| {
        let mut spec = upload(&server, &file);
        change(&mut spec);
        spec.validate().unwrap_err()
    };
    assert_eq!(fault(|spec| spec.pipeline = 2), SpecError::UploadPipelined);
    assert_eq!(fault(|spec| spec.content.templates = true), SpecError::UploadWithTemplates);
    let nowhere = fault(|spec| spec.content.body_file = Some("/nowhere".into())).to_string();
    assert!(nowhere.contains("/nowhere: No such file"), "{nowhere}");
}
