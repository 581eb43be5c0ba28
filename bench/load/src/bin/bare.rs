//! The bare generator: for each batch of answers one send and one receive, nothing of what came is read but its
//! length. What it uses is the kernel's part, below which no generator of sockets and epoll comes.
//!
//! `bare CONNECTIONS DEPTH SECONDS http://127.0.0.1:PORT/PATH`, and prints `N requests in …` as wrk does.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tare_sys::epoll::{Epoll, Events, Interest};
use tare_sys::net;
use tare_sys::time::monotonic_ns;

struct Link {
    socket: std::os::fd::OwnedFd,
    /// Bytes of the answers that are to come.
    missing: usize,
}

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().collect();
    let wrong = || io::Error::other("usage: bare CONNECTIONS DEPTH SECONDS http://127.0.0.1:PORT/PATH");
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<usize>().ok()).ok_or_else(wrong);
    let (connections, depth, seconds) = (number(1)?, number(2)?, number(3)?);
    let url = words.get(4).and_then(|url| url.strip_prefix("http://")).ok_or_else(wrong)?;
    let (host, path) = url.split_once('/').ok_or_else(wrong)?;
    let remote: SocketAddr = host.parse().map_err(|_| wrong())?;
    let batch = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n").repeat(depth);

    let mut buffer = vec![0; 64 * 1024];
    let answer_bytes = learn(remote, &batch[..batch.len() / depth], &mut buffer)?;
    let epoll = Epoll::new()?;
    let mut links = Vec::with_capacity(connections);
    for number in 0..connections {
        let (socket, _) = net::connect(remote, None)?;
        net::set_nodelay(&socket, true)?;
        epoll.add(&socket, Interest::READ.edge(), number as u64)?;
        links.push(Link { socket, missing: 0 });
    }
    // Loopback connects at once or within this.
    std::thread::sleep(Duration::from_millis(20));
    for link in &mut links {
        net::send(&link.socket, batch.as_bytes())?;
        link.missing = answer_bytes * depth;
    }
    let (mut requests, mut events) = (0, Events::with_capacity(512));
    let end_ns = monotonic_ns() + seconds as u64 * 1_000_000_000;
    while monotonic_ns() < end_ns {
        epoll.wait(&mut events, Some(Duration::from_millis(100)))?;
        for event in events.iter() {
            let link = &mut links[event.token as usize];
            let Ok(received) = net::recv(&link.socket, &mut buffer) else { continue };
            link.missing = link.missing.saturating_sub(received);
            if received > 0 && link.missing == 0 {
                requests += depth;
                link.missing = answer_bytes * depth;
                net::send(&link.socket, batch.as_bytes())?;
            }
        }
    }
    println!("  {requests} requests in {seconds}s");
    Ok(())
}

/// The length of an answer, by asking once.
fn learn(remote: SocketAddr, request: &str, buffer: &mut [u8]) -> io::Result<usize> {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(remote)?;
    stream.write_all(request.as_bytes())?;
    stream.read(buffer)
}
