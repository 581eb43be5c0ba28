//! Many hostile clients, against the real binary: what each peer can hold is bounded.

use crate::serving::{Serve, ask, memory_bytes, metric};
use crate::support::alone;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};
use tare_server::tables;
use tare_sys::descriptors::OwnTable;

const REQUEST: &[u8] = b"GET /plaintext HTTP/1.1\r\nHost: h\r\n\r\n";

/// The stated bound on what an idle connection holds of the server's own memory.
const IDLE_BYTES_MAX: u64 = 512;

/// Connections that are only open.
const IDLE: usize = 50_000;
/// As on a machine that lets a process have no more: the test is one of tables of descriptors too.
const OPEN_FILES_MAX: u64 = 20_000;
const HOLD: &str = "TARE_TEST_HOLD_CONNECTIONS";

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

/// Not a test of its own: the clients of the next one. Opens connections, uses each once, says so, and waits until the
/// server ends them. Each thread has a table of descriptors of its own.
#[test]
fn hold_connections_when_asked() {
    let _alone = alone();
    let Ok(server) = std::env::var(HOLD) else { return };
    let server: SocketAddr = server.parse().unwrap();
    let threads = threads_for(IDLE);
    let (tell, reported) = channel();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (first, after) = (thread * IDLE / threads, (thread + 1) * IDLE / threads);
            let tell = tell.clone();
            scope.spawn(move || hold(server, first..after, tell));
        }
        drop(tell);
        println!("\nopen {}", reported.iter().sum::<usize>());
    });
}

fn hold(server: SocketAddr, indices: Range<usize>, tell: Sender<usize>) {
    OwnTable::take().unwrap().close_all_but(&[]).unwrap();
    let mut idle: Vec<TcpStream> = Vec::with_capacity(indices.len());
    for first in indices.clone().step_by(500) {
        let batch = first..(first + 500).min(indices.end);
        idle.extend(batch.clone().map(|i| connect_from(server, (i / 10_000 + 1) as u8)));
        let new = idle.len() - batch.len()..;
        idle[new.clone()].iter_mut().for_each(|stream| stream.write_all(REQUEST).unwrap());
        idle[new].iter_mut().for_each(read_answer);
    }
    tell.send(idle.len()).unwrap();
    drop(tell);
    for stream in &mut idle {
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
    }
}

/// Threads whose own tables have room for that many connections.
fn threads_for(connections: usize) -> usize {
    let limit = tare_sys::process::raise_open_files_limit().unwrap().min(OPEN_FILES_MAX);
    (1..100).find(|threads| tables::room(limit, *threads) * threads >= connections).unwrap()
}

/// On one server, whose threads have tables of descriptors of their own.
#[test]
fn fifty_thousand_idle_connections_cost_little_and_keep_nobody_out() {
    let _alone = alone();
    for backend in ["io-uring", "epoll"] {
        let each = idle_connections(backend);
        println!("{IDLE} idle connections hold {each} bytes each with {backend}");
    }
}

/// The server's own memory for each, in bytes.
fn idle_connections(backend: &str) -> u64 {
    // The hash does not deal quite evenly.
    let most = IDLE + IDLE / 12;
    let (threads, most) = (threads_for(most).to_string(), most.to_string());
    let how = ["--threads", &threads, "--max-connections", &most, "--backend", backend];
    let other = ["--idle-timeout", "10m", "--metrics", "127.0.0.1:0"];
    let limit = tare_sys::process::raise_open_files_limit().unwrap().min(OPEN_FILES_MAX);
    let mut server = Serve::start_limited(limit, &[&how[..], &other].concat());
    let metrics = server.metrics_address();
    // Warm: the buffers of a loop are there before anybody is idle.
    (0..20).for_each(|_| assert!(server.get("/plaintext").ends_with("Hello, World!")));
    let before = memory_bytes(server.child.id(), "VmRSS");
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "many_clients::hold_connections_when_asked", "--nocapture"])
        .env(HOLD, server.address.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    let open = lines.by_ref().map(Result::unwrap).any(|line| line == format!("open {IDLE}"));
    assert!(open, "a client ended before it had its connections");
    crate::support::eventually("nobody else is there", || metric(metrics, "open") == IDLE as u64);
    assert_eq!(metric(metrics, "accept_pauses_total") + metric(metrics, "turned_away_total"), 0);
    let each = memory_bytes(server.child.id(), "VmRSS").saturating_sub(before) / IDLE as u64;
    assert!(each <= IDLE_BYTES_MAX, "{each} bytes for each of {IDLE} idle connections");
    let before = cpu_ticks(server.child.id());
    for _ in 0..20 {
        assert!(server.get("/plaintext").ends_with("Hello, World!"));
        std::thread::sleep(Duration::from_millis(50));
    }
    let spent = cpu_ticks(server.child.id()) - before;
    assert!(spent < 50, "{spent} ticks of CPU in a second with nothing to do");
    // The end does not wait for the idle, and they hear of it.
    server.signal("TERM");
    assert!(server.child.wait().unwrap().success());
    lines.for_each(drop);
    assert!(holder.wait().unwrap().success(), "every connection ended well");
    each
}

#[test]
fn who_asks_and_never_reads_holds_a_bounded_amount() {
    let _alone = alone();
    let server = Serve::start(&["--threads", "1", "--write-timeout", "10m"]);
    assert!(server.get("/plaintext").ends_with("Hello, World!"));
    let before = memory_bytes(server.child.id(), "VmRSS");
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
    let each = memory_bytes(server.child.id(), "VmRSS").saturating_sub(before) / count;
    println!("a deaf client holds {each} bytes");
    // What may wait: answers of 128 KiB and one more, a received piece of 64 KiB, each in a buffer that has grown.
    assert!(each <= 640 * 1024, "{each} bytes for each of {count} deaf clients");
    assert!(server.get("/plaintext").ends_with("Hello, World!"));
    drop(deaf);
}

#[test]
fn many_slow_heads_are_cut_off_and_keep_nobody_out() {
    let _alone = alone();
    let server = Serve::start(&["--threads", "1", "--max-connections", "300", "--head-timeout", "500ms"]);
    let mut slow: Vec<TcpStream> = (0..300)
        .map(|_| {
            let mut stream = TcpStream::connect(server.address).unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\nA: ").unwrap();
            stream
        })
        .collect();
    // The server is full, and says so until the slow are cut off.
    crate::support::eventually("the slow are cut off", || {
        // Some of them go on sending single bytes.
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
    let _alone = alone();
    // A reset that overtakes what was sent before it is refused (RFC 5961), and packets keep their order on one CPU only.
    let cpus = tare_sys::affinity::get(0).unwrap();
    tare_sys::affinity::set(0, &cpus[..1]).unwrap();
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
    let deadline = Instant::now() + Duration::from_secs(10);
    while let left = sockets(server.child.id())
        && left.len() > 4
    {
        assert!(Instant::now() < deadline, "still there: {left:#?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The sockets of a process, each with its line of `/proc/net/tcp` if it has one.
fn sockets(pid: u32) -> Vec<String> {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let links = open.filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok());
    let inode = |link: PathBuf| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned());
    let line = |inode: &String| table.lines().find(|line| line.split_whitespace().nth(9) == Some(inode));
    links.filter_map(inode).map(|inode| line(&inode).map_or(inode.clone(), str::to_owned)).collect()
}
