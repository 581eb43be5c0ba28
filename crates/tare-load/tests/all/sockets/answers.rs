//! Everything a server can do to a generator, on real sockets: each thing is counted under its kind, and the
//! run goes on.

use super::support::{HELLO, Reply, Server, hello, requests, run_until, sample, wait_until};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tare_load::{Gaps, Generator, LoadError, Pacing, preflight};
use tare_model::trial::{ErrorKind, HttpSample};

pub fn only(sample: &HttpSample, kind: ErrorKind) -> u64 {
    assert_eq!(sample.errors.keys().copied().collect::<Vec<_>>(), [kind], "{:?}", sample.errors);
    sample.errors[&kind]
}

#[test]
fn keep_alive_answers_are_counted_once_each() {
    let server = Server::start(|_, _| hello());
    let mut spec = server.spec();
    (spec.connections, spec.workers.threads) = (5, 2);
    let mut generator = Generator::start(&spec).unwrap();
    assert_eq!(generator.thread_ids().len(), 2);
    run_until(&generator, |live| live.answers >= 300);
    let first = generator.cut();
    run_until(&generator, |live| live.answers >= 2 * requests(&first));
    let second = generator.cut();
    let live = generator.live();
    assert!(live.answers >= requests(&first) + requests(&second));
    generator.stop().unwrap();

    for sample in [&first, &second] {
        let count = requests(sample);
        assert_eq!(sample.errors.len(), 0);
        assert_eq!(sample.latency.value().unwrap().count(), count);
        assert_eq!(*sample.bytes_in.value().unwrap(), count * HELLO.len() as u64);
        assert_eq!(*sample.connections.value().unwrap(), 5);
        assert_eq!(sample.slices.iter().map(|slice| slice.1).sum::<u64>(), count);
        assert_eq!((sample.scheduled, sample.lateness.is_some()), (None, false));
    }
    // On a busy machine the first cut may come before a thread has begun.
    assert_eq!(*second.in_flight.value().unwrap(), 5);
    let between_ns = second.slices.last().unwrap().0 - first.slices.last().unwrap().0;
    let apart = second.elapsed_ns.abs_diff(between_ns);
    assert!(apart < 1_000_000_000, "windows follow each other: {apart}");
    assert_eq!(server.accepted.load(Ordering::SeqCst), 5);
}

#[test]
fn every_framing_is_an_answer() {
    for (reply, close) in [
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", false),
        ("HTTP/1.1 204 No Content\r\n\r\n", false),
        ("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", true),
        ("HTTP/1.1 200 OK\r\n\r\nuntil the end", true),
        ("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", true),
    ] {
        let server =
            Server::start(
                move |_, _| {
                    if close { Reply::Close(reply.into()) } else { Reply::Keep(reply.into()) }
                },
            );
        let mut spec = server.spec();
        spec.connections = 3;
        let sample = sample(&spec, 50, 0);
        assert_eq!(sample.errors.len(), 0, "{reply:?}: {:?}", sample.errors);
        assert!(close || server.accepted.load(Ordering::SeqCst) == 3);
    }
}

#[test]
fn head_has_no_body_whatever_it_claims() {
    let server = Server::start(|_, request| {
        assert!(request.starts_with(b"HEAD / HTTP/1.1\r\n"));
        Reply::Keep(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n".to_vec())
    });
    let mut spec = server.spec();
    spec.content.method = "HEAD".to_owned();
    assert_eq!(sample(&spec, 50, 0).errors.len(), 0);
}

#[test]
fn large_bodies_pass_through_a_small_buffer() {
    const BODY: usize = 3_000_000;
    let mut reply = format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY}\r\n\r\n").into_bytes();
    let len = reply.len() + BODY;
    reply.resize(len, b'x');
    let server = Server::start(move |_, _| Reply::Keep(reply.clone()));
    let sample = sample(&server.spec(), 5, 0);
    assert_eq!(sample.errors.len(), 0);
    assert!(*sample.bytes_in.value().unwrap() >= requests(&sample) * len as u64);
}

