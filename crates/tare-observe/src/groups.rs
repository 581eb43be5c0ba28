//! The SUT's control group and its ancestors: usage, throttling, quota.

use crate::observed::{Observed, refused};
use crate::observer::{Edge, Observer};
use crate::scene::Scene;
use crate::tape::Tape;
use std::fs::File;
use std::path::Path;
use tare_machine::cgroup::{self, Level, Version};
use tare_model::Missing;
use tare_model::metric::{Descriptor, Subject};
use tare_model::metrics::groups;
use tare_model::observation::Sample;

/// Samples per second between the edges: fine enough to set throttled time beside each 100 ms of latencies.
const SAMPLE_HZ: f64 = 20.0;
const FILE_BYTES_MAX: usize = 2048;
/// Processes of the SUT whose groups are looked up, and groups that are not common to all of them, at most.
const PROCESSES_MAX: usize = 256;
const OWN_MAX: usize = 8;

/// The files of one level, in the order of their source numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    Usage,
    Stat,
    StatLocal,
}

const WHICH: [Which; 3] = [Which::Usage, Which::Stat, Which::StatLocal];

struct Groups {
    levels: Result<Vec<Level>, Missing>,
    is_own: bool,
    /// Of every level, one per [`WHICH`].
    files: Vec<Result<File, Missing>>,
    tape: Tape,
}

pub(crate) fn open(_scene: &Scene) -> Box<dyn Observer> {
    let levels = Err(Missing::new("no window was opened"));
    Box::new(Groups { levels, is_own: false, files: Vec::new(), tape: Tape::default() })
}

impl Groups {
    fn find(&mut self, scene: &Scene) {
        self.levels = levels(scene);
        let levels = self.levels.as_deref().unwrap_or_default();
        self.files =
            levels.iter().flat_map(|level| WHICH.map(|which| open_file(scene, level, which))).collect();
    }

    fn read(&mut self) {
        for (source, file) in (0u32..).zip(&mut self.files) {
            let outcome = file.as_ref().ok().map(|file| self.tape.record(source, file, FILE_BYTES_MAX));
            if let Some(Err(error)) = outcome {
                *file = Err(refused("the control group's file", &error));
            }
        }
    }
}

impl Observer for Groups {
    fn prepare(&mut self, scene: &Scene) {
        self.tape.clear();
        self.find(scene);
        let pids = scene.family(&scene.watch.sut_pids);
        let own = self.levels.as_deref().unwrap_or_default().first();
        self.is_own = own.is_some_and(|own| cgroup::holds_exactly(&scene.root, own, &pids) == Ok(true));
    }

    /// A group that is counted from here on is nobody's own: what ran there before is missing.
    fn meet(&mut self, scene: &Scene) {
        self.tape.clear();
        self.find(scene);
        self.is_own = false;
        self.read();
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
        scene.next(SAMPLE_HZ, tick)
    }

    fn report(&mut self, scene: &Scene, observed: &mut Observed) {
        let levels = match &self.levels {
            Ok(levels) => levels,
            Err(reason) => {
                for metric in groups::DESCRIPTORS {
                    observed.absent(metric, None, reason.clone());
                }
                return;
            }
        };
        observed.sut_groups(levels.iter().map(|level| level.path.clone()).collect(), self.is_own);
        for (at, level) in (0u32..).zip(levels) {
            let subject = || Subject::Group(level.path.clone());
            for counter in counters(level.version) {
                let source = at * WHICH.len() as u32 + counter.which as u32;
                let samples = self.samples(source, counter);
                if samples.is_empty() {
                    let file = self.files.get(source as usize).and_then(|file| file.as_ref().err().cloned());
                    let reason = file.unwrap_or_else(|| {
                        Missing::new(format!("{} of {} does not tell", counter.key, level.path))
                    });
                    // Where a parent's part is not known, the own part is still the best there is.
                    if counter.which == Which::StatLocal && self.report_own_throttling(at, level, observed) {
                        continue;
                    }
                    observed.absent(counter.metric, Some(subject()), reason);
                }
                observed.column(counter.metric, subject(), samples);
            }
            report_quota(scene, level, observed);
        }
    }
}

impl Groups {
    fn samples(&self, source: u32, counter: &Counter) -> Vec<Sample> {
        let readings = self.tape.readings().filter(|reading| reading.source == source);
        let sample = |text: &str, at_ns| {
            let value = value_of(text, counter.key)?.checked_mul(counter.unit_ns)?;
            Some(Sample { at_ns, value: value as f64 })
        };
        readings.filter_map(|reading| sample(reading.text(), reading.at_ns)).collect()
    }

    /// Kernels before 6.5 have no `cpu.stat.local`: only the time throttled by the group's own quota is known.
    fn report_own_throttling(&self, at: u32, level: &Level, observed: &mut Observed) -> bool {
        let local = counters(level.version).iter().find(|counter| counter.which == Which::StatLocal);
        let Some(local) = local else { return false };
        let samples = self.samples(at * WHICH.len() as u32 + Which::Stat as u32, local);
        let found = !samples.is_empty();
        observed.column(local.metric, Subject::Group(level.path.clone()), samples);
        found
    }
}

/// A number in one of the files.
struct Counter {
    metric: &'static Descriptor,
    which: Which,
    /// The name before the number; empty for a file that holds nothing else.
    key: &'static str,
    /// What one of it is worth: nanoseconds, or 1 for a count.
    unit_ns: u64,
}

