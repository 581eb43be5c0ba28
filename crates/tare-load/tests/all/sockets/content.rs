//! What is asked and what answers hold, on real sockets: expectations, captures, files of requests, and TLS around it all.

use super::support::{Reply, Server, hello, requests, whole};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tare_load::{CaptureFrom, Generator, LoadError, LoadSpec, Target, preflight};
use tare_model::trial::ErrorKind;

fn page(body: &str) -> Reply {
    Reply::Keep(
        format!("HTTP/1.1 200 OK\r\nX-Kind: a page\r\nContent-Length: {}\r\n\r\n{body}", body.len())
            .into_bytes(),
    )
}

#[test]
fn answers_are_compared_with_what_is_expected() {
    type Change = fn(&mut LoadSpec);
    let cases: [(Change, bool); 8] = [
        (|spec| spec.expect.statuses = vec![201, 200], true),
        (|spec| spec.expect.statuses = vec![404], false),
        (|spec| spec.expect.headers = vec![("x-kind".to_owned(), "page".to_owned())], true),
        (|spec| spec.expect.headers = vec![("x-other".to_owned(), String::new())], false),
        (|spec| spec.expect.body_bytes = Some(11), true),
        (|spec| spec.expect.body_bytes = Some(10), false),
        (|spec| spec.expect.body_contains = Some("lo wo".to_owned()), true),
        (|spec| spec.expect.body_contains = Some("lo  wo".to_owned()), false),
    ];
    let server = Server::start(|_, _| page("hello world"));
    for (number, (change, fits)) in cases.into_iter().enumerate() {
        let mut spec = server.spec();
        (spec.connections, spec.pipeline, spec.requests_max) = (2, 2, Some(40));
        change(&mut spec);
        let sample = whole(&spec);
        let unexpected = sample.errors.get(&ErrorKind::Unexpected).copied().unwrap_or(0);
        assert_eq!((requests(&sample), unexpected), (40, if fits { 0 } else { 40 }), "case {number}");
        assert!(sample.errors.keys().all(|kind| *kind == ErrorKind::Unexpected));
    }
    let server = Server::start(|_, _| Reply::Keep(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n".to_vec()));
    let mut spec = server.spec();
    (spec.expect.statuses, spec.requests_max) = (vec![404], Some(20));
    assert_eq!(whole(&spec).errors.len(), 0, "a status that is expected is no error");
}

#[test]
fn what_an_answer_gave_goes_into_later_requests_of_its_connection() {
    // Each connection is given a token, and must send it back from then on.
    let server = Server::start(|_, request| {
        let request = String::from_utf8_lossy(request).into_owned();
        let token =
            request.lines().find_map(|line| line.strip_prefix("X-Token: ")).unwrap_or_default().to_owned();
        let id = request.split(['=', ' ']).nth(2).unwrap_or_default().to_owned();
        let (status, next) =
            if token.is_empty() { (200, "t-1".to_owned()) } else { (202, format!("{token}1")) };
        assert!(token.is_empty() || token.replace("t-", "").bytes().all(|byte| byte == b'1'), "{request}");
        assert_eq!(id.len(), token.len().saturating_sub(2), "{request}");
        let body = format!("{{\"id\":\"{}\"}}", "7".repeat(next.len() - 2));
        Reply::Keep(
            format!(
                "HTTP/1.1 {status} OK\r\nSet-Token: {next}; x\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            )
            .into_bytes(),
        )
    });
    let mut spec = super::support::spec(&format!("http://{}/?id={{{{capture:id}}}}", server.address));
    spec.content.templates = true;
    spec.content.headers = vec![("X-Token".to_owned(), "{{capture:token}}".to_owned())];
    let capture = |name: &str, from| tare_load::Capture { name: name.to_owned(), from };
    spec.content.captures = vec![
        capture("token", CaptureFrom::Header("set-token".to_owned())),
        capture("id", CaptureFrom::Body { after: "\"id\":\"".to_owned(), before: "\"".to_owned() }),
    ];
    (spec.connections, spec.requests_max) = (3, Some(60));
    let sample = whole(&spec);
    assert_eq!((requests(&sample), sample.errors.len()), (60, 0), "{:?}", sample.errors);
}

#[test]
fn a_request_file_and_a_csv_file_are_sent_line_by_line() {
    let seen = Arc::new(std::sync::Mutex::new(std::collections::BTreeMap::<String, u64>::new()));
    let count = Arc::clone(&seen);
    let server = Server::start(move |_, request| {
        let head = String::from_utf8_lossy(request).lines().next().unwrap_or_default().to_owned();
        *count.lock().unwrap().entry(head).or_default() += 1;
        let to_head = request.starts_with(b"HEAD");
        if to_head { Reply::Keep(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n".to_vec()) } else { hello() }
    });
    let folder = tempfile::tempdir().unwrap();
    let (file, csv) = (folder.path().join("requests"), folder.path().join("values.csv"));
    std::fs::write(&file, "GET /a/{{csv:v}}\n{\"method\":\"HEAD\",\"path\":\"/b\"}\n").unwrap();
    std::fs::write(&csv, "v\none\ntwo\n").unwrap();
    let mut spec = server.spec();
    (spec.content.request_file, spec.content.csv_file, spec.content.templates) =
        (Some(file.clone()), Some(csv), true);
    (spec.connections, spec.pipeline, spec.requests_max) = (2, 3, Some(100));
    let sample = whole(&spec);
    assert_eq!((requests(&sample), sample.errors.len()), (100, 0), "{:?}", sample.errors);
    // Request n takes line n and row n: even requests are the first line, and even rows `one`.
    let seen = seen.lock().unwrap().clone().into_iter().collect::<Vec<_>>();
    assert_eq!(seen, [("GET /a/one HTTP/1.1".to_owned(), 50), ("HEAD /b HTTP/1.1".to_owned(), 50)]);

    std::fs::write(&file, "GET /a\nGET nowhere\n").unwrap();
    let error = Generator::start(&spec).unwrap_err().to_string();
    assert!(error.contains("line 2"), "{error}");
}

#[test]
fn a_request_file_that_becomes_empty_is_an_error_and_nothing_else_is_asked_for() {
    let strange = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let count = Arc::clone(&strange);
    let server = Server::start(move |_, request| {
        count.fetch_add(u64::from(!request.starts_with(b"GET /line-abcde ")), Ordering::SeqCst);
        hello()
    });
    for (keep_alive, pipeline) in [(true, 1), (true, 3), (false, 1)] {
        let file = tempfile::NamedTempFile::new().unwrap();
        // More than what is read ahead, which ends with a line.
        std::fs::write(file.path(), "GET /line-abcde\n".repeat(20_000)).unwrap();
        let mut spec = server.spec();
        spec.content.request_file = Some(file.path().to_path_buf());
        (spec.keep_alive, spec.pipeline, spec.connections) = (keep_alive, pipeline, 2);
        let mut generator = Generator::start(&spec).unwrap();
        super::support::run_until(&generator, |live| live.answers >= 5);
        file.as_file().set_len(0).unwrap();
        super::support::run_until(&generator, |live| live.errors >= 5);
        let sample = generator.cut();
        generator.stop().unwrap();
        assert_eq!(sample.errors.keys().copied().collect::<Vec<_>>(), [ErrorKind::BodyFile]);
        // Each once, after rests that grow: never as fast as a loop can fail.
        assert!(sample.errors[&ErrorKind::BodyFile] < 100, "{:?}", sample.errors);
    }
    assert_eq!(strange.load(Ordering::SeqCst), 0, "the URL was asked for");
}

#[test]
fn tls_carries_it_too_with_sessions_resumed_or_not() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config =
        Arc::new(builder.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).unwrap());
    let resumed = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let count = Arc::clone(&resumed);
    std::thread::spawn(move || {
        for tcp in listener.incoming() {
            let (config, count) = (Arc::clone(&config), Arc::clone(&count));
            std::thread::spawn(move || {
                let server = rustls::ServerConnection::new(config).unwrap();
                let mut stream = rustls::StreamOwned::new(server, tcp.unwrap());
                while stream.conn.is_handshaking() && stream.conn.complete_io(&mut stream.sock).is_ok() {}
                if stream.conn.handshake_kind() == Some(rustls::HandshakeKind::Resumed) {
                    count.fetch_add(1, Ordering::SeqCst);
                }
                super::support::echo_hello(stream);
            });
        }
    });
    let mut spec = LoadSpec::new(Target::parse(&format!("https://{address}/")).unwrap());
    assert_eq!(preflight(&spec, Duration::from_secs(10)).unwrap().status, 200);
    (spec.connections, spec.requests_max) = (3, Some(200));
    assert_eq!(whole(&spec).errors.len(), 0);
    for resume in [false, true] {
        (spec.keep_alive, spec.route.tls.resume, spec.requests_max) = (false, resume, Some(60));
        resumed.store(0, Ordering::SeqCst);
        let sample = whole(&spec);
        assert_eq!((requests(&sample), sample.errors.len()), (60, 0), "{:?}", sample.errors);
        assert_eq!(resumed.load(Ordering::SeqCst) > 30, resume, "{}", resumed.load(Ordering::SeqCst));
    }
    // Plain text where TLS is spoken, and the other way round.
    let plain = Server::start(|_, _| Reply::Keep(b"HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n".to_vec()));
    let spec = LoadSpec::new(Target::parse(&format!("https://{}/", plain.address)).unwrap());
    let error = Generator::start(&spec).unwrap_err();
    // It waits for the end of a head.
    assert!(matches!(error, LoadError::NoAnswer { .. }), "{error}");
    assert!(preflight(&spec, Duration::from_millis(200)).is_err());
}
