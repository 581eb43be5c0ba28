//! Completions: an io_uring for sockets, with all that the kernel reads and writes meanwhile owned by the ring.
//!
//! Requests are collected and given to the kernel by [`Ring::wait`], which comes back when something is done.
//! Made for one thread (`SINGLE_ISSUER`), with work deferred to the wait (`DEFER_TASKRUN`, Linux 6.1): plain
//! io_uring interrupts the thread for each completion and is slower than epoll.
//!
//! A descriptor that is lent to a request has to stay open until the wait that follows; [`Ring::close`] sees to it.

mod error;
mod memory;

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::time::Duration;

use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, cqueue, opcode, squeue};

pub use error::RingError;
use memory::{Buffers, Outgoing, Part};

/// Sizes of a ring.
#[derive(Debug, Clone, Copy)]
pub struct RingSizes {
    /// Requests that are collected before they go to the kernel by themselves.
    pub requests: u32,
    /// Completions that have room; more wait in the kernel.
    pub completions: u32,
    /// Buffers to receive into: a power of two, up to 2^15.
    pub buffers: u16,
    /// Bytes of each.
    pub buffer_bytes: u32,
    /// Bytes that may be on their way out at a time.
    pub outgoing_bytes: usize,
}

/// Something that was done.
#[derive(Debug)]
pub enum Completion {
    /// The listener brought a connection, or failed to.
    Accepted {
        /// The connection, non-blocking.
        socket: Result<OwnedFd, Outcome>,
        /// Whether more follow without another call of [`Ring::accept`].
        more: bool,
    },
    /// Bytes came, to be found at [`Ring::bytes`]; 0 is the end of the stream.
    Received {
        /// The connection's token.
        token: u64,
        /// How many.
        outcome: Outcome,
        /// Whether more follow without another call of [`Ring::receive`].
        more: bool,
    },
    /// A send is over; what was not taken is at [`Ring::bytes`].
    Sent {
        /// The connection's token.
        token: u64,
        /// How many bytes were taken.
        outcome: Outcome,
    },
    /// A descriptor that was watched is ready.
    Ready {
        /// Its token.
        token: u64,
        /// Whether it is watched on.
        more: bool,
    },
}

/// What a system call would have returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome(i32);

impl Outcome {
    /// A count, or the error.
    #[inline]
    pub fn count(self) -> io::Result<usize> {
        usize::try_from(self.0).map_err(|_| io::Error::from_raw_os_error(-self.0))
    }

    /// Whether it may be asked for again, nothing being wrong: no buffer was left, or it was ended when asked to.
    #[inline]
    pub fn may_begin_again(self) -> bool {
        self.0 == -libc::ENOBUFS || self.0 == -libc::ECANCELED
    }
}

/// What a watched descriptor is to become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// Readable; reported each time that something comes.
    Readable,
    /// Writable; reported once.
    Writable,
}

/// Tokens are below this.
pub const TOKENS_END: u64 = 1 << 60;

// What a request was, in the upper bits of its user data; 0 for those whose end is of no interest.
const KIND_ACCEPT: u64 = 1 << 60;
const KIND_RECEIVE: u64 = 2 << 60;
const KIND_SEND: u64 = 3 << 60;
const KIND_WATCH: u64 = 4 << 60;
const KINDS: u64 = !(TOKENS_END - 1);

/// The buffers' group: a ring has one.
const GROUP: u16 = 0;

/// An io_uring with its memory.
pub struct Ring {
    // Fields drop in this order: the kernel's side first.
    ring: IoUring,
    buffers: Buffers,
    outgoing: Outgoing,
    done: Vec<cqueue::Entry>,
    /// Entries of `done` that were handed out.
    handed_out: usize,
    last: Last,
}

/// What [`Ring::bytes`] stands for.
enum Last {
    Nothing,
    Received { buffer: u16, bytes: usize },
    Unsent { part: Part, sent: usize },
}

impl Ring {
    /// A ring for the thread that makes it.
    ///
    /// # Errors
    /// Why this kernel, or this process, cannot have one.
    pub fn new(sizes: RingSizes) -> Result<Ring, RingError> {
        let ring = IoUring::builder()
            .setup_clamp()
            .setup_submit_all()
            .setup_cqsize(sizes.completions)
            .setup_single_issuer()
            .setup_coop_taskrun()
            .setup_defer_taskrun()
            .build(sizes.requests)
            .map_err(|e| RingError::of("SINGLE_ISSUER and DEFER_TASKRUN", e))?;
        let memory = |e| RingError::of("memory for buffers", e);
        let buffers = Buffers::new(sizes.buffers, sizes.buffer_bytes).map_err(memory)?;
        let outgoing = Outgoing::new(sizes.outgoing_bytes).map_err(memory)?;
        let done = Vec::with_capacity(ring.params().cq_entries() as usize);
        let ring = Ring { ring, buffers, outgoing, done, handed_out: 0, last: Last::Nothing };
        // SAFETY: the entries live as long as the ring: both are fields of one struct, and `drop` ends the
        // kernel's use of them first.
        unsafe {
            let (at, count) = (ring.buffers.ring_address(), ring.buffers.count());
            ring.ring.submitter().register_buf_ring_with_flags(at, count, GROUP, 0)
        }
        .map_err(|e| RingError::of("buffer rings", e))?;
        Ok(ring)
    }