fn counters(version: Version) -> &'static [Counter] {
    static V1: [Counter; 4] = [
        Counter { metric: &groups::USAGE_NS, which: Which::Usage, key: "", unit_ns: 1 },
        Counter { metric: &groups::THROTTLED_NS, which: Which::StatLocal, key: "throttled_time", unit_ns: 1 },
        Counter { metric: &groups::PERIODS, which: Which::Stat, key: "nr_periods", unit_ns: 1 },
        Counter { metric: &groups::THROTTLED_PERIODS, which: Which::Stat, key: "nr_throttled", unit_ns: 1 },
    ];
    static V2: [Counter; 4] = [
        Counter { metric: &groups::USAGE_NS, which: Which::Usage, key: "usage_usec", unit_ns: 1000 },
        Counter {
            metric: &groups::THROTTLED_NS,
            which: Which::StatLocal,
            key: "throttled_usec",
            unit_ns: 1000,
        },
        Counter { metric: &groups::PERIODS, which: Which::Stat, key: "nr_periods", unit_ns: 1 },
        Counter { metric: &groups::THROTTLED_PERIODS, which: Which::Stat, key: "nr_throttled", unit_ns: 1 },
    ];
    match version {
        Version::V1 => &V1,
        Version::V2 => &V2,
    }
}

/// The number in a file of one number, or the one behind `key` in a file of names and numbers.
fn value_of(text: &str, key: &str) -> Option<u64> {
    if key.is_empty() {
        return text.trim().parse().ok();
    }
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))?;
    line.trim().parse().ok()
}

fn open_file(scene: &Scene, level: &Level, which: Which) -> Result<File, Missing> {
    let path = match which {
        Which::Usage => level.usage.clone()?,
        Which::Stat => level.stat(),
        Which::StatLocal => level.stat_local(),
    };
    let open = |path: &Path| {
        File::open(scene.root.path(path)).map_err(|error| refused(&path.to_string_lossy(), &error))
    };
    open(&path)
}

/// The groups that all processes of the SUT are in, innermost first, then those that some of them have for themselves: a quota
/// may stand on any.
fn levels(scene: &Scene) -> Result<Vec<Level>, Missing> {
    let (first, others) =
        scene.watch.sut_pids.split_first().ok_or_else(|| Missing::new("the SUT is not seen from here"))?;
    let mut levels = cgroup::of(&scene.root, *first)?;
    let mut innermost: Vec<Level> = levels.first().cloned().into_iter().collect();
    let family = scene.family(&scene.watch.sut_pids);
    for &pid in others.iter().chain(&family).take(PROCESSES_MAX) {
        // One that has ended meanwhile says nothing about the rest.
        let Ok(theirs) = cgroup::of(&scene.root, pid) else { continue };
        levels.retain(|level| theirs.iter().any(|their| their.path == level.path));
        if let Some(own) = theirs.into_iter().next().filter(|own| !innermost.contains(own)) {
            innermost.push(own);
        }
    }
    innermost.retain(|own| levels.iter().all(|level| level.path != own.path));
    levels.extend(innermost.into_iter().take(OWN_MAX));
    Ok(levels)
}

fn report_quota(scene: &Scene, level: &Level, observed: &mut Observed) {
    let subject = Subject::Group(level.path.clone());
    let sample = |value: u64| vec![Sample { at_ns: observed.end_ns(), value: value as f64 }];
    match cgroup::quota(&scene.root, level) {
        Ok(quota) => {
            let period = sample(quota.period_ns);
            match quota.quota_ns.map(sample) {
                Some(limit) => observed.column(&groups::QUOTA_NS, subject.clone(), limit),
                None => observed.absent(&groups::QUOTA_NS, Some(subject.clone()), Missing::new("unlimited")),
            }
            observed.column(&groups::PERIOD_NS, subject, period);
        }
        Err(reason) => {
            observed.absent(&groups::QUOTA_NS, Some(subject.clone()), reason.clone());
            observed.absent(&groups::PERIOD_NS, Some(subject), reason);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_stand_alone_or_behind_their_names() {
        assert_eq!(value_of("123\n", ""), Some(123));
        let text = "nr_periods 7\nnr_throttled 3\nthrottled_time 99\n";
        assert_eq!(value_of(text, "nr_throttled"), Some(3));
        assert_eq!(value_of(text, "nr_"), None);
        assert_eq!(value_of(text, "usage_usec"), None);
    }

    #[test]
    fn groups_of_some_of_the_processes_are_watched_beside_those_of_all() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
        for (pid, parent, group) in [(10, 1, "/web"), (11, 10, "/web/worker"), (12, 10, "/batch")] {
            put(&format!("proc/{pid}/stat"), &format!("{pid} (web) S {parent}{}\n", " 1".repeat(48)));
            put(&format!("proc/{pid}/cgroup"), &format!("0::{group}\n"));
        }
        let watch = crate::Watch { sut_pids: vec![10], ..crate::watch::Watch::default() };
        let scene = Scene::new(watch, &tare_machine::Root::at(dir.path()));
        let paths: Vec<String> = levels(&scene).unwrap().into_iter().map(|level| level.path).collect();
        assert_eq!(paths, ["/", "/web", "/web/worker", "/batch"]);
    }

    proptest! {
        #[test]
        fn garbage_is_no_number(text in "[a-z _\n]{0,60}") {
            prop_assert_eq!(value_of(&text, ""), None);
            prop_assert_eq!(value_of(&text, "nr_periods"), None);
        }
    }
}
