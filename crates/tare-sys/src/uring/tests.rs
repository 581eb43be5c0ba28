use super::*;
use crate::epoll::Waker;
use crate::net::{self, ListenOptions};
use std::io::{Read, Write};
use std::net::TcpStream;

const SIZES: RingSizes =
    RingSizes { requests: 8, completions: 64, buffers: 4, buffer_bytes: 1024, outgoing_bytes: 4096 };

/// The next completion within 10 s.
fn next(ring: &mut Ring) -> Completion {
    for _ in 0..1000 {
        if let Some(done) = ring.next() {
            return done;
        }
        ring.wait(Some(Duration::from_millis(10))).unwrap();
    }
    panic!("nothing in 10 s");
}

fn listen(ring: &mut Ring) -> (OwnedFd, std::net::SocketAddr) {
    let listener = net::listen("127.0.0.1:0".parse().unwrap(), ListenOptions::default()).unwrap();
    let address = net::local_addr(&listener).unwrap();
    ring.accept(&listener).unwrap();
    (listener, address)
}

fn accepted(ring: &mut Ring) -> OwnedFd {
    match next(ring) {
        Completion::Accepted { socket, more: true } => socket.unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn connections_come_their_bytes_come_and_answers_go() {
    let mut ring = Ring::new(SIZES).unwrap();
    let (_listener, address) = listen(&mut ring);
    let mut clients: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(address).unwrap()).collect();
    let sockets: Vec<OwnedFd> = (0..3).map(|_| accepted(&mut ring)).collect();
    for (i, socket) in sockets.iter().enumerate() {
        ring.receive(socket, i as u64).unwrap();
    }
    // Many more turns than there are buffers or parts of the way out.
    for turn in 0..100 {
        let c = turn % 3;
        let text = format!("request {turn}");
        clients[c].write_all(text.as_bytes()).unwrap();
        let Completion::Received { token, outcome, more } = next(&mut ring) else { panic!() };
        assert_eq!((token, outcome.count().unwrap(), more), (c as u64, text.len(), true));
        assert_eq!(ring.bytes(), text.as_bytes());
        assert!(ring.send(&sockets[c], text.as_bytes(), token).unwrap());
        let Completion::Sent { token, outcome } = next(&mut ring) else { panic!() };
        assert_eq!((token, outcome.count().unwrap()), (c as u64, text.len()));
        assert!(ring.bytes().is_empty());
        let mut back = vec![0; text.len()];
        clients[c].read_exact(&mut back).unwrap();
        assert_eq!(back, text.as_bytes());
    }
    for (i, socket) in sockets.into_iter().enumerate() {
        ring.close(socket, i as u64, true, false);
    }
    for _ in 0..3 {
        let Completion::Received { outcome, more, .. } = next(&mut ring) else { panic!() };
        assert!(!more && outcome.count().is_err());
    }
    assert_eq!(clients[0].read_to_end(&mut Vec::new()).unwrap(), 0);
}

#[test]
fn the_end_of_a_stream_and_what_had_no_room_are_reported() {
    let mut ring = Ring::new(SIZES).unwrap();
    let (_listener, address) = listen(&mut ring);
    let client = TcpStream::connect(address).unwrap();
    let socket = accepted(&mut ring);
    net::set_send_buffer(&socket, 4096).unwrap();
    let mut sent = 0;
    let unsent = loop {
        assert!(ring.send(&socket, &[b'x'; 3000], 5).unwrap());
        let Completion::Sent { token: 5, outcome } = next(&mut ring) else { panic!() };
        sent += outcome.count().unwrap_or(0);
        if !ring.bytes().is_empty() {
            break ring.bytes().len();
        }
    };
    assert_eq!((sent + unsent) % 3000, 0);
    ring.watch(&socket, Readiness::Writable, 5).unwrap();
    (&client).read_exact(&mut vec![0; sent]).unwrap();
    assert!(matches!(next(&mut ring), Completion::Ready { token: 5, more: false }));
    assert!(!ring.send(&socket, &[0; 5000], 5).unwrap(), "more than there is room for");
    ring.receive(&socket, 5).unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    let Completion::Received { token: 5, outcome, more: false } = next(&mut ring) else { panic!() };
    assert_eq!(outcome.count().unwrap(), 0);
}

#[test]
fn a_wait_beyond_sends_comes_back_with_an_answer_or_when_time_is_over() {
    let mut ring = Ring::new(SIZES).unwrap();
    let (_listener, address) = listen(&mut ring);
    let mut client = TcpStream::connect(address).unwrap();
    let socket = accepted(&mut ring);
    ring.receive(&socket, 1).unwrap();
    assert!(ring.send(&socket, b"ask", 1).unwrap());
    let answering = std::thread::spawn(move || {
        client.read_exact(&mut [0; 3]).unwrap();
        client.write_all(b"answer").unwrap();
        client
    });
    ring.wait_beyond_sends(1, Some(Duration::from_secs(20))).unwrap();
    assert!(matches!(ring.next(), Some(Completion::Sent { token: 1, .. })));
    assert!(matches!(ring.next(), Some(Completion::Received { token: 1, more: true, .. })));
    assert_eq!(ring.bytes(), b"answer");
    let mut client = answering.join().unwrap();
    // For two answers one is not enough; what has come by then is reported all the same.
    client.write_all(b"answer").unwrap();
    let begun = std::time::Instant::now();
    ring.wait_beyond_sends(2, Some(Duration::from_millis(50))).unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(50));
    assert!(matches!(ring.next(), Some(Completion::Received { token: 1, more: true, .. })));
    assert!(ring.next().is_none());
    assert!(ring.send(&socket, b"ask", 1).unwrap());
    ring.wait_beyond_sends(1, Some(Duration::from_millis(1))).unwrap();
    assert!(matches!(ring.next(), Some(Completion::Sent { token: 1, .. })));
    assert!(ring.next().is_none());
}

