//! A record as a run would have made it.

use std::collections::BTreeMap;
use tare_model::latency::Latencies;
use tare_model::machine::{CpuFacts, MachineFacts, Regime};
use tare_model::metric::{Descriptor, Subject};
use tare_model::observation::{Column, Observation, Role, Sample, Task};
use tare_model::plan::{Generator, HttpWorkload, Level, Plan, Purpose, Sut, Transport, Workload};
use tare_model::trial::{HttpSample, Measure, Trial};
use tare_model::{Reading, Record, metrics};

pub fn machine() -> MachineFacts {
    let cpu = |cpu| CpuFacts {
        cpu,
        package: Reading::Measured(0),
        core: Reading::Measured(cpu),
        node: Reading::Measured(0),
        siblings: Reading::Measured(vec![cpu]),
    };
    MachineFacts {
        kernel: "6.18.5".into(),
        cpu_model: Reading::Measured("Intel(R) Xeon(R) Processor".into()),
        cpus: vec![cpu(0), cpu(1)],
        memory_bytes: Reading::Measured(16_777_216_000),
        tick_hz: Reading::Measured(250),
        base_slice_ns: Reading::missing("debugfs is not mounted"),
        regime: regime(),
        virtualization: Reading::Measured("firecracker".into()),
        clocksource: Reading::Measured("kvm-clock".into()),
        governor: Reading::missing("no cpufreq driver in this VM"),
        pmu: Reading::Measured(false),
        boot_id: Reading::Measured("3f1c".into()),
    }
}

pub(super) fn regime() -> Regime {
    Regime {
        irq_time_accounting: Reading::Measured(false),
        paravirt_time_accounting: Reading::Measured(false),
        cpu_accounting: Reading::Measured("tick".into()),
        cgroup: Reading::Measured("hybrid".into()),
    }
}

pub(super) fn plan(sut: Sut) -> Plan {
    let level = |purpose, connections, trials| Level {
        purpose,
        connections,
        rate_hz: None,
        pipeline: 1,
        trial_ns: 2_000_000_000,
        warmup_ns: 500_000_000,
        trials,
        arms: 1,
        stage: None,
    };
    Plan {
        argv: ["tare", "run", "http://127.0.0.1:8080/"].map(String::from).to_vec(),
        started_unix_s: 1_795_298_400,
        workload: Workload::Http(HttpWorkload {
            url: Some("http://127.0.0.1:8080/".into()),
            sut,
            generator: Generator::Own { threads: 1 },
            transport: Transport::Loopback,
            levels: vec![level(Purpose::Asked, 64, 3), level(Purpose::Saturating, 256, 1)],
            seed: None,
            tried_layouts: Vec::new(),
            reference: None,
            profile: None,
        }),
        sut_cpus: Vec::new(),
        load_cpus: vec![1],
        ref_clock_hz: None,
        stopping: None,
        bounds: tare_model::ceiling::KnownBounds::default(),
    }
}

/// Three trials of two seconds, sampled at 10 Hz.
pub fn record() -> Record {
    let trials = (0..3).map(trial).collect();
    Record {
        machine: machine(),
        plan: plan(Sut::Attached { pids: vec![4711] }),
        trials,
        profile: Vec::new(),
        notices: Vec::new(),
        identity: None,
        intervention: None,
    }
}

fn trial(seq: u32) -> Trial {
    const SECOND: u64 = 1_000_000_000;
    let begin_ns = 100 * SECOND + u64::from(seq) * 3 * SECOND;
    let mut latency = Latencies::new();
    for (value_us, count) in [(310, 5000), (360, 80_000), (420, 9000), (900, 900), (2400, 90), (9100, 4)] {
        latency.record_n(value_us * 1000, count);
    }
    let stamps: Vec<u64> = (1..=20).map(|at| begin_ns + at * SECOND / 10).collect();
    let wobble = |at: u64| (at * 7919 + u64::from(seq) * 31) % 13;
    let sample = HttpSample {
        elapsed_ns: 2 * SECOND,
        requests: Reading::Measured(356_000),
        errors: BTreeMap::new(),
        latency: Reading::Measured(latency),
        printed_quantiles_ns: Vec::new(),
        bytes_in: Reading::Measured(60_000_000),
        in_flight: Reading::Measured(64),
        connections: Reading::Measured(64),
        scheduled: None,
        lateness: None,
        slices: stamps.iter().map(|&at| (at, 17_200 + 100 * wobble(at / 100_000_000))).collect(),
        detail: None,
    };
    let column = |metric: &Descriptor, subject: Subject, per_tick: u64| Column {
        metric: metric.id.into(),
        subject,
        samples: stamps
            .iter()
            .zip(1u64..)
            .map(|(&at_ns, n)| Sample { at_ns, value: (n * per_tick + wobble(n) * 100_000) as f64 })
            .collect(),
    };
    let task = |pid, name: &str, role| Task {
        pid,
        tid: pid,
        name: name.into(),
        role,
        allowed_cpus: Reading::Measured(vec![0, 1]),
        present_at_begin: true,
        present_at_end: true,
    };
    let observation = Observation {
        begin_ns,
        end_ns: begin_ns + 2 * SECOND,
        idle: Vec::new(),
        tasks: vec![task(4711, "nginx", Role::Sut), task(4800, "tare", Role::Load)],
        sut_groups: vec!["/demo".into(), "/".into()],
        sut_group_is_own: true,
        columns: vec![
            column(&metrics::tasks::RUN_NS, Subject::Task(0), 97_000_000),
            column(&metrics::tasks::RUN_NS, Subject::Task(1), 81_000_000),
            column(&metrics::cpus::TASK_RUN_NS, Subject::Cpu(0), 98_000_000),
            column(&metrics::cpus::TASK_RUN_NS, Subject::Cpu(1), 82_000_000),
        ],
        absences: Vec::new(),
        schedule: None,
        stacks: None,
        ended: None,
        downstream: Vec::new(),
    };
    Trial { seq, level: 0, sample: Measure::Http(sample), observation, report: None }
}
