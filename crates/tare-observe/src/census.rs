//! Who is on the machine: every process, whose child it is, and how much it has run.
//!
//! One that did nothing costs one reading of a file that is open, which tells that it is still the same process as well: the
//! file of one that has ended cannot be read any more, whoever has its number now.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use tare_machine::{Root, procs};
use tare_sys::process::open_files_limit;
use tare_sys::time::{monotonic_ns, process_cpu_ns};

/// Processes that are looked at, at most.
pub(crate) const PROCESSES_MAX: usize = 20_000;
/// Descriptors that are left for connections and all else that is open.
pub(crate) const NOT_FILES: u64 = 2048;
/// Of the others that we may have, this part is for the files of processes; more are opened each time.
const FILES_SHARE: u64 = 4;

/// What a process has used so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Used {
    /// CLOCK_MONOTONIC, nanoseconds.
    pub at_ns: u64,
    /// Run and wait of its main thread.
    pub run_ns: u64,
    pub wait_ns: u64,
    /// How often that was given a CPU.
    pub slices: u64,
    /// Run of all its threads, those that have ended included; `None` where that cannot be asked.
    pub all_ns: Option<u64>,
}

impl Used {
    /// Run that was not its main thread's.
    pub fn by_other_threads_ns(&self) -> u64 {
        self.all_ns.map_or(0, |all_ns| all_ns.saturating_sub(self.run_ns))
    }
}

/// A process.
#[derive(Debug)]
pub(crate) struct Process {
    ppid: u32,
    /// With its number it tells a process from one that had the number before.
    pub start_ticks: u64,
    pub used: Used,
    /// The `schedstat` of its main thread.
    file: Option<File>,
    /// It has ended and was not waited for, as far as its run tells: who did not run did not end.
    is_zombie: bool,
}

/// All processes, as they were when they were last looked at.
#[derive(Debug, Default)]
pub(crate) struct Census {
    processes: BTreeMap<u32, Process>,
    children: BTreeMap<u32, Vec<u32>>,
    /// There were more than are looked at.
    too_many: bool,
    files: u64,
    /// What is known holds until it is let go: all who ask meanwhile get the same answer.
    is_held: bool,
}

impl Census {
    /// Looks who is there now, and holds that until [`Census::let_go`].
    pub fn hold(&mut self, root: &Root) {
        self.refresh(root);
        self.is_held = true;
    }

    /// From now on whoever asks looks anew.
    pub fn let_go(&mut self) {
        self.is_held = false;
    }

    /// These processes and all that descend from them, ascending, zombies left out.
    pub fn family(&mut self, root: &Root, pids: &[u32]) -> Vec<u32> {
        if pids.is_empty() {
            return Vec::new();
        }
        if !self.is_held {
            self.refresh(root);
        }
        let mut found: BTreeSet<u32> = BTreeSet::new();
        let mut open: Vec<u32> = pids.to_vec();
        while let Some(pid) = open.pop() {
            if found.insert(pid) {
                open.extend(self.children.get(&pid).into_iter().flatten());
            }
        }
        found.retain(|pid| self.processes.get(pid).is_some_and(|process| !process.is_zombie));
        found.into_iter().collect()
    }

    /// All that were there when they were last looked at, by number.
    pub fn processes(&self) -> impl Iterator<Item = (u32, &Process)> {
        self.processes.iter().map(|(pid, process)| (*pid, process))
    }

    /// Whether there were more than [`PROCESSES_MAX`].
    pub fn too_many(&self) -> bool {
        self.too_many
    }

    fn refresh(&mut self, root: &Root) {
        let files_max = open_files_limit().map_or(0, |limit| limit.saturating_sub(NOT_FILES) / FILES_SHARE);
        let pids = root.numbers("/proc").unwrap_or_default();
        self.too_many = pids.len() > PROCESSES_MAX;
        let mut before = std::mem::take(&mut self.processes);
        let mut ended: BTreeSet<u32> = BTreeSet::new();
        self.files = 0;
        for pid in pids.into_iter().take(PROCESSES_MAX) {
            let known = before.remove(&pid);
            let is_known = known.is_some();
            let process = known.and_then(|process| process.again(root, pid)).or_else(|| {
                // Its number may have been another's, whose children have another parent now.
                let _ = is_known && ended.insert(pid);
                Process::open(root, pid, self.files < files_max)
            });
            if let Some(process) = process {
                self.files += u64::from(process.file.is_some());
                self.processes.insert(pid, process);
            }
        }
        ended.extend(before.into_keys());
        self.children.clear();
        for (pid, process) in &mut self.processes {
            if ended.contains(&process.ppid)
                && let Ok(stat) = procs::stat(root, *pid)
            {
                process.ppid = stat.ppid;
            }
            self.children.entry(process.ppid).or_default().push(*pid);
        }
    }
}

