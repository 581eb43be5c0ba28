//! Threads that do not run: each is one open file, which is read where a window begins and ends.
//!
//! In between, the run of a whole process, which is one call, tells whether more ran than the threads that are watched: then those that
//! rest are looked through for who it was. So a thread that sleeps costs a microsecond a window, and one that wakes is watched from
//! its next run on, with all that it ran since the window began.

use super::parse::Schedstat;
use crate::census::NOT_FILES;
use crate::scene::Scene;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use tare_machine::Root;
use tare_model::observation::Role;
use tare_sys::process::open_files_limit;
use tare_sys::time::{monotonic_ns, process_cpu_ns};

/// Threads that are looked at, at most.
const RESTING_MAX: usize = 65_536;
/// Of the descriptors that we may have, this part is for their files, beside those that are for connections; the files of others are
/// opened each time.
const FILES_SHARE: u64 = 2;
/// Run of a process beyond that of its watched threads that makes it worth to look for who it was.
const UNCLAIMED_NS: u64 = 1_000_000;
/// The kernel brings `schedstat` of a running thread up to date at each tick, which is so long with 250 ticks a second. The run of a process
/// is always up to date.
const STALE_NS: u64 = 4_000_000;
/// A thread that ran for less than this is not watched yet: what it ran is known where the window ends.
const WOKEN_NS: u64 = 500_000;
/// Looking through all takes one part in so many of the time at most.
const SEARCH_SHARE: u64 = 400;
/// Asking what their processes ran takes one part in so many.
const ASKED_SHARE: u64 = 1000;

/// A thread that rests.
pub(super) struct Resting {
    pub pid: u32,
    pub tid: u32,
    pub role: Role,
    file: Option<File>,
    /// Where the window began, or where it was first seen in it.
    pub before: Schedstat,
    pub last: Schedstat,
}

impl Resting {
    /// One that is seen for the first time.
    pub fn open(scene: &Scene, pid: u32, tid: u32, role: Role) -> io::Result<Resting> {
        let file = File::open(path(&scene.root, pid, tid))?;
        let now = read(&file)?;
        Ok(Resting { pid, tid, role, file: Some(file), before: now, last: now })
    }

    /// One that was watched, and did not run.
    pub fn of_watched(pid: u32, tid: u32, role: Role, file: Option<File>, last: Schedstat) -> Resting {
        Resting { pid, tid, role, file, before: last, last }
    }

    /// Run since the window began.
    pub fn ran_ns(&self) -> u64 {
        self.last.run_ns.saturating_sub(self.before.run_ns)
    }

    /// Whether it ran for long enough to be watched.
    pub fn is_busy(&self) -> bool {
        self.ran_ns() >= WOKEN_NS
    }

    /// Whether it was on a CPU or wanted to be.
    pub fn has_run(&self) -> bool {
        (self.last.used_ns(), self.last.slices) != (self.before.used_ns(), self.before.slices)
    }

    /// Reads it; false where it has ended.
    fn look(&mut self, root: &Root) -> bool {
        let now = match &self.file {
            Some(file) => read(file),
            None => File::open(path(root, self.pid, self.tid)).and_then(|file| read(&file)),
        };
        match now {
            Ok(now) => self.last = now,
            Err(_) => return false,
        }
        true
    }
}

fn path(root: &Root, pid: u32, tid: u32) -> PathBuf {
    root.path(format!("/proc/{pid}/task/{tid}/schedstat"))
}

fn read(file: &File) -> io::Result<Schedstat> {
    let mut text = [0; 128];
    let bytes = file.read_at(&mut text, 0)?;
    let at_ns = monotonic_ns();
    let text = text.get(..bytes).and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default();
    Schedstat::parse(at_ns, text).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
}

/// All threads that rest.
pub(super) struct Rest {
    root: Root,
    threads: Vec<Resting>,
    /// Run of each process that was not its watched threads' when its others were looked through last.
    unclaimed_ns: BTreeMap<u32, u64>,
    /// Files that are held open.
    files: u64,
    next_asked_ns: u64,
    next_search_ns: u64,
}

