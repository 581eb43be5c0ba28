//! What a thread is doing, as its `syscall` file tells.

use super::futex;
use tare_model::schedule::Sleep;

/// What a sample found a thread doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doing {
    Runnable,
    Asleep(Sleep),
    /// In a futex with a time limit; what it sleeps for where that is far away.
    TimedFutex(futex::Limit, Sleep),
    /// In a call that is for sockets, with this descriptor.
    Socket(u64),
    /// In a read or write of this descriptor, whatever that is.
    ReadOrWrite(u64),
}

/// Reads `/proc/PID/task/TID/syscall`: `running`, or the number of the system call that it sleeps in with its
/// arguments, or -1 when it sleeps outside of one (a page fault).
pub(crate) fn parse_syscall(text: &str) -> Doing {
    if text.starts_with("running") {
        return Doing::Runnable;
    }
    let mut fields = text.split_ascii_whitespace();
    let Some(number) = fields.next().and_then(|field| field.parse::<i64>().ok()) else {
        return Doing::Asleep(Sleep::Other);
    };
    let is_in = |calls: &[i64]| calls.contains(&number);
    let mut argument =
        || fields.next().and_then(|field| u64::from_str_radix(field.strip_prefix("0x")?, 16).ok());
    let first_argument = argument();
    match (number, first_argument) {
        (-1, _) => Doing::Asleep(Sleep::Fault),
        (_, Some(fd)) if is_in(SOCKET) => Doing::Socket(fd),
        (_, Some(fd)) if is_in(READ_OR_WRITE) => Doing::ReadOrWrite(fd),
        _ if is_in(SELECT) => {
            let [read, write, except, limit] = [argument(), argument(), argument(), argument()];
            Doing::Asleep(select([first_argument, read, write, except], limit))
        }
        _ if is_in(POLL) => Doing::Asleep(poll(argument(), argument())),
        _ if is_in(EVENT) || is_in(SOCKET) || is_in(READ_OR_WRITE) => Doing::Asleep(Sleep::Event),
        (libc::SYS_futex, _) => {
            let (operation, value) = (argument(), argument());
            let sleep = futex::sleep(operation, value);
            match futex::limit(operation, argument()) {
                Some(limit) => Doing::TimedFutex(limit, sleep),
                None => Doing::Asleep(sleep),
            }
        }
        (libc::SYS_fcntl, _) => Doing::Asleep(fcntl(argument())),
        // Whoever waits for a lock of a whole file waits for another that has it.
        (libc::SYS_flock, _) => Doing::Asleep(Sleep::Lock),
        _ if is_in(FUTEX) || is_in(SEMAPHORE) => Doing::Asleep(Sleep::Parked),
        _ if is_in(DISK) => Doing::Asleep(Sleep::Disk),
        _ if is_in(TIMER) => Doing::Asleep(Sleep::Timer),
        _ => Doing::Asleep(Sleep::Other),
    }
}

/// `select(COUNT, READ, WRITE, EXCEPT, LIMIT)` without a set waits for nothing but its time limit: so sleep Perl, CPython before 3.11 and Apache's
/// library. Without a limit either it waits for a signal; `None`: whether it has one is not known.
pub(crate) fn select([count, sets @ ..]: [Option<u64>; 4], limit: Option<u64>) -> Sleep {
    let no_sets = count == Some(0) || sets.iter().all(|set| *set == Some(0));
    if no_sets && limit != Some(0) { Sleep::Timer } else { Sleep::Event }
}

/// `poll(DESCRIPTORS, COUNT, LIMIT)`, by the last two: without a descriptor the same. The limit of `poll` is a number, negative for none, that of
/// `ppoll` a pointer, which is above 32 bits.
pub(crate) fn poll(count: Option<u64>, limit: Option<u64>) -> Sleep {
    let is_none = |limit: u64| matches!(limit, 0 | 0x8000_0000..=0xffff_ffff | u64::MAX);
    let is_timer = count == Some(0) && limit.is_some_and(|limit| !is_none(limit));
    if is_timer { Sleep::Timer } else { Sleep::Event }
}

/// `fcntl(DESCRIPTOR, COMMAND)` sleeps for a lock of a file or of a part of one.
fn fcntl(command: Option<u64>) -> Sleep {
    let is_lock = |command: u64| [libc::F_SETLKW, libc::F_OFD_SETLKW].contains(&(command as i32));
    if command.is_some_and(is_lock) { Sleep::Lock } else { Sleep::Other }
}

const SELECT: &[i64] = &[
    libc::SYS_pselect6,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_select,
];

const POLL: &[i64] = &[
    libc::SYS_ppoll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
];

/// Calls that every architecture has, and those that only the older ones have.
const EVENT: &[i64] = &[
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_sendfile,
    libc::SYS_splice,
    libc::SYS_io_uring_enter,
    libc::SYS_io_getevents,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
];

const SOCKET: &[i64] = &[
    libc::SYS_connect,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
];

