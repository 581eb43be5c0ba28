//! How many files each process of the SUT has open, and how many it may have. Where there are no more, no connection can be accepted.

use crate::observed::{Observed, changes, refused};
use crate::observer::{Edge, Observer};
use crate::scene::Scene;
use std::fs::metadata;
use std::path::PathBuf;
use tare_model::Missing;
use tare_model::metric::Subject;
use tare_model::metrics::open_files;
use tare_model::observation::Sample;
use tare_sys::time::monotonic_ns;

/// Samples per second between the edges.
const SAMPLE_HZ: f64 = 5.0;
/// Processes that are looked at: those of a server with more serve one connection each.
const PROCESSES_MAX: usize = 64;

/// A process, as it was found when the window was about to open.
struct Process {
    files: PathBuf,
    limit: u64,
}

/// The process that is nearest to its limit, at one reading.
#[derive(Clone, Copy)]
struct Nearest {
    at_ns: u64,
    open: u64,
    limit: u64,
}

#[derive(Default)]
struct OpenFiles {
    processes: Vec<Process>,
    readings: Vec<Nearest>,
    absent: Option<Missing>,
}

pub(crate) fn open(_scene: &Scene) -> Box<dyn Observer> {
    Box::new(OpenFiles::default())
}

impl OpenFiles {
    fn read(&mut self) {
        let at_ns = monotonic_ns();
        let mut nearest: Option<Nearest> = None;
        for process in &self.processes {
            // A process may have ended meanwhile; before Linux 6.2 the size is 0.
            let open = metadata(&process.files).map_or(0, |found| found.len());
            let limit = process.limit;
            let is_nearer = |than: Nearest| {
                u128::from(open) * u128::from(than.limit) > u128::from(than.open) * u128::from(limit)
            };
            if open > 0 && nearest.is_none_or(is_nearer) {
                nearest = Some(Nearest { at_ns, open, limit });
            }
        }
        self.readings.extend(nearest);
    }
}

impl Observer for OpenFiles {
    fn prepare(&mut self, scene: &Scene) {
        self.readings.clear();
        self.processes.clear();
        self.absent = None;
        if scene.watch.server_port.is_none() {
            return;
        }
        for pid in scene.family(&scene.watch.sut_pids).into_iter().take(PROCESSES_MAX) {
            let path = format!("/proc/{pid}/limits");
            match std::fs::read_to_string(scene.root.path(&path)) {
                Ok(text) => self.processes.extend(
                    limit(&text)
                        .map(|limit| Process { files: scene.root.path(format!("/proc/{pid}/fd")), limit }),
                ),
                Err(error) => self.absent = Some(refused(&path, &error)),
            }
        }
    }

    fn edge(&mut self, _edge: &mut Edge) {
        self.read();
    }

    fn sample(&mut self, scene: &Scene, tick: u64) {
        if tick.is_multiple_of(scene.every(SAMPLE_HZ)) {
            self.read();
        }
    }

    fn next(&self, scene: &Scene, tick: u64) -> u64 {
        if self.processes.is_empty() { u64::MAX } else { scene.next(SAMPLE_HZ, tick) }
    }

    fn report(&mut self, scene: &Scene, observed: &mut Observed) {
        if self.readings.is_empty() {
            let reason = match (scene.watch.server_port, self.absent.take()) {
                (None, _) => Missing::new("there is no server"),
                (_, Some(reason)) => reason,
                _ => Missing::new("this kernel does not count the open files of a process (Linux 6.2 does)"),
            };
            return open_files::DESCRIPTORS
                .iter()
                .for_each(|metric| observed.absent(metric, None, reason.clone()));
        }
        let column = |of: fn(&Nearest) -> u64| -> Vec<Sample> {
            let sample = |reading: &Nearest| Sample { at_ns: reading.at_ns, value: of(reading) as f64 };
            changes(self.readings.iter().map(sample).collect())
        };
        observed.column(&open_files::OPEN, Subject::Machine, column(|reading| reading.open));
        observed.column(&open_files::LIMIT, Subject::Machine, column(|reading| reading.limit));
    }
}

/// The soft limit in the text of `/proc/PID/limits`; `None` where there is none.
fn limit(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok().filter(|limit| *limit > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::Watch;
    use proptest::prelude::*;
    use tare_machine::Root;

    #[test]
    fn open_files_are_counted_against_the_limit() {
        let watch = Watch { server_port: Some(1), sut_pids: vec![std::process::id()], ..Watch::default() };
        let scene = Scene::new(watch, &Root::live());
        let mut observer = open(&scene);
        let mut edge = Edge { at_ns: 0 };
        observer.prepare(&scene);
        observer.edge(&mut edge);
        let more: Vec<_> = (0..100).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
        observer.edge(&mut edge);
        drop(more);
        let mut observed = Observed::new(0, 1);
        observer.report(&scene, &mut observed);
        let seen = observed.close();
        // Other tests of this process open files, too.
        let last = |metric| seen.last(metric, &Subject::Machine).ok().unwrap();
        assert!(last(&open_files::OPEN) >= 100.0);
        assert!(last(&open_files::LIMIT) >= last(&open_files::OPEN));
    }

    #[test]
    fn without_a_server_nothing_is_read() {
        let scene = Scene::new(Watch::default(), &Root::live());
        let mut observer = open(&scene);
        observer.prepare(&scene);
        assert_eq!(observer.next(&scene, 1), u64::MAX);
        let mut observed = Observed::new(0, 1);
        observer.report(&scene, &mut observed);
        let reason = observed.close().why_absent(&open_files::OPEN, &Subject::Machine);
        assert_eq!(reason.why, "there is no server");
    }

    #[test]
    fn the_soft_limit_counts() {
        let text = "Limit                     Soft Limit           Hard Limit           Units     \n\
                    Max processes             94000                94000                processes \n\
                    Max open files            1024                 524288               files     \n";
        assert_eq!(limit(text), Some(1024));
        assert_eq!(limit("Max open files            unlimited            unlimited            files"), None);
    }

    proptest! {
        #[test]
        fn garbage_is_no_limit(text in "\\PC{0,80}") {
            prop_assert_eq!(limit(&text), None);
        }
    }
}