impl Rest {
    pub fn new(root: &Root) -> Rest {
        Rest {
            root: root.clone(),
            threads: Vec::new(),
            unclaimed_ns: BTreeMap::new(),
            files: 0,
            next_asked_ns: 0,
            next_search_ns: 0,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    pub fn threads(&self) -> impl Iterator<Item = &Resting> {
        self.threads.iter()
    }

    /// Whether threads of this process rest.
    pub fn is_of(&self, pid: u32) -> bool {
        self.unclaimed_ns.contains_key(&pid)
    }

    pub fn processes(&self) -> impl Iterator<Item = u32> {
        self.unclaimed_ns.keys().copied()
    }

    pub fn is_full(&self) -> bool {
        self.threads.len() >= RESTING_MAX
    }

    /// Begins a window: forgets those whose role is another now (`None`: nobody's), and looks at all. The processes of threads that
    /// have ended.
    pub fn begin(&mut self, role_of: impl Fn(u32, u32) -> Option<Role>) -> BTreeSet<u32> {
        self.threads.retain(|thread| role_of(thread.pid, thread.tid) == Some(thread.role));
        let ended = self.look(|_| true);
        self.threads.iter_mut().for_each(|thread| thread.before = thread.last);
        (self.next_asked_ns, self.next_search_ns) = (0, 0);
        // What watched threads ran that were dropped since is in the runs of their processes.
        self.unclaimed_ns.values_mut().for_each(|unclaimed_ns| *unclaimed_ns = 0);
        ended
    }

    pub fn add(&mut self, mut thread: Resting) {
        let files_max = open_files_limit().map_or(0, |limit| limit.saturating_sub(NOT_FILES) / FILES_SHARE);
        match thread.file {
            Some(_) if self.files < files_max => self.files += 1,
            _ => thread.file = None,
        }
        self.unclaimed_ns.entry(thread.pid).or_insert(0);
        self.threads.push(thread);
    }

    /// What each process with resting threads has run, its ended threads included; `None` where nobody rests, or where that was asked just
    /// now. To be asked before its watched threads are read: what those run in between is then in theirs.
    pub fn runs(&mut self) -> Option<Vec<(u32, u64)>> {
        let begun_ns = monotonic_ns();
        if self.threads.is_empty() || begun_ns < self.next_asked_ns {
            return None;
        }
        let run = |pid: u32| Some((pid, process_cpu_ns(pid).ok().filter(|_| self.root.is_live())?));
        let runs = self.processes().filter_map(run).collect();
        let took_ns = monotonic_ns().saturating_sub(begun_ns);
        self.next_asked_ns = begun_ns.saturating_add(took_ns.saturating_mul(ASKED_SHARE));
        Some(runs)
    }

    /// Of those runs, the processes in which somebody ran who is not watched; `watched` is what the watched threads of each have run
    /// together, in nanoseconds, and how many of them can run at once.
    pub fn unclaimed(&mut self, runs: &[(u32, u64)], watched: &BTreeMap<u32, (u64, u64)>) -> BTreeSet<u32> {
        let mut found = BTreeSet::new();
        for (pid, run_ns) in runs {
            let (watched_ns, at_once) = watched.get(pid).copied().unwrap_or_default();
            let now_ns = run_ns.saturating_sub(watched_ns);
            let Some(known_ns) = self.unclaimed_ns.get_mut(pid) else { continue };
            let noise_ns = UNCLAIMED_NS.saturating_add(STALE_NS.saturating_mul(at_once));
            // The first time in a window there is nothing to hold it against.
            let is_new = *known_ns == 0;
            let is_more = now_ns > known_ns.saturating_add(noise_ns);
            if is_more && !is_new {
                found.insert(*pid);
            }
            if is_more || is_new {
                *known_ns = now_ns.max(1);
            }
        }
        found
    }

    /// Looks through the threads of these processes, and hands over who has run, unless that was done just now. The
    /// processes of threads that have ended.
    pub fn woken(&mut self, pids: &BTreeSet<u32>) -> (Vec<Resting>, BTreeSet<u32>) {
        let begun_ns = monotonic_ns();
        if begun_ns < self.next_search_ns {
            // Asked again next time.
            pids.iter().for_each(|pid| _ = self.unclaimed_ns.get_mut(pid).map(|known_ns| *known_ns = 1));
            return (Vec::new(), BTreeSet::new());
        }
        let ended = self.look(|thread| pids.contains(&thread.pid));
        let took_ns = monotonic_ns().saturating_sub(begun_ns);
        self.next_search_ns = begun_ns.saturating_add(took_ns.saturating_mul(SEARCH_SHARE));
        // Whoever is watched from now on is in the runs of the watched with all that it ever ran.
        pids.iter().for_each(|pid| _ = self.unclaimed_ns.get_mut(pid).map(|known_ns| *known_ns = 0));
        (self.take(Resting::is_busy), ended)
    }

    /// Takes those out of which `is_wanted` holds.
    pub fn take(&mut self, is_wanted: impl Fn(&Resting) -> bool) -> Vec<Resting> {
        let taken: Vec<Resting> = self.threads.extract_if(.., |thread| is_wanted(thread)).collect();
        self.files -= taken.iter().filter(|thread| thread.file.is_some()).count() as u64;
        taken
    }

    /// Looks at all of them; those that have ended stay as they were last seen until the next window.
    pub fn end(&mut self) {
        let Rest { threads, root, .. } = self;
        threads.iter_mut().for_each(|thread| _ = thread.look(root));
    }

    /// Looks at some, drops those that have ended, and says of which processes they were.
    fn look(&mut self, is_wanted: impl Fn(&Resting) -> bool) -> BTreeSet<u32> {
        let mut ended = BTreeSet::new();
        let Rest { threads, root, .. } = self;
        threads.retain_mut(|thread| {
            let is_there = !is_wanted(thread) || thread.look(root);
            if !is_there {
                ended.insert(thread.pid);
            }
            is_there
        });
        self.files = self.threads.iter().filter(|thread| thread.file.is_some()).count() as u64;
        let pids: BTreeSet<u32> = self.threads.iter().map(|thread| thread.pid).collect();
        self.unclaimed_ns.retain(|pid, _| pids.contains(pid));
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::Watch;
    use std::path::Path;

    const MS: u64 = 1_000_000;

    fn put(dir: &Path, pid: u32, tid: u32, run_ns: u64, slices: u64) {
        let task = dir.join(format!("proc/{pid}/task/{tid}"));
        std::fs::create_dir_all(&task).unwrap();
        std::fs::write(task.join("schedstat"), format!("{run_ns} 0 {slices}\n")).unwrap();
    }

    fn rest(dir: &Path, threads: &[(u32, u32)]) -> (Scene, Rest) {
        let scene = Scene::new(Watch::default(), &Root::at(dir));
        let mut rest = Rest::new(&scene.root);
        for &(pid, tid) in threads {
            put(dir, pid, tid, 5 * MS, 7);
            rest.add(Resting::open(&scene, pid, tid, Role::Sut).unwrap());
        }
        (scene, rest)
    }

    fn tids<'t>(threads: impl IntoIterator<Item = &'t Resting>) -> Vec<u32> {
        threads.into_iter().map(|thread| thread.tid).collect()
    }

    #[test]
    fn who_ran_is_found_with_all_that_it_ran_since_the_window_began() {
        let dir = tempfile::tempdir().unwrap();
        let (_, mut rest) = rest(dir.path(), &[(10, 10), (10, 11), (10, 12), (20, 20)]);
        assert!(rest.begin(|_, _| Some(Role::Sut)).is_empty());
        put(dir.path(), 10, 11, 9 * MS, 8);
        put(dir.path(), 10, 12, 5 * MS + 1000, 8);
        put(dir.path(), 20, 20, 9 * MS, 8);
        let (woken, ended) = rest.woken(&BTreeSet::from([10]));
        assert_eq!((tids(&woken), ended.len()), (vec![11], 0), "one ran too shortly, one was not looked at");
        assert_eq!(woken[0].ran_ns(), 4 * MS);
        rest.end();
        let ran: Vec<(u32, u64)> = rest
            .threads()
            .filter(|thread| thread.has_run())
            .map(|thread| (thread.tid, thread.ran_ns()))
            .collect();
        assert_eq!(ran, [(12, 1000), (20, 4 * MS)], "what was not found in between is there at the end");
    }

    #[test]
    fn who_ended_is_gone_and_its_process_is_to_be_asked_again() {
        let dir = tempfile::tempdir().unwrap();
        let (_, mut rest) = rest(dir.path(), &[(10, 10), (10, 11), (20, 20)]);
        std::fs::write(dir.path().join("proc/10/task/11/schedstat"), "").unwrap();
        assert_eq!(rest.begin(|_, _| Some(Role::Sut)), BTreeSet::from([10]));
        assert_eq!(tids(rest.threads()), [10, 20]);
        // Nobody's any more.
        rest.begin(|pid, _| (pid == 20).then_some(Role::Sut));
        assert_eq!(tids(rest.threads()), [20]);
        assert!(rest.is_of(20) && !rest.is_of(10));
    }

    #[test]
    fn after_a_search_runs_are_held_against_those_that_are_watched_then() {
        let dir = tempfile::tempdir().unwrap();
        let (_, mut rest) = rest(dir.path(), &[(10, 11)]);
        rest.begin(|_, _| Some(Role::Sut));
        let unclaimed = |rest: &mut Rest, run_ms: u64, watched_ms: u64| {
            !rest.unclaimed(&[(10, run_ms * MS)], &BTreeMap::from([(10, (watched_ms * MS, 1))])).is_empty()
        };
        assert!(!unclaimed(&mut rest, 5000, 0));
        assert!(unclaimed(&mut rest, 5010, 0));
        rest.woken(&BTreeSet::from([10]));
        // One that ran for five seconds in its life is watched from now on.
        assert!(!unclaimed(&mut rest, 5010, 5000));
        assert!(unclaimed(&mut rest, 5030, 5005), "the next one is found as soon");
    }

    #[test]
    fn run_that_no_watched_thread_claims_is_somebodys_who_rests() {
        let dir = tempfile::tempdir().unwrap();
        let (_, mut rest) = rest(dir.path(), &[(10, 11)]);
        rest.begin(|_, _| Some(Role::Sut));
        let mut unclaimed = |run_ms: u64, watched_ms: u64| {
            let watched = BTreeMap::from([(10, (watched_ms * MS, 1))]);
            !rest.unclaimed(&[(10, run_ms * MS)], &watched).is_empty()
        };
        assert!(!unclaimed(105, 100), "nothing to hold it against");
        assert!(!unclaimed(205, 200), "watched threads ran");
        assert!(!unclaimed(300, 299), "the watched ones were read later, and ran meanwhile");
        assert!(!unclaimed(310, 300), "the watched one's run is as of the last tick");
        assert!(unclaimed(413, 400), "more than that, though little since the sample before");
        assert!(!unclaimed(513, 500), "no more since");
        assert!(unclaimed(620, 600));
    }
}
