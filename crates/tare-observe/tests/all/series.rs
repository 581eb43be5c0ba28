//! Series on a made-up machine and on this one: each is there, or it is said why not.

use crate::support::alone;
use std::path::Path;
use std::time::{Duration, Instant};
use tare_machine::Root;
use tare_model::metric::{Descriptor, Subject};
use tare_model::metrics::{core_latency, energy, groups, memory, network, pmu, pressure, softirqs, thermal};
use tare_model::observation::Observation;
use tare_observe::{LoadWatch, Observers, Watch};

fn watch(sut: u32) -> Watch {
    Watch {
        server_port: None,
        sut_pids: vec![sut],
        beside_pids: Vec::new(),
        load: LoadWatch::None,
        sut_cpus: vec![0],
        load_cpus: vec![1],
        observer_cpus: vec![],
        sample_hz: 20.0,
        clock: false,
        stacks: None,
        stacks_alone: false,
        trace: false,
    }
}

/// A window in which `during` is done, and then as long as `enough` says.
fn window(root: &Root, sut: u32, during: impl Fn(), enough: Duration) -> Observation {
    let observers = Observers::start(watch(sut), root).unwrap();
    observers.begin();
    during();
    let end = Instant::now() + enough;
    while Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
    }
    observers.end()
}

fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
    let dir = tempfile::tempdir().unwrap();
    files.iter().for_each(|(path, text)| write(dir.path(), path, text));
    let root = Root::at(dir.path());
    (dir, root)
}

