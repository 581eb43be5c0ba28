//! What the tests of counters, rings and programs share.

use crate::affinity;
use std::io;

/// `None` where this machine does not let us: then there is nothing to test.
pub(crate) fn permitted<T>(outcome: io::Result<T>) -> Option<T> {
    match outcome {
        Ok(value) => Some(value),
        Err(error) => {
            let known = [libc::EACCES, libc::EPERM, libc::ENOENT, libc::ENOSYS, libc::EOPNOTSUPP];
            assert!(error.raw_os_error().is_some_and(|code| known.contains(&code)), "{error}");
            None
        }
    }
}

/// Sleeps of the calling thread on `cpu`, each of which is at least one switch there.
pub(crate) fn sleep_on(cpu: u32, times: u32) {
    std::thread::spawn(move || {
        affinity::set(0, &[cpu]).unwrap();
        for _ in 0..times {
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
    })
    .join()
    .unwrap();
}
