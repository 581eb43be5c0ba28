//! Records with a known truth: threads and CPUs are given as shares of the window, and turned into the counters
//! that observers would have read.

use std::collections::BTreeMap;
use tare_model::ended::Ended;
use tare_model::latency::Latencies;
use tare_model::machine::{CpuFacts, MachineFacts, Regime};
use tare_model::metric::{Descriptor, Subject};
use tare_model::metrics::{clock, cpus, groups, network, tasks, wakeups};
use tare_model::observation::{Column, Observation, Role, Sample, Task};
use tare_model::outcome::Outcome;
use tare_model::plan::*;
use tare_model::trial::*;
use tare_model::{Reading, Record};

pub const SUT_PID: u32 = 4711;
pub const LOAD_PID: u32 = 815;

/// A thread as shares of the window.
#[derive(Debug, Clone)]
pub struct Thread {
    pub role: Role,
    pub pid: u32,
    pub tid: u32,
    pub name: &'static str,
    pub cpu: u32,
    pub pinned: bool,
    pub run: f64,
    pub wait: f64,
    /// Samples that found it asleep: event, lock, disk, timer; the rest in another call. Empty: it was not sampled.
    pub samples: Option<[f64; 4]>,
    pub voluntary_hz: f64,
    pub involuntary_hz: f64,
}

impl Thread {
    pub fn new(role: Role, name: &'static str, tid: u32, cpu: u32, run: f64, wait: f64) -> Self {
        let pid = match role {
            Role::Sut => SUT_PID,
            Role::Load => LOAD_PID,
            Role::Downstream | Role::Tare | Role::Other => tid,
        };
        let samples = Some([1.0, 0.0, 0.0, 0.0]);
        Thread {
            role,
            pid,
            tid,
            name,
            cpu,
            pinned: true,
            run,
            wait,
            samples,
            voluntary_hz: 100.0,
            involuntary_hz: 10.0,
        }
    }
}

/// nginx with one worker on CPU 0.
pub fn server(run: f64, wait: f64) -> Thread {
    Thread::new(Role::Sut, "nginx", 4712, 0, run, wait)
}

/// The generator with one thread on CPU 1.
pub fn generator(run: f64, wait: f64) -> Thread {
    Thread::new(Role::Load, "tare-load", 816, 1, run, wait)
}

