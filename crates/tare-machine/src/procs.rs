//! Processes and threads as `/proc` shows them.

use crate::root::Root;
use std::collections::{BTreeMap, BTreeSet};
use tare_model::Missing;

/// Threads of a process that are asked for their children, at most.
const CHILDREN_ASKED_MAX: usize = 128;

/// What identifies a process or thread, and whose child it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// Process or thread id.
    pub id: u32,
    /// `comm`.
    pub name: String,
    /// One letter: `R` running, `S` sleeping, `D` uninterruptible, `Z` zombie …
    pub state: char,
    /// Parent process.
    pub ppid: u32,
    /// Process group.
    pub pgid: u32,
    /// CPU time in its own code, clock ticks of 10 ms; of a process that of all its threads, and of those that ended.
    pub user_ticks: u64,
    /// CPU time in the kernel.
    pub system_ticks: u64,
    /// Start, in clock ticks since boot: with the pid and the boot id the identity of a process.
    pub start_ticks: u64,
}

/// Reads a `stat` line of a process or thread.
pub fn parse_stat(text: &str) -> Option<Stat> {
    // The name is in parentheses and may hold anything, parentheses and spaces included.
    let (id, rest) = text.split_once(" (")?;
    let (name, rest) = rest.rsplit_once(") ")?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let ppid = fields.next()?.parse().ok()?;
    let pgid = fields.next()?.parse().ok()?;
    let user_ticks = fields.nth(8)?.parse().ok()?;
    let system_ticks = fields.next()?.parse().ok()?;
    let start_ticks = fields.nth(6)?.parse().ok()?;
    let id = id.trim().parse().ok()?;
    Some(Stat { id, name: name.to_string(), state, ppid, pgid, user_ticks, system_ticks, start_ticks })
}

/// The `stat` of process `pid`; of a thread (its own start time) when that is what the number names.
///
/// # Errors
/// Why it cannot be read: most often because the process is gone.
pub fn stat(root: &Root, pid: u32) -> Result<Stat, Missing> {
    let path = format!("/proc/{pid}/stat");
    let text = root.text(&path)?;
    parse_stat(&text).ok_or_else(|| crate::root::nonsense(path.as_ref(), &text))
}

/// All processes that are there.
///
/// # Errors
/// `/proc` cannot be listed.
pub fn all(root: &Root) -> Result<Vec<Stat>, Missing> {
    Ok(root.numbers("/proc")?.into_iter().filter_map(|pid| stat(root, pid).ok()).collect())
}

/// Whether other users' processes are hidden here: `/proc` is mounted with `hidepid`.
pub fn hidden(root: &Root) -> bool {
    let mounts = crate::mounts::read(root).unwrap_or_default();
    let hides = |option: &str| option.strip_prefix("hidepid=").is_some_and(|how| !matches!(how, "0" | "off"));
    mounts.iter().any(|mount| mount.kind == "proc" && mount.options.split(',').any(hides))
}

/// Threads of a process, ascending; empty when it is gone.
pub fn tasks_of(root: &Root, pid: u32) -> Vec<u32> {
    root.numbers(format!("/proc/{pid}/task")).unwrap_or_default()
}

/// Nanoseconds that a thread ran and that it waited for a CPU; `None` where it is gone, or the kernel does not count.
pub fn schedstat(root: &Root, pid: u32, tid: u32) -> Option<[u64; 2]> {
    let text = root.text(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
    let mut fields = text.split_ascii_whitespace().map(str::parse);
    Some([fields.next()?.ok()?, fields.next()?.ok()?])
}

/// Processes that the threads of a process started and that are still its children. Takes less time than
/// [`descendants`] on a machine with many processes; empty on a kernel without `CONFIG_PROC_CHILDREN`.
pub fn children(root: &Root, pid: u32) -> Vec<u32> {
    let asked = root.first_numbers(format!("/proc/{pid}/task"), CHILDREN_ASKED_MAX);
    children_of(root, pid, &asked.unwrap_or_default())
}

/// As [`children`], of these threads alone.
pub fn children_of(root: &Root, pid: u32, tids: &[u32]) -> Vec<u32> {
    let of_thread = |tid: u32| root.text(format!("/proc/{pid}/task/{tid}/children")).unwrap_or_default();
    let numbers =
        |text: String| text.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<u32>>();
    tids.iter().take(CHILDREN_ASKED_MAX).copied().map(of_thread).flat_map(numbers).collect()
}

/// How many threads a process has, without asking which; `None` where it is gone, or the tree does not tell.
pub fn thread_count(root: &Root, pid: u32) -> Option<u64> {
    // The kernel gives the folder of the threads two links and one for each of them.
    root.links(format!("/proc/{pid}/task"))?.checked_sub(2)
}

/// `pids` and all processes that descend from them, ascending, zombies left out.
///
/// # Errors
/// `/proc` cannot be listed.
pub fn descendants(root: &Root, pids: &[u32]) -> Result<Vec<u32>, Missing> {
    let processes = all(root)?;
    let mut children: BTreeMap<u32, Vec<&Stat>> = BTreeMap::new();
    for process in &processes {
        children.entry(process.ppid).or_default().push(process);
    }
    let mut found: BTreeSet<u32> = BTreeSet::new();
    let mut open: Vec<u32> = pids.to_vec();
    while let Some(pid) = open.pop() {
        if found.insert(pid) {
            open.extend(children.get(&pid).into_iter().flatten().map(|child| child.id));
        }
    }
    let alive = processes.iter().filter(|process| process.state != 'Z' && process.state != 'X');
    Ok(alive.map(|process| process.id).filter(|pid| found.contains(pid)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINE: &str = "123 (a b) (c) S 1 120 120 0 -1 4194560 100 0 0 0 5 6 0 0 20 0 1 0 4567 1000 10 18446744073709551615 0";

    #[test]
    fn a_name_may_hold_anything() {
        let stat = parse_stat(LINE).unwrap();
        assert_eq!(stat.name, "a b) (c");
        assert_eq!((stat.id, stat.state, stat.ppid, stat.pgid, stat.start_ticks), (123, 'S', 1, 120, 4567));
    }

    #[test]
    fn our_own_threads_and_children_are_found() {
        let root = Root::live();
        let me = std::process::id();
        assert!(tasks_of(&root, me).contains(&tare_sys::process::gettid()));
        assert!(
            thread_count(&root, me).is_some_and(|count| count >= 1)
                && thread_count(&root, u32::MAX).is_none()
        );
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let found = descendants(&root, &[me]).unwrap();
        assert!(found.contains(&me) && found.contains(&child.id()), "{found:?}");
        let children = children(&root, me);
        assert!(children.is_empty() || children.contains(&child.id()), "{children:?}");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!descendants(&root, &[me]).unwrap().contains(&child.id()));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,200}", cut in 0..LINE.len()) {
            parse_stat(&text);
            if let Some(stat) = parse_stat(&LINE[..cut]) {
                // Cut within or behind the start time: its digits may be fewer, the rest must be right.
                prop_assert_eq!(stat.ppid, 1);
            }
        }
    }
}