#[test]
fn when_buffers_run_out_receiving_begins_again_and_loses_nothing() {
    let mut ring = Ring::new(SIZES).unwrap();
    let (_listener, address) = listen(&mut ring);
    let mut client = TcpStream::connect(address).unwrap();
    let socket = accepted(&mut ring);
    let all: Vec<u8> = (0..100_000u32).map(|i| i as u8).collect();
    client.write_all(&all).unwrap();
    ring.receive(&socket, 1).unwrap();
    let (mut got, mut begun_again) = (Vec::new(), 0);
    while got.len() < all.len() {
        let Completion::Received { outcome, more, .. } = next(&mut ring) else { panic!() };
        assert!(outcome.count().is_ok() || outcome.may_begin_again());
        got.extend_from_slice(ring.bytes());
        if !more {
            begun_again += 1;
            ring.receive(&socket, 1).unwrap();
        }
    }
    assert_eq!(got, all);
    assert!(begun_again > 0);
}

#[test]
fn a_waker_wakes_again_and_again_and_accepting_ends_when_asked_to() {
    let mut ring = Ring::new(SIZES).unwrap();
    let waker = Waker::new().unwrap();
    ring.watch(&waker, Readiness::Readable, 9).unwrap();
    for _ in 0..3 {
        ring.wait(Some(Duration::ZERO)).unwrap();
        assert!(ring.next().is_none());
        waker.wake().unwrap();
        assert!(matches!(next(&mut ring), Completion::Ready { token: 9, more: true }));
        assert!(waker.drain());
    }
    let (_listener, address) = listen(&mut ring);
    let _client = TcpStream::connect(address).unwrap();
    drop(accepted(&mut ring));
    ring.end_accepting().unwrap();
    let Completion::Accepted { socket, more: false } = next(&mut ring) else { panic!() };
    assert!(socket.unwrap_err().may_begin_again());
}

#[test]
fn a_ring_that_is_dropped_with_work_under_way_leaves_nothing_open() {
    let (client, taken);
    {
        let mut ring = Ring::new(SIZES).unwrap();
        let (_listener, address) = listen(&mut ring);
        client = TcpStream::connect(address).unwrap();
        let socket = accepted(&mut ring);
        ring.receive(&socket, 1).unwrap();
        ring.wait(Some(Duration::ZERO)).unwrap();
        taken = net::local_addr(&socket).unwrap();
        ring.close(socket, 1, true, false);
    }
    client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    // The ring's own end interrupts a wait of this thread, which `read` would report and this repeats.
    assert_eq!((&client).read_to_end(&mut Vec::new()).unwrap(), 0);
    assert_eq!(client.peer_addr().unwrap(), taken);
}

#[test]
fn refusals_say_why() {
    let sizes = RingSizes { buffers: 3, ..SIZES };
    let odd = Ring::new(sizes).err().unwrap();
    assert!(matches!(odd, RingError::TooOld { missing: "buffer rings", .. }), "{odd}");
    let error = |code| RingError::of("step", io::Error::from_raw_os_error(code));
    assert!(matches!(error(libc::ENOSYS), RingError::Absent { .. }));
    assert!(matches!(error(libc::EPERM), RingError::Forbidden { .. } | RingError::Disabled { .. }));
    assert!(matches!(error(libc::ENOMEM), RingError::Resources { .. }));
    for code in [libc::ENOSYS, libc::EINVAL, libc::EPERM, libc::ENOMEM] {
        assert!(error(code).to_string().contains("hint: "), "{}", error(code));
    }
}
