//! The backend that a server runs with.

use tare_sys::uring::RingError;

use crate::backend::io_uring;
use crate::config::BackendChoice;

/// The backend that a server runs with.
#[derive(Debug)]
pub enum Chosen {
    /// [`crate::backend::epoll`].
    Epoll {
        /// Why it is not io_uring, which was asked for.
        instead: Option<RingError>,
    },
    /// [`io_uring`].
    IoUring,
}

impl Chosen {
    pub(crate) fn of(choice: BackendChoice) -> Chosen {
        match choice {
            BackendChoice::Epoll => Chosen::Epoll { instead: None },
            BackendChoice::Auto | BackendChoice::IoUring => match io_uring::probe() {
                Ok(()) => Chosen::IoUring,
                Err(why) => Chosen::Epoll { instead: Some(why) },
            },
        }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Chosen::Epoll { .. } => BackendChoice::Epoll.name(),
            Chosen::IoUring => BackendChoice::IoUring.name(),
        }
    }
}
