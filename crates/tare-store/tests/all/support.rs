//! Records as tests need them.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use tare_model::ended::Ended;
use tare_model::latency::Latencies;
use tare_model::machine::{CpuFacts, MachineFacts, Regime};
use tare_model::metric::{Descriptor, Kind, Subject, Unit};
use tare_model::observation::{Absence, Column, Observation, Role, Sample, Task};
use tare_model::plan::{Generator, HttpWorkload, Level, Plan, Purpose, Sut, Transport, Workload};
use tare_model::schedule::{Downstream, Schedule, ScheduleSource};
use tare_model::stacks::{Folded, Folder, Frame, FrameKind, Module};
use tare_model::trial::{ErrorKind, HttpDetail, HttpSample, Measure, SeriesSlice, Trial};
use tare_model::{Missing, Reading, Record, metrics};
use tare_store::Writer;

pub fn machine() -> MachineFacts {
    MachineFacts {
        kernel: "6.1.0".into(),
        cpu_model: Reading::Measured("Some CPU @ 2.9 GHz".into()),
        cpus: vec![CpuFacts {
            cpu: 0,
            package: Reading::Measured(0),
            core: Reading::Measured(0),
            node: Reading::missing("no NUMA"),
            siblings: Reading::Measured(vec![0]),
        }],
        memory_bytes: Reading::Measured(1 << 34),
        tick_hz: Reading::Measured(250),
        base_slice_ns: Reading::Missing(Missing::with_remedy("no debugfs", "mount it")),
        regime: Regime {
            irq_time_accounting: Reading::Measured(false),
            paravirt_time_accounting: Reading::Measured(false),
            cpu_accounting: Reading::Measured("tick".into()),
            cgroup: Reading::Measured("v2".into()),
        },
        virtualization: Reading::Measured("kvm".into()),
        clocksource: Reading::Measured("tsc".into()),
        governor: Reading::missing("no cpufreq"),
        pmu: Reading::Measured(false),
        boot_id: Reading::Measured("b".into()),
    }
}

pub fn plan() -> Plan {
    let level = Level {
        purpose: Purpose::Asked,
        connections: 64,
        rate_hz: Some(0.1 + 0.2),
        pipeline: 1,
        trial_ns: 2_000_000_000,
        warmup_ns: 0,
        trials: 3,
        arms: 1,
        stage: None,
    };
    Plan {
        argv: vec!["tare".into(), "run".into(), "'; --".into()],
        started_unix_s: 1_800_000_000,
        workload: Workload::Http(HttpWorkload {
            url: Some("http://127.0.0.1:8080/ü".into()),
            sut: Sut::Attached { pids: vec![11, 12] },
            generator: Generator::Own { threads: 1 },
            transport: Transport::Loopback,
            levels: vec![level],
            seed: None,
            tried_layouts: Vec::new(),
            reference: None,
            profile: None,
        }),
        sut_cpus: vec![0],
        load_cpus: vec![1],
        ref_clock_hz: None,
        stopping: None,
        bounds: tare_model::ceiling::KnownBounds::default(),
    }
}

pub fn trial(seq: u32, samples: u64) -> Trial {
    let mut latency = Latencies::new();
    (0..samples).for_each(|at| latency.record(at * 9_173));
    let sample = HttpSample {
        elapsed_ns: 2_000_000_000,
        requests: Reading::Measured(200_000),
        errors: BTreeMap::from([(ErrorKind::Status, 3)]),
        latency: Reading::Measured(latency),
        printed_quantiles_ns: vec![(0.9, 12)],
        bytes_in: Reading::missing("not counted"),
        in_flight: Reading::Measured(64),
        connections: Reading::Measured(64),
        scheduled: None,
        lateness: None,
        slices: (0..samples).map(|at| (at * 100_000_000, at * 7)).collect(),
        detail: None,
    };
    Trial {
        seq,
        level: 0,
        sample: Measure::Http(sample),
        observation: observation(1, 1, samples),
        report: None,
    }
}

pub fn record(trials: u32, samples: u64) -> Record {
    let trials = (0..trials).map(|seq| trial(seq, samples)).collect();
    let notice =
        |id: &str| tare_model::outcome::Warning { id: id.into(), text: "text".into(), hint: "hint".into() };
    Record {
        machine: machine(),
        plan: plan(),
        trials,
        profile: Vec::new(),
        notices: vec![notice("a"), notice("b")],
        identity: None,
        intervention: None,
    }
}