fn write(dir: &Path, path: &str, text: &str) {
    let path = dir.join(path.trim_start_matches('/'));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

const PRESSURE: &str = "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000\nfull avg10=0.00 total=10\n";

#[test]
fn a_machine_with_everything() {
    let _alone = alone();
    let (dir, root) = machine(&[
        ("/proc/7/stat", "7 (server) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100 0 0\n"),
        ("/proc/7/task/7/stat", "7 (server) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100 0 0\n"),
        ("/proc/7/task/7/schedstat", "1000 0 5\n"),
        ("/proc/7/statm", "900 300 20 1 0 70 0\n"),
        ("/proc/7/cgroup", "0::/web\n"),
        ("/proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"),
        ("/proc/pressure/cpu", PRESSURE),
        ("/proc/pressure/memory", PRESSURE),
        ("/sys/fs/cgroup/web/cpu.pressure", PRESSURE),
        ("/proc/softirqs", "  CPU0 CPU1\n NET_RX: 5 6\n TIMER: 1 2\n"),
        ("/sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n"),
        ("/sys/class/thermal/thermal_zone0/temp", "61000\n"),
        ("/sys/class/hwmon/hwmon3/name", "k10temp\n"),
        ("/sys/class/hwmon/hwmon3/temp1_input", "55500\n"),
        ("/sys/class/powercap/intel-rapl:0/name", "package-0\n"),
        ("/sys/class/powercap/intel-rapl:0/energy_uj", "5000000\n"),
        ("/sys/class/powercap/intel-rapl:0/max_energy_range_uj", "262143328850\n"),
    ]);
    let during = || {
        write(dir.path(), "/proc/pressure/cpu", &PRESSURE.replace("1000", "3000"));
        write(dir.path(), "/sys/class/powercap/intel-rapl:0/energy_uj", "9000000\n");
    };
    let seen = window(&root, 7, during, Duration::from_millis(250));
    let device = |name: &str| Subject::Device(name.into());
    let delta = |metric: &'static Descriptor, subject: &Subject| seen.delta(metric, subject).ok().unwrap();
    let last = |metric: &'static Descriptor, subject: &Subject| seen.last(metric, subject).ok().unwrap();
    assert_eq!(delta(&pressure::CPU_SOME_NS, &Subject::Machine), 2e6);
    assert_eq!(delta(&pressure::CPU_SOME_NS, &Subject::Group("/web".into())), 0.0);
    assert_eq!(delta(&energy::ENERGY_UJ, &device("intel-rapl:0 package-0")), 4e6);
    assert_eq!(last(&thermal::TEMPERATURE_C, &device("thermal_zone0 x86_pkg_temp")), 61.0);
    assert_eq!(last(&thermal::TEMPERATURE_C, &device("hwmon3 k10temp")), 55.5);
    assert_eq!(last(&softirqs::NET_RX, &Subject::Cpu(1)), 6.0);
    assert_eq!(last(&memory::RESIDENT_BYTES, &Subject::Task(0)) as u64 % 300, 0);
    let why = seen.why_absent(&pressure::IO_SOME_NS, &Subject::Machine).why;
    assert_eq!(why, "/proc/pressure/io is not there");
    assert_eq!(seen.why_absent(&softirqs::RCU, &Subject::Cpu(0)).why, "/proc/softirqs does not tell it");
}

#[test]
fn a_machine_with_nothing_says_so_of_each() {
    let _alone = alone();
    let (_dir, root) = machine(&[("/proc/7/stat", "7 (server) S 1 7 7 0 -1\n")]);
    let seen = window(&root, 7, || {}, Duration::ZERO);
    for metric in [
        &pressure::CPU_SOME_NS,
        &memory::RESIDENT_BYTES,
        &thermal::TEMPERATURE_C,
        &energy::ENERGY_UJ,
        &network::LISTEN_DROPS,
        &groups::THROTTLED_NS,
        &pmu::CYCLES,
    ] {
        let reason = seen.why_absent(metric, &Subject::Machine);
        assert!(!reason.why.contains("was not observed"), "{}: {reason}", metric.id);
    }
}

/// On this machine, whatever it is: no series without samples between the edges, none that is silent.
#[test]
fn this_machine_has_series_or_reasons() {
    let _alone = alone();
    let seen = window(&Root::live(), std::process::id(), || {}, Duration::from_millis(600));
    let series = [
        (&pressure::CPU_SOME_NS, Subject::Machine, 3),
        (&pressure::IO_FULL_NS, Subject::Machine, 3),
        (&softirqs::TIMER, Subject::Cpu(0), 2),
        (&network::LISTEN_DROPS, Subject::Machine, 2),
        (&network::SOFTNET_SQUEEZES, Subject::Cpu(0), 2),
    ];
    for (metric, subject, samples_min) in series {
        match seen.column(metric, &subject) {
            Some(column) => assert!(column.samples.len() >= samples_min, "{}", metric.id),
            None => {
                let reason = seen.why_absent(metric, &subject);
                assert!(!reason.why.contains("was not observed"), "{}: {reason}", metric.id);
            }
        }
    }
    // Not the first thread of this process: where thread ids began anew, its main thread's is not the lowest.
    let own = seen.tasks.iter().position(|task| task.tid == std::process::id()).unwrap();
    let resident = seen.last(&memory::RESIDENT_BYTES, &Subject::Task(own as u32)).ok().unwrap();
    assert!((1e5..1e11).contains(&resident), "{resident}");
}

#[test]
fn how_far_the_generator_is_is_looked_at_on_both_sides_of_a_window() {
    let _alone = alone();
    let allowed = tare_sys::affinity::get(0).unwrap();
    let [one, .., other] = allowed[..] else { return };
    let found = |load: LoadWatch, load_cpus: Vec<u32>| {
        let watch = Watch { load, sut_cpus: vec![one], load_cpus, ..watch(std::process::id()) };
        let observers = Observers::start(watch, &Root::live()).unwrap();
        observers.begin();
        observers.end()
    };
    let threads = || LoadWatch::Threads(vec![std::process::id()]);
    let observation = found(threads(), vec![other]);
    let column = observation.column(&core_latency::TRANSFER_NS, &Subject::Cpu(one)).unwrap();
    // Where others have the CPUs a measurement may come to nothing; none is taken inside the window.
    let outside = |at_ns: u64| at_ns <= observation.begin_ns || observation.end_ns <= at_ns;
    let samples = &column.samples;
    assert!(
        (1..=2).contains(&samples.len()) && samples.iter().all(|sample| outside(sample.at_ns)),
        "{column:?}"
    );
    assert!(samples.iter().all(|sample| (1.0..100_000.0).contains(&sample.value)), "{column:?}");
    for nowhere in [found(threads(), vec![one]), found(LoadWatch::None, vec![other])] {
        assert!(nowhere.column(&core_latency::TRANSFER_NS, &Subject::Cpu(one)).is_none());
        assert!(
            nowhere.absences.iter().any(|absence| absence.metric == core_latency::TRANSFER_NS.id),
            "{nowhere:?}"
        );
    }
}
