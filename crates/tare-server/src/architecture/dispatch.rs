//! One acceptor distributes connections to the loops through a queue and an eventfd.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use tare_sys::epoll::{Epoll, Events, Interest, Waker};
use tare_sys::net::{self, Sharing};

use crate::architecture::layout::{Architecture, Intake, Layout, Role, listen};
use crate::architecture::queue::Queue;
use crate::error::ServerError;
use crate::listening::Listening;

/// How long the acceptor waits before it tries again when queues are full or descriptors ran out.
const PAUSE: Duration = Duration::from_millis(10);
/// Rounds over all queues, with a pause after each, before a connection is dropped.
const ROUNDS_MAX: usize = 500;

#[derive(Debug)]
pub(crate) struct Dispatch;

impl Architecture for Dispatch {
    fn name(&self) -> &'static str {
        "dispatch"
    }

    fn help(&self) -> &'static str {
        "one acceptor hands connections to the loops, one after the other: even counts, at the cost of a hand-over each"
    }

    fn keeps_connections(&self) -> bool {
        false
    }

    fn threads(&self, listening: &Listening) -> Result<Layout, ServerError> {
        let (listener, address) = listen(listening.address, listening, Sharing::None)?;
        let queues: Vec<Arc<Queue>> = (0..listening.threads)
            .map(|thread| Queue::new().map(Arc::new).map_err(|source| ServerError::Thread { thread, source }))
            .collect::<Result<_, _>>()?;
        let mut roles: Vec<Role> = queues.iter().map(|q| Role::Loop(Intake::Queue(Arc::clone(q)))).collect();
        roles.push(Role::Acceptor { listener, queues });
        Ok(Layout { address, roles })
    }
}

/// The acceptor's thread: until `stopping`, then once more for what already waits in the kernel.
pub(crate) fn accept_and_distribute(
    listener: OwnedFd,
    queues: &[Arc<Queue>],
    stop: &Waker,
    stopping: impl Fn() -> bool,
) -> io::Result<()> {
    let epoll = Epoll::new()?;
    epoll.add(&listener, Interest::READ, 0)?;
    epoll.add(stop, Interest::READ, 1)?;
    let mut events = Events::with_capacity(2);
    let mut next = 0;
    loop {
        let last = stopping();
        let passed_on = distribute_all(&listener, queues, &mut next);
        if last && passed_on.is_ok() {
            break;
        }
        if passed_on.is_err() {
            std::thread::sleep(PAUSE);
        } else {
            epoll.wait(&mut events, None)?;
        }
    }
    queues.iter().for_each(|q| q.close());
    Ok(())
}

/// Distributes what waits in the kernel; an error where it has to be tried again later.
fn distribute_all(listener: &OwnedFd, queues: &[Arc<Queue>], next: &mut usize) -> Result<(), ()> {
    loop {
        let mut fd = match net::accept(listener) {
            Ok(fd) => fd,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            // The peer gave up while it waited.
            Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => continue,
            Err(_) => return Err(()),
        };
        // One queue after the other, past full ones. Where all stay full the loops are stuck, and the connection is
        // dropped.
        for attempt in 1..=ROUNDS_MAX * queues.len() {
            let queue = &queues[*next % queues.len()];
            *next = next.wrapping_add(1);
            match queue.push(fd) {
                Ok(()) => break,
                Err(back) => fd = back,
            }
            if attempt % queues.len() == 0 {
                std::thread::sleep(PAUSE);
            }
        }
    }
}
