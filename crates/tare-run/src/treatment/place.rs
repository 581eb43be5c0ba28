//! What explains that a program is faster on other CPUs: how often its threads changed CPU, where its memory is, and how many
//! instructions it completes in a cycle.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use tare_machine::Root;
use tare_model::Missing;
use tare_sys::perf::{Event, Group, GroupCount, Whom};

/// Threads of a process that are read, at most.
const THREADS_MAX: usize = 256;
/// Threads whose cycles are counted, at most: a counter is an open file.
const COUNTED_MAX: usize = 64;
/// Longest list of mappings that is read of a process, lines.
const MAPPINGS_MAX: usize = 65_536;

/// What was seen of where a program ran.
#[derive(Debug, Clone)]
pub(crate) struct PlaceSeen {
    /// How often its threads had changed CPU since they began, all together; the most that was seen of a run.
    pub migrations: Option<u64>,
    /// Its memory by NUMA node, bytes, when most was seen; empty on a machine with one.
    pub node_bytes: BTreeMap<u32, u64>,
    /// Instructions in a cycle.
    pub ipc: Result<f64, Missing>,
}

impl Default for PlaceSeen {
    fn default() -> PlaceSeen {
        let ipc = Missing::with_remedy(
            "the cycles of servers are not counted here",
            "'tare run' counts them, where there is a PMU",
        );
        PlaceSeen { migrations: None, node_bytes: BTreeMap::new(), ipc: Err(ipc) }
    }
}

impl PlaceSeen {
    /// Reads what these processes have now.
    pub fn look(&mut self, root: &Root, pids: &[u32]) {
        let counts = pids.iter().flat_map(|pid| migrations(root, *pid));
        let sum = counts.fold(None, |sum: Option<u64>, count| Some(sum.unwrap_or(0).saturating_add(count)));
        self.migrations = self.migrations.max(sum);
        if !has_nodes(root) {
            return;
        }
        let mut now = BTreeMap::new();
        for pid in pids {
            let text = root.text(format!("/proc/{pid}/numa_maps")).unwrap_or_default();
            text.lines().take(MAPPINGS_MAX).for_each(|line| add_nodes(line, &mut now));
        }
        if now.values().sum::<u64>() >= self.node_bytes.values().sum::<u64>() {
            self.node_bytes = now;
        }
    }

    /// Joins what was seen of another run.
    pub fn and(&mut self, other: PlaceSeen) {
        self.migrations = self.migrations.max(other.migrations);
        if other.node_bytes.values().sum::<u64>() >= self.node_bytes.values().sum::<u64>() {
            self.node_bytes = other.node_bytes;
        }
        if other.ipc.is_ok() || self.ipc.is_err() {
            self.ipc = other.ipc;
        }
    }

    /// The share of its memory that is not on one of these nodes; `None` where there is one node, or nothing was seen.
    pub fn remote(&self, nodes: &[u32]) -> Option<f64> {
        let all: u64 = self.node_bytes.values().sum();
        let far = self.node_bytes.iter().filter(|(node, _)| !nodes.contains(node)).map(|(_, bytes)| *bytes);
        (all > 0).then(|| far.sum::<u64>() as f64 / all as f64)
    }
}

fn has_nodes(root: &Root) -> bool {
    let names = root.names("/sys/devices/system/node").unwrap_or_default();
    let is_node = |name: &&String| name.strip_prefix("node").is_some_and(|nth| nth.parse::<u32>().is_ok());
    names.iter().filter(is_node).count() > 1
}

/// Of each thread, how often the scheduler has moved it: `se.nr_migrations` of `/proc/PID/task/TID/sched`.
fn migrations(root: &Root, pid: u32) -> Vec<u64> {
    let threads = root.first_numbers(format!("/proc/{pid}/task"), THREADS_MAX).unwrap_or_default();
    let of = |tid: &u32| {
        let text = root.text(format!("/proc/{pid}/task/{tid}/sched")).ok()?;
        let line = text.lines().find(|line| line.starts_with("se.nr_migrations"))?;
        line.split_once(':')?.1.trim().parse().ok()
    };
    threads.iter().filter_map(of).collect()
}

/// Adds the pages of a line of `numa_maps`: `7f00 default anon=3 dirty=3 N0=1 N1=2 kernelpagesize_kB=4`.
fn add_nodes(line: &str, nodes: &mut BTreeMap<u32, u64>) {
    let value = |name: &str| line.split_ascii_whitespace().find_map(|field| field.strip_prefix(name));
    let page = value("kernelpagesize_kB=").and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(4);
    for field in line.split_ascii_whitespace() {
        let Some((node, pages)) = field.strip_prefix('N').and_then(|rest| rest.split_once('=')) else {
            continue;
        };
        if let (Ok(node), Ok(pages)) = (node.parse::<u32>(), pages.parse::<u64>()) {
            let bytes = pages.saturating_mul(page).saturating_mul(1024);
            let sum = nodes.entry(node).or_insert(0);
            *sum = sum.saturating_add(bytes);
        }
    }
}

/// Counters of the threads of a program while it runs.
#[derive(Debug, Default)]
pub(crate) struct Cycles {
    groups: BTreeMap<u32, Group>,
    refused: Option<String>,
}

