//! Hardware events of the SUT's and the generator's threads, where there is a PMU.
//!
//! Each thread has a counter for each group of [`pmu::GROUPS`], so that what the kernel does for it counts and what
//! others do on its CPU does not. With more groups than the PMU has counters the kernel lets them take turns; how
//! long each was on it is read with the counts.

mod source;

use crate::observed::{Observed, refused};
use crate::observer::{Edge, Observer};
use crate::roles::{processes, role_of_thread};
use crate::scene::Scene;
use crate::tape::Tape;
use source::{Counts, Kernel, Source};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use tare_machine::{Root, procs};
use tare_model::Missing;
use tare_model::metric::{Descriptor, Subject};
use tare_model::metrics::pmu;
use tare_model::observation::{Role, Sample};
use tare_sys::perf::{Event, GroupCount};

/// Threads that are counted, at most: each takes a descriptor for every event.
const THREADS_MAX: usize = 128;
/// How often cycles and instructions are read between the edges: a thread that runs is asked on its own CPU.
const SAMPLE_HZ: f64 = 10.0;
/// Threads that are read between the edges, at most.
const SERIES_MAX: usize = 16;
const RESCAN_HZ: f64 = 2.0;

struct Pmu {
    source: Box<dyn Source>,
    /// What this machine can count, cycles and instructions first; or why it cannot.
    groups: Result<Vec<Countable>, Missing>,
    /// What this PMU does not count though it counts others.
    lacking: Vec<(&'static Descriptor, Missing)>,
    /// Every thread that was counted in this window, those that ended included.
    threads: Vec<Thread>,
    /// Why a thread could not be counted, of the last that could not.
    uncounted: Option<Missing>,
    tape: Tape,
}

/// Those events of a group that can be counted here.
struct Countable {
    enabled_ns: &'static Descriptor,
    running_ns: &'static Descriptor,
    events: Vec<(&'static Descriptor, Event)>,
}

impl Countable {
    fn events(&self) -> Vec<Event> {
        self.events.iter().map(|(_, event)| *event).collect()
    }
}

struct Thread {
    tid: u32,
    counts: Vec<Box<dyn Counts>>,
}

pub(crate) fn open(scene: &Scene) -> Box<dyn Observer> {
    Box::new(Pmu::new(Box::new(Kernel), &scene.root))
}

impl Observer for Pmu {
    fn prepare(&mut self, scene: &Scene) {
        self.tape.clear();
        self.uncounted = None;
        if self.groups.is_err() {
            return;
        }
        let present = threads(scene);
        self.threads.retain(|thread| present.contains(&thread.tid));
        self.count(&present);
    }

    fn edge(&mut self, _edge: &mut Edge) {
        let all = 0..self.threads.len();
        all.for_each(|at| self.read(at, usize::MAX));
    }

    fn sample(&mut self, scene: &Scene, tick: u64) {
        if self.groups.is_err() {
            return;
        }
        if tick.is_multiple_of(scene.every(RESCAN_HZ)) {
            self.count(&threads(scene));
        }
        if tick.is_multiple_of(scene.every(SAMPLE_HZ)) {
            (0..self.threads.len().min(SERIES_MAX)).for_each(|at| self.read(at, 1));
        }
    }

    fn next(&self, scene: &Scene, tick: u64) -> u64 {
        match self.groups {
            Ok(_) => scene.next(SAMPLE_HZ, tick).min(scene.next(RESCAN_HZ, tick)),
            Err(_) => u64::MAX,
        }
    }

    fn report(&mut self, _scene: &Scene, observed: &mut Observed) {
        let groups = match &self.groups {
            Ok(groups) => groups,
            Err(reason) => {
                pmu::DESCRIPTORS.iter().for_each(|metric| observed.absent(metric, None, reason.clone()));
                return;
            }
        };
        for (metric, reason) in &self.lacking {
            observed.absent(metric, None, reason.clone());
        }
        if let Some(reason) = self.uncounted.as_ref().filter(|_| self.threads.is_empty()) {
            pmu::DESCRIPTORS.iter().for_each(|metric| observed.absent(metric, None, reason.clone()));
        }
        let mut by_source: BTreeMap<u32, Vec<(u64, GroupCount)>> = BTreeMap::new();
        for reading in self.tape.readings() {
            if let Some(count) = GroupCount::parse(reading.bytes) {
                by_source.entry(reading.source).or_default().push((reading.at_ns, count));
            }
        }
        for (at, thread) in (0u32..).zip(&self.threads) {
            let Some(subject) = observed.subject_of(thread.tid) else { continue };
            for (which, group) in (0u32..).zip(groups) {
                if let Some(readings) = by_source.get(&source_of(at, which)) {
                    report_group(group, readings, &subject, observed);
                }
            }
        }
    }

    fn set_active(&mut self, active: bool) {
        self.threads.iter().flat_map(|thread| &thread.counts).for_each(|counts| counts.enable(active));
    }
}

impl Pmu {
    fn new(source: Box<dyn Source>, root: &Root) -> Pmu {
        let mut lacking = Vec::new();
        let groups = survey(source.as_ref(), root, &mut lacking);
        Pmu { source, groups, lacking, threads: Vec::new(), uncounted: None, tape: Tape::default() }
    }

