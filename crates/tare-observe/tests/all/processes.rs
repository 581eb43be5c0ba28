//! Accounting of real processes: a busy loop, a sleeper, threads that come and go.

use crate::support::alone;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tare_machine::{Root, procs};
use tare_model::metric::{Descriptor, Subject};
use tare_model::metrics::{clock, cpus, tasks, wakeups};
use tare_model::observation::{Observation, Role, Task};
use tare_model::schedule::{ScheduleSource, Sleep, ThreadSchedule};
use tare_observe::{LoadWatch, Observers, Watch};
use tare_sys::process::Signal;

struct Reaped(Child);

impl Drop for Reaped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn shell(script: &str) -> Reaped {
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::null());
    Reaped(command.spawn().unwrap())
}

fn watch(sut: &[&Reaped]) -> Watch {
    let cpus = tare_sys::affinity::get(0).unwrap();
    Watch {
        server_port: None,
        sut_pids: sut.iter().map(|child| child.0.id()).collect(),
        beside_pids: Vec::new(),
        load: LoadWatch::None,
        sut_cpus: cpus[..1].to_vec(),
        load_cpus: cpus[cpus.len() - 1..].to_vec(),
        observer_cpus: Vec::new(),
        sample_hz: 20.0,
        clock: false,
        stacks: None,
        stacks_alone: false,
        trace: false,
    }
}

/// A window that is open until `done`, and a second at most of waiting for it.
fn window(observers: &Observers, done: impl Fn() -> bool) -> Observation {
    observers.begin();
    let deadline = Instant::now() + Duration::from_secs(20);
    while !done() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    observers.end()
}

fn task(observation: &Observation, child: &Reaped) -> Subject {
    let at = observation.tasks.iter().position(|task| task.tid == child.0.id()).expect("not watched");
    Subject::Task(at as u32)
}

fn grown(observation: &Observation, metric: &Descriptor, subject: &Subject) -> f64 {
    observation.delta(metric, subject).ok().unwrap()
}

#[test]
fn a_busy_loop_and_a_sleeper() {
    let _alone = alone();
    let busy = shell("while :; do :; done");
    let sleeper = shell("read line");
    let observers = Observers::start(watch(&[&busy, &sleeper]), &Root::live()).unwrap();
    let schedstat = format!("/proc/{}/schedstat", busy.0.id());
    let run_ns = || {
        let text = std::fs::read_to_string(&schedstat).unwrap();
        text.split_whitespace().next().unwrap().parse::<u64>().unwrap()
    };
    let start_ns = run_ns();
    let observation = window(&observers, || run_ns() > start_ns + 2_000_000_000);
    let (busy, sleeper) = (task(&observation, &busy), task(&observation, &sleeper));
    let wall = observation.wall_ns() as f64;

    // Every moment of a loop is run or wait, between its own readings: whoever reads may be held up at an edge, where the
    // loop goes on. A tick blurs it; what a hypervisor takes of the loop's CPU is in neither.
    let samples = &observation.column(&tasks::RUN_NS, &busy).unwrap().samples;
    let life = samples.last().unwrap().at_ns as f64 - samples[0].at_ns as f64;
    let run = grown(&observation, &tasks::RUN_NS, &busy);
    let wait = grown(&observation, &tasks::WAIT_NS, &busy);
    assert!(run >= 1.8e9, "{run}");
    let stolen = stolen_ns(&observation);
    assert!(run + wait + stolen >= 0.95 * life, "{run} + {wait} and {stolen} stolen of {life}");
    assert!(run + wait <= 1.05 * life, "{run} + {wait} of {life}");
    let shares = grown(&observation, &tasks::USER_NS, &busy) + grown(&observation, &tasks::SYSTEM_NS, &busy);
    assert!((0.9..1.1).contains(&(shares / run)), "{shares} of {run}");
    assert!(samples.len() > 2);
    assert!(observation.last(&tasks::LAST_CPU, &busy).value().is_some());
    assert!(grown(&observation, &tasks::RUN_NS, &sleeper) < 0.01 * wall);

    // Where looking is allowed, the loop was runnable and the sleeper waited for its pipe.
    if let Some(&looks) = observation.delta(&tasks::SAMPLES, &busy).value() {
        assert_eq!(grown(&observation, &tasks::SAMPLES_RUNNABLE, &busy), looks);
        let looks = grown(&observation, &tasks::SAMPLES, &sleeper);
        assert_eq!(grown(&observation, &tasks::SAMPLES_EVENT, &sleeper), looks);
    }
    assert!(observation.tasks_of(Role::Tare).any(|(_, task)| task.name == "tare-observe"));
}

