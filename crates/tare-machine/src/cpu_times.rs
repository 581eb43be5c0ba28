//! The `cpu` lines of `/proc/stat`: how long CPUs were in each state since boot.

use crate::root::Root;
use tare_model::Missing;

/// The step that `/proc` counts CPU time in, on every architecture (`USER_HZ` is 100).
pub const TICK_NS: u64 = 10_000_000;

/// Ticks since boot. Guest time is in user already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuTicks {
    /// Programs.
    pub user: u64,
    /// Programs with a lowered priority.
    pub nice: u64,
    /// The kernel, for programs.
    pub system: u64,
    /// Nobody.
    pub idle: u64,
    /// Nobody, while a program waited for a disk.
    pub iowait: u64,
    /// Hardware interrupts.
    pub irq: u64,
    /// Software interrupts.
    pub softirq: u64,
    /// The hypervisor gave the CPU to somebody else.
    pub steal: u64,
}

impl CpuTicks {
    fn read(text: &str) -> Option<CpuTicks> {
        let mut fields = text.split_ascii_whitespace();
        let mut next = || fields.next()?.parse::<u64>().ok();
        Some(CpuTicks {
            user: next()?,
            nice: next()?,
            system: next()?,
            idle: next()?,
            iowait: next()?,
            irq: next()?,
            softirq: next()?,
            steal: next()?,
        })
    }

    /// Ticks in which something ran.
    pub fn busy(&self) -> u64 {
        sum([self.user, self.nice, self.system, self.irq, self.softirq])
    }

    /// All ticks.
    pub fn all(&self) -> u64 {
        sum([self.busy(), self.idle, self.iowait, self.steal])
    }
}

fn sum<const N: usize>(parts: [u64; N]) -> u64 {
    parts.iter().fold(0, |sum, part| sum.saturating_add(*part))
}

/// Of all CPUs together.
///
/// # Errors
/// The file cannot be read, or the kernel does not count steal.
pub fn of_all(root: &Root) -> Result<CpuTicks, Missing> {
    let text = root.text("/proc/stat")?;
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "));
    line.and_then(CpuTicks::read).ok_or_else(|| Missing::new("/proc/stat has no steal column"))
}

/// Of each CPU that the text of `/proc/stat` has a whole line of.
pub fn of_each(text: &str) -> impl Iterator<Item = (u32, CpuTicks)> + '_ {
    text.lines().filter_map(|line| {
        let (cpu, fields) = line.strip_prefix("cpu")?.split_once(' ')?;
        Some((cpu.parse().ok()?, CpuTicks::read(fields)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 40 5 6 7 8 0 0\ncpu12 1 1 1 1 1 1 1 1\nintr 5\n";

    fn total(text: &str) -> Result<CpuTicks, Missing> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("proc")).unwrap();
        std::fs::write(dir.path().join("proc/stat"), text).unwrap();
        of_all(&Root::at(dir.path()))
    }

    #[test]
    fn each_cpu_and_all_of_them_have_a_line() {
        let each: Vec<(u32, CpuTicks)> = of_each(TEXT).collect();
        assert_eq!(each.iter().map(|(cpu, _)| *cpu).collect::<Vec<_>>(), [0, 12]);
        let first = each[0].1;
        assert_eq!((first.steal, first.busy(), first.all()), (8, 19, 72));
        assert_eq!(total(TEXT).unwrap().all(), 72);
        // Linux before 2.6.11 counts no steal.
        assert_eq!(of_each("cpu1 1 2 3 4 5 6 7\n").count(), 0);
        assert!(total("cpu  1 2 3 4 5 6 7\n").unwrap_err().why.contains("steal"));
    }

    proptest! {
        #[test]
        fn a_cut_or_garbled_text_is_no_cpu(text in "\\PC{0,100}", cut in 0..TEXT.len()) {
            of_each(&text).count();
            prop_assert!(of_each(&TEXT[..cut]).count() <= 2);
        }
    }
}
