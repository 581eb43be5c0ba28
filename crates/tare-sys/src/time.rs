//! The monotonic and the wall clock, read through the vDSO.

use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

/// Nanoseconds on `CLOCK_MONOTONIC`: the one clock that every interval in this workspace is taken on.
///
/// The administrator cannot set it, and it is the same for every process of one boot: stamps of a server and a
/// generator on one host can be compared.
#[inline]
pub fn monotonic_ns() -> u64 {
    read_ns(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds on `CLOCK_MONOTONIC_RAW`: the same counter as [`monotonic_ns`], but never slewed, so that the two
/// drift apart by what time synchronisation corrects, and by no more.
#[inline]
pub fn monotonic_raw_ns() -> u64 {
    read_ns(libc::CLOCK_MONOTONIC_RAW)
}

/// Nanoseconds since 1970-01-01 UTC on `CLOCK_REALTIME`, which is set and slewed; wraps in 2554.
#[inline]
pub fn realtime_ns() -> u64 {
    read_ns(libc::CLOCK_REALTIME)
}

/// Sleeps until [`monotonic_ns`] has reached `deadline_ns`, or a signal handler ran.
pub fn sleep_until_ns(deadline_ns: u64) {
    let deadline = libc::timespec {
        tv_sec: (deadline_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (deadline_ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `deadline` is a live local with fewer than 10⁹ nanoseconds; with TIMER_ABSTIME nothing is written
    // through the last pointer, which may be null.
    unsafe {
        libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &deadline, std::ptr::null_mut())
    };
}

/// `CLOCK_BOOTTIME`, nanoseconds: counts suspended time too, as the start times in `/proc` do.
pub fn boottime_ns() -> u64 {
    read_ns(libc::CLOCK_BOOTTIME)
}

/// CPU time of the calling thread so far, nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    read_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of all threads of a process so far, those that have ended included, nanoseconds: to the instant, also where the
/// figures in `/proc` step at ticks.
///
/// # Errors
/// Where there is no such process.
pub fn process_cpu_ns(pid: u32) -> io::Result<u64> {
    let mut clock = 0;
    let pid = libc::pid_t::try_from(pid).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    // SAFETY: `clock` is a valid, writable clock id.
    match unsafe { libc::clock_getcpuclockid(pid, &mut clock) } {
        0 => {}
        errno => return Err(io::Error::from_raw_os_error(errno)),
    }
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `ts` is a valid, writable timespec; the call fails where the process has gone since.
    match unsafe { libc::clock_gettime(clock, &mut ts) } {
        0 => Ok((ts.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(ts.tv_nsec as u64)),
        _ => Err(io::Error::last_os_error()),
    }
}

#[inline]
fn read_ns(clock: libc::clockid_t) -> u64 {
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `ts` is a valid, writable timespec; these clocks always exist on Linux, so the call cannot fail.
    unsafe { libc::clock_gettime(clock, &mut ts) };
    (ts.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(ts.tv_nsec as u64)
}

/// Seconds since 1970-01-01 UTC by the wall clock; 0 when the clock stands before that.
pub fn wall_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_time_of_a_process_is_that_of_its_threads() {
        let own = std::process::id();
        // The process first: what passes between the two is then within.
        let (before, thread) = (process_cpu_ns(own).unwrap(), thread_cpu_ns());
        while thread_cpu_ns() < thread + 5_000_000 {}
        let spent = process_cpu_ns(own).unwrap() - before;
        assert!(spent >= 5_000_000, "{spent}");
        assert!(process_cpu_ns(u32::MAX).is_err());
    }

    #[test]
    fn monotonic_never_goes_back() {
        let stamps: Vec<u64> = (0..1000).map(|_| monotonic_ns()).collect();
        assert!(stamps.is_sorted());
    }

    #[test]
    fn the_other_clocks_go_on() {
        let before = (monotonic_raw_ns(), thread_cpu_ns());
        while thread_cpu_ns() == before.1 {}
        assert!(monotonic_raw_ns() > before.0);
    }

    #[test]
    fn a_sleep_ends_no_earlier_than_asked() {
        let deadline_ns = monotonic_ns() + 100_000;
        while monotonic_ns() < deadline_ns {
            sleep_until_ns(deadline_ns);
        }
        sleep_until_ns(0);
        assert!(realtime_ns() / 1_000_000_000 >= wall_s() - 1);
    }

    #[test]
    fn wall_clock_is_after_this_was_written() {
        assert!(wall_s() > 1_700_000_000);
    }
}