#[test]
fn processes_that_come_and_go_in_a_window() {
    let _alone = alone();
    let parent = shell("read go; sh -c 'while :; do :; done'; read end");
    let observers = Observers::start(watch(&[&parent]), &Root::live()).unwrap();
    let root = Root::live();
    let pid = parent.0.id();
    let mut stdin = parent.0.stdin.as_ref().unwrap();
    // Twice the time between two looks for new processes, then it is ended before the window closes.
    let child_is_ended = || {
        let Some(&child) = procs::children(&root, pid).first() else { return false };
        let text = std::fs::read_to_string(format!("/proc/{child}/schedstat")).unwrap_or_default();
        let run_ns: u64 = text.split(' ').next().and_then(|run| run.parse().ok()).unwrap_or(0);
        run_ns > 1_200_000_000 && tare_sys::process::kill(child, Signal::Kill).is_ok()
    };
    observers.begin();
    stdin.write_all(b"go\n").unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while !child_is_ended() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    while !procs::children(&root, pid).is_empty() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
    let observation = observers.end();
    let sut: Vec<_> = observation.tasks_of(Role::Sut).collect();
    let came = |(_, task): &&(u32, &Task)| task.pid != pid && !task.present_at_begin;
    let (at, child) = sut.iter().find(came).expect("the child was not found");
    assert!(!child.present_at_end);
    let subject = Subject::Task(*at);
    let first = observation.column(&tasks::RUN_NS, &subject).unwrap().samples[0];
    assert_eq!(first.value, 0.0);
    assert!(first.at_ns >= observation.begin_ns && first.at_ns <= observation.end_ns);
}

/// More processes than are watched one by one sleep; one of them wakes.
#[test]
fn who_wakes_among_many_that_sleep_is_accounted_for() {
    let _alone = alone();
    let burn = "read go && i=0 && while [ $i -lt 9000000 ]; do i=$((i+1)); done";
    let parent = shell(&format!(
        "exec 3<&0; i=0; while [ $i -lt 60 ]; do sh -c '{burn}' <&3 & i=$((i+1)); done; wait"
    ));
    let (root, pid) = (Root::live(), parent.0.id());
    let deadline = Instant::now() + Duration::from_secs(20);
    while procs::children(&root, pid).len() < 60 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(200));
    let children = procs::children(&root, pid);
    let run_ns =
        || -> u64 { children.iter().filter_map(|child| tare_sys::time::process_cpu_ns(*child).ok()).sum() };
    let observers = Observers::start(watch(&[&parent]), &root).unwrap();
    observers.begin();
    std::thread::sleep(Duration::from_millis(300));
    let asleep = observers.end();
    let before_ns = run_ns();
    observers.begin();
    parent.0.stdin.as_ref().unwrap().write_all(b"go\n").unwrap();
    while run_ns() < before_ns + 600_000_000 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    let spent_ns = run_ns().saturating_sub(before_ns);
    let observation = observers.end();
    children.iter().for_each(|child| _ = tare_sys::process::kill(*child, Signal::Kill));
    let idle = |seen: &Observation| {
        seen.idle.iter().filter(|idle| idle.role == Role::Sut).map(|idle| idle.threads).sum::<u64>()
    };
    assert!(idle(&asleep) >= 20, "{:?}", asleep.idle);
    assert!(idle(&observation) >= 20, "{:?}", observation.idle);
    let ran =
        |(at, _): (u32, &Task)| observation.delta(&tasks::RUN_NS, &Subject::Task(at)).ok().unwrap_or(0.0);
    let ran_ns: f64 = observation.tasks_of(Role::Sut).map(ran).sum();
    assert!(ran_ns >= 0.55e9, "{ran_ns} of {spent_ns}");
}

#[test]
fn whoever_else_ran_is_named() {
    let _alone = alone();
    let sut = shell("read line");
    let neighbour = shell("while :; do :; done");
    // Of a server: beside a program that ends, a child of ours is what it left behind.
    let of_server = Watch { server_port: Some(9), ..watch(&[&sut]) };
    let observers = Observers::start(of_server, &Root::live()).unwrap();
    let stat = format!("/proc/{}/schedstat", neighbour.0.id());
    let run_ns =
        || std::fs::read_to_string(&stat).unwrap().split(' ').next().unwrap().parse::<u64>().unwrap();
    let start_ns = run_ns();
    let observation = window(&observers, || run_ns() > start_ns + 300_000_000);
    let subject = task(&observation, &neighbour);
    let of_neighbour = |(_, task): &(u32, &Task)| task.pid == neighbour.0.id();
    let other = observation.tasks_of(Role::Other).find(of_neighbour);
    let other = other.unwrap_or_else(|| panic!("{:?}", observation.tasks));
    assert_eq!(other.1.name, "sh");
    assert!(grown(&observation, &tasks::RUN_NS, &subject) >= 0.2e9);
    assert!(observation.last(&tasks::LAST_CPU, &subject).value().is_some());
}

