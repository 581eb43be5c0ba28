//! What moves the bytes of one generator thread: each engine owns sockets and buffers and drives one
//! [`Worker`](crate::worker::Worker), which decides everything else.

mod channel;
mod epoll;

use crate::spec::EngineChoice;
use crate::worker::Worker;
use std::io;

/// Drives `worker` until it is told to stop.
///
/// # Errors
/// Only what makes the engine itself useless; whatever happens to a connection is counted.
pub(crate) fn run(worker: Worker, choice: EngineChoice) -> io::Result<()> {
    match choice {
        EngineChoice::Auto | EngineChoice::Epoll => epoll::EpollEngine::new(worker)?.run(),
        EngineChoice::IoUring => {
            Err(io::Error::new(io::ErrorKind::Unsupported, "there is no io_uring engine yet"))
        }
    }
}
