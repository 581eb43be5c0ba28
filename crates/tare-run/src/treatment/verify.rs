//! What a program has in use, read while it runs: in runs that are not counted, as reading its memory holds it up.

use super::counts::Counts;
use super::place::{Cycles, PlaceSeen};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tare_machine::huge_pages::Pool;
use tare_machine::smaps::{self, Memory};
use tare_machine::{Root, cgroup, procs};
use tare_model::Missing;

/// How often the memory of a program is read.
const EVERY: Duration = Duration::from_millis(20);
/// Processes that are read, at most.
const PROCESSES_MAX: usize = 64;
/// The namespace of control groups that the kernel begins with (PROC_CGROUP_INIT_INO of include/linux/proc_ns.h).
const FIRST_GROUPS: &str = "cgroup:[4026531835]";

/// What was seen of a program; the most of each where that changes.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// Its memory: most in huge pages, and the mappings when most was in memory.
    pub memory: Result<Memory, Missing>,
    /// Pages of the pool that somebody had.
    pub pool_used: u64,
    /// The environment of its first process; it may hold secrets and goes nowhere.
    pub(super) environment: Vec<String>,
    /// CPUs that its first process may use, as a list.
    pub cpus: Option<String>,
    /// Whether it is refused transparent huge pages; `None`: this kernel does not show it.
    pub no_thp: Option<bool>,
    /// Its control group, of the tree that shares CPU time out; `None`: not known.
    pub group: Option<String>,
    /// What the kernel counted while it ran.
    pub counts: Counts,
    /// Where it ran, if anybody has asked for a place.
    pub place: Option<PlaceSeen>,
    /// How often it was read.
    pub samples: u32,
}

impl Default for Seen {
    fn default() -> Seen {
        let why = "it ended before its memory could be read (a program is left alone for its first 10 ms)";
        Seen {
            memory: Err(Missing::with_remedy(why, "give it more to do")),
            pool_used: 0,
            environment: Vec::new(),
            cpus: None,
            no_thp: None,
            group: None,
            counts: Counts::default(),
            place: None,
            samples: 0,
        }
    }
}

impl Seen {
    /// Nothing yet; `of_place`: where it runs is to be seen, too.
    pub fn nothing(of_place: bool) -> Seen {
        Seen { place: of_place.then(PlaceSeen::default), ..Seen::default() }
    }

    /// Reads what these processes have now.
    pub fn look(&mut self, root: &Root, pids: &[u32]) {
        let pids = pids.get(..PROCESSES_MAX).unwrap_or(pids);
        let all = pids.iter().filter_map(|pid| smaps::read(root, *pid).ok()).reduce(Memory::and);
        let Some(now) = all else { return };
        self.samples += 1;
        self.memory = Ok(match std::mem::replace(&mut self.memory, Ok(Memory::default())) {
            Ok(before) => most(before, now),
            Err(_) => now,
        });
        if let Ok(pool) = Pool::read(root) {
            self.pool_used = self.pool_used.max(pool.used);
        }
        let Some(first) = pids.first() else { return };
        if let Ok(text) = root.text(format!("/proc/{first}/environ")) {
            self.environment = text.split('\0').map(str::to_owned).collect();
        }
        let status = root.text(format!("/proc/{first}/status")).unwrap_or_default();
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        self.cpus = field("Cpus_allowed_list:").map(str::to_owned);
        self.no_thp = field("THP_enabled:").map(|enabled| enabled == "0");
        // Only a group with the files of the controller shares CPU time by itself: others are in the one above.
        let shares = |level: &&cgroup::Level| {
            ["cpu.weight", "cpu.shares"].iter().any(|file| root.exists(level.dir.join(file)))
        };
        let group = cgroup::of(root, *first).ok().map(|levels| {
            levels.iter().find(shares).map_or_else(|| "/".to_owned(), |level| level.path.clone())
        });
        // In a namespace of groups the root is any of them.
        self.group = group.filter(|group| group != "/" || sees_all_groups());
        if let Some(place) = &mut self.place {
            place.look(root, pids);
        }
    }

