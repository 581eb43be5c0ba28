//! The floor: an epoll loop that reads nothing of a request and answers with the bytes that `tare serve` would.

#[path = "../floor.rs"]
mod floor;

use std::os::fd::{AsRawFd, OwnedFd};

use floor::Floor;
use tare_sys::epoll::{Epoll, Events, Interest};
use tare_sys::net::{self, ListenOptions};

fn main() -> std::io::Result<()> {
    let listener = net::listen(([127, 0, 0, 1], floor::port()).into(), ListenOptions::default())?;
    net::set_nodelay(&listener, true)?;
    let epoll = Epoll::new()?;
    epoll.add(&listener, Interest::READ, u64::MAX)?;
    let mut events = Events::with_capacity(512);
    let mut connections: Vec<Option<OwnedFd>> = Vec::new();
    let mut buffer = vec![0u8; 64 * 1024];
    let mut floor = Floor::new();
    loop {
        epoll.wait(&mut events, None)?;
        floor.stamp();
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
                    // A peer that is gone is told of by the next receive.
                    let _ = net::send(fd, floor.answer(&buffer[..n]));
                }
                Err(_) => {}
            }
        }
    }
}
