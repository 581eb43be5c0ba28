use super::*;
use crate::watch::{LoadWatch, Watch};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tare_model::observation::{Observation, Task};

/// A PMU that counts as the test says.
#[derive(Clone, Default)]
struct Fake {
    /// Events that it refuses, with the error.
    refuses: Vec<(Event, i32)>,
    clock: Arc<AtomicU64>,
    /// Threads that were opened, and whether their counters count.
    enabled: Arc<Mutex<BTreeMap<u32, bool>>>,
}

struct FakeCounts {
    fake: Fake,
    tid: u32,
    events: usize,
}

impl Source for Fake {
    fn open(&self, tid: u32, events: &[Event]) -> io::Result<Box<dyn Counts>> {
        let refused = self.refuses.iter().find(|(event, _)| events.contains(event));
        if let Some((_, code)) = refused {
            return Err(io::Error::from_raw_os_error(*code));
        }
        self.enabled.lock().unwrap().insert(tid, true);
        Ok(Box::new(FakeCounts { fake: self.clone(), tid, events: events.len() }))
    }
}

impl Counts for FakeCounts {
    /// A thread runs all the time; half of it each group is on the PMU; the nth event happens n times a nanosecond.
    fn read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        let now = self.fake.clock.load(Ordering::Relaxed);
        let counts = (1..=self.events as u64).map(|nth| now / 2 * nth);
        let words = [self.events as u64, now, now / 2].into_iter().chain(counts);
        let raw: Vec<u8> = words.flat_map(u64::to_ne_bytes).collect();
        bytes[..raw.len()].copy_from_slice(&raw);
        Ok(raw.len())
    }

    fn enable(&self, on: bool) {
        self.fake.enabled.lock().unwrap().insert(self.tid, on);
    }
}

/// A window on this process, which is the SUT.
fn window(fake: Fake) -> (Observation, Pmu) {
    let clock = Arc::clone(&fake.clock);
    let watch = Watch {
        server_port: None,
        sut_pids: vec![std::process::id()],
        beside_pids: Vec::new(),
        load: LoadWatch::None,
        sut_cpus: vec![0],
        load_cpus: vec![],
        observer_cpus: vec![],
        sample_hz: 20.0,
        clock: false,
        stacks: None,
        stacks_alone: false,
        trace: false,
    };
    let scene = Scene::new(watch, &Root::live());
    let mut pmu = Pmu::new(Box::new(fake), &scene.root);
    let mut edge = Edge { at_ns: 0 };
    pmu.prepare(&scene);
    pmu.edge(&mut edge);
    for tick in 1..=4 {
        clock.fetch_add(1_000_000, Ordering::Relaxed);
        pmu.sample(&scene, tick);
    }
    pmu.edge(&mut edge);
    let mut observed = Observed::new(0, 1_000_000_000);
    for thread in &pmu.threads {
        observed.task(Task {
            pid: std::process::id(),
            tid: thread.tid,
            name: "sut".into(),
            role: Role::Sut,
            allowed_cpus: tare_model::Reading::missing("not asked"),
            present_at_begin: true,
            present_at_end: true,
        });
    }
    pmu.report(&scene, &mut observed);
    (observed.close(), pmu)
}

#[test]
fn counts_and_their_times_reach_the_record() {
    let (seen, pmu) = window(Fake::default());
    assert!(!pmu.threads.is_empty());
    let delta = |metric| seen.delta(metric, &Subject::Task(0)).ok().unwrap();
    assert_eq!(delta(&pmu::CORE_ENABLED_NS), 4e6);
    assert_eq!(delta(&pmu::CORE_RUNNING_NS), 2e6);
    assert_eq!((delta(&pmu::CYCLES), delta(&pmu::INSTRUCTIONS)), (2e6, 4e6));
    assert_eq!((delta(&pmu::ITLB_LOADS), delta(&pmu::ITLB_MISSES)), (2e6, 4e6));
    let samples = |metric| seen.column(metric, &Subject::Task(0)).unwrap().samples.len();
    assert!(samples(&pmu::CYCLES) > 3, "cycles are a series");
    assert_eq!(samples(&pmu::ITLB_MISSES), 3, "as first seen, and both edges");
    assert_eq!(seen.absences, vec![]);
}

#[test]
fn what_a_cpu_does_not_count_is_named() {
    let refuses = vec![(Event::STALLED_FRONTEND, libc::ENOENT), (Event::STALLED_BACKEND, libc::EOPNOTSUPP)];
    let (seen, _) = window(Fake { refuses, ..Fake::default() });
    let reason = seen.why_absent(&pmu::STALLED_BACKEND, &Subject::Task(0));
    assert_eq!(reason.why, "this CPU does not count stalled_backend");
    assert!(seen.delta(&pmu::CYCLES, &Subject::Task(0)).value().is_some());
    assert!(seen.delta(&pmu::BRANCH_MISSES, &Subject::Task(0)).value().is_some());
}

#[test]
fn without_a_pmu_or_the_right_everything_is_missing_with_a_remedy() {
    let forbidden = Fake { refuses: vec![(Event::CYCLES, libc::EACCES)], ..Fake::default() };
    let dir = tempfile::tempdir().unwrap();
    let device = |name: &str| {
        std::fs::create_dir_all(dir.path().join("sys/bus/event_source/devices").join(name)).unwrap();
        survey(&forbidden, &Root::at(dir.path()), &mut Vec::new()).err().unwrap()
    };
    assert!(device("software").why.contains("exposes no PMU"));
    assert!(device("cpu_core").remedy.contains("perf_event_paranoid=1"));
    let none = [Event::CYCLES, Event::INSTRUCTIONS].map(|event| (event, libc::ENOENT)).to_vec();
    let (seen, pmu) = window(Fake { refuses: none, ..Fake::default() });
    assert!(seen.why_absent(&pmu::CYCLES, &Subject::Machine).why.contains("exposes no PMU"));
    assert!(pmu.threads.is_empty() && seen.columns.is_empty());
}

#[test]
fn nothing_is_counted_while_nobody_watches() {
    let fake = Fake::default();
    let (_, mut pmu) = window(fake.clone());
    pmu.set_active(false);
    let enabled = fake.enabled.lock().unwrap();
    let ours = enabled.iter().filter(|(tid, _)| **tid != 0);
    assert!(ours.clone().count() > 0 && ours.clone().all(|(_, on)| !on), "{enabled:?}");
}

/// Here and on any other machine: counted, or said why not.
#[test]
fn this_machine_counts_or_says_why_not() {
    let mut lacking = Vec::new();
    let has_device = std::fs::read_dir("/sys/bus/event_source/devices")
        .map(|devices| devices.flatten().any(|one| one.file_name().to_string_lossy().starts_with("cpu")))
        .unwrap_or(false);
    match survey(&Kernel, &Root::live(), &mut lacking) {
        Ok(groups) => assert!(has_device && !groups.is_empty()),
        Err(missing) if missing == not_permitted() => {}
        Err(missing) => {
            assert!(!has_device, "{missing}");
            assert!(missing.why.contains("exposes no PMU"), "{missing}");
        }
    }
}
