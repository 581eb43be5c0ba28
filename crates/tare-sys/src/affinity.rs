//! Which CPUs a thread may run on.

use std::io;

/// CPUs that the masks here can name; the largest `CONFIG_NR_CPUS` that distributions build with.
pub const CPUS_MAX: u32 = 8192;
const WORDS: usize = CPUS_MAX as usize / 64;

/// The CPUs that thread `tid` may run on, ascending; `tid` 0 is the calling thread.
///
/// # Errors
/// `ESRCH` when there is no such thread.
pub fn get(tid: u32) -> io::Result<Vec<u32>> {
    let mut mask = [0u64; WORDS];
    let pid = pid_from(tid)?;
    // The call itself, not the C library's: it says how many bytes the kernel knows CPUs for. A server may have thousands of threads.
    // SAFETY: the kernel writes at most `size_of_val(&mask)` bytes into `mask`, which lives through the call;
    // any bit pattern is a valid u64.
    let bytes = unsafe {
        libc::syscall(libc::SYS_sched_getaffinity, pid, std::mem::size_of_val(&mask), mask.as_mut_ptr())
    };
    let bytes = usize::try_from(bytes).map_err(|_| io::Error::last_os_error())?;
    let known = mask.iter().take(bytes.div_ceil(size_of::<u64>())).enumerate();
    Ok(known.flat_map(|(place, word)| bits(*word).map(move |bit| 64 * place as u32 + bit)).collect())
}

/// The places of the bits that are set, ascending.
fn bits(mut word: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros())?;
        word &= word - 1;
        Some(bit)
    })
}

/// Lets thread `tid` run on `cpus` only; `tid` 0 is the calling thread. Threads that it starts later inherit
/// this; the other threads of its process are not touched.
///
/// # Errors
/// `EINVAL` when none of the CPUs exists or the thread's cpuset forbids them, `ESRCH`, `EPERM`.
pub fn set(tid: u32, cpus: &[u32]) -> io::Result<()> {
    Mask::new(cpus)?.apply(pid_from(tid)?)
}

/// A mask made before `fork`, so that it can be applied between `fork` and `exec`.
#[derive(Debug, Clone)]
pub(crate) struct Mask([u64; WORDS]);

impl Mask {
    pub(crate) fn new(cpus: &[u32]) -> io::Result<Mask> {
        let mut words = [0u64; WORDS];
        for &cpu in cpus {
            let word = words.get_mut(cpu as usize / 64).ok_or_else(|| {
                io::Error::new(io::ErrorKind::InvalidInput, format!("CPU {cpu} is above {CPUS_MAX}"))
            })?;
            *word |= 1 << (cpu % 64);
        }
        Ok(Mask(words))
    }

    /// Async-signal-safe: one system call, no allocation.
    pub(crate) fn apply(&self, pid: libc::pid_t) -> io::Result<()> {
        // SAFETY: the kernel reads `size_of_val` bytes from the array, which lives through the call.
        let rc = unsafe {
            libc::sched_setaffinity(
                pid,
                std::mem::size_of_val(&self.0),
                self.0.as_ptr().cast::<libc::cpu_set_t>(),
            )
        };
        if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// The CPU that the calling thread is on right now.
pub fn current_cpu() -> Option<u32> {
    // SAFETY: takes no arguments and touches no memory of ours.
    u32::try_from(unsafe { libc::sched_getcpu() }).ok()
}

fn pid_from(tid: u32) -> io::Result<libc::pid_t> {
    libc::pid_t::try_from(tid).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_pinned_and_released() {
        std::thread::spawn(|| {
            let before = get(0).unwrap();
            set(0, &before[..1]).unwrap();
            assert_eq!(get(0).unwrap(), before[..1]);
            assert_eq!(current_cpu(), Some(before[0]));
            set(0, &before).unwrap();
            assert_eq!(get(0).unwrap(), before);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn each_bit_of_a_word_is_a_cpu() {
        assert_eq!(bits(0).count(), 0);
        assert_eq!(bits(1 << 63 | 0b1010).collect::<Vec<_>>(), [1, 3, 63]);
        assert!(bits(u64::MAX).eq(0..64));
    }

    #[test]
    fn what_cannot_be_is_an_error() {
        assert!(set(0, &[]).is_err());
        assert!(set(0, &[CPUS_MAX]).is_err());
        assert!(get(u32::MAX).is_err());
    }
}
