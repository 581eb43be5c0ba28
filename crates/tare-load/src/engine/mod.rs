//! What moves the bytes of one generator thread: each engine owns sockets and buffers and drives one
//! [`Worker`](crate::worker::Worker), which decides everything else.

mod channel;
mod choice;
mod epoll;
mod event_loop;
#[cfg(feature = "http2")]
mod http2;
mod io_uring;

pub(crate) use choice::{Choice, choose};

use crate::error::LoadError;
use crate::worker::Worker;
use std::io;
use tare_sys::uring::Ring;

/// What drives a [`Worker`].
pub(crate) enum Engine {
    Epoll(Box<epoll::EpollEngine>),
    IoUring(Box<io_uring::IoUringEngine>),
    #[cfg(feature = "http2")]
    Http2(Box<http2::Http2Engine>),
}

impl Engine {
    /// An engine of the calling thread.
    ///
    /// # Errors
    /// [`LoadError::Engine`] where there is no io_uring and nothing else will do, [`LoadError::Thread`] for all else.
    pub(crate) fn new(worker: Worker, choice: Choice) -> Result<Self, LoadError> {
        let ring = match choice {
            #[cfg(feature = "http2")]
            Choice::Http2 => {
                let engine = http2::Http2Engine::new(worker).map_err(|why| LoadError::Thread { why })?;
                return Ok(Engine::Http2(Box::new(engine)));
            }
            Choice::Epoll => None,
            Choice::Either => Ring::new(io_uring::SIZES).ok(),
            Choice::IoUring => Some(Ring::new(io_uring::SIZES).map_err(|why| LoadError::Engine { why })?),
        };
        Ok(match ring {
            Some(ring) => Engine::IoUring(Box::new(io_uring::IoUringEngine::new(worker, ring))),
            None => {
                let engine = epoll::EpollEngine::new(worker).map_err(|why| LoadError::Thread { why })?;
                Engine::Epoll(Box::new(engine))
            }
        })
    }

    /// Drives the worker until it is to stop.
    ///
    /// # Errors
    /// Only what makes the engine itself useless; whatever happens to a connection is counted.
    pub(crate) fn run(self) -> io::Result<()> {
        match self {
            Engine::Epoll(mut engine) => engine.run(),
            Engine::IoUring(mut engine) => engine.run(),
            #[cfg(feature = "http2")]
            Engine::Http2(mut engine) => engine.run(),
        }
    }
}