impl Cycles {
    /// Counts the threads that have come since.
    pub fn look(&mut self, root: &Root, pids: &[u32]) {
        for pid in pids {
            let threads = root.first_numbers(format!("/proc/{pid}/task"), THREADS_MAX).unwrap_or_default();
            for tid in threads {
                let is_new = self.refused.is_none() && !self.groups.contains_key(&tid);
                if !is_new || self.groups.len() >= COUNTED_MAX {
                    continue;
                }
                match Group::open(Whom::Thread(tid), &[Event::CYCLES, Event::INSTRUCTIONS]) {
                    Ok(group) => drop(self.groups.insert(tid, group)),
                    // A thread that has ended says nothing of the machine.
                    Err(_) if root.text(format!("/proc/{pid}/task/{tid}/stat")).is_err() => {}
                    Err(error) if [ErrorKind::NotFound, ErrorKind::Unsupported].contains(&error.kind()) => {
                        self.refused = Some("there is no PMU".to_owned());
                    }
                    Err(error) => self.refused = Some(error.to_string()),
                }
            }
        }
    }

    /// Instructions in a cycle, of all of them.
    pub fn end(self) -> Result<f64, Missing> {
        if let Some(refused) = self.refused {
            let why = format!("cycles are not counted here ({refused})");
            return Err(Missing::with_remedy(why, "a machine with a PMU, and the right to use it (root)"));
        }
        let mut bytes = [0; GroupCount::BYTES_MAX];
        let (mut cycles, mut instructions) = (0_u64, 0_u64);
        for group in self.groups.values() {
            let read =
                group.read_raw(&mut bytes).ok().and_then(|length| GroupCount::parse(bytes.get(..length)?));
            if let Some([more_cycles, more]) = read.as_ref().and_then(|read| read.values.first_chunk::<2>()) {
                cycles = cycles.saturating_add(*more_cycles);
                instructions = instructions.saturating_add(*more);
            }
        }
        match cycles {
            0 => Err(Missing::new("it ended before its cycles could be counted")),
            cycles => Ok(instructions as f64 / cycles as f64),
        }
    }
}

/// What was seen of a program's place, beside what was seen of A's. `nodes`: those of its CPUs and of A's.
pub(crate) fn in_words(own: (&PlaceSeen, &[u32]), first: Option<(&PlaceSeen, &[u32])>) -> String {
    let beside = |words: Option<String>| words.map_or_else(String::new, |words| format!(" (A {words})"));
    let mut parts = Vec::new();
    if let Some(count) = own.0.migrations {
        let its = first.and_then(|(first, _)| first.migrations).map(|count| count.to_string());
        parts.push(format!("its threads changed CPU at least {count} times in a run{}", beside(its)));
    }
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    if let Some(share) = own.0.remote(own.1) {
        let its = first.and_then(|(first, nodes)| first.remote(nodes)).map(percent);
        parts.push(format!(
            "{} of its memory is on other NUMA nodes than its CPUs{}",
            percent(share),
            beside(its)
        ));
    }
    match &own.0.ipc {
        Ok(ipc) => {
            let its = first.and_then(|(first, _)| first.ipc.as_ref().ok()).map(|ipc| format!("{ipc:.2}"));
            parts.push(format!("{ipc:.2} instructions in a cycle{}", beside(its)));
        }
        Err(missing) => parts.push(format!("IPC is missing: {}", missing.why)),
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = Root::at(dir.path());
        (dir, root)
    }

    #[test]
    fn moves_and_remote_memory_are_summed_over_threads_and_mappings() {
        let (_dir, root) = machine(&[
            ("proc/7/task/7/sched", "chase (7, #threads: 2)\nse.nr_migrations    :    3\nnr_switches : 9\n"),
            ("proc/7/task/8/sched", "se.nr_migrations    :    4\n"),
            (
                "proc/7/numa_maps",
                "7f00 default anon=3 dirty=3 N0=1 N1=2 kernelpagesize_kB=4\n7f10 default huge anon=1 N1=1 kernelpagesize_kB=2048\n",
            ),
            ("sys/devices/system/node/node0/cpulist", "0-1\n"),
            ("sys/devices/system/node/node1/cpulist", "2-3\n"),
        ]);
        let mut seen = PlaceSeen::default();
        seen.look(&root, &[7, 9]);
        assert_eq!(seen.migrations, Some(7));
        assert_eq!(seen.node_bytes, BTreeMap::from([(0, 4096), (1, 2 * 4096 + (2 << 20))]));
        assert_eq!(seen.remote(&[0, 1]), Some(0.0));
        assert!(seen.remote(&[0]).unwrap() > 0.99);
        // The most of a run counts, and what is gone says nothing.
        seen.look(&root, &[9]);
        assert_eq!(seen.migrations, Some(7));
        let words = in_words((&seen, &[1]), Some((&seen, &[0])));
        assert!(
            words.starts_with("its threads changed CPU at least 7 times in a run (A 7); 0 % of its memory"),
            "{words}"
        );
        assert!(
            words.contains("(A 100 %)")
                && words.ends_with("IPC is missing: the cycles of servers are not counted here"),
            "{words}"
        );
    }

    #[test]
    fn one_node_has_no_remote_memory() {
        let (_dir, root) = machine(&[
            ("proc/7/numa_maps", "7f00 default N0=1 kernelpagesize_kB=4\n"),
            ("sys/devices/system/node/node0/cpulist", "0-1\n"),
        ]);
        let mut seen = PlaceSeen::default();
        seen.look(&root, &[7]);
        assert_eq!((seen.remote(&[0]), seen.migrations), (None, None));
    }

    #[test]
    fn the_cycles_of_a_program_are_counted_or_missing() {
        let mut cycles = Cycles::default();
        cycles.look(&Root::live(), &[std::process::id()]);
        match cycles.end() {
            Ok(ipc) => assert!(ipc > 0.0 && ipc < 20.0, "{ipc}"),
            Err(missing) => assert!(!missing.why.is_empty()),
        }
        let mut nobody = Cycles::default();
        nobody.look(&Root::live(), &[u32::MAX]);
        assert!(nobody.end().unwrap_err().why.contains("ended before"));
    }
}
