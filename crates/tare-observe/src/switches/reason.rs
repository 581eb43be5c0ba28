//! Why a thread went to sleep, from the kernel's functions that it was in.

use std::collections::BTreeMap;
use tare_machine::Root;
use tare_model::Missing;
use tare_model::schedule::Sleep;

/// What a function of the kernel tells about a sleep in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hint {
    /// The reason itself.
    Sleep(Sleep),
    /// A stream socket whose descriptor is the system call's first argument.
    Socket,
    /// A futex: what for is in the system call's arguments.
    Futex,
    /// Descriptors, or without one nothing but a time limit: which is in the arguments. (The limit of `select` is the fifth, which is not read.)
    Select,
    Poll,
    /// Part of a lock's own code: whose lock it is stands further out.
    LockCode,
}

/// Functions that tell, by name; a name that ends with `*` stands for all that begin so.
const FUNCTIONS: &[(&str, Hint)] = &[
    ("asm_exc_page_fault", Hint::Sleep(Sleep::Fault)),
    ("exc_page_fault", Hint::Sleep(Sleep::Fault)),
    ("do_user_addr_fault", Hint::Sleep(Sleep::Fault)),
    ("do_page_fault", Hint::Sleep(Sleep::Fault)),
    ("handle_mm_fault", Hint::Sleep(Sleep::Fault)),
    ("do_futex", Hint::Futex),
    ("futex_wait*", Hint::Futex),
    ("__mutex_lock*", Hint::Sleep(Sleep::Lock)),
    ("rwsem_down_*", Hint::Sleep(Sleep::Lock)),
    ("__percpu_down_read*", Hint::Sleep(Sleep::Lock)),
    ("percpu_down_write*", Hint::Sleep(Sleep::Lock)),
    ("__down*", Hint::Sleep(Sleep::Lock)),
    ("locks_lock_inode_wait", Hint::Sleep(Sleep::Lock)),
    ("do_lock_file_wait", Hint::Sleep(Sleep::Lock)),
    ("fcntl_setlk*", Hint::Sleep(Sleep::Lock)),
    ("*do_semtimedop", Hint::Sleep(Sleep::Parked)),
    ("io_schedule*", Hint::Sleep(Sleep::Disk)),
    ("vfs_fsync_range", Hint::Sleep(Sleep::Disk)),
    ("do_fsync", Hint::Sleep(Sleep::Disk)),
    ("ksys_sync", Hint::Sleep(Sleep::Disk)),
    ("submit_bio_wait", Hint::Sleep(Sleep::Disk)),
    ("blkdev_issue_flush", Hint::Sleep(Sleep::Disk)),
    ("jbd2_*", Hint::Sleep(Sleep::Disk)),
    ("xlog_*", Hint::Sleep(Sleep::Disk)),
    ("balance_dirty_pages*", Hint::Sleep(Sleep::Disk)),
    ("folio_wait_*", Hint::Sleep(Sleep::Disk)),
    ("filemap_read", Hint::Sleep(Sleep::Disk)),
    ("do_nanosleep", Hint::Sleep(Sleep::Timer)),
    ("hrtimer_nanosleep", Hint::Sleep(Sleep::Timer)),
    ("do_epoll_wait", Hint::Sleep(Sleep::Event)),
    ("ep_poll", Hint::Sleep(Sleep::Event)),
    ("do_sys_poll", Hint::Poll),
    ("do_select", Hint::Select),
    ("inet_csk_accept", Hint::Sleep(Sleep::Event)),
    ("unix_accept", Hint::Sleep(Sleep::Event)),
    ("io_cqring_wait*", Hint::Sleep(Sleep::Event)),
    ("read_events", Hint::Sleep(Sleep::Event)),
    ("anon_pipe_*", Hint::Sleep(Sleep::Event)),
    ("pipe_read", Hint::Sleep(Sleep::Event)),
    ("pipe_write", Hint::Sleep(Sleep::Event)),
    ("fifo_pipe_*", Hint::Sleep(Sleep::Event)),
    ("eventfd_read", Hint::Sleep(Sleep::Event)),
    ("timerfd_read*", Hint::Sleep(Sleep::Event)),
    ("signalfd_read*", Hint::Sleep(Sleep::Event)),
    ("unix_stream_*", Hint::Sleep(Sleep::Event)),
    ("__skb_wait_for_more_packets", Hint::Sleep(Sleep::Event)),
    ("tcp_recvmsg*", Hint::Socket),
    ("tcp_sendmsg*", Hint::Socket),
    ("sk_wait_data", Hint::Socket),
    ("sk_stream_wait_*", Hint::Socket),
    ("inet_wait_for_connect", Hint::Socket),
    ("__inet_stream_connect", Hint::Socket),
    ("inet_stream_connect", Hint::Socket),
    ("*spin_lock*", Hint::LockCode),
    ("*spin_slowpath*", Hint::LockCode),
    ("*contention*", Hint::LockCode),
    ("*lock_slowpath*", Hint::LockCode),
    ("*_read_lock*", Hint::LockCode),
    ("*_write_lock*", Hint::LockCode),
    ("mutex_lock*", Hint::LockCode),
    ("down_read*", Hint::LockCode),
    ("down_write*", Hint::LockCode),
];