/// One trial's truth.
#[derive(Debug, Clone)]
pub struct Scene {
    pub seconds: f64,
    pub threads: Vec<Thread>,
    pub rate_hz: f64,
    pub errors: Vec<(ErrorKind, u64)>,
    pub scheduled_hz: Option<f64>,
    /// Share of the window that the SUT's run queue was throttled: (group, share), own group first.
    pub throttled: Vec<(&'static str, f64)>,
    /// Quota of a group in CPUs.
    pub quota: Option<(&'static str, f64)>,
    pub steal: f64,
    /// The same of the generator's CPU.
    pub load_steal: f64,
    pub clock_hz: Option<f64>,
    pub listen_overflows: f64,
    /// `None`: not counted.
    pub sut_wakeups_hz: Option<f64>,
    /// Times that CPU 0, the server's, left its idle loop; `None`: not counted.
    pub sut_idle_exits_hz: Option<f64>,
    /// Time that no counter of CPU 0 shows; below zero: time that two show.
    pub hidden: f64,
    pub latency: bool,
    /// Tasks that ended; `None`: not reported.
    pub ended: Option<Vec<Ended>>,
}

impl Default for Scene {
    fn default() -> Self {
        Scene {
            seconds: 2.0,
            threads: vec![server(0.97, 0.0), generator(0.6, 0.0)],
            rate_hz: 100_000.0,
            errors: Vec::new(),
            scheduled_hz: None,
            throttled: vec![("/sut", 0.0), ("/", 0.0)],
            quota: None,
            steal: 0.0,
            load_steal: 0.0,
            clock_hz: Some(3.0e9),
            listen_overflows: 0.0,
            sut_wakeups_hz: Some(0.0),
            sut_idle_exits_hz: None,
            hidden: 0.0,
            latency: true,
            ended: None,
        }
    }
}

const BEGIN_NS: u64 = 1_000_000_000;

impl Scene {
    pub fn column(&self, metric: &Descriptor, subject: Subject, per_second: f64) -> Column {
        let at = |share: f64| {
            let seconds = self.seconds * share;
            Sample { at_ns: BEGIN_NS + (seconds * 1e9) as u64, value: (5e9 + per_second * seconds).round() }
        };
        Column { metric: metric.id.to_owned(), subject, samples: vec![at(0.0), at(0.5), at(1.0)] }
    }

    fn gauge(&self, metric: &Descriptor, subject: Subject, value: f64) -> Column {
        let samples = [0.0, 0.5, 1.0]
            .map(|share| Sample { at_ns: BEGIN_NS + (self.seconds * share * 1e9) as u64, value });
        Column { metric: metric.id.to_owned(), subject, samples: samples.to_vec() }
    }

    fn thread_columns(&self, index: u32, thread: &Thread) -> Vec<Column> {
        let task = || Subject::Task(index);
        let mut columns = vec![
            self.column(&tasks::RUN_NS, task(), thread.run * 1e9),
            self.column(&tasks::WAIT_NS, task(), thread.wait * 1e9),
            self.column(&tasks::USER_NS, task(), thread.run * 0.3e9),
            self.column(&tasks::SYSTEM_NS, task(), thread.run * 0.7e9),
            self.column(&tasks::VOLUNTARY_SWITCHES, task(), thread.voluntary_hz),
            self.column(&tasks::INVOLUNTARY_SWITCHES, task(), thread.involuntary_hz),
            self.gauge(&tasks::LAST_CPU, task(), f64::from(thread.cpu)),
        ];
        if let Some(samples) = thread.samples {
            let metrics =
                [&tasks::SAMPLES_EVENT, &tasks::SAMPLES_LOCK, &tasks::SAMPLES_DISK, &tasks::SAMPLES_TIMER];
            columns.extend(
                metrics.iter().zip(samples).map(|(metric, share)| self.column(metric, task(), 100.0 * share)),
            );
            let other = 1.0 - samples.iter().sum::<f64>();
            columns.push(self.column(&tasks::SAMPLES_OTHER, task(), 100.0 * other.max(0.0)));
            columns.push(self.column(&tasks::SAMPLES, task(), 100.0));
        }
        columns
    }

    /// Of those that ended, which are all of the SUT's and on CPU 0, as a share of the window.
    fn ended_run(&self) -> f64 {
        let run_ns: u64 = self.ended.iter().flatten().map(|ended| ended.run_ns).sum();
        run_ns as f64 / 1e9 / self.seconds
    }

    fn cpu_columns(&self, cpu: u32) -> Vec<Column> {
        let subject = || Subject::Cpu(cpu);
        let run: f64 = self.threads.iter().filter(|thread| thread.cpu == cpu).map(|thread| thread.run).sum();
        let run = run + if cpu == 0 { self.ended_run() } else { 0.0 };
        let (steal, hidden) = if cpu == 0 { (self.steal, self.hidden) } else { (self.load_steal, 0.0) };
        let idle = (1.0 - run - steal - hidden).max(0.0);
        let mut columns = vec![
            self.column(&cpus::TASK_RUN_NS, subject(), run * 1e9),
            self.column(&cpus::IDLE_NS, subject(), idle * 1e9),
            self.column(&cpus::STEAL_NS, subject(), steal * 1e9),
            self.column(&cpus::USER_NS, subject(), run * 0.3e9),
            self.column(&cpus::SYSTEM_NS, subject(), run * 0.5e9),
            self.column(&cpus::SOFTIRQ_NS, subject(), run * 0.2e9),
        ];
        columns.extend(self.clock_hz.map(|hz| self.gauge(&clock::EFFECTIVE_HZ, subject(), hz)));
        columns
    }

    pub fn observation(&self) -> Observation {
        let mut columns: Vec<Column> = (0u32..)
            .zip(&self.threads)
            .flat_map(|(index, thread)| self.thread_columns(index, thread))
            .collect();
        columns.extend((0..2).flat_map(|cpu| self.cpu_columns(cpu)));
        for (path, share) in &self.throttled {
            let group = || Subject::Group((*path).to_owned());
            columns.push(self.column(&groups::THROTTLED_NS, group(), share * 1e9));
        }
        let run: f64 =
            self.threads.iter().filter(|thread| thread.role == Role::Sut).map(|thread| thread.run).sum();
        if let Some((own, _)) = self.throttled.first() {
            columns.push(self.column(
                &groups::USAGE_NS,
                Subject::Group((*own).to_owned()),
                (run + self.ended_run()) * 1e9,
            ));
        }
        if let Some((path, cpus)) = self.quota {
            let group = || Subject::Group(path.to_owned());
            columns.push(self.gauge(&groups::QUOTA_NS, group(), cpus * 1e8));
            columns.push(self.gauge(&groups::PERIOD_NS, group(), 1e8));
            columns.push(self.column(&groups::PERIODS, group(), 10.0));
            columns.push(self.column(&groups::THROTTLED_PERIODS, group(), 10.0));
        }
        columns.push(self.column(&network::LISTEN_OVERFLOWS, Subject::Machine, self.listen_overflows));
        let sut_wakeups = self.sut_wakeups_hz;
        columns.extend(sut_wakeups.map(|hz| self.column(&wakeups::SUT, Subject::Cpu(0), hz)));
        let idle_exits = self.sut_idle_exits_hz;
        columns.extend(idle_exits.map(|hz| self.column(&cpus::IDLE_EXITS, Subject::Cpu(0), hz)));
        let task = |thread: &Thread| Task {
            pid: thread.pid,
            tid: thread.tid,
            name: thread.name.to_owned(),
            role: thread.role,
            allowed_cpus: Reading::Measured(if thread.pinned { vec![thread.cpu] } else { vec![0, 1] }),
            present_at_begin: true,
            present_at_end: true,
        };
        Observation {
            begin_ns: BEGIN_NS,
            end_ns: BEGIN_NS + (self.seconds * 1e9) as u64,
            idle: Vec::new(),
            tasks: self.threads.iter().map(task).collect(),
            sut_groups: self.throttled.iter().map(|(path, _)| (*path).to_owned()).collect(),
            sut_group_is_own: true,
            columns,
            absences: Vec::new(),
            schedule: None,
            stacks: None,
            ended: self.ended.clone(),
            downstream: Vec::new(),
        }
    }

    pub fn sample(&self) -> HttpSample {
        let requests = (self.rate_hz * self.seconds) as u64;
        let mut latencies = Latencies::new();
        latencies.record_n(640_000, requests);
        HttpSample {
            elapsed_ns: (self.seconds * 1e9) as u64,
            requests: Reading::Measured(requests),
            errors: self.errors.iter().copied().collect::<BTreeMap<_, _>>(),
            latency: if self.latency {
                Reading::Measured(latencies)
            } else {
                Reading::missing("foreign generator")
            },
            printed_quantiles_ns: Vec::new(),
            bytes_in: Reading::Measured(requests * 150),
            in_flight: Reading::Measured(64),
            connections: Reading::Measured(64),
            scheduled: self.scheduled_hz.map(|hz| (hz * self.seconds) as u64),
            lateness: None,
            slices: Vec::new(),
            detail: None,
        }
    }

    /// The same with everything a server does scaled: rate and the run of both sides.
    pub fn scaled(mut self, factor: f64) -> Self {
        self.rate_hz *= factor;
        self
    }
}

pub fn machine() -> MachineFacts {
    let cpu = |cpu| CpuFacts {
        cpu,
        package: Reading::Measured(0),
        core: Reading::Measured(cpu),
        node: Reading::Measured(0),
        siblings: Reading::Measured(vec![cpu]),
    };
    MachineFacts {
        kernel: "6.18.0".to_owned(),
        cpu_model: Reading::Measured("a CPU".to_owned()),
        cpus: vec![cpu(0), cpu(1)],
        memory_bytes: Reading::Measured(8 << 30),
        tick_hz: Reading::Measured(250),
        base_slice_ns: Reading::Measured(2_800_000),
        regime: Regime {
            irq_time_accounting: Reading::Measured(false),
            paravirt_time_accounting: Reading::Measured(true),
            cpu_accounting: Reading::Measured("tick".to_owned()),
            cgroup: Reading::Measured("v1".to_owned()),
        },
        virtualization: Reading::Measured("kvm".to_owned()),
        clocksource: Reading::Measured("kvm-clock".to_owned()),
        governor: Reading::missing("no cpufreq driver"),
        pmu: Reading::Measured(false),
        boot_id: Reading::missing("not read"),
    }
}

pub fn level(purpose: Purpose, connections: u32) -> Level {
    Level {
        purpose,
        connections,
        rate_hz: None,
        pipeline: 1,
        trial_ns: 2_000_000_000,
        warmup_ns: 0,
        trials: 3,
        arms: 1,
        stage: None,
    }
}

pub fn http(levels: Vec<Level>) -> HttpWorkload {
    HttpWorkload {
        url: Some("http://127.0.0.1:8080/".to_owned()),
        sut: Sut::Attached { pids: vec![SUT_PID] },
        generator: Generator::Own { threads: 1 },
        transport: Transport::Loopback,
        levels,
        seed: None,
        tried_layouts: Vec::new(),
        reference: None,
        profile: None,
    }
}

pub fn plan(workload: Workload) -> Plan {
    Plan {
        argv: vec!["tare".to_owned(), "run".to_owned()],
        started_unix_s: 0,
        workload,
        sut_cpus: vec![0],
        load_cpus: vec![1],
        ref_clock_hz: None,
        stopping: None,
        bounds: tare_model::ceiling::KnownBounds::default(),
    }
}

/// A record of scenes: (level, scene) in order; levels as given.
pub fn record(levels: Vec<Level>, scenes: &[(u32, Scene)]) -> Record {
    let trial = |(seq, (level, scene)): (u32, &(u32, Scene))| Trial {
        seq,
        level: *level,
        sample: Measure::Http(scene.sample()),
        observation: scene.observation(),
        report: None,
    };
    Record {
        machine: machine(),
        plan: plan(Workload::Http(http(levels))),
        trials: (0u32..).zip(scenes).map(trial).collect(),
        profile: Vec::new(),
        notices: Vec::new(),
        identity: None,
        intervention: None,
    }
}

/// Three trials at the asked level, a per mille apart, with 64 connections.
pub fn asked(scene: &Scene) -> Record {
    asked_at(64, scene)
}

pub fn asked_at(connections: u32, scene: &Scene) -> Record {
    let scenes: Vec<(u32, Scene)> =
        [1.0, 1.001, 0.999].into_iter().map(|factor| (0, scene.clone().scaled(factor))).collect();
    record(vec![level(Purpose::Asked, connections)], &scenes)
}

/// As [`asked_at`], with a saturating level of 256 connections in turn.
pub fn with_saturating(connections: u32, scene: &Scene, saturating: &Scene) -> Record {
    let scenes: Vec<(u32, Scene)> = [1.0, 1.001, 0.999]
        .into_iter()
        .flat_map(|factor| [(0, scene.clone().scaled(factor)), (1, saturating.clone().scaled(factor))])
        .collect();
    record(vec![level(Purpose::Asked, connections), level(Purpose::Saturating, 256)], &scenes)
}

/// Blocks of an asked level, and of a saturating one interleaved with the reference server: those two share their window, and
/// have half of it each.
pub fn in_blocks(connections: u32, blocks: &[[Scene; 3]]) -> Record {
    let scenes: Vec<(u32, Scene)> = blocks
        .iter()
        .flat_map(|[asked, saturating, reference]| {
            [(0, asked.clone()), (1, half_of_the_time(saturating)), (2, half_of_the_time(reference))]
        })
        .collect();
    let interleaved = |purpose| Level { arms: 2, ..level(purpose, 64) };
    let asked = level(Purpose::Asked, connections);
    let levels = vec![asked, interleaved(Purpose::Saturating), interleaved(Purpose::Reference)];
    let mut record = record(levels, &scenes);
    for trial in &mut record.trials {
        let windows_before = 2 * (trial.seq / 3) + u32::from(trial.level > 0);
        let later_ns = u64::from(windows_before) * 3_000_000_000;
        trial.observation.begin_ns += later_ns;
        trial.observation.end_ns += later_ns;
        for sample in trial.observation.columns.iter_mut().flat_map(|column| &mut column.samples) {
            sample.at_ns += later_ns;
        }
    }
    record
}

/// The same in which every level has windows of its own.
pub fn one_after_the_other(connections: u32, blocks: &[[Scene; 3]]) -> Record {
    let scenes: Vec<(u32, Scene)> =
        blocks.iter().flat_map(|block| (0u32..).zip(block.iter().cloned())).collect();
    let others = [Purpose::Saturating, Purpose::Reference].map(|purpose| level(purpose, 64));
    record([vec![level(Purpose::Asked, connections)], others.to_vec()].concat(), &scenes)
}

fn half_of_the_time(scene: &Scene) -> Scene {
    let mut half = scene.clone();
    half.rate_hz /= 2.0;
    for thread in &mut half.threads {
        thread.run /= 2.0;
        thread.wait /= 2.0;
        thread.voluntary_hz /= 2.0;
        thread.involuntary_hz /= 2.0;
    }
    half
}

/// The value of a loss, as the accounting names it.
pub fn loss(outcome: &Outcome, name: &str) -> f64 {
    outcome.accounting.sut.as_ref().and_then(|sut| sut.losses_cpus.get(name)).copied().unwrap_or(0.0)
}

/// CPUs that the SUT kept busy; a run of which no thread was seen was on a CPU all the time.
fn cpus(scene: &Scene) -> f64 {
    let seen: Vec<f64> =
        scene.threads.iter().filter(|thread| thread.role == Role::Sut).map(|thread| thread.run).collect();
    if seen.is_empty() { 1.0 } else { seen.iter().sum() }
}

/// A record of one command's runs: (wall seconds, exit code, scene of its threads).
pub fn commands(runs: &[(f64, i32, Scene)]) -> Record {
    let trial = |(seq, (wall_s, exit_code, scene)): (u32, &(f64, i32, Scene))| Trial {
        seq,
        level: 0,
        sample: Measure::Command(CommandSample {
            command: 0,
            wall_ns: (wall_s * 1e9) as u64,
            user_ns: (wall_s * 0.7 * cpus(scene) * 1e9) as u64,
            system_ns: (wall_s * 0.3 * cpus(scene) * 1e9) as u64,
            voluntary_switches: 3,
            involuntary_switches: 5,
            rss_bytes_max: 1 << 20,
            exit_code: Some(*exit_code),
            signal: None,
            results: None,
            unobserved: false,
        }),
        observation: scene.observation(),
        report: None,
    };
    let workload = CommandWorkload {
        commands: vec!["./program".to_owned()],
        runs: runs.len() as u32,
        warmup: 0,
        shell: None,
        interleaved: false,
        start_up: None,
    };
    Record {
        machine: machine(),
        plan: plan(Workload::Command(workload)),
        trials: (0u32..).zip(runs).map(trial).collect(),
        profile: Vec::new(),
        notices: Vec::new(),
        identity: None,
        intervention: None,
    }
}

/// The result in a few lines, rounded so that no machine's arithmetic shows.
pub fn sketch(outcome: &Outcome) -> String {
    use tare_model::outcome::NetOrMissing;
    let range = |ci: Option<[f64; 2]>| ci.map_or("?".to_owned(), |[lo, hi]| format!("{lo:.3}..{hi:.3}"));
    let mut lines = vec![format!(
        "{:?}, valid: {}, {:?}",
        outcome.verdict.bottleneck, outcome.verdict.valid, outcome.figures.gross_is
    )];
    lines.push(format!(
        "gross {:.3} {} ({})",
        outcome.figures.gross.value().unwrap_or(f64::NAN),
        outcome.figures.gross.unit(),
        range(outcome.figures.gross.ci95())
    ));
    lines.push(match &outcome.figures.net {
        NetOrMissing::Net(net) => {
            format!("net {:.3} {} ({}) on {:.2} CPUs", net.value, net.unit, range(net.ci95), net.cpus)
        }
        NetOrMissing::Missing(missing) => format!("net missing: {}", missing.why),
    });
    for part in &outcome.figures.tare {
        lines.push(format!("  {:?} {:+.3} ({})", part.cause, part.ln_share, range(part.ci95)));
    }
    for finding in &outcome.verdict.findings {
        lines.push(format!("{:+.3} at {:.2}: {}", finding.effect_ln, finding.confidence, finding.summary));
        for number in &finding.evidence {
            lines.push(format!("    {} = {:.3} {}", number.name, number.value, number.unit));
        }
    }
    lines.extend(
        outcome
            .verdict
            .warnings
            .iter()
            .map(|warning| format!("! {}: {} [{}]", warning.id, warning.text, warning.hint)),
    );
    lines.join("\n")
}
