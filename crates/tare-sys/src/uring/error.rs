//! Why there is no ring.

use std::fs;
use std::io;

/// Why io_uring cannot be used here.
#[derive(Debug, thiserror::Error)]
pub enum RingError {
    /// The kernel has no io_uring, or a filter of system calls hides it.
    #[error("no io_uring: {source} (hint: the kernel is built without it, or a seccomp filter hides it)")]
    Absent {
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel has io_uring, but not all that is used of it.
    #[error("io_uring is too old: {missing}: {source} (hint: Linux 6.1 has it)")]
    TooOld {
        /// What it did not take.
        missing: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The administrator has switched it off.
    #[error("io_uring is switched off: kernel.io_uring_disabled = {setting} (hint: 0 lets everybody use it)")]
    Disabled {
        /// The setting's value: 1 for all but a group and the privileged, 2 for everybody.
        setting: String,
    },
    /// A sandbox forbids it.
    #[error("io_uring is forbidden: {source} (hint: containers' default seccomp profiles refuse it)")]
    Forbidden {
        /// What the kernel said.
        source: io::Error,
    },
    /// No memory or no descriptors for it.
    #[error("cannot set up io_uring: {source} (hint: see ulimit -l and ulimit -n)")]
    Resources {
        /// What the kernel said.
        source: io::Error,
    },
}

impl RingError {
    /// What the refusal of `step` means.
    pub(crate) fn of(step: &'static str, source: io::Error) -> RingError {
        match source.raw_os_error() {
            Some(libc::ENOSYS) => RingError::Absent { source },
            Some(libc::EINVAL) => RingError::TooOld { missing: step, source },
            Some(libc::EPERM | libc::EACCES) => {
                let setting = fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
                match setting.trim() {
                    "" | "0" => RingError::Forbidden { source },
                    setting => RingError::Disabled { setting: setting.to_owned() },
                }
            }
            _ => RingError::Resources { source },
        }
    }
}

impl From<RingError> for io::Error {
    fn from(error: RingError) -> io::Error {
        io::Error::other(error)
    }
}
