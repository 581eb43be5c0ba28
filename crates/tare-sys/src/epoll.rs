//! Readiness: an epoll instance, a caller-owned event buffer, and an eventfd to wake a loop from another thread.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// What a descriptor is watched for. Errors and hang-ups are always reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interest(u32);

impl Interest {
    /// Nothing but errors and hang-ups.
    pub const NONE: Interest = Interest(0);
    /// Data to read, or the peer closed its side.
    pub const READ: Interest = Interest((libc::EPOLLIN | libc::EPOLLRDHUP) as u32);
    /// Room to write.
    pub const WRITE: Interest = Interest(libc::EPOLLOUT as u32);
    /// Both directions.
    pub const READ_WRITE: Interest = Interest(Self::READ.0 | Self::WRITE.0);

    /// Report a change once, instead of a state for as long as it lasts.
    pub const fn edge(self) -> Interest {
        Interest(self.0 | libc::EPOLLET as u32)
    }

    /// Of several epoll instances that watch one descriptor, wake only one (listeners shared by threads).
    pub const fn exclusive(self) -> Interest {
        // EPOLLRDHUP may not be combined with EPOLLEXCLUSIVE (epoll_ctl(2)).
        Interest((self.0 & !(libc::EPOLLRDHUP as u32)) | libc::EPOLLEXCLUSIVE as u32)
    }
}

/// One ready descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The number given when the descriptor was added.
    pub token: u64,
    bits: u32,
}

impl Event {
    /// A read will not block: data, end of stream or an error is there.
    #[inline]
    pub fn readable(&self) -> bool {
        self.bits & (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) as u32 != 0
    }

    /// A write will not block: there is room, or an error to report.
    #[inline]
    pub fn writable(&self) -> bool {
        self.bits & (libc::EPOLLOUT | libc::EPOLLHUP | libc::EPOLLERR) as u32 != 0
    }

    /// The peer closed its sending side, or both are closed.
    #[inline]
    pub fn peer_closed(&self) -> bool {
        self.bits & (libc::EPOLLRDHUP | libc::EPOLLHUP) as u32 != 0
    }

    /// The socket has an error ([`crate::net::take_error`] says which).
    #[inline]
    pub fn error(&self) -> bool {
        self.bits & libc::EPOLLERR as u32 != 0
    }
}

/// A buffer that [`Epoll::wait`] fills; made once, used for the life of a loop.
pub struct Events {
    buffer: Vec<libc::epoll_event>,
    len: usize,
}

impl Events {
    /// Room for `capacity` events of one wait (at least 1).
    pub fn with_capacity(capacity: usize) -> Events {
        Events { buffer: vec![libc::epoll_event { events: 0, u64: 0 }; capacity.clamp(1, 65_536)], len: 0 }
    }

    /// Number of events that the last wait returned.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the last wait returned nothing.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Event `i` of the last wait.
    #[inline]
    pub fn get(&self, i: usize) -> Option<Event> {
        let raw = self.buffer[..self.len].get(i)?;
        Some(Event { token: raw.u64, bits: raw.events })
    }

    /// The events of the last wait, in the kernel's order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Event> + '_ {
        self.buffer[..self.len].iter().map(|raw| Event { token: raw.u64, bits: raw.events })
    }
}

/// An epoll instance.
#[derive(Debug)]
pub struct Epoll {
    fd: OwnedFd,
}

impl Epoll {
    /// A new instance, closed on exec.
    pub fn new() -> io::Result<Epoll> {
        // SAFETY: no pointers are passed.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the call just returned this descriptor and nobody else holds it.
        Ok(Epoll { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Starts watching `fd`; its events carry `token`.
    pub fn add(&self, fd: impl AsFd, interest: Interest, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd.as_fd(), interest, token)
    }

    /// Changes what `fd` is watched for.
    pub fn modify(&self, fd: impl AsFd, interest: Interest, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd.as_fd(), interest, token)
    }

    /// Stops watching `fd`. Closing the last copy of a descriptor does the same.
    pub fn delete(&self, fd: impl AsFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, fd.as_fd(), Interest::NONE, 0)
    }

