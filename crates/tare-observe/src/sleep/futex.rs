//! What a sleep in a futex is for: the call's operation, and the value that its word had, tell a lock from the rest.

use tare_model::schedule::Sleep;

/// The operation without its flags (private, clock of the time).
const OPERATION: u64 = 0x7f;
/// Numbers of operations, as in `include/uapi/linux/futex.h`.
const WAIT: u64 = 0;
const LOCK_PI: u64 = 6;
const WAIT_BITSET: u64 = 9;
const LOCK_PI2: u64 = 13;
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
}
