//! Probes against servers that say anything.

use super::fault::ProbeFault;
use super::open::{OpenError, Opener};
use super::target::ProbeTarget;
use super::window::{Asked, Prober};
use proptest::prelude::*;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_millis(400);

/// A server whose every connection is this; it ends with the test.
fn serve(answer: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer = std::sync::Arc::new(answer);
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let answer = answer.clone();
            std::thread::spawn(move || answer(socket));
        }
    });
    address
}

/// Says this, whatever is asked, and waits until the other side closes.
fn says(bytes: &'static [u8]) -> SocketAddr {
    serve(move |mut socket| {
        socket.write_all(bytes).ok();
        std::io::copy(&mut socket, &mut std::io::sink()).ok();
    })
}

fn first(target: &str) -> Result<Opener, ProbeFault> {
    let target = ProbeTarget::parse(target, |_| None).unwrap();
    match Opener::find(&target, &[], TIMEOUT) {
        Ok((opener, _)) => Ok(opener),
        Err(OpenError::First { fault, hint }) => {
            assert!(!hint.is_empty());
            Err(fault)
        }
        Err(other) => panic!("{other}"),
    }
}

/// What a server of MySQL begins with, how it takes a login without a password, and how it answers `SELECT 1`.
const GREETING: &[u8] = b"\x0a5.5.5-10.11\0\x01\0\0\0abcdefgh\0\xff\xf7\x21\x02\0\xff\x81\x15\0\0\0\0\0\0\0\0\0\0ijklmnopqrst\0mysql_native_password\0";
const TAKEN: &[u8] = &[0, 0, 0, 2, 0, 0, 0];
const ONE: [&[u8]; 5] = [
    &[1],
    b"\x03def\0\0\0\x011\0\x0c\x3f\0\x01\0\0\0\x03\x81\0\0\0\0",
    &[0xfe, 0, 0, 2, 0],
    b"\x011",
    &[0xfe, 0, 0, 2, 0],
];

/// With length and number.
fn packet(number: u8, body: &[u8]) -> Vec<u8> {
    [&[body.len() as u8, 0, 0, number], body].concat()
}

#[test]
fn whoever_speaks_the_protocol_is_asked_again_and_again() {
    let mysql = serve(|mut socket| {
        let mut buffer = [0; 4096];
        socket.write_all(&packet(0, GREETING)).ok();
        let _ = socket.read(&mut buffer);
        socket.write_all(&packet(2, TAKEN)).ok();
        while socket.read(&mut buffer).is_ok_and(|count| count > 0) {
            let answer = (1..).zip(ONE).map(|(number, body)| packet(number, body));
            socket.write_all(&answer.collect::<Vec<_>>().concat()).ok();
        }
    });
    let redis = serve(|mut socket| {
        let mut buffer = [0; 4096];
        while socket.read(&mut buffer).is_ok_and(|count| count > 0) {
            socket.write_all(b"+PO").ok();
            socket.write_all(b"NG\r\n").ok();
        }
    });
    let http = serve(|mut socket| {
        let mut buffer = [0; 4096];
        while socket.read(&mut buffer).is_ok_and(|count| count > 0) {
            socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").ok();
        }
    });
    for target in [
        format!("mysql://{mysql}"),
        format!("redis://{redis}"),
        format!("http://{http}/"),
        format!("tcp://{http}"),
        "command:true".into(),
    ] {
        for fresh in [false, true] {
            let opener = first(&target).unwrap();
            let mut prober =
                Prober::new(opener, Asked { rate_hz: 20.0, fresh, timeout: Duration::from_secs(5) });
            prober.warm_up();
            let stop = AtomicBool::new(false);
            let observed = prober.window(Instant::now(), Duration::from_millis(500), 1, &stop);
            // On a machine that stands still for a while, some are not sent in time.
            assert_eq!(observed.times_s.len() + observed.timed_out as usize, 10, "{target}: {observed:?}");
            assert!(observed.failures.is_empty() && !observed.times_s.is_empty());
            assert!(observed.times_s.iter().all(|time| *time > 0.0));
        }
    }
}

