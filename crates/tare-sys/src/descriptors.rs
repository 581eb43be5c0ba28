//! Tables of descriptors: the limit on open files (`RLIMIT_NOFILE`) is one for each table, not for each process.
//!
//! All threads of a process share a table until one takes its own: then a number means in that thread what the thread
//! has opened or inherited under it, and something else in another. So a thread with a table of its own can have as
//! many files open as a whole process without. What it may not do is to use a descriptor that another thread opened
//! since, or to drop a value that owns one: that would use, or close, whatever has this number here.

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

/// The table of the thread that took it.
#[derive(Debug)]
pub struct OwnTable {
    /// Makes it neither `Send` nor `Sync`: it stands for this thread's table.
    of_thread: PhantomData<*const ()>,
}

impl OwnTable {
    /// Gives the calling thread, and the threads that it starts from now on, a table of their own: a copy of the one
    /// that it shared, with everything under the same number. What is a copy here stays open until it is closed here
    /// as well: a listener keeps listening, a pipe has no end. The copies are closed with the thread.
    ///
    /// # Errors
    /// Linux before 5.9; no memory.
    pub fn take() -> io::Result<OwnTable> {
        // The range holds no descriptor: only the flag matters. `unshare(CLONE_FILES)` is the same, but containers do
        // not commonly let it through.
        close_range(u32::MAX, u32::MAX, libc::CLOSE_RANGE_UNSHARE)?;
        Ok(OwnTable { of_thread: PhantomData })
    }

    /// Closes the copies of `left` here; their owners, in the table that this one was copied from, keep them.
    ///
    /// # Errors
    /// None, but for memory.
    pub fn close(&self, left: &[BorrowedFd<'_>]) -> io::Result<()> {
        for fd in left {
            let number = number(fd.as_raw_fd());
            close_range(number, number, 0)?;
        }
        Ok(())
    }

    /// Closes all copies but those of `kept` and of standard input, output and error.
    ///
    /// # Errors
    /// None, but for memory.
    pub fn close_all_but(&self, kept: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut kept: Vec<u32> = kept.iter().map(|fd| number(fd.as_raw_fd())).collect();
        kept.sort_unstable();
        // The first that is neither kept nor looked at yet.
        let mut next = libc::STDERR_FILENO as u32 + 1;
        for number in kept {
            if number > next {
                close_range(next, number - 1, 0)?;
            }
            next = next.max(number + 1);
        }
        close_range(next, u32::MAX, 0)
    }
}

/// An open descriptor is never negative.
fn number(fd: RawFd) -> u32 {
    fd.unsigned_abs()
}

fn close_range(first: u32, last: u32, flags: libc::c_uint) -> io::Result<()> {
    // SAFETY: plain numbers. What is closed are this thread's copies alone (the callers hold an `OwnTable`, or close
    // nothing): no value of another thread refers to them.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::net::UnixStream;

    /// Runs in a thread with a table of its own.
    fn in_own_table<T: Send>(job: impl FnOnce(OwnTable) -> T + Send) -> T {
        std::thread::scope(|scope| scope.spawn(|| job(OwnTable::take().unwrap())).join().unwrap())
    }

    fn is_open(fd: impl AsFd) -> bool {
        fd.as_fd().try_clone_to_owned().is_ok()
    }

    #[test]
    fn what_one_thread_closes_and_opens_is_not_seen_by_the_others() {
        let files: Vec<File> = (0..5).map(|_| File::open("/proc/self/status").unwrap()).collect();
        let [a, b, c, d, e] = files.iter().map(File::as_fd).collect::<Vec<_>>().try_into().unwrap();
        in_own_table(|table| {
            assert!(files.iter().all(is_open), "a copy of all there was");
            table.close(&[b, d]).unwrap();
            assert_eq!([a, b, c, d, e].map(is_open), [true, false, true, false, true]);
            table.close_all_but(&[e, c]).unwrap();
            assert_eq!([a, b, c, d, e].map(is_open), [false, false, true, false, true]);
            assert!(is_open(std::io::stderr()));
        });
        for mut file in files {
            assert!(file.read(&mut [0; 1]).unwrap() == 1, "untouched where it is owned");
        }
    }

    #[test]
    fn each_table_has_the_whole_limit() {
        let limit = crate::process::raise_open_files_limit().unwrap();
        let each = usize::try_from(limit).unwrap().min(20_000) * 2 / 3;
        let fill = |table: OwnTable| {
            table.close_all_but(&[]).unwrap();
            let first = File::open("/dev/null").unwrap();
            let copy = |_| first.as_fd().try_clone_to_owned();
            (0..each).map(copy).collect::<std::io::Result<Vec<OwnedFd>>>().map(|open| open.len()).unwrap()
        };
        std::thread::scope(|scope| {
            let threads = [(); 3].map(|()| scope.spawn(|| fill(OwnTable::take().unwrap())));
            assert!(threads.into_iter().all(|thread| thread.join().unwrap() == each));
        });
    }

    #[test]
    fn a_copy_keeps_open_until_it_is_closed_or_its_thread_ends() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (mut here, there) = UnixStream::pair().unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let (take, taken) = std::sync::mpsc::channel();
        let copies = std::thread::spawn(move || {
            let table = OwnTable::take().unwrap();
            take.send(()).unwrap();
            receiver.recv().unwrap();
            assert!(TcpStream::connect(address).is_ok(), "still listens");
            table.close_all_but(&[]).unwrap();
            // Another test may have a copy for a moment.
            let refused = |_| {
                TcpStream::connect(address).is_err() || {
                    std::thread::sleep(std::time::Duration::from_millis(10));
                    false
                }
            };
            assert!((0..1000).any(refused), "nobody listens any more");
        });
        taken.recv().unwrap();
        drop((listener, there));
        sender.send(()).unwrap();
        copies.join().unwrap();
        assert_eq!(here.read(&mut [0; 1]).unwrap(), 0, "the other end is closed everywhere");
    }
}
