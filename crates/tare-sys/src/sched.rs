//! How the kernel schedules the calling thread.

use std::io;

/// Makes the calling thread real-time: it runs before every ordinary one (`SCHED_FIFO`, `priority` 1–99).
///
/// # Errors
/// `EPERM` without `CAP_SYS_NICE` or an `RLIMIT_RTPRIO`, or in a control group without real-time runtime;
/// `EINVAL` for another priority.
pub fn set_fifo(priority: u8) -> io::Result<()> {
    set(libc::SCHED_FIFO, priority)
}

/// Makes the calling thread an ordinary one (`SCHED_OTHER`).
///
/// # Errors
/// `EPERM` where a seccomp filter forbids it.
pub fn set_other() -> io::Result<()> {
    set(libc::SCHED_OTHER, 0)
}

fn set(policy: libc::c_int, priority: u8) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: libc::c_int::from(priority) };
    // SAFETY: `parameters` is a live local of the right type; 0 is the calling thread.
    let rc = unsafe { libc::sched_setscheduler(0, policy, &parameters) };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_cannot_be_is_an_error_and_ordinary_is_always_allowed() {
        std::thread::spawn(|| {
            assert!(super::set_fifo(0).is_err() && super::set_fifo(200).is_err());
            super::set_other().unwrap();
        })
        .join()
        .unwrap();
    }
}
