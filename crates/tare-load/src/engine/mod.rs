//! What moves the bytes of one generator thread: each engine owns sockets and buffers and drives one
//! [`Worker`](crate::worker::Worker), which decides everything else.

mod channel;
mod epoll;
mod io_uring;

use crate::error::LoadError;
use crate::spec::EngineChoice;
use crate::worker::Worker;
use std::io;
use tare_sys::uring::Ring;

/// What drives a [`Worker`].
pub(crate) enum Engine {
    Epoll(Box<epoll::EpollEngine>),
    IoUring(Box<io_uring::IoUringEngine>),
}

impl Engine {
    /// An engine of the calling thread, for the validated `choice`.
    ///
    /// # Errors
    /// [`LoadError::Engine`] where there is no io_uring and nothing else will do, [`LoadError::Thread`] for all else.
    pub(crate) fn new(worker: Worker, choice: EngineChoice) -> Result<Self, LoadError> {
        match choice {
            EngineChoice::Auto | EngineChoice::Epoll => {
                let engine = epoll::EpollEngine::new(worker).map_err(|why| LoadError::Thread { why })?;
                Ok(Engine::Epoll(Box::new(engine)))
            }
            EngineChoice::IoUring => {
                let ring = Ring::new(io_uring::SIZES).map_err(|why| LoadError::Engine { why })?;
                Ok(Engine::IoUring(Box::new(io_uring::IoUringEngine::new(worker, ring))))
            }
        }
    }

    /// Drives the worker until it is told to stop.
    ///
    /// # Errors
    /// Only what makes the engine itself useless; whatever happens to a connection is counted.
    pub(crate) fn run(self) -> io::Result<()> {
        match self {
            Engine::Epoll(mut engine) => engine.run(),
            Engine::IoUring(mut engine) => engine.run(),
        }
    }
}