#[test]
fn cpus_are_there_and_what_is_not_is_said() {
    let _alone = alone();
    let sut = shell("read line");
    let observers = Observers::start(Watch { clock: true, ..watch(&[&sut]) }, &Root::live()).unwrap();
    assert_eq!(observers.end(), Observation::default());
    let deadline = Instant::now() + Duration::from_millis(300);
    let observation = window(&observers, || Instant::now() > deadline);
    let wall = observation.wall_ns() as f64;
    let cpu = Subject::Cpu(tare_sys::affinity::get(0).unwrap()[0]);
    let idle = grown(&observation, &cpus::IDLE_NS, &cpu);
    assert!((0.0..=wall * 1.1).contains(&idle), "{idle} of {wall}");
    for metric in [&cpus::TASK_RUN_NS, &cpus::SWITCHES, &cpus::IDLE_EXITS] {
        let said = !observation.why_absent(metric, &cpu).why.contains("was not observed");
        assert!(observation.delta(metric, &cpu).value().is_some_and(|&value| value >= 0.0) || said);
    }
    assert!(!observation.why_absent(&cpus::IDLE_EXIT_COST_NS, &cpu).why.contains("was not observed"));
    let is_root = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap()) == 0;
    if is_root && std::path::Path::new("/sys/kernel/btf/vmlinux").exists() {
        let idle_task = observation.delta(&cpus::IDLE_TASK_NS, &cpu);
        assert!(idle_task.value().is_some(), "{:?}", observation.why_absent(&cpus::IDLE_TASK_NS, &cpu));
        assert!(observation.delta(&cpus::IDLE_EXITS, &cpu).value().is_some());
    }
    let task_run = observation.delta(&cpus::TASK_RUN_NS, &cpu).value().copied();
    if let Some((task_run, &idle_task)) = task_run.zip(observation.delta(&cpus::IDLE_TASK_NS, &cpu).value()) {
        // The scheduler charges somebody with all of the time that was not stolen. Other CPUs' run is known in steps of a tick.
        let apart = 0.2 * wall + stolen_ns(&observation);
        assert!((task_run + idle_task - wall).abs() < apart, "{task_run} and {idle_task} of {wall}");
    }
    if let Some(&hz) = observation.last(&clock::EFFECTIVE_HZ, &cpu).value() {
        assert!((4e8..8e9).contains(&hz), "{hz}");
    }
    observers.stop();
}

#[test]
fn a_server_that_is_not_seen_is_said_so() {
    let _alone = alone();
    let observers = Observers::start(watch(&[]), &Root::live()).unwrap();
    let observation = window(&observers, || true);
    assert!(observation.sut_groups.is_empty());
    let why = observation.why_absent(&tasks::RUN_NS, &Subject::Task(0)).why;
    assert_eq!(why, "the SUT is not seen from here");
}

/// Wake-ups of other SUT threads in a window on all CPUs; `None` where this machine does not let us count.
fn sut_wakeups(observation: &Observation) -> Option<f64> {
    let columns: Vec<_> = observation.columns.iter().filter(|one| one.metric == wakeups::SUT.id).collect();
    if columns.is_empty() {
        let reason = observation.why_absent(&wakeups::SUT, &Subject::Cpu(0));
        assert!(!reason.why.contains("was not observed"), "{reason}");
        return None;
    }
    Some(columns.iter().map(|one| grown(observation, &wakeups::SUT, &one.subject)).sum())
}

#[test]
fn a_pipe_between_two_processes_of_the_sut_is_handed_over() {
    let _alone = alone();
    // Bytes are read one by one, so the writer sleeps until a page of the pipe is free, again and again.
    let pipeline = shell("read go; yes | while read line; do :; done");
    let observers = Observers::start(watch(&[&pipeline]), &Root::live()).unwrap();
    let root = Root::live();
    let pid = pipeline.0.id();
    let children = || procs::children(&root, pid);
    let ran = |child: u32| {
        let text = std::fs::read_to_string(format!("/proc/{child}/schedstat")).unwrap_or_default();
        text.split(' ').next().and_then(|run| run.parse::<u64>().ok()).unwrap_or(0)
    };
    // Alone it has nobody to wake.
    let alone = window(&observers, || true);
    assert!(sut_wakeups(&alone).is_none_or(|count| count == 0.0));
    pipeline.0.stdin.as_ref().unwrap().write_all(b"go\n").unwrap();
    let together =
        window(&observers, || children().iter().map(|child| ran(*child)).sum::<u64>() > 2_000_000_000);
    for child in children() {
        let _ = tare_sys::process::kill(child, Signal::Kill);
    }
    assert!(sut_wakeups(&together).is_none_or(|count| count > 20.0), "{:?}", sut_wakeups(&together));
}