    /// Counts those that are not counted yet.
    fn count(&mut self, present: &BTreeSet<u32>) {
        let Ok(groups) = &self.groups else { return };
        let known: BTreeSet<u32> = self.threads.iter().map(|thread| thread.tid).collect();
        for &tid in present.difference(&known) {
            if self.threads.len() >= THREADS_MAX {
                self.uncounted = Some(Missing::new(format!("more than {THREADS_MAX} threads")));
                return;
            }
            let opened: io::Result<Vec<_>> =
                groups.iter().map(|group| self.source.open(tid, &group.events())).collect();
            match opened {
                Ok(counts) => {
                    self.threads.push(Thread { tid, counts });
                    let at = self.threads.len() - 1;
                    for (which, counts) in (0u32..).zip(&self.threads[at].counts) {
                        record(&mut self.tape, source_of(at as u32, which), counts.as_ref());
                    }
                }
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) => self.uncounted = Some(refused("counting a thread's hardware events", &error)),
            }
        }
    }

    fn read(&mut self, at: usize, groups_max: usize) {
        let Some(thread) = self.threads.get(at) else { return };
        for (which, counts) in (0u32..).zip(thread.counts.iter().take(groups_max)) {
            record(&mut self.tape, source_of(at as u32, which), counts.as_ref());
        }
    }
}

/// The number on the tape of a thread's group.
fn source_of(thread: u32, group: u32) -> u32 {
    thread * pmu::GROUPS.len() as u32 + group
}

fn record(tape: &mut Tape, source: u32, counts: &dyn Counts) {
    // What a thread counted until it ended can still be read; a counter that cannot be read leaves its thread out,
    // and the accounting says how much of the run was counted.
    let _ = tape.record_with(source, GroupCount::BYTES_MAX, |bytes| counts.read(bytes));
}

/// The threads of the SUT and of the generator.
fn threads(scene: &Scene) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    for (pid, role) in processes(scene) {
        let tids = procs::tasks_of(&scene.root, pid).into_iter();
        found.extend(tids.filter(|tid| matches!(role_of_thread(scene, *tid, role), Role::Sut | Role::Load)));
    }
    found
}

/// Tries every event on the calling thread.
fn survey(
    source: &dyn Source,
    root: &Root,
    lacking: &mut Vec<(&'static Descriptor, Missing)>,
) -> Result<Vec<Countable>, Missing> {
    let mut groups = Vec::new();
    for group in pmu::GROUPS {
        let mut events: Vec<(&Descriptor, Event)> = Vec::new();
        for metric in group.events {
            let Some(event) = source::event(metric) else { continue };
            let together: Vec<Event> = events.iter().map(|(_, event)| *event).chain([event]).collect();
            match source.open(0, &together) {
                Ok(_) => events.push((metric, event)),
                // The right is asked for first, whether or not there is anything to count.
                Err(error) if is_forbidden(&error) => {
                    return Err(if has_pmu(root) { not_permitted() } else { no_pmu(root) });
                }
                Err(error) => lacking.push((metric, uncountable(metric, &error))),
            }
        }
        if !events.is_empty() {
            groups.push(Countable { enabled_ns: group.enabled_ns, running_ns: group.running_ns, events });
        }
    }
    match groups.first().is_some_and(|first| first.enabled_ns.id == pmu::CORE_ENABLED_NS.id) {
        true => Ok(groups),
        false => Err(no_pmu(root)),
    }
}

fn is_forbidden(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}

fn not_permitted() -> Missing {
    Missing::with_remedy(
        "hardware events, the kernel's included, may not be counted",
        "run tare as root, or sysctl kernel.perf_event_paranoid=1",
    )
}

fn uncountable(metric: &Descriptor, error: &io::Error) -> Missing {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::EINVAL | libc::ENODEV) => {
            Missing::new(format!("this CPU does not count {}", metric.id.trim_start_matches("pmu.")))
        }
        Some(libc::ENOSYS) => Missing::new("this kernel has no perf_event_open"),
        _ => refused("a hardware counter", error),
    }
}

/// Whether the kernel lists a PMU of the processor (`cpu`, `cpu_core`, `armv8_pmuv3_0`); where it lists nothing, it may
/// have one.
fn has_pmu(root: &Root) -> bool {
    let devices = root.names("/sys/bus/event_source/devices");
    let is_cpu = |name: &String| name == "cpu" || name.starts_with("cpu_") || name.starts_with("armv");
    devices.map_or(true, |devices| devices.is_empty() || devices.iter().any(is_cpu))
}

fn no_pmu(root: &Root) -> Missing {
    let cpuinfo = root.text("/proc/cpuinfo").unwrap_or_default();
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"));
    match flags.is_some_and(|flags| flags.split_ascii_whitespace().any(|flag| flag == "hypervisor")) {
        true => Missing::with_remedy(
            "this VM exposes no PMU",
            "give the VM a virtual PMU (QEMU: -cpu host,pmu=on), or measure on a machine of metal",
        ),
        false => Missing::new("this kernel exposes no PMU"),
    }
}

/// Cycles and instructions, or what else comes first, keep their readings between the edges.
fn report_group(
    group: &Countable,
    readings: &[(u64, GroupCount)],
    subject: &Subject,
    observed: &mut Observed,
) {
    let mut column = |metric: &'static Descriptor, value: &dyn Fn(&GroupCount) -> Option<u64>| {
        let sample = |(at_ns, count): &(u64, GroupCount)| {
            value(count).map(|value| Sample { at_ns: *at_ns, value: value as f64 })
        };
        observed.column(metric, subject.clone(), readings.iter().filter_map(sample).collect());
    };
    column(group.enabled_ns, &|count| Some(count.enabled_ns));
    column(group.running_ns, &|count| Some(count.running_ns));
    for (at, (metric, _)) in group.events.iter().enumerate() {
        column(metric, &|count| count.values.get(at).copied());
    }
}

#[cfg(test)]
mod tests;
