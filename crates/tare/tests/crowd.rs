//! Crowds that mean no good, against the real binary: what each peer can hold is bounded.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so

#[path = "support/serving.rs"]
mod serving;
mod support;

use serving::{Serve, ask};
use std::io::{BufRead, BufReader, ErrorKind, Lines, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

const REQUEST: &[u8] = b"GET /plaintext HTTP/1.1\r\nHost: h\r\n\r\n";

/// The stated bound on what an idle connection holds of the server's own memory.
const IDLE_BYTES_MAX: u64 = 512;

/// Connections of the crowd that is only there.
const IDLE: usize = 50_000;
const HOLD: &str = "TARE_TEST_HOLD_CONNECTIONS";

/// Raises the limit on open files of this process, and of what it starts, as far as it can; what it is then.
fn raise_open_files_limit() -> u64 {
    let (pid, wanted) = (std::process::id().to_string(), IDLE + 1000);
    // Beyond the hard limit goes only who may.
    Command::new("prlimit").args(["--pid", &pid, &format!("--nofile={wanted}:{wanted}")]).output().ok();
    tare_sys::process::raise_open_files_limit().unwrap()
}

fn resident_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
}

/// CPU time of a process, in ticks of 10 ms.
fn cpu_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

/// A connection from an address of its own, so that there are ports for all.
fn connect_from(server: SocketAddr, last_byte: u8) -> TcpStream {
    let local = SocketAddr::from(([127, 0, 7, last_byte], 0));
    let (fd, _) = tare_sys::net::connect(server, Some(local)).unwrap();
    let stream = TcpStream::from(fd);
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

fn read_answer(stream: &mut TcpStream) {
    let (mut answer, mut got) = ([0; 256], 0);
    while !answer[..got].ends_with(b"Hello, World!") {
        let n = stream.read(&mut answer[got..]).unwrap();
        assert!(n > 0, "closed after {:?}", String::from_utf8_lossy(&answer[..got]));
        got += n;
    }
}

/// Not a test of its own: one of the clients of the next one. Opens connections, uses each once, says so, and
/// waits until the server ends them.
#[test]
fn hold_connections_when_asked() {
    let Ok(asked) = std::env::var(HOLD) else { return };
    let mut words = asked.split(' ');
    let server: SocketAddr = words.next().unwrap().parse().unwrap();
    let count: usize = words.next().unwrap().parse().unwrap();
    raise_open_files_limit();
    let mut idle: Vec<TcpStream> = Vec::with_capacity(count);
    while idle.len() < count {
        let batch = idle.len()..(idle.len() + 500).min(count);
        idle.extend(batch.clone().map(|i| connect_from(server, (i / 10_000 + 1) as u8)));
        idle[batch.clone()].iter_mut().for_each(|stream| stream.write_all(REQUEST).unwrap());
        idle[batch].iter_mut().for_each(read_answer);
    }
    println!("\nopen {count}");
    for stream in &mut idle {
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
    }
}

struct Holder {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

fn hold(server: SocketAddr, count: usize) -> Holder {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "hold_connections_when_asked", "--nocapture"])
        .env(HOLD, format!("{server} {count}"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    Holder { child, lines }
}

/// On as many servers and clients as the limit on open files makes necessary: mostly one of each.
#[test]
fn fifty_thousand_idle_connections_cost_little_and_keep_nobody_out() {
    let limit = usize::try_from(raise_open_files_limit()).unwrap();
    let share = IDLE.div_ceil(IDLE.div_ceil(limit.saturating_sub(100)));
    let mut pairs: Vec<(Serve, u64, Holder)> = (0..IDLE.div_ceil(share))
        .map(|_| {
            let server = Serve::start(&["--threads", "1", "--idle-timeout", "10m"]);
            // Warm: the buffers of a loop are there before anybody is idle.
            assert!(server.get("/plaintext").ends_with("Hello, World!"));
            let before = resident_bytes(server.child.id());
            let holder = hold(server.address, share);
            (server, before, holder)
        })
        .collect();
    for (server, before, holder) in &mut pairs {
        let open = holder.lines.by_ref().map(Result::unwrap).any(|line| line == format!("open {share}"));
        assert!(open, "a client ended before it had its connections");
        let each = resident_bytes(server.child.id()).saturating_sub(*before) / share as u64;
        println!("{share} idle connections hold {each} bytes each");
        assert!(each <= IDLE_BYTES_MAX, "{each} bytes for each of {share} idle connections");
    }
    let used = || pairs.iter().map(|(server, ..)| cpu_ticks(server.child.id())).sum::<u64>();
    let before = used();
    for _ in 0..20 {
        pairs.iter().for_each(|(server, ..)| assert!(server.get("/plaintext").ends_with("Hello, World!")));
        std::thread::sleep(Duration::from_millis(50));
    }
    let spent = used() - before;
    assert!(spent < 50, "{spent} ticks of CPU in a second with nothing to do");
    // The end does not wait for the idle, and they hear of it.
    pairs.iter().for_each(|(server, ..)| server.signal("TERM"));
    for (server, _, holder) in &mut pairs {
        assert!(server.child.wait().unwrap().success());
        holder.lines.by_ref().for_each(drop);
        assert!(holder.child.wait().unwrap().success(), "every connection ended well");
    }
}

#[test]
fn who_asks_and_never_reads_holds_a_bounded_amount() {
    let server = Serve::start(&["--threads", "1", "--write-timeout", "10m"]);
    assert!(server.get("/plaintext").ends_with("Hello, World!"));
    let before = resident_bytes(server.child.id());
    let asks = b"GET /bytes/4000 HTTP/1.1\r\nHost: h\r\n\r\n".repeat(1000);
    let count = 50;
    let deaf: Vec<TcpStream> = (0..count)
        .map(|_| {
            let mut stream = TcpStream::connect(server.address).unwrap();
            stream.set_write_timeout(Some(Duration::from_millis(50))).unwrap();
            // Until the server takes no more: what waits is in the kernel then.
            while let Err(ErrorKind::Interrupted) | Ok(()) = stream.write_all(&asks).map_err(|e| e.kind()) {}
            stream
        })
        .collect();
    let each = resident_bytes(server.child.id()).saturating_sub(before) / count;
    println!("a deaf client holds {each} bytes");
    // What may wait: answers of 128 KiB and one more, a received piece of 64 KiB, each in a buffer that has grown.
    assert!(each <= 640 * 1024, "{each} bytes for each of {count} deaf clients");
    assert!(server.get("/plaintext").ends_with("Hello, World!"));
    drop(deaf);
}

#[test]
fn a_crowd_of_slow_heads_is_cut_off_and_keeps_nobody_out() {
    let server = Serve::start(&["--threads", "1", "--max-connections", "300", "--head-timeout", "500ms"]);
    let mut slow: Vec<TcpStream> = (0..300)
        .map(|_| {
            let mut stream = TcpStream::connect(server.address).unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\nA: ").unwrap();
            stream
        })
        .collect();
    // The server is full, and says so until the slow are cut off.
    support::eventually("the slow are cut off", || {
        // A part of the crowd goes on dripping.
        slow.iter_mut().step_by(10).for_each(|stream| drop(stream.write_all(b"a")));
        ask(server.address, "/plaintext").ends_with("Hello, World!")
    });
    let mut answer = String::new();
    slow[0].read_to_string(&mut answer).ok();
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer:?}");
    let said = server.stop();
    let timed_out: u64 = said.trim().rsplit(' ').next().unwrap().parse().unwrap();
    assert!(timed_out >= 300, "each was counted: {said}");
}

#[test]
fn resets_at_every_moment_leave_nothing_behind() {
    let server = Serve::start(&["--threads", "1", "--metrics", "127.0.0.1:0"]);
    let requests: [&[u8]; 5] = [
        b"",
        b"GET /plai",
        b"POST /plaintext HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nabc",
        b"GET /bytes/30000000 HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET /sleep?us=2000 HTTP/1.1\r\nHost: h\r\n\r\nGET /plaintext HTTP/1.1\r\nHost: h\r\n\r\n",
    ];
    for i in 0..200 {
        let mut stream = TcpStream::connect(server.address).unwrap();
        tare_sys::net::set_reset_on_close(&stream).unwrap();
        stream.write_all(requests[i % requests.len()]).unwrap();
        if i % 2 == 1 && i % requests.len() >= 3 {
            stream.read_exact(&mut [0; 10]).unwrap();
        }
    }
    assert!(server.get("/plaintext").ends_with("Hello, World!"));
    let pid = server.child.id();
    support::eventually("all sockets are closed", || {
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
        let sockets = open.filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok());
        sockets.filter(|link| link.to_string_lossy().starts_with("socket:")).count() <= 4
    });
}