fn hint_of(name: &str) -> Option<Hint> {
    let fits = |pattern: &str| match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(rest), _) => name.contains(rest.trim_end_matches('*')),
        (None, Some(start)) => name.starts_with(start),
        (None, None) => name == pattern,
    };
    FUNCTIONS.iter().find(|(pattern, _)| fits(pattern)).map(|(_, hint)| *hint)
}

/// The kernel's functions, by where they begin.
pub(super) struct Kernel {
    /// Begin of every function, ascending, and what it tells.
    functions: Vec<(u64, Option<Hint>)>,
}

impl Kernel {
    /// Reads `/proc/kallsyms`.
    ///
    /// # Errors
    /// Addresses that are hidden from us.
    pub(super) fn read(root: &Root) -> Result<Kernel, Missing> {
        let kernel = Kernel::parse(&root.text("/proc/kallsyms")?);
        match kernel.functions.last() {
            Some(&(last, _)) if last > 0 => Ok(kernel),
            _ => Err(Missing::with_remedy(
                "the kernel hides the addresses of its functions",
                "run tare as root, with kernel.kptr_restrict at 0 or 1",
            )),
        }
    }

    fn parse(text: &str) -> Kernel {
        let mut functions: Vec<(u64, Option<Hint>)> =
            text.lines().filter_map(parse_line).map(|(at, name)| (at, hint_of(name))).collect();
        functions.sort_unstable_by_key(|(at, _)| *at);
        Kernel { functions }
    }

    pub(super) fn hint(&self, address: u64) -> Option<Hint> {
        let after = self.functions.partition_point(|(at, _)| *at <= address);
        self.functions.get(after.checked_sub(1)?)?.1
    }

    /// What a chain of return addresses, innermost first, tells of a sleep; `None` where no function is known.
    pub(super) fn sleep(&self, chain: impl Iterator<Item = u64>) -> Option<Hint> {
        let mut found = None;
        for hint in chain.filter_map(|address| self.hint(address)) {
            match hint {
                // A page that is brought in is that, whatever it takes.
                Hint::Sleep(Sleep::Fault) => return Some(hint),
                Hint::LockCode => {}
                _ => found = found.or(Some(hint)),
            }
        }
        found
    }
}

/// Names of the functions that hold these addresses.
pub(super) fn names(root: &Root, addresses: &[u64]) -> BTreeMap<u64, String> {
    let text = root.text("/proc/kallsyms").unwrap_or_default();
    let mut best: BTreeMap<u64, (u64, &str)> = BTreeMap::new();
    for (at, name) in text.lines().filter_map(parse_line) {
        for &address in addresses.iter().filter(|address| at <= **address) {
            let known = best.entry(address).or_insert((at, name));
            if at > known.0 {
                *known = (at, name);
            }
        }
    }
    best.into_iter().map(|(address, (_, name))| (address, name.to_string())).collect()
}

/// `ffffffff81000c60 T asm_exc_page_fault`, functions only.
fn parse_line(line: &str) -> Option<(u64, &str)> {
    let mut fields = line.split_ascii_whitespace();
    let at = u64::from_str_radix(fields.next()?, 16).ok()?;
    let is_function = matches!(fields.next()?, "t" | "T" | "w" | "W");
    fields.next().filter(|_| is_function).map(|name| (at, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KALLSYMS: &str = "1000 T schedule\n1100 T io_schedule\n1200 t futex_wait_queue\n1300 T asm_exc_page_fault\n\
        1400 D some_data\n1480 T locks_lock_inode_wait\n14c0 T __do_semtimedop\n1500 T __x64_sys_read\n1600 T tcp_recvmsg_locked\n1700 T native_queued_spin_lock_slowpath\n\
        1800 T lock_sock_nested [mod]\n";

    #[test]
    fn the_innermost_function_tells_but_a_fault_is_a_fault() {
        let kernel = Kernel::parse(KALLSYMS);
        let sleep = |chain: &[u64]| kernel.sleep(chain.iter().copied());
        assert_eq!(sleep(&[0x1004, 0x1504]), None);
        assert_eq!(sleep(&[0x1004, 0x1104, 0x1504]), Some(Hint::Sleep(Sleep::Disk)));
        assert_eq!(sleep(&[0x1004, 0x1104, 0x1308]), Some(Hint::Sleep(Sleep::Fault)));
        assert_eq!(sleep(&[0x1004, 0x12ff]), Some(Hint::Futex));
        assert_eq!(sleep(&[0x1004, 0x1601, 0x1508]), Some(Hint::Socket));
        assert_eq!(sleep(&[0x1701]), None);
        assert_eq!(sleep(&[0x1004, 0x1484]), Some(Hint::Sleep(Sleep::Lock)), "flock");
        assert_eq!(sleep(&[0x1004, 0x14c4]), Some(Hint::Sleep(Sleep::Parked)), "semop");
        assert_eq!(kernel.hint(0x1701), Some(Hint::LockCode));
        assert_eq!((kernel.hint(0xfff), kernel.hint(u64::MAX)), (None, None));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[0-9a-f tT_\n]{0,200}", address in any::<u64>()) {
            Kernel::parse(&text).hint(address);
            parse_line(&text);
        }
    }
}