/// A trial with stacks, like those of any profile.
pub fn trial_with_stacks(seq: u32) -> Trial {
    let mut folder = Folder::default();
    let mut on_cpu = Folded::new(Some(999.0));
    on_cpu.lost = 3;
    let module = folder.module(Module { path: "/usr/sbin/nginx".into(), build_id: Some("7442".into()) });
    let thread = folder.frame(Frame::mark("nginx"));
    let outer = folder.frame(Frame { symbol: "main".into(), module: Some(module), kind: FrameKind::User });
    for number in 0..50 {
        let symbol = format!("sys_{number}<\"ü\">");
        let inner = folder.frame(Frame { symbol, module: None, kind: FrameKind::Kernel });
        on_cpu.add(Role::Sut, thread, vec![outer, inner], u64::from(number * seq + 1));
    }
    let why = Missing::with_remedy("kernel symbols are hidden", "run tare as root");
    let stacks = folder.close(Reading::Measured(on_cpu), Reading::missing("not asked for"), vec![why]);
    let mut trial = trial(seq, 10);
    trial.observation.stacks = Some(Box::new(stacks));
    trial
}

/// Sixteen busy threads of a SUT, four of a generator, on 16 CPUs, every metric there is on every one of them; looked at, and
/// with so many slices of a tenth of a second.
pub fn busy_trial(samples: u64, slices: u64) -> Trial {
    let mut random = Random(11);
    let mut slice = |at: u64| SeriesSlice {
        end_ns: 5 + at * 100_000_000,
        requests: 90_000 + random.below(20_000),
        p50_ns: Some(300_000 + random.below(64) * 4096),
        p99_ns: Some(900_000 + random.below(64) * 65_536),
    };
    let series: Vec<SeriesSlice> = (1..=slices).map(&mut slice).collect();
    let mut trial = Trial { observation: observation(20, 16, samples), ..trial(0, 600) };
    trial.observation.schedule = Some(Box::new(looked_at()));
    if let Measure::Http(http) = &mut trial.sample {
        http.slices = series.iter().map(|slice| (slice.end_ns, slice.requests)).collect();
        http.detail = Some(Box::new(HttpDetail { series, ..HttpDetail::default() }));
    }
    trial
}

/// What looks tell beside their counts: with as many other servers as are kept.
fn looked_at() -> Schedule {
    let downstream = |at: u64| Downstream { peer: format!("10.0.0.{at}:5432"), ns: 0, count: 500 * (at + 1) };
    Schedule {
        source: ScheduleSource::Samples,
        not_traced: Some(Missing::with_remedy("switches were not traced", "add --trace")),
        events_lost: 0,
        events: 0,
        threads: Vec::new(),
        held: Vec::new(),
        at_once: Vec::new(),
        locks: Vec::new(),
        kernel_locks: Vec::new(),
        locks_not_traced: None,
        downstream: (0..64).map(downstream).collect(),
    }
}

pub fn write(path: &Path, record: &Record) {
    let mut writer = Writer::create(path, &record.machine, &record.plan).unwrap();
    record.notices.iter().for_each(|notice| writer.notice(notice).unwrap());
    record.trials.iter().for_each(|trial| writer.append(trial).unwrap());
    record.profile.iter().for_each(|window| writer.profiled(window).unwrap());
    writer.finish().unwrap();
}

