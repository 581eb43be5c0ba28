//! HTTP/2 on real sockets: each thing that a server can do is counted under its kind, and the run goes on.

use crate::epoll::support::{requests, sample, whole};
use crate::http2_server::{Act, BROKEN, NOT_FOUND, OK, Server, upload};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tare_load::{
    Gaps, Generator, LoadError, LoadSpec, Pacing, Protocol, Route, SpecError, Target, preflight,
};
use tare_model::trial::ErrorKind;

#[test]
fn streams_of_a_connection_are_answered_and_counted_once_each() {
    let server = Server::start(None, |_| Act::Body(b"hello", Some(5)));
    for (pacing, streams) in [
        (Pacing::Closed, 1),
        (Pacing::Closed, 20),
        (Pacing::Open { rate_hz: 20_000.0, gaps: Gaps::Poisson }, 4),
        (Pacing::Thinking { mean_ns: 1_000_000, gaps: Gaps::Poisson }, 3),
    ] {
        let mut spec = server.spec();
        (spec.connections, spec.workers.threads, spec.pipeline) = (4, 2, streams);
        (spec.pacing, spec.requests_max) = (pacing, Some(1000));
        let before = server.seen.requests.load(Ordering::SeqCst);
        let sample = whole(&spec);
        assert_eq!((requests(&sample), sample.errors.len()), (1000, 0), "{:?}", sample.errors);
        assert_eq!(server.seen.requests.load(Ordering::SeqCst) - before, 1000);
        assert_eq!(sample.latency.value().unwrap().count(), 1000);
        assert_eq!((*sample.in_flight.value().unwrap(), sample.scheduled.unwrap_or(1000)), (0, 1000));
        let detail = sample.detail.unwrap();
        assert_eq!((detail.status_classes[1], detail.streams_allowed), (1000, Some(streams)));
        assert!(detail.bytes_out > 0 && *sample.bytes_in.value().unwrap() > 1000 * 5);
    }
}

/// A request that is never answered fails after the first. One whose server is only slow has the second.
const SHORT_NS: u64 = 200_000_000;
const LONG_NS: u64 = 20_000_000_000;

#[test]
fn as_many_streams_as_the_server_allows() {
    let server = Server::start(Some(3), |n| if n % 7 == 0 { Act::Silence } else { Act::Status(OK) });
    let mut spec = server.spec();
    (spec.connections, spec.pipeline, spec.timeout_ns) = (2, 10, SHORT_NS);
    let sample = sample(&spec, 50, 5);
    assert_eq!(sample.errors.keys().copied().collect::<Vec<_>>(), [ErrorKind::Timeout]);
    assert_eq!(server.seen.streams_max.load(Ordering::SeqCst), 3);
    let detail = sample.detail.unwrap();
    assert_eq!((detail.streams_allowed, detail.held_in_flight), (Some(3), Some(6)));
}

#[test]
fn what_breaks_is_counted_under_its_kind_and_the_run_goes_on() {
    const REFUSED: u32 = 7;
    const INTERNAL: u32 = 2;
    for (act, kind) in [
        (Act::Status(NOT_FOUND), ErrorKind::Status),
        (Act::Status(BROKEN), ErrorKind::Status),
        (Act::Reset(INTERNAL), ErrorKind::StreamReset),
        (Act::HalfThenReset(INTERNAL), ErrorKind::StreamReset),
        (Act::Reset(REFUSED), ErrorKind::StreamRefused),
        (Act::GoAway(INTERNAL), ErrorKind::GoAway),
        (Act::Close, ErrorKind::Io),
        (Act::Body(b"hello", Some(6)), ErrorKind::Malformed),
        (Act::Nonsense, ErrorKind::Malformed),
        (Act::Silence, ErrorKind::Timeout),
    ] {
        // Every tenth answer is bad, the others are good.
        let server = Server::start(None, move |n| if n % 10 == 9 { act } else { Act::Body(b"hi", None) });
        let mut spec = server.spec();
        (spec.connections, spec.pipeline) = (2, 3);
        spec.timeout_ns = if kind == ErrorKind::Timeout { SHORT_NS } else { LONG_NS };
        let sample = sample(&spec, 200, 12);
        let kinds: Vec<_> = sample.errors.keys().copied().collect();
        assert_eq!(kinds, [kind], "{:?}", sample.errors);
        assert!(sample.errors[&kind] >= 12);
    }
}

#[test]
fn requests_that_a_leaving_server_did_not_touch_are_sent_again() {
    let server = Server::start(None, |n| if n % 50 == 49 { Act::GoAway(0) } else { Act::Status(OK) });
    let mut spec = server.spec();
    (spec.connections, spec.pipeline, spec.requests_max) = (2, 4, Some(1000));
    let sample = whole(&spec);
    assert_eq!((requests(&sample), sample.errors.len()), (1000, 0), "{:?}", sample.errors);
    assert!(server.seen.accepted.load(Ordering::SeqCst) > 10);
}