#[test]
fn requests_that_a_socket_does_not_take_at_once_arrive_whole() {
    for (length, pipeline) in [(7_000, 32), (100_000, 8)] {
        let value = "y".repeat(length);
        let line = format!("X-Long: {value}\r\n");
        let server = Server::start(move |_, request| {
            assert!(String::from_utf8_lossy(request).contains(&line));
            hello()
        });
        let mut spec = server.spec();
        (spec.content.headers, spec.pipeline) = (vec![("X-Long".to_owned(), value)], pipeline);
        (spec.connections, spec.requests_max) = (2, Some(150));
        let sample = sample(&spec, 150, 0);
        assert_eq!((requests(&sample), sample.errors.len()), (150, 0), "{:?}", sample.errors);
    }
}

#[test]
fn a_status_error_is_an_answer_too() {
    let server = Server::start(|n, _| match n % 4 {
        0 => Reply::Keep(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec()),
        1 => Reply::Keep(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n".to_vec()),
        _ => hello(),
    });
    let sample = sample(&server.spec(), 100, 0);
    let refused = only(&sample, ErrorKind::Status);
    assert!(refused.abs_diff(requests(&sample) / 4) <= 1, "{refused} of {}", requests(&sample));
}

#[test]
fn what_breaks_is_counted_under_its_kind_and_the_run_goes_on() {
    let endless = format!("HTTP/1.1 200 OK\r\n{}", "X-Header: y\r\n".repeat(10_000));
    let two_lengths = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello";
    for (reply, kind) in [
        (Reply::Close(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello".to_vec()), ErrorKind::Io),
        (Reply::Close(b"HTTP/1.1 200 O".to_vec()), ErrorKind::Io),
        (Reply::Close(Vec::new()), ErrorKind::Io),
        (Reply::Reset(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhel".to_vec()), ErrorKind::Io),
        (Reply::Keep(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhello".to_vec()), ErrorKind::Malformed),
        (Reply::Keep(two_lengths.into()), ErrorKind::Malformed),
        (Reply::Keep(endless.into()), ErrorKind::Malformed),
        (Reply::Keep(b"SSH-2.0-OpenSSH_9.2\r\n".to_vec()), ErrorKind::Malformed),
    ] {
        // Every fifth answer is bad, the others are good.
        let server = Server::start(move |n, _| match &reply {
            _ if n % 5 != 4 => hello(),
            Reply::Keep(bytes) => Reply::Keep(bytes.clone()),
            Reply::Close(bytes) => Reply::Close(bytes.clone()),
            Reply::Reset(bytes) => Reply::Reset(bytes.clone()),
        });
        let mut spec = server.spec();
        spec.connections = 2;
        let sample = sample(&spec, 60, 12);
        let (bad, good) = (only(&sample, kind), requests(&sample));
        // Each says why; which reason it is depends on what came together.
        let said = &sample.detail.as_ref().unwrap().said.reasons[&kind];
        assert_eq!(said.values().sum::<u64>(), bad, "{said:?}");
        // An answer that is too long is whole before it is found out.
        assert!(bad >= 12 && good >= 60, "{kind:?}: {good} good, {bad} bad");
    }
}

#[test]
fn each_pipelined_request_has_a_latency_of_its_own() {
    let server = Server::start(|_, _| hello());
    let mut spec = server.spec();
    (spec.connections, spec.pipeline) = (4, 16);
    let sample = sample(&spec, 2000, 0);
    // wrk takes one of each batch, and prints zeroes from the 75th percentile on.
    let latency = sample.latency.value().unwrap();
    assert_eq!(latency.count(), requests(&sample));
    assert!([0.5, 0.75, 0.99].iter().all(|q| latency.quantile_ns(*q).unwrap() > 1_000));
}

#[test]
fn an_answer_without_end_takes_no_memory() {
    for (begin, piece, kind) in [
        ("HTTP/1.1 200 OK\r\n", "X-Header: y\r\n", ErrorKind::Malformed),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "4\r\nbody\r\n", ErrorKind::Timeout),
        ("HTTP/1.1 200 OK\r\n\r\n", "body", ErrorKind::Timeout),
    ] {
        let address = endless_server(begin, piece);
        let mut spec = super::support::spec(&format!("http://{address}/"));
        (spec.connections, spec.timeout_ns) = (2, 100_000_000);
        // "5" sets the peak back to what is resident now.
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        let before = peak_bytes();
        let sample = sample(&spec, 0, 6);
        assert!(only(&sample, kind) >= 6);
        // Each of the six would be about a hundred megabytes; other tests of this process take some too.
        let grown = peak_bytes().saturating_sub(before);
        assert!(grown < 64 << 20, "{kind:?}: {grown} bytes more");
    }
}

/// Sends the same piece for as long as it is taken.
fn endless_server(begin: &'static str, piece: &'static str) -> std::net::SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            std::thread::spawn(move || {
                let (mut connection, pieces) = (connection?, piece.repeat(4096));
                std::io::Read::read(&mut connection, &mut [0; 4096])?;
                std::io::Write::write_all(&mut connection, begin.as_bytes())?;
                while std::io::Write::write_all(&mut connection, pieces.as_bytes()).is_ok() {}
                std::io::Result::Ok(())
            });
        }
    });
    address
}

fn peak_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn answers_past_the_timeout_are_timeouts() {
    let server = Server::start(|n, _| {
        if n % 10 == 9 {
            std::thread::sleep(Duration::from_millis(200));
        }
        hello()
    });
    let mut spec = server.spec();
    spec.timeout_ns = 20_000_000;
    spec.connections = 2;
    let sample = sample(&spec, 50, 3);
    // Slow answers are none; a busy machine may make fast ones slow as well.
    assert!(only(&sample, ErrorKind::Timeout) >= 3);
    assert!(sample.latency.value().unwrap().max_ns().unwrap() < 200_000_000);
}

#[test]
fn a_server_that_never_answers_does_not_hold_up_a_cut() {
    let server = Server::start(|_, _| Reply::Keep(Vec::new()));
    let mut spec = server.spec();
    (spec.connections, spec.timeout_ns) = (4, 3_600_000_000_000);
    let mut generator = Generator::start(&spec).unwrap();
    wait_until(|| server.requests() == 4, || server.requests().to_string());
    let sample = generator.cut();
    assert_eq!((requests(&sample), *sample.in_flight.value().unwrap()), (0, 4));
    assert_eq!(sample.latency.value().unwrap().quantile_ns(0.5), None);
    assert!(sample.elapsed_ns > 0);
    generator.stop().unwrap();
}

#[test]
fn a_server_that_dies_and_returns_is_found_again() {
    let first = Server::start(|n, _| if n < 40 { hello() } else { Reply::Reset(Vec::new()) });
    let address = first.address;
    let mut spec = first.spec();
    spec.connections = 4;
    let mut generator = Generator::start(&spec).unwrap();
    run_until(&generator, |live| live.answers >= 40 && live.errors >= 4);
    drop(first);
    let before = generator.live();
    run_until(&generator, |live| live.errors >= before.errors + 8);
    let _second = Server::start_at(address, |_, _| hello());
    let answers = generator.live().answers;
    run_until(&generator, |live| live.answers >= answers + 100);
    let sample = generator.cut();
    assert!(sample.errors.contains_key(&ErrorKind::Connect), "{:?}", sample.errors);
    wait_until(|| *generator.cut().connections.value().unwrap() == 4, || "some are still away".to_owned());
    generator.stop().unwrap();
}

#[test]
fn pipelined_requests_are_answered_in_order_and_survive_a_close() {
    let server = Server::start(|n, _| if n % 50 == 49 { Reply::Close(close_hello()) } else { hello() });
    let mut spec = server.spec();
    (spec.connections, spec.pipeline) = (2, 4);
    let sample = sample(&spec, 500, 0);
    assert_eq!(sample.errors.len(), 0, "requests behind an announced close are sent again, not failed");
    assert!(*sample.in_flight.value().unwrap() <= 8, "a connection that is being opened again has none yet");
    assert!(server.requests() >= requests(&sample));
}

fn close_hello() -> Vec<u8> {
    b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello".to_vec()
}

#[test]
fn nobody_there() {
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut spec = super::support::spec(&format!("http://{address}/"));
    (spec.connections, spec.workers.threads) = (4, 2);
    assert!(matches!(Generator::start(&spec), Err(LoadError::NoConnection { .. })));
    assert!(matches!(preflight(&spec, Duration::from_secs(1)), Err(LoadError::NoConnection { .. })));
    spec.workers.threads = 0;
    assert!(matches!(Generator::start(&spec), Err(LoadError::Spec(_))));
    (spec.workers.threads, spec.workers.cpus) = (1, vec![8000]);
    assert!(matches!(Generator::start(&spec), Err(LoadError::Pin { cpu: 8000, .. })));
}

#[test]
fn preflight_holds_its_connection() {
    for close in [false, true] {
        let server = Server::start(move |_, _| if close { Reply::Close(close_hello()) } else { hello() });
        let held = preflight(&server.spec(), Duration::from_secs(10)).unwrap();
        assert_eq!((held.status, held.peer_addr), (200, Some(server.address)));
        assert_eq!(held.local_addr.unwrap().ip(), server.address.ip());
        wait_until(|| server.accepted.load(Ordering::SeqCst) == 1 + u64::from(close), String::new);
    }
    let silent = Server::start(|_, _| Reply::Keep(b"HTTP/1.1 200 OK\r\n".to_vec()));
    let error = preflight(&silent.spec(), Duration::from_millis(50)).unwrap_err();
    assert!(matches!(error, LoadError::NoAnswer { .. }), "{error}");
    let ssh = Server::start(|_, _| Reply::Keep(b"SSH-2.0-OpenSSH_9.2\r\n".to_vec()));
    let error = preflight(&ssh.spec(), Duration::from_secs(10)).unwrap_err();
    assert!(matches!(error, LoadError::Malformed { .. }), "{error}");
}

#[test]
fn an_open_loop_counts_from_the_intended_time() {
    // Stands still until the test says so, then answers at once: every request of that time waited.
    let still = Arc::new(AtomicBool::new(true));
    let gate = Arc::clone(&still);
    let server = Server::start(move |_, _| {
        while gate.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        hello()
    });
    let mut spec = server.spec();
    (spec.connections, spec.timeout_ns) = (2, 60_000_000_000);
    spec.pacing = Pacing::Open { rate_hz: 1000.0, gaps: Gaps::Fixed };
    let mut generator = Generator::start(&spec).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let stalled = generator.cut();
    still.store(false, Ordering::SeqCst);
    let waiting = *stalled.in_flight.value().unwrap();
    run_until(&generator, |live| live.answers >= waiting);
    let after = generator.cut();
    generator.stop().unwrap();

    let due = |sample: &HttpSample| sample.elapsed_ns as f64 / 1e6;
    assert_eq!(requests(&stalled), 0);
    assert_eq!(stalled.scheduled, Some(waiting), "all that fell due is still waiting");
    assert!((waiting as f64 - due(&stalled)).abs() < 3.0, "{waiting} due in {}", due(&stalled));
    let latency = after.latency.value().unwrap();
    // Request k of the first `waiting` fell due at k ms and waited until the server went on.
    assert!(latency.max_ns().unwrap() as f64 >= waiting as f64 * 0.99e6);
    let slow = waiting as f64 / 2.0 / latency.count() as f64;
    let median_of_the_waiting = latency.quantile_ns(1.0 - slow).unwrap() as f64;
    assert!(median_of_the_waiting >= waiting as f64 * 0.45e6, "{median_of_the_waiting}");
    let lateness = after.lateness.as_ref().unwrap();
    assert!(lateness.count() + stalled.lateness.as_ref().unwrap().count() >= waiting);
    assert!(lateness.max_ns().unwrap() as f64 >= waiting as f64 * 0.9e6);
}

#[test]
fn an_open_loop_keeps_its_rate() {
    let server = Server::start(|_, _| hello());
    for gaps in [Gaps::Fixed, Gaps::Poisson] {
        let mut spec = server.spec();
        (spec.connections, spec.workers.threads, spec.pipeline) = (8, 2, 2);
        spec.pacing = Pacing::Open { rate_hz: 2000.0, gaps };
        spec.workers.busy_poll = gaps == Gaps::Poisson;
        let mut generator = Generator::start(&spec).unwrap();
        run_until(&generator, |live| live.answers >= 600);
        let sample = generator.cut();
        generator.stop().unwrap();
        let scheduled = sample.scheduled.unwrap();
        let in_flight = *sample.in_flight.value().unwrap();
        assert_eq!(requests(&sample) + in_flight, scheduled, "each arrival is answered or waits");
        if gaps == Gaps::Fixed {
            let asked = sample.elapsed_ns as f64 * 2e-6;
            assert!((scheduled as f64 - asked).abs() <= 3.0 + 0.01 * asked, "{scheduled} of {asked}");
        }
    }
}

#[test]
fn a_bounded_number_of_requests_is_sent_and_answered() {
    let server = Server::start(|_, _| hello());
    let open = Pacing::Open { rate_hz: 20_000.0, gaps: Gaps::Poisson };
    let thinking = Pacing::Thinking { mean_ns: 1_000_000, gaps: Gaps::Poisson };
    for (pacing, pipeline) in [(Pacing::Closed, 1), (Pacing::Closed, 3), (open, 2), (thinking, 2)] {
        let mut spec = server.spec();
        (spec.connections, spec.workers.threads, spec.pipeline) = (4, 2, pipeline);
        (spec.pacing, spec.requests_max) = (pacing, Some(333));
        let before = server.requests();
        let mut generator = Generator::start(&spec).unwrap();
        wait_until(|| generator.finished(), || format!("{:?}", generator.live()));
        let sample = generator.cut();
        generator.stop().unwrap();
        assert_eq!((requests(&sample), server.requests() - before), (333, 333), "{:?}", spec.pacing);
        assert_eq!((*sample.in_flight.value().unwrap(), sample.scheduled.unwrap_or(333)), (0, 333));
    }
}

#[test]
fn users_who_think_wait_after_each_answer() {
    let server = Server::start(|_, _| hello());
    let mut spec = server.spec();
    spec.connections = 4;
    spec.pacing = Pacing::Thinking { mean_ns: 20_000_000, gaps: Gaps::Fixed };
    let mut generator = Generator::start(&spec).unwrap();
    run_until(&generator, |live| live.answers >= 80);
    let sample = generator.cut();
    generator.stop().unwrap();
    // Four users, one request in 20 ms at most from each; the first may come at once.
    let most = 4.0 * (sample.elapsed_ns as f64 / 20e6 + 1.0);
    assert!(requests(&sample) as f64 <= most, "{} of {most}", requests(&sample));
    assert_eq!((sample.scheduled, sample.lateness), (None, None));
}

#[test]
fn preflight_asks_as_the_load_will() {
    let server = Server::start(|_, request| {
        let request = String::from_utf8_lossy(request);
        assert!(request.starts_with("HEAD / HTTP/1.1\r\n") && request.contains("X-Key: 7\r\n"), "{request}");
        Reply::Keep(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 12\r\n\r\n".to_vec())
    });
    let mut spec = server.spec();
    (spec.content.method, spec.content.headers) =
        ("HEAD".to_owned(), vec![("X-Key".to_owned(), "7".to_owned())]);
    assert_eq!(preflight(&spec, Duration::from_secs(10)).unwrap().status, 401);
}

#[test]
fn without_keep_alive_each_request_has_its_own_connection() {
    let server = Server::start(|_, request| {
        assert!(String::from_utf8_lossy(request).contains("Connection: close\r\n"));
        Reply::Close(close_hello())
    });
    for pacing in [Pacing::Closed, Pacing::Open { rate_hz: 2000.0, gaps: Gaps::Fixed }] {
        let mut spec = server.spec();
        (spec.connections, spec.workers.threads, spec.keep_alive) = (4, 2, false);
        (spec.pacing, spec.requests_max) = (pacing, Some(200));
        let (accepted, requests_before) = (server.accepted.load(Ordering::SeqCst), server.requests());
        let mut generator = Generator::start(&spec).unwrap();
        wait_until(|| generator.finished(), || format!("{:?}", generator.live()));
        let sample = generator.cut();
        generator.stop().unwrap();
        assert_eq!((requests(&sample), sample.errors.len()), (200, 0), "{:?}", sample.errors);
        assert_eq!(server.requests() - requests_before, 200);
        let opened = server.accepted.load(Ordering::SeqCst) - accepted;
        assert!((200..=204).contains(&opened), "{opened}");
        assert!(sample.detail.unwrap().connect.count() >= 200);
    }
}

#[test]
fn a_server_that_keeps_connections_open_does_not_keep_churn_from_closing_them() {
    let server = Server::start(|_, _| hello());
    let mut spec = server.spec();
    (spec.keep_alive, spec.requests_max) = (false, Some(50));
    let mut generator = Generator::start(&spec).unwrap();
    wait_until(|| generator.finished(), || format!("{:?}", generator.live()));
    assert_eq!((requests(&generator.cut()), server.accepted.load(Ordering::SeqCst) >= 50), (50, true));
}

#[test]
fn many_local_addresses_share_the_connections() {
    let server = Server::start(|_, _| hello());
    let mut spec = server.spec();
    spec.connections = 4;
    spec.route.local_addresses = ["127.0.0.7", "127.0.0.8"].map(|ip| ip.parse().unwrap()).to_vec();
    assert_eq!(sample(&spec, 50, 0).errors.len(), 0);
    spec.route.local_addresses = vec!["192.0.2.1".parse().unwrap()];
    assert!(matches!(Generator::start(&spec), Err(LoadError::PortsExhausted { .. })));
}

#[test]
fn ipv6_and_unix_sockets_carry_it_too() {
    let server = Server::start_at("[::1]:0".parse().unwrap(), |_, _| hello());
    assert_eq!(sample(&server.spec(), 50, 0).errors.len(), 0);

    let path = std::env::temp_dir().join(format!("tare-load-{}.sock", std::process::id()));
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming().take(3) {
            std::thread::spawn(move || super::support::echo_hello(connection.unwrap()));
        }
    });
    let mut spec = super::support::spec("http://whoever/");
    (spec.route.unix_socket, spec.connections) = (Some(path.clone()), 2);
    let held = preflight(&spec, Duration::from_secs(10)).unwrap();
    assert_eq!((held.status, held.peer_addr), (200, None));
    assert_eq!(sample(&spec, 50, 0).errors.len(), 0);
    std::fs::remove_file(path).unwrap();
    assert!(matches!(Generator::start(&spec), Err(LoadError::NoConnection { .. })));
}

#[test]
fn a_black_hole_is_no_server() {
    let options = tare_sys::net::ListenOptions { backlog: 0, ..Default::default() };
    let full = tare_sys::net::listen("127.0.0.1:0".parse().unwrap(), options).unwrap();
    let address = tare_sys::net::local_addr(&full).unwrap();
    // The queue takes one; what comes then is never answered.
    let held: Vec<_> = (0..4).map(|_| tare_sys::net::connect(address, None).unwrap()).collect();
    let mut spec = super::support::spec(&format!("http://{address}/"));
    (spec.connections, spec.timeout_ns) = (2, 3_600_000_000_000);
    let error = Generator::start(&spec).unwrap_err();
    assert!(matches!(error, LoadError::NoConnection { .. }), "{error}");
    drop(held);
}

#[test]
fn who_has_had_enough_does_not_wait_for_connections() {
    let options = tare_sys::net::ListenOptions { backlog: 0, ..Default::default() };
    let full = tare_sys::net::listen("127.0.0.1:0".parse().unwrap(), options).unwrap();
    let address = tare_sys::net::local_addr(&full).unwrap();
    let _held: Vec<_> = (0..4).map(|_| tare_sys::net::connect(address, None).unwrap()).collect();
    let mut spec = super::support::spec(&format!("http://{address}/"));
    spec.timeout_ns = 60_000_000_000;
    let enough = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let started = scope.spawn(|| (Generator::start_unless(&spec, &enough).map(drop), Instant::now()));
        std::thread::sleep(Duration::from_millis(200));
        let asked = Instant::now();
        enough.store(true, Ordering::SeqCst);
        let (error, ended) = started.join().unwrap();
        assert!(matches!(error, Err(LoadError::Interrupted)), "{error:?}");
        assert!(ended - asked < Duration::from_secs(2), "{:?}", ended - asked);
    });
}

