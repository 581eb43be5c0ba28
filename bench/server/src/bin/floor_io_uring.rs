//! The floor once more: an io_uring loop that reads nothing of a request.

#[path = "../floor.rs"]
mod floor;

use std::os::fd::{AsRawFd, OwnedFd};

use floor::Floor;
use tare_sys::net::{self, ListenOptions};
use tare_sys::uring::{Completion, Ring, RingSizes};

const SIZES: RingSizes = RingSizes {
    requests: 512,
    completions: 4096,
    buffers: 128,
    buffer_bytes: 16 * 1024,
    outgoing_bytes: 512 * 1024,
};

fn main() -> std::io::Result<()> {
    let listener = net::listen(([127, 0, 0, 1], floor::port()).into(), ListenOptions::default())?;
    net::set_nodelay(&listener, true)?;
    let mut ring = Ring::new(SIZES)?;
    ring.accept(&listener)?;
    let mut connections: Vec<Option<OwnedFd>> = Vec::new();
    let mut floor = Floor::new();
    loop {
        ring.wait(None)?;
        floor.stamp();
        while let Some(done) = ring.next() {
            match done {
                Completion::Accepted { socket: Ok(fd), .. } => {
                    let raw = fd.as_raw_fd() as usize;
                    if connections.len() <= raw {
                        connections.resize_with(raw + 1, || None);
                    }
                    ring.receive(&fd, raw as u64)?;
                    connections[raw] = Some(fd);
                }
                Completion::Received { token, outcome, more } => {
                    let slot = &mut connections[token as usize];
                    let Some(fd) = slot.as_ref() else { continue };
                    match outcome.count() {
                        Ok(1..) => {
                            let answer = floor.answer(ring.bytes());
                            ring.send(fd, answer, token)?;
                        }
                        _ if outcome.may_begin_again() => {}
                        _ => {
                            if let Some(fd) = slot.take() {
                                ring.close(fd, token, more, false);
                            }
                            continue;
                        }
                    }
                    if !more {
                        ring.receive(fd, token)?;
                    }
                }
                _ => {}
            }
        }
    }
}