    /// Accepts connections, non-blocking ones, until a completion says that there is no `more`.
    pub fn accept(&mut self, listener: impl AsFd) -> io::Result<()> {
        let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        self.push(opcode::AcceptMulti::new(fd(listener)).flags(flags).build().user_data(KIND_ACCEPT))
    }

    /// Stops accepting; what was accepted before and an end without `more` are still reported.
    pub fn end_accepting(&mut self) -> io::Result<()> {
        self.push(opcode::AsyncCancel::new(KIND_ACCEPT).build())
    }

    /// Receives from a connection until a completion says that there is no `more`.
    #[inline]
    pub fn receive(&mut self, socket: impl AsFd, token: u64) -> io::Result<()> {
        let request = opcode::RecvMulti::new(fd(socket), GROUP).build();
        self.push(request.user_data(KIND_RECEIVE | below_end(token)))
    }

    /// Stops receiving; what came before and an end without `more` are still reported.
    pub fn end_receiving(&mut self, token: u64) -> io::Result<()> {
        self.push(opcode::AsyncCancel::new(KIND_RECEIVE | below_end(token)).build())
    }

    /// Sends, without waiting for room: [`Completion::Sent`] says how much was taken. The bytes are copied. False
    /// where they have no room beside what is on its way; a plain send does then, if nothing of this connection is.
    #[inline]
    pub fn send(&mut self, socket: impl AsFd, bytes: &[u8], token: u64) -> io::Result<bool> {
        if !self.outgoing.has_room(bytes.len()) {
            return Ok(false);
        }
        // Room for the request is made before the part is counted as on its way.
        self.make_room()?;
        let (number, at) = self.outgoing.put(bytes, below_end(token));
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
        let send = opcode::Send::new(fd(socket), at, bytes.len() as u32).flags(flags).build();
        self.push(send.user_data(KIND_SEND | number as u64))?;
        Ok(true)
    }

    /// Watches a descriptor.
    pub fn watch(&mut self, watched: impl AsFd, readiness: Readiness, token: u64) -> io::Result<()> {
        let (bits, multi) = match readiness {
            Readiness::Readable => (libc::POLLIN, true),
            Readiness::Writable => (libc::POLLOUT, false),
        };
        let request = opcode::PollAdd::new(fd(watched), bits as u32).multi(multi).build();
        self.push(request.user_data(KIND_WATCH | below_end(token)))
    }

    /// Stops watching.
    pub fn end_watching(&mut self, token: u64) -> io::Result<()> {
        self.push(opcode::AsyncCancel::new(KIND_WATCH | below_end(token)).build())
    }

    /// Closes a connection after all that was asked for it before; what it waits for is cancelled.
    pub fn close(&mut self, socket: OwnedFd, token: u64, receiving: bool, watched: bool) {
        // Requests that wait for the socket hold it open: without the cancelling it would not close. If that fails,
        // the kernel is out of memory, and the socket closes when the ring does.
        if receiving {
            let _ = self.end_receiving(token);
        }
        if watched {
            let _ = self.end_watching(token);
        }
        if self.make_room().is_ok() {
            let request = opcode::Close::new(Fd(socket.into_raw_fd())).build();
            let _ = self.push(request.flags(squeue::Flags::SKIP_SUCCESS));
        }
    }