#[test]
fn a_connection_on_which_nothing_comes_is_given_up() {
    let server = Server::start(None, |_| Act::Silence);
    let mut spec = server.spec();
    (spec.connections, spec.pipeline, spec.timeout_ns) = (1, 4, 300_000_000);
    let sample = sample(&spec, 0, 12);
    assert_eq!(sample.errors.keys().copied().collect::<Vec<_>>(), [ErrorKind::Timeout]);
    assert!(server.seen.accepted.load(Ordering::SeqCst) > 1, "a stalled connection is opened anew");
}

#[test]
fn a_connection_for_each_request() {
    let server = Server::start(None, |_| Act::Body(b"hello", None));
    let mut spec = server.spec();
    (spec.connections, spec.keep_alive, spec.requests_max) = (3, false, Some(60));
    let sample = whole(&spec);
    assert_eq!((requests(&sample), sample.errors.len()), (60, 0), "{:?}", sample.errors);
    assert!(server.seen.accepted.load(Ordering::SeqCst) >= 60);
}

#[test]
fn answers_are_looked_into() {
    let server = Server::start(None, |n| Act::Body(if n % 2 == 0 { b"hello" } else { b"other" }, Some(5)));
    let mut spec = server.spec();
    (spec.pipeline, spec.requests_max) = (4, Some(100));
    spec.expect.body_contains = Some("hell".to_owned());
    spec.expect.headers = vec![("Content-Length".to_owned(), "5".to_owned())];
    let sample = whole(&spec);
    assert_eq!((requests(&sample), sample.errors[&ErrorKind::Unexpected]), (100, 50));
}

#[test]
fn preflight_asks_by_http2_and_holds_its_connection() {
    let server = Server::start(None, |_| Act::Body(b"hello", Some(5)));
    let held = preflight(&server.spec(), Duration::from_secs(10)).unwrap();
    assert_eq!((held.status, held.peer_addr), (200, Some(server.address)));
    let silent = Server::start(None, |_| Act::Silence);
    let error = preflight(&silent.spec(), Duration::from_millis(50)).unwrap_err();
    assert!(matches!(error, LoadError::NoAnswer { .. }), "{error}");
}

#[test]
fn a_server_of_http1_is_none() {
    let old = crate::epoll::support::Server::start(|_, _| {
        crate::epoll::support::Reply::Close(b"HTTP/1.1 505 No\r\nContent-Length: 0\r\n\r\n".to_vec())
    });
    let spec = LoadSpec { protocol: Protocol::Http2, ..old.spec() };
    // Its words are read, or its close comes first.
    for error in
        [Generator::start(&spec).unwrap_err(), preflight(&spec, Duration::from_secs(10)).unwrap_err()]
    {
        assert!(matches!(error, LoadError::NoHttp2 { .. } | LoadError::NoConnection { .. }), "{error}");
        assert!(error.to_string().contains("HTTP/2"), "{error}");
    }
}

#[test]
fn tls_carries_it_where_both_agree_on_it() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config =
        builder.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).unwrap();
    for (alpn, speaks) in [("h2", true), ("http/1.1", false)] {
        config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
        let server = Server::start_with(Some(Arc::new(config.clone())), None, |_| Act::Body(b"hello", None));
        let target = Target::parse(&format!("https://{}/", server.address)).unwrap();
        let spec =
            LoadSpec { route: Route::to(target), pipeline: 5, requests_max: Some(300), ..server.spec() };
        let held = preflight(&spec, Duration::from_secs(10));
        if speaks {
            assert_eq!(held.unwrap().status, 200);
            let sample = whole(&spec);
            assert_eq!((requests(&sample), sample.errors.len()), (300, 0), "{:?}", sample.errors);
        } else {
            assert!(held.is_err());
            let started = Generator::start(&spec).unwrap_err();
            assert!(matches!(started, LoadError::NoHttp2 { .. }), "{started}");
        }
    }
}

#[test]
fn it_connects_elsewhere_and_follows_redirects() {
    let server = Server::start(None, |n| if n == 0 { Act::Redirect } else { Act::Status(OK) });
    let mut spec = server.spec();
    spec.route.target = Target::parse("http://shop.test/a").unwrap();
    (spec.route.connect_to, spec.route.follow) = (Some(server.address.to_string().parse().unwrap()), true);
    let found = preflight(&spec, Duration::from_secs(10)).unwrap();
    assert_eq!((found.redirects, found.target.to_string().as_str()), (1, "http://shop.test/end"));
    spec.requests_max = Some(100);
    assert_eq!(requests(&whole(&spec.aimed_at(found.target))), 100);
}

#[test]
fn where_redirects_lead_is_said() {
    let server = Server::start(None, |_| Act::Redirect);
    let mut spec = server.spec();
    spec.requests_max = Some(10);
    let detail = whole(&spec).detail.unwrap();
    assert_eq!((detail.status_classes[2], detail.said.redirected_to.as_deref()), (10, Some("/end")));
}