#[test]
fn a_full_queue_of_a_unix_socket_is_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("full.sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    // The queue of a listener of the standard library is as long as the system lets it be.
    tare_sys::process::raise_open_files_limit().unwrap();
    let mut spec = super::support::spec("http://whoever/");
    (spec.route.unix_socket, spec.connections) = (Some(path.clone()), 1);
    let mut held = Vec::new();
    while let Ok(connection) = tare_sys::unix::connect(&path) {
        held.push(connection);
    }
    let error = Generator::start(&spec).unwrap_err().to_string();
    assert!(error.contains("stayed full"), "{error}");
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        drop(held);
        for connection in listener.incoming() {
            std::thread::spawn(move || super::support::echo_hello(connection.unwrap()));
        }
    });
    assert!(sample(&spec, 5, 0).errors.is_empty());
}

#[test]
fn what_is_reported_beside_the_counts() {
    let mut long = b"HTTP/1.1 503 No\r\nContent-Length: 200000\r\n\r\n".to_vec();
    long.resize(long.len() + 200_000, b'x');
    let server = Server::start(move |n, _| if n % 2 == 0 { hello() } else { Reply::Keep(long.clone()) });
    let mut spec = server.spec();
    (spec.connections, spec.workers.threads) = (4, 2);
    let sample = sample(&spec, 100, 50);
    let count = requests(&sample);
    let detail = sample.detail.unwrap();
    assert_eq!(detail.status_classes[1] + detail.status_classes[4], count);
    assert_eq!((detail.first_byte.count(), detail.held_in_flight), (count, Some(4)));
    let whole = sample.latency.value().unwrap();
    for quantile in [0.1, 0.5, 0.9, 1.0] {
        assert!(detail.first_byte.quantile_ns(quantile) <= whole.quantile_ns(quantile), "{quantile}");
    }
    assert_eq!((detail.connect.count(), detail.threads.len()), (4, 2));
    assert!(
        detail.bytes_out >= count * 20 && detail.clock.monotonic_ns.abs_diff(detail.clock.raw_ns) < 1_000_000
    );
    assert!(
        detail.threads.iter().all(|thread| thread.cpu_ns > 0 && thread.cpu_ns <= thread.wall_ns + 10_000_000)
    );
    assert_eq!(detail.series.iter().map(|slice| slice.requests).sum::<u64>(), count);
    assert!(detail.series.iter().any(|slice| slice.p50_ns.is_some() && slice.p50_ns <= slice.p99_ns));
}

#[test]
fn a_storm_of_server_errors_is_counted_and_goes_on() {
    let server =
        Server::start(|_, _| Reply::Keep(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n".to_vec()));
    let mut spec = server.spec();
    (spec.connections, spec.pipeline) = (4, 2);
    let sample = sample(&spec, 500, 500);
    assert_eq!(only(&sample, ErrorKind::Status), requests(&sample));
    assert_eq!(server.accepted.load(Ordering::SeqCst), 4, "an error page is no reason to connect again");
}

#[test]
fn an_address_that_cannot_be_reached_is_reported() {
    let spec = super::support::spec("http://255.255.255.255:9/");
    assert!(matches!(Generator::start(&spec), Err(LoadError::NoConnection { .. })));
    assert!(matches!(preflight(&spec, Duration::from_secs(1)), Err(LoadError::NoConnection { .. })));
}