/// Of these the word is not among the arguments, or there are several. The last is `futex_wait` (Linux 6.7), the same number
/// everywhere.
const FUTEX: &[i64] = &[libc::SYS_futex_waitv, 455];

/// Semaphores of System V: whether one is a lock is not in the call.
const SEMAPHORE: &[i64] = &[libc::SYS_semop, libc::SYS_semtimedop];

const DISK: &[i64] = &[
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_sync,
    libc::SYS_syncfs,
    libc::SYS_msync,
    libc::SYS_sync_file_range,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_preadv2,
    libc::SYS_pwritev2,
    libc::SYS_openat,
    libc::SYS_fallocate,
    libc::SYS_ftruncate,
    libc::SYS_renameat2,
    libc::SYS_unlinkat,
    libc::SYS_getdents64,
];

const TIMER: &[i64] = &[libc::SYS_nanosleep, libc::SYS_clock_nanosleep];

const READ_OR_WRITE: &[i64] = &[libc::SYS_read, libc::SYS_write, libc::SYS_readv, libc::SYS_writev];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn samples_are_sorted_by_what_they_found() {
        let call = |number: i64| parse_syscall(&format!("{number} 0x11 0x7ffe\n"));
        assert_eq!(parse_syscall("running\n"), Doing::Runnable);
        assert_eq!(call(libc::SYS_epoll_pwait), Doing::Asleep(Sleep::Event));
        assert_eq!(call(libc::SYS_futex), Doing::Asleep(Sleep::Parked));
        let timed = parse_syscall(&format!(
            "{} 0x11 0x189 0x0 0x7f00 0x0 0xffffffff 0x7ffe 0x7ffd\n",
            libc::SYS_futex
        ));
        assert!(matches!(timed, Doing::TimedFutex(_, Sleep::Parked)), "{timed:?}");
        assert_eq!(call(libc::SYS_read), Doing::ReadOrWrite(0x11));
        assert_eq!(call(libc::SYS_recvfrom), Doing::Socket(0x11));
        assert_eq!(call(libc::SYS_fsync), Doing::Asleep(Sleep::Disk));
        assert_eq!(call(libc::SYS_flock), Doing::Asleep(Sleep::Lock));
        assert_eq!(call(libc::SYS_semop), Doing::Asleep(Sleep::Parked));
        assert_eq!(call(libc::SYS_clock_nanosleep), Doing::Asleep(Sleep::Timer));
        let of = |number: i64, arguments| parse_syscall(&format!("{number} {arguments} 0x7ffe 0x7ffd\n"));
        for (number, arguments, sleep) in [
            (libc::SYS_pselect6, "0x0 0x0 0x0 0x0 0x7ffe 0x0", Sleep::Timer),
            (libc::SYS_pselect6, "0x400 0x0 0x0 0x0 0x7ffe 0x0", Sleep::Timer),
            (libc::SYS_pselect6, "0x4 0x7ff0 0x0 0x0 0x7ffe 0x0", Sleep::Event),
            (libc::SYS_pselect6, "0x0 0x0 0x0 0x0 0x0 0x0", Sleep::Event),
            (libc::SYS_fcntl, "0x3 0x7 0x7ffe 0x0 0x0 0x0", Sleep::Lock),
            (libc::SYS_fcntl, "0x3 0x26 0x7ffe 0x0 0x0 0x0", Sleep::Lock),
            (libc::SYS_fcntl, "0x3 0x5 0x7ffe 0x0 0x0 0x0", Sleep::Other),
            (libc::SYS_ppoll, "0x0 0x0 0x7ffe 0x0 0x0 0x0", Sleep::Timer),
            (libc::SYS_ppoll, "0x7ff0 0x1 0x7ffe 0x0 0x0 0x0", Sleep::Event),
            (libc::SYS_ppoll, "0x0 0x0 0x0 0x0 0x0 0x0", Sleep::Event),
        ] {
            assert_eq!(of(number, arguments), Doing::Asleep(sleep), "{arguments}");
        }
        for (limit, sleep) in [(10, Sleep::Timer), (0xffff_ffff, Sleep::Event), (u64::MAX, Sleep::Event)] {
            assert_eq!(poll(Some(0), Some(limit)), sleep, "{limit:x}");
        }
        assert_eq!(poll(None, None), Sleep::Event);
        // A traced switch has the first four arguments, or none.
        assert_eq!(select([Some(0), Some(0), Some(0), Some(0)], None), Sleep::Timer);
        assert_eq!(select([Some(5), Some(0x7ff0), Some(0), Some(0)], None), Sleep::Event);
        assert_eq!(select([None; 4], None), Sleep::Event);
        assert_eq!(parse_syscall("-1 0x7ffd 0x55\n"), Doing::Asleep(Sleep::Fault));
        for text in ["", "x", "99999 0x0\n"] {
            assert_eq!(parse_syscall(text), Doing::Asleep(Sleep::Other), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_garbled_file_is_taken_for_something(text in "\\PC{0,80}") {
            parse_syscall(&text);
        }
    }
}