impl Process {
    fn open(root: &Root, pid: u32, may_hold: bool) -> Option<Process> {
        let stat = procs::stat(root, pid).ok()?;
        let file = File::open(root.path(format!("/proc/{pid}/task/{pid}/schedstat"))).ok();
        let used = file.as_ref().and_then(|file| used(root, pid, file));
        Some(Process {
            ppid: stat.ppid,
            start_ticks: stat.start_ticks,
            // Without schedstat nothing is known of it but whose child it is.
            used: used.unwrap_or(Used { at_ns: 0, run_ns: 0, wait_ns: 0, slices: 0, all_ns: None }),
            file: file.filter(|_| may_hold && used.is_some()),
            is_zombie: matches!(stat.state, 'Z' | 'X'),
        })
    }

    /// The same process as it is now; `None` where it has ended.
    fn again(mut self, root: &Root, pid: u32) -> Option<Process> {
        let Some(file) = &self.file else {
            let now = Process::open(root, pid, false)?;
            return (now.start_ticks == self.start_ticks).then_some(now);
        };
        let used = used(root, pid, file)?;
        if (used.run_ns, used.slices) != (self.used.run_ns, self.used.slices) {
            self.is_zombie = matches!(procs::stat(root, pid).ok()?.state, 'Z' | 'X');
        }
        self.used = used;
        Some(self)
    }
}

fn used(root: &Root, pid: u32, file: &File) -> Option<Used> {
    let mut text = [0; 128];
    let bytes = file.read_at(&mut text, 0).ok()?;
    let text = std::str::from_utf8(text.get(..bytes)?).ok()?;
    let mut fields = text.split_ascii_whitespace().map(|field| field.parse::<u64>().ok());
    Some(Used {
        at_ns: monotonic_ns(),
        run_ns: fields.next()??,
        wait_ns: fields.next()??,
        slices: fields.next().flatten().unwrap_or(0),
        // A captured tree's processes are not this machine's.
        all_ns: process_cpu_ns(pid).ok().filter(|_| root.is_live()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::Command;

    fn put(dir: &std::path::Path, pid: u32, parent: u32, state: char, schedstat: &str) {
        let task = dir.join(format!("proc/{pid}/task/{pid}"));
        fs::create_dir_all(&task).unwrap();
        fs::write(
            dir.join(format!("proc/{pid}/stat")),
            format!("{pid} (x) {state} {parent}{}\n", " 1".repeat(48)),
        )
        .unwrap();
        fs::write(task.join("schedstat"), schedstat).unwrap();
    }

    #[test]
    fn a_family_is_found_and_zombies_are_not_in_it() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), 10, 1, 'S', "5 5 1\n");
        put(dir.path(), 11, 10, 'S', "5 5 1\n");
        put(dir.path(), 12, 11, 'S', "5 5 1\n");
        put(dir.path(), 13, 10, 'Z', "5 5 1\n");
        put(dir.path(), 20, 1, 'S', "5 5 1\n");
        let (mut census, root) = (Census::default(), Root::at(dir.path()));
        assert_eq!(census.family(&root, &[10]), [10, 11, 12]);
        assert_eq!(census.family(&root, &[]), [0u32; 0]);
        // Who ends has run: then it is asked again.
        put(dir.path(), 12, 11, 'Z', "6 5 2\n");
        assert_eq!(census.family(&root, &[10]), [10, 11]);
        census.hold(&root);
        put(dir.path(), 14, 10, 'S', "1 1 1\n");
        assert_eq!(census.family(&root, &[10]), [10, 11], "held");
        census.let_go();
        assert_eq!(census.family(&root, &[10]), [10, 11, 14]);
    }

    #[test]
    fn a_child_whose_parent_has_ended_gets_its_new_parent() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), 10, 1, 'S', "5 5 1\n");
        put(dir.path(), 11, 10, 'S', "5 5 1\n");
        put(dir.path(), 12, 11, 'S', "5 5 1\n");
        let (mut census, root) = (Census::default(), Root::at(dir.path()));
        assert_eq!(census.family(&root, &[10]), [10, 11, 12]);
        fs::remove_dir_all(dir.path().join("proc/11")).unwrap();
        put(dir.path(), 12, 1, 'S', "5 5 1\n");
        assert_eq!(census.family(&root, &[10]), [10]);
    }

    #[test]
    fn real_processes_come_and_go() {
        let (mut census, root) = (Census::default(), Root::live());
        let own = std::process::id();
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        assert!(census.family(&root, &[own]).contains(&child.id()));
        let known = census.processes().find(|(pid, _)| *pid == own).map(|(_, process)| process.used).unwrap();
        assert!(known.all_ns.is_some_and(|all_ns| all_ns > 0), "{known:?}");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!census.family(&root, &[own]).contains(&child.id()));
    }
}
