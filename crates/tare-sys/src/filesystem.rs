//! What kind of file system lies at a path.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The kind of the file system that `path` is on, as the kernel numbers them (`f_type` of `statfs`): the same after it
/// was unmounted and mounted again.
///
/// # Errors
/// As `statfs`: the path is not there, or may not be seen.
pub fn kind(path: &Path) -> io::Result<u64> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: `statfs` is plain old data, for which all zeroes is a valid value.
    let mut facts: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: `path` ends with a NUL; it and the place for the answer live through the call.
    if unsafe { libc::statfs(path.as_ptr(), &mut facts) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(facts.f_type as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_is_proc_all_over_and_nothing_else() {
        let proc = kind(Path::new("/proc")).unwrap();
        assert_eq!((proc, kind(Path::new("/proc/self/status")).unwrap()), (0x9fa0, 0x9fa0));
        assert_ne!(kind(Path::new("/sys")).unwrap(), proc);
        assert!(kind(Path::new("/no/such/file")).is_err());
    }
}