    /// Gives the kernel what was asked for, and waits until something is done or `timeout` has passed (`None`: without
    /// end; zero: does not wait) or a signal came.
    #[inline]
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.take_in(1, timeout)
    }

    /// As [`Ring::wait`], and does not come back for a few sends alone, which are over at once: `more` (one at least; of
    /// very many, some) is done beside them. How such a send went is reported with that, or when the time is over.
    #[inline]
    pub fn wait_beyond_sends(&mut self, more: u32, timeout: Option<Duration>) -> io::Result<()> {
        let sends = self.outgoing.on_the_way();
        // The kernel reports as many completions at once as are waited for: no more than there are buffers.
        let few = (self.buffers.count() / 2) as usize;
        let at_least = if sends <= few { (sends + more.max(1) as usize).min(few + 1) } else { 1 };
        self.take_in(at_least as u32, timeout)
    }

    /// As [`Ring::wait`], until so many things are done.
    pub fn wait_for(&mut self, at_least: u32, timeout: Duration) -> io::Result<()> {
        self.take_in(at_least, Some(timeout))
    }

    #[inline]
    fn take_in(&mut self, at_least: u32, timeout: Option<Duration>) -> io::Result<()> {
        self.take_back();
        if self.handed_out < self.done.len() {
            return Ok(());
        }
        self.buffers.publish();
        self.enter(at_least, timeout)?;
        self.done.clear();
        self.handed_out = 0;
        self.done.extend(self.ring.completion());
        Ok(())
    }

    /// The bytes that the last completion is about.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match self.last {
            Last::Nothing => &[],
            Last::Received { buffer, bytes } => self.buffers.filled(buffer, bytes),
            Last::Unsent { part, sent } => self.outgoing.unsent(part, sent),
        }
    }

    /// Puts the buffer of the last completion back on the ring.
    #[inline]
    fn take_back(&mut self) {
        if let Last::Received { buffer, .. } = self.last {
            self.buffers.put(buffer);
        }
        self.last = Last::Nothing;
    }

    fn enter(&mut self, at_least: u32, timeout: Option<Duration>) -> io::Result<()> {
        let (submitter, mut queue, _) = self.ring.split();
        queue.sync();
        let requests = queue.len() as u32;
        let at_least = if timeout == Some(Duration::ZERO) { 0 } else { at_least };
        // Deferred work is done only when events are asked for.
        let flags = EnterFlags::GETEVENTS;
        let entered = match timeout.filter(|t| !t.is_zero()) {
            None => {
                // SAFETY: no argument is passed, and all that requests point to is owned by this ring.
                unsafe { submitter.enter::<libc::sigset_t>(requests, at_least, flags.bits(), None) }
            }
            Some(timeout) => {
                let time = Timespec::from(timeout);
                let arguments = SubmitArgs::new().timespec(&time);
                let flags = (flags | EnterFlags::EXT_ARG).bits();
                // SAFETY: EXT_ARG says that the argument is one of this type, and it lives through the call.
                unsafe { submitter.enter(requests, at_least, flags, Some(&arguments)) }
            }
        };
        match entered {
            Ok(_) => Ok(()),
            Err(e) => match e.raw_os_error() {
                // Time is over, a signal came, or completions have to be looked at first.
                Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => Ok(()),
                _ => Err(e),
            },
        }
    }

    /// Gives the kernel what was collected when there is no room for more.
    #[inline]
    fn make_room(&mut self) -> io::Result<()> {
        if self.ring.submission().is_full() {
            self.ring.submit()?;
        }
        Ok(())
    }

    #[inline]
    fn push(&mut self, request: squeue::Entry) -> io::Result<()> {
        self.make_room()?;
        // SAFETY: the only pointers in requests of this module are to `outgoing`, which stays in place until the
        // kernel is done with it, and to `buffers` by their group.
        unsafe { self.ring.submission().push(&request) }.map_err(|_| io::ErrorKind::ResourceBusy.into())
    }
}

/// What was done, in order. The buffer of a completion goes back to the kernel when the next is asked for.
impl Iterator for Ring {
    type Item = Completion;

    #[inline]
    fn next(&mut self) -> Option<Completion> {
        self.take_back();
        loop {
            let entry = self.done.get(self.handed_out)?;
            self.handed_out += 1;
            let (data, outcome, flags) = (entry.user_data(), Outcome(entry.result()), entry.flags());
            let (token, more) = (data & !KINDS, cqueue::more(flags));
            return Some(match data & KINDS {
                KIND_RECEIVE => {
                    if let Some(buffer) = cqueue::buffer_select(flags) {
                        self.last = Last::Received { buffer, bytes: outcome.0.max(0) as usize };
                    }
                    Completion::Received { token, outcome, more }
                }
                KIND_SEND => {
                    let Some(part) = self.outgoing.arrived(token as usize) else { continue };
                    self.last = Last::Unsent { part, sent: outcome.0.max(0) as usize };
                    Completion::Sent { token: part.token, outcome }
                }
                KIND_WATCH => Completion::Ready { token, more },
                KIND_ACCEPT => {
                    let socket = if outcome.0 < 0 {
                        Err(outcome)
                    } else {
                        // SAFETY: the kernel just made this descriptor for us, and each entry is looked at once.
                        Ok(unsafe { OwnedFd::from_raw_fd(outcome.0) })
                    };
                    Completion::Accepted { socket, more }
                }
                _ => continue,
            });
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // What was asked for last is still done: sockets are closed by requests. Then closing a ring does not wait
        // for its requests, so they are ended first; where that cannot be, their memory is left to them.
        let _ = self.ring.submit();
        let patience = Timespec::from(Duration::from_secs(1));
        let ended = self.ring.submitter().register_sync_cancel(Some(patience), CancelBuilder::any());
        if !ended.map_or_else(|e| e.raw_os_error() == Some(libc::ENOENT), |()| true) {
            self.buffers.leak();
            self.outgoing.leak();
        }
        // Connections that were accepted and never asked for.
        self.done.extend(self.ring.completion());
        while self.next().is_some() {}
    }
}

fn fd(of: impl AsFd) -> Fd {
    Fd(of.as_fd().as_raw_fd())
}

#[inline]
fn below_end(token: u64) -> u64 {
    token & !KINDS
}

#[cfg(test)]
mod tests;
