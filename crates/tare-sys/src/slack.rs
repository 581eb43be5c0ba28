//! How late the kernel may wake a sleeping thread.

use std::io;

/// Lets the kernel wake the calling thread at most `slack_ns` (at least 1) after its timeouts, instead of the
/// usual 50 µs by which it gathers wake-ups.
pub fn set_timer_slack_ns(slack_ns: u32) -> io::Result<()> {
    let slack_ns = libc::c_ulong::from(slack_ns.max(1));
    // SAFETY: PR_SET_TIMERSLACK takes one number and touches no memory of ours.
    let result = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack_ns) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_kernel_took_it() {
        let taken = std::thread::spawn(|| {
            super::set_timer_slack_ns(0).unwrap();
            // SAFETY: PR_GET_TIMERSLACK takes nothing and returns the number.
            unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) }
        });
        assert_eq!(taken.join().unwrap(), 1);
    }
}