#[test]
fn what_does_not_answer_is_a_failure_in_time() {
    let closes = serve(drop);
    let silent = serve(|mut socket| drop(std::io::copy(&mut socket, &mut std::io::sink())));
    let drips = serve(|mut socket| {
        while socket.write_all(b"+").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let endless = serve(|mut socket| while socket.write_all(&[b'+'; 4096]).is_ok() {});
    let half = says(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
    for (place, kind) in
        [(closes, "closes"), (silent, "silent"), (drips, "drips"), (endless, "endless"), (half, "half")]
    {
        for scheme in ["http", "https", "redis", "mysql", "postgres"] {
            let begun = Instant::now();
            let fault = first(&format!("{scheme}://{place}/")).map(drop).unwrap_err();
            assert!(begun.elapsed() < 4 * TIMEOUT, "{kind} {scheme}: {fault}");
        }
    }
    assert_eq!(first(&format!("redis://{silent}")).map(drop), Err(ProbeFault::TimedOut));
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert!(matches!(first(&format!("tcp://{nobody}")).map(drop), Err(ProbeFault::Connect(_))));
    for (said, target) in [
        (b"HTTP/1.1 500 no\r\nContent-Length: 0\r\n\r\n".as_slice(), "http"),
        (b"-NOAUTH Authentication required.\r\n", "redis"),
        (b"\x16\0\0\0\xff\x15\x04#28000Access denied", "mysql"),
        (b"E\0\0\0\x12SFATAL\0Mno way\0\0", "postgres"),
    ] {
        let place = says(said);
        let fault = first(&format!("{target}://{place}/")).map(drop).unwrap_err();
        assert!(matches!(fault, ProbeFault::Refused(_)), "{target}: {fault:?}");
    }
    assert!(matches!(first("command:false").map(drop), Err(ProbeFault::Command(_))));
    assert_eq!(first("command:sleep 30").map(drop), Err(ProbeFault::TimedOut));
}

#[test]
fn a_slow_answer_delays_those_behind_it_by_its_time() {
    // Each answer takes 200 ms: four connections answer 20 a second, not 40, and what waits is counted from when it was due.
    let slow = serve(|mut socket| {
        let mut buffer = [0; 4096];
        while socket.read(&mut buffer).is_ok_and(|count| count > 0) {
            std::thread::sleep(Duration::from_millis(200));
            socket.write_all(b"+PONG\r\n").ok();
        }
    });
    let target = ProbeTarget::parse(&format!("redis://{slow}"), |_| None).unwrap();
    let (opener, _) = Opener::find(&target, &[], Duration::from_secs(5)).unwrap();
    let asked = Asked { rate_hz: 40.0, fresh: false, timeout: Duration::from_secs(5) };
    let observed =
        Prober::new(opener, asked).window(Instant::now(), Duration::from_secs(1), 1, &AtomicBool::new(false));
    let slowest = observed.times_s.iter().copied().fold(0.0, f64::max);
    // The last of ten is sent when the window has been over for some time, and is answered within its limit.
    assert!(slowest > 0.9, "{observed:?}");
    assert!(observed.times_s.iter().all(|time| *time >= 0.2), "{observed:?}");
    assert_eq!((observed.times_s.len(), observed.timed_out), (40, 0), "{observed:?}");
    // With a limit of 300 ms, all the same: those that have waited for longer are too late, sent or not, and the window ends by then.
    let asked = Asked { timeout: Duration::from_millis(300), ..asked };
    let opener = first(&format!("redis://{slow}")).unwrap();
    let begun = Instant::now();
    let observed =
        Prober::new(opener, asked).window(begun, Duration::from_secs(1), 1, &AtomicBool::new(false));
    assert_eq!(observed.times_s.len() as u64 + observed.timed_out, 40, "{observed:?}");
    assert!(observed.timed_out > 5 && begun.elapsed() < Duration::from_secs(30), "{observed:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A server that begins as it should and goes on with anything.
    #[test]
    fn any_bytes_end_in_an_answer_or_a_fault(kept in 0usize..80, bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let address = serve(move |mut socket| {
            let greeting = packet(0, GREETING);
            socket.write_all(&greeting[..kept.min(greeting.len())]).ok();
            socket.write_all(&bytes).ok();
            socket.shutdown(std::net::Shutdown::Write).ok();
            std::io::copy(&mut socket, &mut std::io::sink()).ok();
        });
        for scheme in ["redis", "mysql", "postgres"] {
            let _ = first(&format!("{scheme}://me:secret@{address}/db"));
        }
    }
}