    fn control(&self, op: i32, fd: BorrowedFd<'_>, interest: Interest, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: interest.0, u64: token };
        // SAFETY: both descriptors are open for the call, and `event` is a valid epoll_event.
        check(unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), op, fd.as_raw_fd(), &mut event) })?;
        Ok(())
    }

    /// Waits until something is ready, `timeout` has passed (`None`: without end; zero: does not wait), or a signal
    /// came (then no events, so that the caller looks at its stop flag). Returns the number of events.
    ///
    /// Timeouts are kept to the nanosecond where the kernel has `epoll_pwait2` (5.11); before that they are
    /// rounded up to the millisecond.
    #[inline]
    pub fn wait(&self, events: &mut Events, timeout: Option<Duration>) -> io::Result<usize> {
        events.len = 0;
        let got = match timeout {
            None => self.wait_ms(events, -1),
            Some(Duration::ZERO) => self.wait_ms(events, 0),
            Some(t) => match self.wait_precise(events, t) {
                Err(e) if e.raw_os_error() == Some(libc::ENOSYS) => {
                    let ms = t.as_nanos().div_ceil(1_000_000).min(i32::MAX as u128);
                    self.wait_ms(events, ms as i32)
                }
                other => other,
            },
        };
        match got {
            Ok(n) => events.len = n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
        Ok(events.len)
    }

    #[inline]
    fn wait_ms(&self, events: &mut Events, ms: i32) -> io::Result<usize> {
        let (ptr, cap) = (events.buffer.as_mut_ptr(), events.buffer.len() as i32);
        // SAFETY: `ptr` points to `cap` initialised epoll_events that live through the call.
        check(unsafe { libc::epoll_wait(self.fd.as_raw_fd(), ptr, cap, ms) }).map(|n| n as usize)
    }

    fn wait_precise(&self, events: &mut Events, timeout: Duration) -> io::Result<usize> {
        let ts = libc::timespec {
            tv_sec: timeout.as_secs().min(i64::MAX as u64 / 2) as libc::time_t,
            tv_nsec: timeout.subsec_nanos() as libc::c_long,
        };
        // SAFETY: the buffer holds `len` initialised epoll_events, `ts` is a valid timespec, and the null
        // signal mask leaves the mask as it is; all live through the call.
        let n = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.fd.as_raw_fd(),
                events.buffer.as_mut_ptr(),
                events.buffer.len() as libc::c_int,
                &raw const ts,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        check(n as i32).map(|n| n as usize)
    }
}

impl AsFd for Epoll {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Wakes a loop from another thread: an eventfd that the loop watches with [`Interest::READ`].
#[derive(Debug)]
pub struct Waker {
    fd: OwnedFd,
}

impl Waker {
    /// A new waker, not signalled.
    pub fn new() -> io::Result<Waker> {
        // SAFETY: no pointers are passed.
        let fd = check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        // SAFETY: the call just returned this descriptor and nobody else holds it.
        Ok(Waker { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Makes the eventfd readable until [`Waker::drain`]. Waking twice is the same as once.
    pub fn wake(&self) -> io::Result<()> {
        let one = 1u64.to_ne_bytes();
        // SAFETY: `one` is 8 readable bytes.
        let n = unsafe { libc::write(self.fd.as_raw_fd(), one.as_ptr().cast(), one.len()) };
        match check(n as i32) {
            // The counter is full: it is readable, which is all that a wake-up means.
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(()),
            other => other.map(|_| ()),
        }
    }

    /// Makes it unreadable again; whether it had been woken.
    pub fn drain(&self) -> bool {
        let mut count = [0u8; 8];
        // SAFETY: `count` is 8 writable bytes.
        unsafe { libc::read(self.fd.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) == 8 }
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[inline]
fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waker_is_seen_with_its_token_until_drained() {
        let epoll = Epoll::new().unwrap();
        let waker = Waker::new().unwrap();
        let mut events = Events::with_capacity(4);
        epoll.add(&waker, Interest::READ, 7).unwrap();
        assert_eq!(epoll.wait(&mut events, Some(Duration::ZERO)).unwrap(), 0);
        waker.wake().unwrap();
        waker.wake().unwrap();
        assert_eq!(epoll.wait(&mut events, None).unwrap(), 1);
        let event = events.get(0).unwrap();
        assert_eq!((event.token, event.readable(), event.writable()), (7, true, false));
        assert!(waker.drain());
        assert!(!waker.drain());
        assert_eq!(epoll.wait(&mut events, Some(Duration::from_micros(50))).unwrap(), 0);
        assert!(events.is_empty() && events.get(0).is_none());
    }

    /// The shortest of many: a sleep that is rounded up to whole milliseconds is never short, whatever else runs here.
    #[test]
    fn a_wait_of_a_tenth_of_a_millisecond_is_not_rounded_up_to_one() {
        let (epoll, mut events) = (Epoll::new().unwrap(), Events::with_capacity(1));
        let wait = |_| {
            let begin = std::time::Instant::now();
            assert_eq!(epoll.wait(&mut events, Some(Duration::from_micros(100))).unwrap(), 0);
            begin.elapsed()
        };
        let shortest = (0..500).map(wait).min().unwrap();
        assert!(
            shortest >= Duration::from_micros(100) && shortest < Duration::from_micros(900),
            "{shortest:?}"
        );
    }

    #[test]
    fn interest_can_be_changed_and_dropped() {
        let epoll = Epoll::new().unwrap();
        let waker = Waker::new().unwrap();
        waker.wake().unwrap();
        let mut events = Events::with_capacity(0);
        epoll.add(&waker, Interest::NONE, 1).unwrap();
        assert_eq!(epoll.wait(&mut events, Some(Duration::ZERO)).unwrap(), 0);
        epoll.modify(&waker, Interest::READ_WRITE, 2).unwrap();
        assert_eq!(epoll.wait(&mut events, Some(Duration::ZERO)).unwrap(), 1);
        assert_eq!(events.iter().map(|e| e.token).collect::<Vec<_>>(), [2]);
        epoll.delete(&waker).unwrap();
        assert_eq!(epoll.wait(&mut events, Some(Duration::ZERO)).unwrap(), 0);
        assert_eq!(epoll.delete(&waker).unwrap_err().raw_os_error(), Some(libc::ENOENT));
    }
}