    /// Whether its environment has a variable with this value.
    pub fn has(&self, name: &str, value: &str) -> bool {
        self.environment.iter().any(|pair| pair.split_once('=') == Some((name, value)))
    }

    /// Joins what was seen of another run of it.
    pub fn and(&mut self, other: Seen) {
        self.counts = self.counts.and(other.counts);
        if other.samples == 0 {
            return;
        }
        self.memory = match (std::mem::replace(&mut self.memory, Ok(Memory::default())), other.memory) {
            (Ok(before), Ok(now)) => Ok(most(before, now)),
            (Err(_), now) => now,
            (before, Err(_)) => before,
        };
        self.pool_used = self.pool_used.max(other.pool_used);
        self.environment = other.environment;
        self.cpus = other.cpus;
        self.no_thp = other.no_thp;
        self.group = other.group;
        match (&mut self.place, other.place) {
            (Some(place), Some(other)) => place.and(other),
            (place, other) => *place = place.take().or(other),
        }
        self.samples += other.samples;
    }
}

/// Whether this process sees the whole tree of control groups: its namespace is the one that the kernel began with.
fn sees_all_groups() -> bool {
    let own = std::fs::read_link("/proc/self/ns/cgroup");
    own.is_ok_and(|own| own.as_os_str() == FIRST_GROUPS)
}

fn most(before: Memory, now: Memory) -> Memory {
    let resident =
        |memory: &Memory| memory.anonymous.iter().map(|mapping| mapping.resident_bytes).sum::<u64>();
    let (transparent_bytes, pool_bytes, page_bytes) = (
        before.transparent_bytes.max(now.transparent_bytes),
        before.pool_bytes.max(now.pool_bytes),
        before.page_bytes.max(now.page_bytes),
    );
    let larger = if resident(&now) >= resident(&before) { now } else { before };
    Memory { transparent_bytes, pool_bytes, page_bytes, ..larger }
}

/// Reads a program's memory again and again, from a thread of its own, until it is asked to end or the program has.
pub(crate) struct Sampler {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Seen>,
}

impl Sampler {
    /// `None`: no thread could be started. `of_place`: where it runs is seen, too.
    pub fn begin(pid: u32, of_place: bool) -> Option<Sampler> {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let sample = move || {
            let root = Root::live();
            let mut seen = Seen::nothing(of_place);
            let mut cycles = Cycles::default();
            while !over.load(Ordering::Relaxed) {
                let alive = procs::descendants(&root, &[pid]).unwrap_or_default();
                if alive.is_empty() {
                    break;
                }
                if of_place {
                    cycles.look(&root, &alive);
                }
                seen.look(&root, &alive);
                std::thread::sleep(EVERY);
            }
            if let Some(place) = &mut seen.place {
                place.ipc = cycles.end();
            }
            seen
        };
        let thread = std::thread::Builder::new().name("tare-memory".into()).spawn(sample).ok()?;
        Some(Sampler { is_over, thread })
    }

    /// What was seen.
    pub fn end(self) -> Seen {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_read_while_it_runs_and_one_that_is_gone_is_missing() {
        let mut child = std::process::Command::new("sleep").arg("1000").env("SETTING", "7").spawn().unwrap();
        let mut seen = Seen::default();
        let end = std::time::Instant::now() + Duration::from_secs(10);
        while !seen.has("SETTING", "7") && std::time::Instant::now() < end {
            seen.look(&Root::live(), &[child.id()]);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(seen.has("SETTING", "7") && !seen.has("SETTING", "8"), "its environment");
        assert!(seen.memory.is_ok() && seen.cpus.is_some() && seen.samples > 0);
        assert!(
            seen.place.is_none() && seen.group.as_ref().is_none_or(|group| group.starts_with('/')),
            "{seen:?}"
        );
        let mut gone = Sampler::begin(child.id(), true).unwrap().end();
        assert!(gone.memory.is_err() && gone.samples == 0);
        assert!(gone.place.as_ref().is_some_and(|place| place.ipc.is_err()), "{gone:?}");
        gone.and(seen);
        assert!(gone.memory.is_ok());
    }
}