/// A file of so many bytes, and a load that sends it on two connections, three at once on each.
fn uploads(server: &Server, bytes: usize) -> (tempfile::NamedTempFile, LoadSpec) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&(0..bytes).map(upload).collect::<Vec<u8>>()).unwrap();
    let mut spec = server.spec();
    spec.content.method = "PUT".to_owned();
    spec.content.body_file = Some(file.path().to_path_buf());
    (spec.connections, spec.pipeline, spec.timeout_ns) = (2, 3, 10_000_000_000);
    (file, spec)
}

#[test]
fn a_file_of_any_length_is_sent_on_each_stream() {
    // With more to send at once than the server allows streams, each waits for one of its own as well as for room.
    for (streams, pipeline) in [(None, 3), (Some(3), 3), (Some(3), 8)] {
        let server = Server::start(streams, |_| Act::Take(Duration::ZERO));
        for bytes in [0, 1, 65_535, 65_536, 3 << 20] {
            let (_file, mut spec) = uploads(&server, bytes);
            assert_eq!(preflight(&spec, Duration::from_secs(10)).unwrap().status, 200, "{bytes}");
            (spec.pipeline, spec.requests_max) = (pipeline, Some(30));
            let sample = whole(&spec);
            let found = (requests(&sample), sample.errors.len());
            assert_eq!(found, (30, 0), "{streams:?} {bytes}: {:?}", sample.errors);
            assert!(sample.detail.unwrap().bytes_out >= 30 * bytes as u64);
        }
    }
}

#[test]
fn a_server_that_takes_a_body_slowly_has_its_time_with_each_piece() {
    let server = Server::start(None, |_| Act::Take(Duration::from_millis(5)));
    let (_file, mut spec) = uploads(&server, 3 << 20);
    // A second for the 200 frames of a body, and what is under way at its end is a window of four.
    (spec.connections, spec.pipeline, spec.requests_max, spec.timeout_ns) = (1, 1, Some(1), 500_000_000);
    let sample = whole(&spec);
    assert_eq!((requests(&sample), sample.errors.len()), (1, 0), "{:?}", sample.errors);
    assert!(sample.latency.value().unwrap().max_ns().unwrap() > spec.timeout_ns);
}

#[test]
fn an_answer_before_the_end_of_a_body_is_an_answer_and_the_rest_is_not_sent() {
    // It gives room for all that comes: only who sends it can end it.
    let server = Server::start(Some(3), |_| Act::Status(NOT_FOUND));
    let (file, mut spec) = uploads(&server, 0);
    file.as_file().set_len(1 << 30).unwrap();
    assert_eq!(preflight(&spec, Duration::from_secs(10)).unwrap().status, 404);
    let sample = sample(&spec, 50, 50);
    let errors = sample.errors.keys().copied().collect::<Vec<_>>();
    assert_eq!(errors, [ErrorKind::Status], "{:?}", sample.errors);
    // A stream's window of 4 MiB each, and six under way at the end.
    let (answers, sent) = (requests(&sample), sample.detail.unwrap().bytes_out);
    assert!(sent <= (answers + 6) * (5 << 20), "{sent} for {answers}");
    assert!(server.seen.resets.load(Ordering::SeqCst) > 0);
    (spec.connections, spec.pipeline) = (1024, 16);
    assert_eq!(spec.validate(), Ok(()));
    spec.connections = 1025;
    assert_eq!(spec.validate(), Err(SpecError::UploadsInFlight));
    (spec.protocol, spec.connections, spec.pipeline) = (Protocol::Http1, 20_000, 1);
    assert_eq!(spec.validate(), Ok(()), "by HTTP/1 a thread has one piece");
}

#[test]
fn a_body_that_nobody_takes_and_one_that_becomes_shorter_are_errors() {
    let server = Server::start(None, |_| Act::Silence);
    let (_file, mut spec) = uploads(&server, 3 << 20);
    spec.timeout_ns = SHORT_NS;
    let stalled = sample(&spec, 0, 6);
    assert_eq!(stalled.errors.keys().copied().collect::<Vec<_>>(), [ErrorKind::Timeout]);
    assert!(server.seen.body_bytes.load(Ordering::SeqCst) < 1 << 20, "more than windows let through");

    let server = Server::start(None, |_| Act::Take(Duration::ZERO));
    let (file, spec) = uploads(&server, 3 << 20);
    let mut generator = Generator::start(&spec).unwrap();
    crate::epoll::support::run_until(&generator, |live| live.answers >= 5);
    file.as_file().set_len(1000).unwrap();
    crate::epoll::support::run_until(&generator, |live| live.errors >= 5);
    let sample = generator.cut();
    generator.stop().unwrap();
    assert!(sample.errors.keys().all(|kind| *kind == ErrorKind::BodyFile), "{:?}", sample.errors);
}
