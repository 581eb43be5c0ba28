//! Open files: the limit is one for each table of descriptors ([`tare_sys::descriptors`]), so where one table has no room
//! for all connections, each thread takes a table of its own.

use crate::engine::{self, Choice};
use crate::error::LoadError;
use crate::spec::{LoadSpec, THREADS_MAX};
use std::io;
use std::os::fd::AsFd;
use tare_sys::descriptors::OwnTable;
use tare_sys::epoll::Waker;

/// Files that a process has besides its generator's.
const BESIDES: u64 = 64;
/// Files that each thread has besides its connections.
const PER_THREAD: u64 = 4;
/// With io_uring: sockets that are closed at the end of a pass of the event loop, after others were opened.
const CLOSING: u64 = 128;

/// Whose descriptors a thread's connections have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Table {
    /// The process's.
    Shared,
    /// Their own.
    Own,
}

impl Table {
    /// What the connections of `spec` need where a table has `limit` descriptors.
    ///
    /// # Errors
    /// [`LoadError::OpenFiles`] when tables of their own have no room either.
    pub(crate) fn of(spec: &LoadSpec, limit: u64) -> Result<Table, LoadError> {
        let may_ring = matches!(engine::choose(spec), Choice::IoUring | Choice::Either);
        let closing = if may_ring { CLOSING } else { 0 };
        let per_thread = PER_THREAD + closing;
        let needed = u64::from(spec.connections) + per_thread * u64::from(spec.workers.threads) + BESIDES;
        if needed <= limit {
            return Ok(Table::Shared);
        }
        let room = limit.saturating_sub(per_thread + BESIDES);
        if u64::from(spec.connections_of(0)) <= room {
            return Ok(Table::Own);
        }
        let threads = u64::from(spec.connections).checked_div(room).map(|threads| threads + 1);
        let enough = threads.filter(|threads| *threads <= u64::from(THREADS_MAX));
        Err(LoadError::OpenFiles { needed, limit, threads: enough })
    }

    /// Called in the thread, before it opens anything; `waker` is what it keeps of the process's files.
    pub(crate) fn take(self, waker: &Waker) -> io::Result<()> {
        match self {
            Table::Shared => Ok(()),
            Table::Own => OwnTable::take()?.close_all_but(&[waker.as_fd()]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::EngineChoice;
    use crate::target::Target;

    #[test]
    fn a_table_of_their_own_only_where_one_has_no_room() {
        let mut spec = LoadSpec::new(Target::parse("http://h/").unwrap());
        spec.workers.engine = EngineChoice::Epoll;
        let mut of = |connections, threads| {
            (spec.connections, spec.workers.threads) = (connections, threads);
            Table::of(&spec, 20_000)
        };
        assert_eq!(of(19_900, 1).unwrap(), Table::Shared);
        assert_eq!(of(50_000, 3).unwrap(), Table::Own);
        let Err(LoadError::OpenFiles { needed: 50_072, limit: 20_000, threads: Some(3) }) = of(50_000, 2)
        else {
            panic!()
        };
        let text = of(50_000, 2).unwrap_err().to_string();
        assert!(text.contains("(hint: -t 3, ulimit -n 50072, or fewer connections)"), "{text}");
    }
}
