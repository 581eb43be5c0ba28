//! What a sleep in a futex is for: the call's operation, and the value that its word had, tell a lock from the rest, and a time limit that
//! is near tells a pause. (`Thread.sleep` of HotSpot and of .NET, and Ruby's `sleep`, are such waits.)

use std::time::{SystemTime, UNIX_EPOCH};
use tare_model::schedule::Sleep;
use tare_sys::time;

/// The operation without its flags (private, clock of the time).
const OPERATION: u64 = 0x7f;
/// Numbers of operations, as in `include/uapi/linux/futex.h`.
const WAIT: u64 = 0;
const LOCK_PI: u64 = 6;
const WAIT_BITSET: u64 = 9;
const LOCK_PI2: u64 = 13;
/// The flag of a limit by the clock of the day.
const REALTIME: u64 = 256;
/// A wait that ends by itself so soon is a pause. A pool that has nothing to do waits for longer, or without a limit: one that asks its queue
/// again every 100 ms, and is woken by each request, has nearly all of them left. A longer pause is found parked, and is not named.
pub(crate) const SOON_NS: u64 = 50_000_000;

/// The word of a lock that is taken and waited for: of the C library of GNU, of Rust's, and of Go's runtime.
const TAKEN: u64 = 2;
/// In musl's locks: taken, by the thread of the number in the other bits.
const MUSL_TAKEN: u64 = 0x8000_0000;
/// No thread has a larger number (`PID_MAX_LIMIT`).
const THREAD_MAX: u64 = 4 << 20;

/// Sleep in `futex(2)` with this operation and value. Condition variables, semaphores, parked threads and `pthread_join` wait with
/// other values: a count, 0, -1, or the number of the thread that is to end.
pub(super) fn sleep(operation: Option<u64>, value: Option<u64>) -> Sleep {
    let (Some(operation), Some(value)) = (operation, value) else { return Sleep::Parked };
    // The value is an int: the upper half of the register is not its own.
    let value = value & 0xffff_ffff;
    match operation & OPERATION {
        LOCK_PI | LOCK_PI2 => Sleep::Lock,
        WAIT | WAIT_BITSET if value == TAKEN || is_musl_lock(value) => Sleep::Lock,
        _ => Sleep::Parked,
    }
}

/// A sleep in `futex(2)`, by the call's arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FutexWait {
    /// Where the word is in the memory of the process.
    pub(crate) address: u64,
    /// What it sleeps for, if no time limit ends it soon.
    pub(crate) sleep: Sleep,
    /// Whether it has a time limit.
    pub(crate) is_timed: bool,
}

impl FutexWait {
    /// `None` where the registers are not known.
    pub(crate) fn of(arguments: [Option<u64>; 4]) -> Option<FutexWait> {
        let [address, operation, value, time_limit] = arguments;
        let is_timed = limit(operation, time_limit).is_some();
        Some(FutexWait { address: address?, sleep: sleep(operation, value), is_timed })
    }
}

/// A time limit: where it is in the memory of the process, and how it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limit {
    address: u64,
    counts: Counts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counts {
    /// From the call on.
    Length,
    /// By the clock that only goes on, and by that of the day.
    Monotonic,
    Realtime,
}

/// The limit of a wait with this operation and this address of it; `None` where it has none.
pub(super) fn limit(operation: Option<u64>, address: Option<u64>) -> Option<Limit> {
    let (operation, address) = (operation?, address.filter(|address| *address != 0)?);
    let counts = match operation & OPERATION {
        WAIT => Counts::Length,
        WAIT_BITSET if operation & REALTIME != 0 => Counts::Realtime,
        WAIT_BITSET => Counts::Monotonic,
        // Locks are locks, however long they are waited for.
        _ => return None,
    };
    Some(Limit { address, counts })
}

fn day_ns() -> i128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i128)
}

impl Limit {
    /// Whether it is near. `read` fills bytes from an address.
    pub(super) fn is_soon(self, read: impl FnOnce(u64, &mut [u8]) -> Option<()>) -> bool {
        let mut text = [0; 16];
        if read(self.address, &mut text).is_none() {
            return false;
        }
        let (seconds, ns) = text.split_at(8);
        let number = |bytes: &[u8]| bytes.try_into().map_or(0, i64::from_ne_bytes);
        let limit_ns = i128::from(number(seconds)) * 1_000_000_000 + i128::from(number(ns));
        let now_ns = match self.counts {
            Counts::Length => 0,
            Counts::Monotonic => i128::from(time::monotonic_ns()),
            Counts::Realtime => day_ns(),
        };
        limit_ns - now_ns < i128::from(SOON_NS)
    }
}

fn is_musl_lock(value: u64) -> bool {
    value & MUSL_TAKEN != 0 && (1..THREAD_MAX).contains(&(value & !MUSL_TAKEN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_word_of_a_taken_lock_is_a_lock() {
        let of = |operation, value| sleep(Some(operation), Some(value));
        for (operation, value) in
            [(0x80, 2), (0x89, 2), (0x86, 0), (0x80, 0x8000_0123), (0x80, 0xffff_ffff_8000_0123)]
        {
            assert_eq!(of(operation, value), Sleep::Lock, "{operation:#x} {value:#x}");
        }
        // A condition variable and a semaphore of GNU's, Go's and Rust's parked threads, and a thread that is joined.
        for (operation, value) in
            [(0x189, 0), (0x189, 0), (0x80, 0), (0x89, 0xffff_ffff), (0x109, 4711), (0x8b, 2)]
        {
            assert_eq!(of(operation, value), Sleep::Parked, "{operation:#x} {value:#x}");
        }
        assert_eq!(sleep(None, None), Sleep::Parked);
    }

    #[test]
    fn the_arguments_of_a_call_are_a_wait() {
        let lock = FutexWait { address: 0x7000, sleep: Sleep::Lock, is_timed: false };
        assert_eq!(FutexWait::of([Some(0x7000), Some(0x80), Some(2), Some(0)]), Some(lock));
        let timed = FutexWait { address: 0x7000, sleep: Sleep::Parked, is_timed: true };
        assert_eq!(FutexWait::of([Some(0x7000), Some(0x189), Some(0), Some(0x7ffe)]), Some(timed));
        assert_eq!(FutexWait::of([None, Some(0x80), Some(2), None]), None);
    }

    #[test]
    fn a_wait_that_ends_soon_by_itself_is_a_pause() {
        let is_soon = |operation: u64, limit_s: i64| {
            let limit = limit(Some(operation), Some(0x7000)).unwrap();
            limit.is_soon(|address, bytes| {
                assert_eq!(address, 0x7000);
                bytes[..8].copy_from_slice(&limit_s.to_ne_bytes());
                Some(())
            })
        };
        let (monotonic_s, day_s) =
            ((time::monotonic_ns() / 1_000_000_000) as i64, (day_ns() / 1_000_000_000) as i64);
        assert!(is_soon(0x80, 0) && !is_soon(0x80, 60));
        assert!(is_soon(0x89, monotonic_s) && !is_soon(0x89, monotonic_s + 60));
        assert!(is_soon(0x189, day_s) && !is_soon(0x189, day_s + 60));
        assert_eq!(
            (limit(Some(0x80), Some(0)), limit(Some(0x8d), Some(1)), limit(None, None)),
            (None, None, None)
        );
        assert!(!limit(Some(0x80), Some(1)).unwrap().is_soon(|_, _| None), "what cannot be read is no pause");
    }
}
