//! The server on real sockets.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::Duration;

use super::common::{config, get, last_get, read_all, start, start_builtin, threads, until};
use tare_server::{Config, Listening, Server, ServerError, Steering, Timeouts, architecture};

#[test]
fn every_architecture_answers_and_counts() {
    for architecture in architecture::ARCHITECTURES {
        let loops = if architecture.name() == "reactor" { 1 } else { 3 };
        let listening = threads(loops);
        let server = start_builtin(Config { architecture: *architecture, listening, ..config() });
        for _ in 0..20 {
            let answers = server.exchange(format!("{}{}", get("/plaintext"), last_get("/json")).as_bytes());
            assert!(answers.contains("\r\n\r\nHello, World!HTTP/1.1 200 OK\r\n"), "{answers}");
            assert!(answers.ends_with(r#"{"message":"Hello, World!"}"#), "{answers}");
        }
        let report = server.finish();
        let sum =
            |count: fn(&tare_server::ThreadReport) -> u64| report.threads.iter().map(count).sum::<u64>();
        assert_eq!(sum(|t| t.counts.accepted), 20, "{}", architecture.name());
        assert_eq!(sum(|t| t.counts.answers_2xx), 40, "{}", architecture.name());
        assert_eq!(sum(|t| t.counts.open), 0, "{}", architecture.name());
        assert_eq!(report.threads.len(), loops, "an acceptor is no loop");
        assert_eq!(report.sum().accepted, 20);
        match architecture.name() {
            "reactor" => assert_eq!(report.imbalance(), None),
            "dispatch" => assert_eq!(report.imbalance(), Some(1.05), "7 of 20 on one of three loops"),
            _ => assert!((1.0..=3.0).contains(&report.imbalance().unwrap())),
        }
    }
}

#[test]
fn the_registry_has_no_doubles_and_finds_by_name() {
    for a in architecture::ARCHITECTURES {
        assert_eq!(architecture::find(a.name()).unwrap().name(), a.name());
        assert!(!a.help().is_empty());
    }
    assert!(architecture::find("no-such").is_none());
}

#[test]
fn the_laboratory_routes_answer() {
    let server = start_builtin(config());
    let cases = [
        ("/bytes/0", 200, 0),
        ("/bytes/10", 200, 10),
        ("/bytes/3000000", 200, 3_000_000),
        ("/bytes/x", 404, 9),
        ("/status/503", 503, 19),
        ("/status/204", 204, 0),
        ("/status/100", 404, 9),
        ("/spin?ns=1000", 200, 4),
        ("/sleep?us=10", 200, 4),
        ("/lock?us=1", 200, 4),
        ("/alloc?kb=64", 200, 4),
        ("/fsync", 200, 4),
        ("/spin", 400, 38),
        ("/nothing", 404, 9),
    ];
    for (path, status, body_bytes) in cases {
        let answer = server.exchange(last_get(path).as_bytes());
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{path}: {head}");
        assert_eq!(body.len(), body_bytes, "{path}: {head}");
    }
    for (code, field) in [
        (206, "Content-Range: bytes 0-14/15\r\nContent-Type: text/plain\r\nContent-Length: 15"),
        (302, "Location: /status/200"),
        (401, "WWW-Authenticate: Basic realm=\"tare\""),
        (405, "Allow: GET, HEAD"),
        (407, "Proxy-Authenticate: Basic realm=\"tare\""),
        (416, "Content-Range: bytes */0"),
        (426, "Upgrade: HTTP/1.1\r\nConnection: upgrade"),
    ] {
        let answer = server.exchange(last_get(&format!("/status/{code}")).as_bytes());
        assert!(answer.contains(&format!("\r\n{field}\r\n")), "{answer}");
    }
}

#[test]
fn a_client_that_sends_its_end_first_still_gets_everything() {
    let server = start_builtin(config());
    let mut stream = server.connect();
    stream.write_all(format!("{}{}", get("/bytes/2000000"), get("/plaintext")).as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let answers = read_all(&mut stream);
    assert!(answers.ends_with("Hello, World!"));
    assert!(answers.len() > 2_000_000);
}

#[test]
fn a_stopped_server_answers_what_has_arrived_and_then_ends() {
    let server = start_builtin(Config { listening: threads(2), ..config() });
    let mut streams: Vec<_> = (0..50).map(|_| server.connect()).collect();
    for stream in &mut streams {
        stream.write_all(get("/plaintext").as_bytes()).unwrap();
    }
    let idle = server.connect();
    server.stop.stop();
    for stream in &mut streams {
        let answer = read_all(stream);
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("Hello, World!"), "{answer:?}");
    }
    assert_eq!((&idle).read(&mut [0; 8]).unwrap(), 0);
    drop((streams, idle));
    server.finish();
}

#[test]
fn slow_peers_are_timed_out_by_what_they_are_slow_at() {
    let short = Duration::from_millis(100);
    let timeouts = Timeouts { head: short, body: short, write: short, idle: short, ..Timeouts::default() };
    let server = start_builtin(Config { timeouts, ..config() });
    assert_eq!(server.exchange(b""), "");
    assert!(server.exchange(b"GET / HTTP/1.1\r\nHost:").starts_with("HTTP/1.1 408 "));
    let body = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nabc";
    assert!(server.exchange(body).starts_with("HTTP/1.1 408 "));
    let mut deaf = server.connect();
    deaf.write_all(get("/bytes/100000000").as_bytes()).unwrap();
    until("the deaf client is dropped", || {
        let counts = server.stop.report().threads[0].counts;
        counts.timed_out == 3 && counts.open == 0
    });
}

#[test]
fn one_connection_too_many_is_answered_with_503() {
    let server = start_builtin(Config { connections_max: 2, ..config() });
    let held: Vec<_> = (0..2)
        .map(|_| {
            let mut stream = server.connect();
            stream.write_all(get("/plaintext").as_bytes()).unwrap();
            stream.read_exact(&mut [0; 20]).unwrap();
            stream
        })
        .collect();
    assert!(server.exchange(get("/plaintext").as_bytes()).starts_with("HTTP/1.1 503 "));
    drop(held);
    until("there is room again", || {
        server.exchange(last_get("/plaintext").as_bytes()).starts_with("HTTP/1.1 200 ")
    });
}

#[test]
fn the_bound_on_connections_is_of_all_threads_together() {
    let server = start_builtin(Config { connections_max: 8, listening: threads(4), ..config() });
    // Wherever the kernel puts them: eight in one thread are as good as two in each.
    let held: Vec<_> = (0..8)
        .map(|_| {
            let mut stream = server.connect();
            stream.write_all(get("/plaintext").as_bytes()).unwrap();
            let mut begin = [0; 13];
            stream.read_exact(&mut begin).unwrap();
            assert_eq!(&begin, b"HTTP/1.1 200 ");
            stream
        })
        .collect();
    assert!(server.exchange(get("/plaintext").as_bytes()).starts_with("HTTP/1.1 503 "));
    drop(held);
}

/// Who was answered with 503 and does not close is no reason to turn others away.
#[test]
fn connections_that_were_turned_away_take_no_place() {
    let timeouts = Timeouts { linger: Duration::from_secs(600), ..Timeouts::default() };
    for architecture in architecture::ARCHITECTURES {
        let loops = if architecture.name() == "reactor" { 1 } else { 3 };
        let (architecture, listening) = (*architecture, threads(loops));
        let server =
            start_builtin(Config { connections_max: 4, architecture, listening, timeouts, ..config() });
        let ask = || {
            let mut stream = server.connect();
            stream.write_all(get("/plaintext").as_bytes()).unwrap();
            let mut begin = [0; 13];
            stream.read_exact(&mut begin).unwrap();
            (stream, String::from_utf8(begin.to_vec()).unwrap())
        };
        let mut held: Vec<_> = (0..4).map(|_| ask()).collect();
        assert!(held.iter().all(|(_, begin)| begin == "HTTP/1.1 200 "));
        let away: Vec<_> = (0..8).map(|_| ask()).collect();
        assert!(away.iter().all(|(_, begin)| begin == "HTTP/1.1 503 "));
        held.truncate(3);
        until("the place that was left is taken", || {
            let (stream, begin) = ask();
            held.push((stream, begin));
            held.last().is_some_and(|(_, begin)| begin == "HTTP/1.1 200 ")
        });
        assert_eq!(ask().1, "HTTP/1.1 503 ", "and no other, in {}", architecture.name());
        drop((held, away));
    }
}

#[test]
fn metrics_are_served_beside() {
    let metrics = Some("127.0.0.1:0".parse().unwrap());
    let server = Server::builder()
        .builtin_routes()
        .bind(Config { metrics, listening: threads(2), ..config() })
        .unwrap();
    let (address, of_metrics) = (server.local_addr(), server.metrics_addr().unwrap());
    let stop = server.stop_handle();
    let running = std::thread::spawn(move || server.run());
    let ask = |address, path: &str| {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream.write_all(last_get(path).as_bytes()).unwrap();
        read_all(&mut stream)
    };
    assert!(ask(address, "/plaintext").contains("200 OK"));
    until("the answer is counted", || {
        let text = ask(of_metrics, "/metrics");
        let count = |thread: usize| {
            let line = format!("tare_serve_answers_2xx_total{{thread=\"{thread}\"}} ");
            text.lines().find_map(|l| l.strip_prefix(&line)).unwrap().parse::<u64>().unwrap()
        };
        assert!(
            text.contains("# HELP tare_serve_open Connections open now.\n# TYPE tare_serve_open gauge\n")
        );
        count(0) + count(1) == 1
    });
    let silent: Vec<_> = (0..100).map(|_| std::net::TcpStream::connect(of_metrics).unwrap()).collect();
    until("the silent are sent away", || ask(of_metrics, "/metrics").starts_with("HTTP/1.1 200 "));
    drop(silent);
    stop.stop();
    running.join().unwrap().unwrap();
}

#[test]
fn every_way_of_steering_and_waiting_answers() {
    let cpus = tare_sys::affinity::get(0).unwrap();
    let second = Duration::from_secs(1);
    for steering in [Steering::Hash, Steering::IncomingCpu, Steering::CpuProgram] {
        let poll = Duration::from_millis(1);
        let cpus = cpus.clone();
        let listening = Listening { steering, defer_accept: second, cpus, ..threads(2) };
        let config = Config { listening, busy_poll: poll, ..config() };
        let server = start_builtin(config);
        for _ in 0..5 {
            let answers = server.exchange(format!("{}{}", get("/plaintext"), last_get("/json")).as_bytes());
            assert!(answers.ends_with(r#"{"message":"Hello, World!"}"#), "{steering:?}: {answers}");
        }
        server.finish();
    }
    let listening = Listening { steering: Steering::CpuProgram, ..threads(1) };
    let unpinned = Server::builder().bind(Config { listening, ..config() });
    assert!(matches!(unpinned, Err(ServerError::Steering)));
}

#[test]
fn bad_configurations_are_refused_with_a_hint() {
    let bind = |config: Config| Server::builder().bind(config).err().unwrap();
    assert!(matches!(bind(Config { listening: threads(0), ..config() }), ServerError::Threads { .. }));
    let reactor = architecture::find("reactor").unwrap();
    let two = bind(Config { architecture: reactor, listening: threads(2), ..config() });
    assert!(two.to_string().contains("hint: shared-nothing"), "{two}");
    let taken = start(Server::builder(), config());
    for architecture in architecture::ARCHITECTURES {
        let listening = Listening::on(taken.address);
        let listen = bind(Config { listening, architecture: *architecture, ..config() });
        assert!(listen.to_string().contains("hint:"), "{listen}");
    }
    let metrics = bind(Config { metrics: Some(taken.address), ..config() });
    assert!(matches!(metrics, ServerError::Listen { .. }), "{metrics}");
    let listening = Listening { cpus: vec![100_000], ..threads(1) };
    let nowhere = bind(Config { listening, ..config() });
    assert!(
        matches!(nowhere, ServerError::Cpu { cpu: 100_000, .. }) && nowhere.to_string().contains("hint:")
    );
}