#[test]
fn wake_ups_by_strangers_are_nobodys_hand_over() {
    let _alone = alone();
    let sleepers = [shell("while read line; do :; done"), shell("while read line; do :; done")];
    let observers = Observers::start(watch(&[&sleepers[0], &sleepers[1]]), &Root::live()).unwrap();
    observers.begin();
    for _ in 0..200 {
        for sleeper in &sleepers {
            sleeper.0.stdin.as_ref().unwrap().write_all(b"x\n").unwrap();
        }
        std::thread::yield_now();
    }
    assert!(sut_wakeups(&observers.end()).is_none_or(|count| count == 0.0));
}

/// Where a thread was, by the switches; `None` where this machine does not let us trace.
fn traced(observation: &Observation, child: &Reaped) -> Option<ThreadSchedule> {
    let schedule = observation.schedule.as_ref().expect("neither traced nor looked at");
    if schedule.source == ScheduleSource::Samples {
        let why = &schedule.not_traced.as_ref().expect("no reason").why;
        assert!(why.contains("not permitted") || why.contains("tracefs") || why.contains("kernel"), "{why}");
        return None;
    }
    assert_eq!(schedule.events_lost, 0);
    schedule.threads.iter().find(|thread| thread.tid == child.0.id()).cloned()
}

/// What the hypervisor took of all CPUs.
fn stolen_ns(observation: &Observation) -> f64 {
    let stolen = observation.columns.iter().filter(|column| column.metric == cpus::STEAL_NS.id);
    stolen.map(|column| grown(observation, &cpus::STEAL_NS, &column.subject)).sum()
}

/// The window's accounting of these is as it must be, where this machine lets us trace.
fn accounting_closes(observation: &Observation, children: [&Reaped; 3]) {
    let wall_ns = observation.wall_ns();
    let [busy, _, reader] = children;
    for child in children {
        let Some(thread) = traced(observation, child) else { return };
        let blocked: u64 = thread.blocked.iter().map(|blocked| blocked.ns).sum();
        let waited: u64 =
            thread.behind.iter().map(|behind| behind.ns).sum::<u64>() + thread.held_ns + thread.delay_ns;
        assert_eq!(thread.run_ns + waited + blocked + thread.unknown_ns, wall_ns, "{thread:?}");
        // The kernel's own account says the same, without what the hypervisor took meanwhile: it steps at ticks.
        let run_ns = grown(observation, &tasks::RUN_NS, &task(observation, child));
        // A host that stops a CPU stops its ticks too: then the kernel's account lags by as much at an edge.
        let more_ns = thread.run_ns as f64 - run_ns;
        let apart_ns = 0.2 * wall_ns as f64 + stolen_ns(observation);
        assert!(more_ns.abs() <= apart_ns, "{run_ns} in {wall_ns}: {thread:?}");
        assert!(thread.unknown_ns < wall_ns / 10, "{thread:?}");
    }
    let of = |child| traced(observation, child).unwrap();
    assert!(of(busy).run_ns + of(busy).behind.iter().map(|behind| behind.ns).sum::<u64>() > wall_ns / 2);
    let reading = of(reader).blocked;
    assert_eq!(reading.iter().map(|blocked| blocked.why).collect::<Vec<_>>(), [Sleep::Event]);
}

#[test]
fn a_traced_thread_is_somewhere_all_the_time() {
    let _alone = alone();
    let busy = shell("while :; do :; done");
    // Many short runs, each of which pushes somebody off; dash knows no `read -t`. They share a CPU: some kernels tell
    // nothing of what an idle CPU switches to.
    let sleeper = shell("exec bash -c 'while :; do read -t 0.001 line; done'");
    let cpu = &tare_sys::affinity::get(0).unwrap()[..1];
    for child in [&busy, &sleeper] {
        tare_sys::affinity::set(child.0.id(), cpu).unwrap();
    }
    let reader = shell("read line");
    let watch = Watch { trace: true, ..watch(&[&busy, &sleeper, &reader]) };
    let observers = Observers::start(watch, &Root::live()).unwrap();
    let begun = Instant::now();
    let observation = window(&observers, || begun.elapsed() > Duration::from_secs(1));
    accounting_closes(&observation, [&busy, &sleeper, &reader]);
}
