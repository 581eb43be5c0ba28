//! What moves the bytes of one generator thread: each engine owns sockets and buffers and drives one
//! [`Worker`](crate::worker::Worker), which decides everything else.

mod channel;
mod epoll;
#[cfg(feature = "http2")]
mod http2;
mod io_uring;

use crate::error::LoadError;
use crate::spec::{EngineChoice, LoadSpec, Pacing};
use crate::worker::Worker;
use std::io;
use tare_sys::time::monotonic_ns;
use tare_sys::uring::Ring;

/// What every engine does when a turn's events have been dealt with.
trait Turns {
    fn worker(&mut self) -> &mut Worker;

    /// Sends the request that `place` was just given.
    fn send_from(&mut self, place: u32) -> io::Result<()>;

    /// Hands requests that are due to free places, each with a stamp of its own.
    #[inline]
    fn send_due(&mut self) -> io::Result<()> {
        self.worker().now_ns = monotonic_ns();
        loop {
            let worker = self.worker();
            let Some(place) = worker.session.assign(worker.now_ns) else { return Ok(()) };
            self.send_from(place)?;
            self.worker().now_ns = monotonic_ns();
        }
    }

    /// Looks after what no event tells of.
    fn keep_house(&mut self);

    /// Ends a turn in which somebody did or did not wake this thread; true: that was to stop it.
    #[inline]
    fn end_turn(&mut self, woken: bool) -> io::Result<bool> {
        if self.worker().keeps_time() {
            self.send_due()?;
        }
        if self.worker().is_housekeeping_due() {
            self.keep_house();
        }
        self.worker().end_turn();
        if woken {
            if self.worker().answer_the_door() {
                return Ok(true);
            }
            self.send_due()?;
        }
        Ok(false)
    }
}

/// What drives a [`Worker`].
pub(crate) enum Engine {
    Epoll(Box<epoll::EpollEngine>),
    IoUring(Box<io_uring::IoUringEngine>),
    #[cfg(feature = "http2")]
    Http2(Box<http2::Http2Engine>),
}

/// Which engine a generator has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    Epoll,
    IoUring,
    /// Io_uring, or epoll where there is none.
    Either,
    #[cfg(feature = "http2")]
    Http2,
}

/// The choice for a validated `spec`; see [`EngineChoice::Auto`] for the reasons.
pub(crate) fn choose(spec: &LoadSpec) -> Choice {
    let batches = match spec.pacing {
        Pacing::Closed => spec.keep_alive && !spec.busy_poll,
        Pacing::Interleaved(_) => spec.keep_alive,
        Pacing::Thinking { .. } | Pacing::Open { .. } | Pacing::Stages { .. } => false,
    };
    match spec.engine {
        #[cfg(feature = "http2")]
        _ if spec.is_multiplexed() => Choice::Http2,
        EngineChoice::Epoll => Choice::Epoll,
        EngineChoice::IoUring => Choice::IoUring,
        EngineChoice::Auto if batches && !spec.target.is_tls() => Choice::Either,
        EngineChoice::Auto => Choice::Epoll,
    }
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

    /// Drives the worker until it is told to stop.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Target;
    use crate::turns::{TURN_NS_MIN, Turns};

    #[test]
    fn closed_loops_that_keep_plain_connections_take_either() {
        let plain = LoadSpec::new(Target::parse("http://h/").unwrap());
        let tls = LoadSpec::new(Target::parse("https://h/").unwrap());
        let open = Pacing::Open { rate_hz: 1.0, gaps: crate::spec::Gaps::Fixed };
        let with = |engine, pacing: Pacing, keep_alive, busy_poll| {
            choose(&LoadSpec { engine, pacing, keep_alive, busy_poll, ..plain.clone() })
        };
        assert_eq!((choose(&plain), choose(&tls)), (Choice::Either, Choice::Epoll));
        assert_eq!(with(EngineChoice::Auto, open.clone(), true, false), Choice::Epoll);
        assert_eq!(with(EngineChoice::Auto, Pacing::Closed, false, false), Choice::Epoll);
        assert_eq!(with(EngineChoice::Auto, Pacing::Closed, true, true), Choice::Epoll);
        let turns =
            Turns { begin_ns: 0, turn_ns: TURN_NS_MIN, rest_ns: 0, arms: 2, place: 0, seed: 0, slices: None };
        assert_eq!(with(EngineChoice::Auto, Pacing::Interleaved(turns), true, true), Choice::Either);
        assert_eq!(with(EngineChoice::IoUring, open, true, false), Choice::IoUring);
        assert_eq!(with(EngineChoice::Epoll, Pacing::Closed, true, false), Choice::Epoll);
    }
}
