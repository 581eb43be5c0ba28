//! One acceptor deals connections to the loops through a queue and an eventfd.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tare_sys::epoll::{Epoll, Events, Interest, Waker};
use tare_sys::net::{self, Sharing};

use crate::architecture::{Architecture, Intake, Layout, Role, listen};
use crate::config::{Config, ServerError};

/// Connections that may wait in one queue; more wait in the kernel.
const QUEUE_MAX: usize = 1024;
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
        "one acceptor hands connections in turn to the loops: even counts, at the cost of a hand-over each"
    }

    fn keeps_connections(&self) -> bool {
        false
    }

    fn threads(&self, config: &Config) -> Result<Layout, ServerError> {
        let (listener, address) = listen(config.listen, config, Sharing::None)?;
        let queues: Vec<Arc<Queue>> = (0..config.threads)
            .map(|thread| Queue::new().map(Arc::new).map_err(|source| ServerError::Thread { thread, source }))
            .collect::<Result<_, _>>()?;
        let mut roles: Vec<Role> = queues.iter().map(|q| Role::Loop(Intake::Queue(Arc::clone(q)))).collect();
        roles.push(Role::Acceptor { listener, queues });
        Ok(Layout { address, roles })
    }
}

/// Connections on their way from the acceptor to a loop.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    /// Wakes the loop.
    pub(crate) waker: Waker,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<OwnedFd>,
    closed: bool,
}

impl Queue {
    fn new() -> io::Result<Queue> {
        Ok(Queue { state: Mutex::default(), waker: Waker::new()? })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, fd: OwnedFd) -> Result<(), OwnedFd> {
        let mut state = self.lock();
        if state.waiting.len() >= QUEUE_MAX {
            return Err(fd);
        }
        state.waiting.push_back(fd);
        // The loop takes all that wait at each wake-up: only the first one has to wake it.
        if state.waiting.len() == 1 {
            let _ = self.waker.wake();
        }
        Ok(())
    }

    /// Nothing more will come.
    fn close(&self) {
        self.lock().closed = true;
        let _ = self.waker.wake();
    }

    pub(crate) fn pop(&self) -> Option<OwnedFd> {
        self.lock().waiting.pop_front()
    }

    /// Whether nothing waits and nothing more will come.
    pub(crate) fn is_finished(&self) -> bool {
        let state = self.lock();
        state.closed && state.waiting.is_empty()
    }
}

/// The acceptor's thread: until `stopping`, then once more for what already waits in the kernel.
pub(crate) fn accept_and_deal(
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
        let dealt = deal_all(&listener, queues, &mut next);
        if last && dealt.is_ok() {
            break;
        }
        if dealt.is_err() {
            std::thread::sleep(PAUSE);
        } else {
            epoll.wait(&mut events, None)?;
        }
    }
    queues.iter().for_each(|q| q.close());
    Ok(())
}

/// Deals out what waits in the kernel; an error where it has to be tried again later.
fn deal_all(listener: &OwnedFd, queues: &[Arc<Queue>], next: &mut usize) -> Result<(), ()> {
    loop {
        let mut fd = match net::accept(listener) {
            Ok(fd) => fd,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            // The peer gave up while it waited.
            Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => continue,
            Err(_) => return Err(()),
        };
        // In turn; a full queue is passed over. Where all stay full the loops are stuck, and the connection in
        // hand is dropped in the end.
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