/// All metrics of all threads and CPUs, stamped and grown as a live system's are.
fn observation(tasks: u32, cpus: u32, samples: u64) -> Observation {
    let mut random = Random(7);
    let mut columns = Vec::new();
    let threads = (0..tasks).map(Subject::Task).flat_map(|subject| {
        [metrics::tasks::DESCRIPTORS, metrics::pmu::DESCRIPTORS].map(|metrics| (subject.clone(), metrics))
    });
    let processors = (0..cpus).map(Subject::Cpu).flat_map(|subject| {
        let network =
            [metrics::cpus::DESCRIPTORS, metrics::softirqs::DESCRIPTORS, metrics::network::DESCRIPTORS];
        network.map(|metrics| (subject.clone(), metrics))
    });
    let group = Subject::Group("/a".into());
    let others = [
        (group.clone(), metrics::groups::DESCRIPTORS),
        (group, metrics::pressure::DESCRIPTORS),
        (Subject::Machine, metrics::pressure::DESCRIPTORS),
        (Subject::Machine, metrics::network::DESCRIPTORS),
        (Subject::Task(0), metrics::memory::DESCRIPTORS),
        (Subject::Device("package-0".into()), metrics::energy::DESCRIPTORS),
        (Subject::Device("thermal_zone0".into()), metrics::thermal::DESCRIPTORS),
    ];
    // Each thread's files are read one by one; a file about all CPUs is read once for them all.
    let mut axes: HashMap<(Subject, &str), Vec<u64>> = HashMap::new();
    for (subject, descriptors) in threads.chain(processors).chain(others) {
        for descriptor in descriptors {
            // A process's counters are kept with its main thread.
            if descriptor.id.starts_with("tasks.process_") && subject != Subject::Task(0) {
                continue;
            }
            let file = descriptor.source.split([' ', ';']).find(|word| word.starts_with('/')).unwrap_or("");
            let reader = match subject {
                Subject::Cpu(_) => Subject::Machine,
                _ => subject.clone(),
            };
            let stamps = axes.entry((reader, file)).or_insert_with(|| {
                // 50 ms apart, late by up to 200 µs.
                (0..samples).map(|at| at * 50_000_000 + random.below(200_000)).collect()
            });
            let mut value = 1e12;
            // As often as its observer reads it, or seldom enough to be an edge.
            let step = step(descriptor);
            let stamps = stamps.iter().step_by(step);
            let samples = stamps.map(|&at_ns| {
                value += (0..step.min(4)).map(|_| growth(descriptor, &mut random)).sum::<f64>();
                Sample { at_ns, value }
            });
            let samples = samples.collect();
            columns.push(Column { metric: descriptor.id.into(), subject: subject.clone(), samples });
        }
    }
    columns.push(Column {
        metric: metrics::clock::EFFECTIVE_HZ.id.into(),
        subject: Subject::Cpu(0),
        samples: vec![Sample { at_ns: 1, value: 2.9e9 + 0.1 }, Sample { at_ns: u64::MAX, value: -0.0 }],
    });
    let task = |tid| Task {
        pid: 11,
        tid,
        name: "a \"thread\"".into(),
        role: Role::Sut,
        allowed_cpus: Reading::Measured(vec![0, 1]),
        present_at_begin: true,
        present_at_end: false,
    };
    Observation {
        begin_ns: 5,
        end_ns: 2_000_000_005,
        idle: Vec::new(),
        tasks: (0..tasks).map(task).collect(),
        sut_groups: vec!["/a".into(), "/".into()],
        sut_group_is_own: true,
        columns,
        absences: vec![Absence {
            metric: metrics::groups::QUOTA_NS.id.into(),
            subject: Some(Subject::Group("/a".into())),
            reason: Missing::new("no quota"),
        }],
        stacks: None,
        downstream: Vec::new(),
        schedule: None,
        ended: Some(vec![Ended {
            name: "cc1".into(),
            role: Role::Sut,
            count: 3,
            run_ns: 7,
            wait_ns: 5,
            life_ns: 20,
            user_ns: 4,
            system_ns: 2,
        }]),
    }
}

/// Every how many samples of 50 ms a metric is read: the rates of the observers.
fn step(descriptor: &Descriptor) -> usize {
    let is_core = ["pmu.cycles", "pmu.instructions", "pmu.core_enabled_ns", "pmu.core_running_ns"];
    match descriptor.id.split('.').next().unwrap_or_default() {
        "pmu" if !is_core.contains(&descriptor.id) => 1000,
        "pmu" | "pressure" | "softirqs" | "network" | "energy" | "memory" => 2,
        "thermal" => 20,
        "cpus" if descriptor.source.contains("/proc/stat") => 5,
        "cpus" => 2,
        "tasks" => match descriptor.id {
            "tasks.run_ns" => 1,
            "tasks.voluntary_switches" | "tasks.involuntary_switches" => 2,
            "tasks.last_cpu" | "tasks.minor_faults" | "tasks.major_faults" => 4,
            "tasks.wait_ns" => 20,
            // Of samples and ticks the ends are kept.
            _ => 1000,
        },
        _ => 1,
    }
}

/// How much a metric grows in 50 ms on a busy system.
fn growth(descriptor: &Descriptor, random: &mut Random) -> f64 {
    let grown = match (descriptor.unit, descriptor.kind) {
        (_, Kind::Gauge) => u64::from(random.below(8) == 0),
        // schedstat and cpuacct count nanoseconds, stat counts ticks.
        (Unit::Nanosecond, _) if descriptor.source.contains("/stat ") => 10_000_000 * random.below(6),
        (Unit::Nanosecond, _) => 24_000_000 + random.below(2_000_000),
        // Hundreds of millions a second, and no two steps alike; packets and soft interrupts by the thousand.
        _ if descriptor.id.starts_with("pmu.") => 100_000_000 + random.below(20_000_000),
        _ if ["softirqs", "segments", "packets"].iter().any(|kind| descriptor.id.contains(kind)) => {
            random.below(500)
        }
        (Unit::Microjoule, _) => 2_000_000 + random.below(200_000),
        _ if descriptor.id.contains("switches") || descriptor.id.contains("exits") => random.below(500),
        // Faults are rare, and each sample of a thread has one state.
        _ => u64::from(random.below(3) == 0),
    };
    grown as f64
}

/// A linear congruential generator: the same record on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}
