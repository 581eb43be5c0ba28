//! The floor: an epoll loop that reads nothing of a request and answers with the bytes that `tare serve` would.
//!
//! It learns the length of a request from the first one and divides. Usage: `floor_epoll PORT`.

use std::os::fd::{AsRawFd, OwnedFd};

use tare_http::status::Status;
use tare_http::write;
use tare_sys::epoll::{Epoll, Events, Interest};
use tare_sys::net::{self, ListenOptions};
use tare_sys::time::{monotonic_ns, wall_s};

const ANSWERS: usize = 64;

fn answers() -> Vec<u8> {
    let mut one = Vec::new();
    write::start(&mut one, &write::Stamp::new(wall_s()), Status::OK);
    write::static_field(&mut one, "Content-Type", "text/plain");
    write::content_length(&mut one, 13);
    one.extend_from_slice(b"\r\nHello, World!");
    one.repeat(ANSWERS)
}

fn main() -> std::io::Result<()> {
    let port: u16 = std::env::args().nth(1).and_then(|p| p.parse().ok()).expect("usage: floor_epoll PORT");
    let listener = net::listen(([127, 0, 0, 1], port).into(), ListenOptions::default())?;
    net::set_nodelay(&listener, true)?;
    let epoll = Epoll::new()?;
    epoll.add(&listener, Interest::READ, u64::MAX)?;
    let mut events = Events::with_capacity(512);
    let mut connections: Vec<Option<OwnedFd>> = Vec::new();
    let mut buffer = vec![0u8; 64 * 1024];
    let mut block = answers();
    let one = block.len() / ANSWERS;
    let (mut request_bytes, mut stamp_until) = (0, 0);
    loop {
        epoll.wait(&mut events, None)?;
        let now = monotonic_ns();
        if now >= stamp_until {
            block = answers();
            stamp_until = now + 1_000_000_000;
        }
        for event in events.iter() {
            if event.token == u64::MAX {
                while let Ok(fd) = net::accept(&listener) {
                    let raw = fd.as_raw_fd() as usize;
                    if connections.len() <= raw {
                        connections.resize_with(raw + 1, || None);
                    }
                    epoll.add(&fd, Interest::READ_WRITE.edge(), raw as u64)?;
                    connections[raw] = Some(fd);
                }
                continue;
            }
            let slot = &mut connections[event.token as usize];
            let Some(fd) = slot.as_ref() else { continue };
            match net::recv(fd, &mut buffer) {
                Ok(0) | Err(_) if event.peer_closed() => *slot = None,
                Ok(n) => {
                    if request_bytes == 0 {
                        let end =
                            buffer[..n].windows(4).position(|w| w == b"\r\n\r\n").map_or(n, |at| at + 4);
                        request_bytes = end;
                    }
                    let count = (n / request_bytes).min(ANSWERS);
                    net::send(fd, &block[..count * one])?;
                }
                Err(_) => {}
            }
        }
    }
}
