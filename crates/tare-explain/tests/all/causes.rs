//! Causes that lie beside the time accounting: each in a record where it is the bottleneck, or its finding, and in one like it where it
//! is not.

use crate::changes::*;
use crate::support::*;
use std::collections::BTreeMap;
use tare_explain::explain;
use tare_model::downstream::DownstreamSeen;
use tare_model::metric::Subject;
use tare_model::metrics::{client, connections, memory, network, open_files, pmu, pressure};
use tare_model::observation::Role;
use tare_model::outcome::{Cause, GrossIs, Outcome};
use tare_model::plan::{Purpose, Workload};
use tare_model::stacks::{Folded, Folder, Frame, FrameKind};
use tare_model::trial::{ErrorKind, HttpDetail, RESET};
use tare_model::{Missing, Reading, Record};

#[test]
fn connections_without_a_port_are_not_the_servers_errors() {
    let failing = |kind| asked(&Scene { errors: vec![(kind, 30_000)], ..idle() });
    let with_ports = |record| {
        let record = gauge(record, &client::PORTS, &Subject::Machine, 500.0);
        gauge(record, &client::TIME_WAIT, &Subject::Machine, 480.0)
    };
    let outcome = has_bottleneck(&with_ports(failing(ErrorKind::PortsExhausted)), Cause::PortsExhausted);
    assert!(!outcome.verdict.valid);
    assert_eq!(outcome.figures.gross_is, GrossIs::LowerBound);
    let summary = &finding(&outcome, Cause::PortsExhausted).unwrap().summary;
    assert!(
        summary.contains("of the 500 that there are") && summary.contains("480 connections"),
        "{summary}"
    );
    silent(&with_ports(failing(ErrorKind::Connect)), Cause::PortsExhausted);
}

#[test]
fn a_server_at_its_limit_on_open_files_accepts_nobody() {
    let with_files = |record, open, waiting| {
        let record = gauge(record, &open_files::OPEN, &Subject::Machine, open);
        let record = gauge(record, &open_files::LIMIT, &Subject::Machine, 40.0);
        gauge(record, &connections::WAITING, &Subject::Machine, waiting)
    };
    let outcome = has_bottleneck(&with_files(asked(&idle()), 40.0, 31.0), Cause::OpenFilesExhausted);
    assert_eq!(outcome.figures.gross_is, GrossIs::LowerBound);
    let summary = &finding(&outcome, Cause::OpenFilesExhausted).unwrap().summary;
    assert!(summary.contains("40 of the 40 files") && summary.contains("31 connections waited"), "{summary}");
    // Those that wait time out.
    let late = asked(&Scene { errors: vec![(ErrorKind::Timeout, 30_000)], ..idle() });
    let outcome = has_bottleneck(&with_files(late.clone(), 39.0, 31.0), Cause::OpenFilesExhausted);
    assert!(!outcome.verdict.valid);
    // With nobody in the queue they may be late for another reason: a candidate, and no verdict.
    let outcome = explain(&with_files(late.clone(), 40.0, 0.0));
    assert_ne!(outcome.verdict.bottleneck, Cause::OpenFilesExhausted);
    assert!(finding(&outcome, Cause::OpenFilesExhausted).unwrap().confidence <= 0.5);
    // A cache that fills the limit keeps nobody out; a server that is slow to accept has files left.
    silent(&with_files(asked(&idle()), 40.0, 0.0), Cause::OpenFilesExhausted);
    silent(&with_files(asked(&idle()), 30.0, 31.0), Cause::OpenFilesExhausted);
    silent(&with_files(late, 30.0, 31.0), Cause::OpenFilesExhausted);
    // A full server is what holds the rate; who waits is said beside it.
    let full = Scene { threads: vec![server(0.99, 0.0), generator(0.3, 0.0)], ..idle() };
    let outcome = explain(&with_files(asked(&full), 40.0, 31.0));
    assert_eq!(outcome.verdict.bottleneck, Cause::ServerCpuBound);
    assert!(finding(&outcome, Cause::OpenFilesExhausted).is_some());
}

#[test]
fn what_failed_is_called_what_it_is() {
    let reported = |errors: &[(ErrorKind, u64)]| {
        let outcome = has_bottleneck(&asked(&Scene { errors: errors.to_vec(), ..idle() }), Cause::Errors);
        let found = finding(&outcome, Cause::Errors).unwrap();
        (found.summary.clone(), found.remedy.clone())
    };
    let late = reported(&[(ErrorKind::Timeout, 30_000), (ErrorKind::Status, 10)]);
    assert!(late.0.contains("in no latency") && late.1.contains("--timeout"), "{late:?}");
    for ended in [
        &[(ErrorKind::Io, 30_000)][..],
        &[(ErrorKind::GoAway, 30_000)],
        &[(ErrorKind::Connect, 9_000), (ErrorKind::Tls, 9_000), (ErrorKind::Status, 12_000)],
    ] {
        let broken = reported(ended);
        assert!(broken.0.contains("refused or broke") && broken.1.contains("stays up"), "{broken:?}");
    }
    let of_each =
        reported(&[(ErrorKind::Io, 9_000), (ErrorKind::Timeout, 9_000), (ErrorKind::Status, 9_000)]);
    assert!(!of_each.0.contains("error path") && of_each.1.contains("one by one"), "{of_each:?}");
    for answered in [&[(ErrorKind::Status, 30_000)][..], &[(ErrorKind::Malformed, 30_000)]] {
        assert!(reported(answered).0.contains("error path"), "{:?}", reported(answered));
    }
}

#[test]
fn a_run_says_why_its_requests_failed_and_where_its_redirects_led() {
    let with = |errors: &[(ErrorKind, u64)], answered: bool, detail: HttpDetail| {
        let record = asked(&Scene { errors: errors.to_vec(), ..idle() });
        explain(&sampled(record, |sample| {
            if !answered {
                sample.requests = Reading::Measured(0);
            }
            sample.detail = Some(Box::new(detail.clone()));
        }))
    };
    let text = |outcome: &Outcome, id: &str| {
        let warning = outcome.verdict.warnings.iter().find(|warning| warning.id == id);
        warning.map_or_else(|| panic!("{id}: {:#?}", outcome.verdict.warnings), |of| of.text.clone())
    };
    let mut detail = HttpDetail::default();
    detail.said.reasons = BTreeMap::from([(ErrorKind::Io, BTreeMap::from([(RESET.to_owned(), 100)]))]);
    let reset = with(&[(ErrorKind::Io, 100)], false, detail);
    assert!(text(&reset, "no-requests").ends_with("connections were reset by the server"));
    let trials = reset.trials.len() as u64;
    let requests = reset.answers.requests.as_ref().unwrap();
    assert_eq!(requests.error_reasons["io"][RESET], 100 * trials, "{:?}", requests.error_reasons);
    let mut detail = HttpDetail { status_classes: [0, 0, 1000, 0, 0, 0], ..HttpDetail::default() };
    detail.said.redirected_to = Some("/login".to_owned());
    let redirected = with(&[], true, detail.clone());
    assert!(text(&redirected, "only-redirects").contains("to /login"));
    detail.status_codes = BTreeMap::from([(304, 1000)]);
    let cached = with(&[], true, detail);
    assert!(cached.verdict.warnings.iter().all(|warning| warning.id != "only-redirects"));
    assert!(text(&cached, "only-not-modified").starts_with("100 % of the answers are 304"));
    let status_codes = BTreeMap::from([(200, 5), (404, 100)]);
    let absent =
        with(&[(ErrorKind::Status, 100)], true, HttpDetail { status_codes, ..HttpDetail::default() });
    let requests = absent.answers.requests.as_ref().unwrap();
    let reasons = &requests.error_reasons["status"];
    assert_eq!(reasons.keys().collect::<Vec<_>>(), ["status 404"], "a status below 400 is no error");
    assert_eq!(reasons["status 404"], 100 * trials);
    let status_codes = BTreeMap::from([(404, 100)]);
    let expected = with(&[], true, HttpDetail { status_codes, ..HttpDetail::default() });
    let reasons = &expected.answers.requests.as_ref().unwrap().error_reasons;
    assert!(reasons.is_empty(), "a status that was expected is no error: {reasons:?}");
}

/// A group that is at its bottleneck, with somebody waiting for memory for a share of the time.
fn short_of_memory(stalled: f64, hits_hz: f64) -> Record {
    let mut reading = server(0.4, 0.0);
    reading.samples = Some([0.1, 0.0, 0.9, 0.0]);
    let scene = Scene { threads: vec![reading, generator(0.2, 0.0)], ..idle() };
    let group = || Subject::Group("/web".to_owned());
    let record = gauge(asked(&scene), &memory::LIMIT_BYTES, &group(), f64::from(64 << 20));
    counted(
        record,
        &scene,
        &[
            (&pressure::MEMORY_SOME_NS, Subject::Machine, stalled * 1e9),
            (&memory::LIMIT_HITS, group(), hits_hz),
            (&memory::REFAULTED_BYTES, group(), 4096.0 * hits_hz),
        ],
    )
}

#[test]
fn a_group_at_its_limit_of_memory_is_named_and_a_slow_disk_is_not_that() {
    let outcome = has_bottleneck(&short_of_memory(0.6, 500.0), Cause::MemoryPressure);
    let summary = &finding(&outcome, Cause::MemoryPressure).unwrap().summary;
    assert!(summary.contains("/web may use 64 MiB"), "{summary}");
    // Somebody else's pressure, and none at all.
    assert_eq!(
        silent(&short_of_memory(0.6, 0.0), Cause::MemoryPressure).verdict.bottleneck,
        Cause::BlockedOnDisk
    );
    silent(&short_of_memory(0.0, 500.0), Cause::MemoryPressure);
    // Somebody else's again, beside a server that is in the kernel most of its time, and reads nothing.
    let others = [
        (&pressure::MEMORY_SOME_NS, Subject::Machine, 0.6e9),
        (&memory::REFAULTED_BYTES, Subject::Machine, 1e8),
    ];
    let busy = Scene::default();
    silent(&counted(asked(&busy), &busy, &others), Cause::MemoryPressure);
    // And beside a server that writes to a disk: a build at a limit of its own is stalled, and reads in again what it had read.
    let mut writer = server(0.4, 0.0);
    writer.samples = Some([0.1, 0.0, 0.9, 0.0]);
    let writes = Scene { threads: vec![writer, generator(0.2, 0.0)], ..idle() };
    let build = [
        (&pressure::MEMORY_SOME_NS, Subject::Machine, 0.5e9),
        (&memory::REFAULTED_BYTES, Subject::Machine, 1e8),
        (&memory::READ_BYTES, Subject::Machine, 1e8),
    ];
    silent(&counted(asked(&writes), &writes, &build), Cause::MemoryPressure);
    // Hardly any pressure, but most of what it waited for had been in memory before; or little of it.
    let read =
        |hz| counted(short_of_memory(0.02, 500.0), &idle(), &[(&memory::READ_BYTES, Subject::Machine, hz)]);
    has_bottleneck(&read(2.1e6), Cause::MemoryPressure);
    assert_eq!(explain(&read(2e8)).verdict.bottleneck, Cause::BlockedOnDisk);
}

fn flooded(own_hz: f64) -> Record {
    let threads = vec![server(0.97, 0.0), generator(0.3, 0.0)];
    let scene = Scene { threads, rate_hz: 900.0, ..Scene::default() };
    counted(
        asked(&scene),
        &scene,
        &[
            (&network::SOFTNET_PACKETS, Subject::Cpu(0), 100_000.0),
            (&connections::SERVER_SEGMENTS_IN, Subject::Machine, own_hz),
            (&connections::CLIENT_SEGMENTS_IN, Subject::Machine, 1000.0),
        ],
    )
}

#[test]
fn packets_that_are_others_on_the_servers_cpu_are_distinguished_from_its_own() {
    // A fifth of the CPU's run is soft interrupts (as in every scene), nearly all of them for others.
    let outcome = has_bottleneck(&flooded(1000.0), Cause::SoftirqSaturated);
    let found = finding(&outcome, Cause::SoftirqSaturated).unwrap();
    assert!(found.summary.contains("19 %") && found.summary.contains("98000 of 100000"), "{}", found.summary);
    silent(&flooded(99_000.0), Cause::SoftirqSaturated);
    silent(&flooded(60_000.0), Cause::SoftirqSaturated);
    // Segments on its connections to other servers may be all of them.
    let scene = Scene::default();
    let tcp = |hz: f64| {
        [&network::SEGMENTS_IN, &network::SEGMENTS_OUT].map(|metric| (metric, Subject::Machine, hz))
    };
    let mut proxy = counted(flooded(1000.0), &scene, &tcp(45_000.0));
    has_bottleneck(&proxy, Cause::SoftirqSaturated);
    for trial in &mut proxy.trials {
        trial.observation.downstream =
            vec![DownstreamSeen { name: "app".to_owned(), ..DownstreamSeen::default() }];
    }
    silent(&proxy, Cause::SoftirqSaturated);
    // Interleaved with the reference server, which answers five times as much as this one: those packets are tare's own.
    let mut interleaved = counted(flooded(1000.0), &scene, &tcp(49_000.0));
    let Workload::Http(http) = &mut interleaved.plan.workload else { unreachable!() };
    http.levels.iter_mut().for_each(|level| level.arms = 2);
    silent(&interleaved, Cause::SoftirqSaturated);
    // Connections that came and went carried most of the requests: their packets are in no count but that of all TCP.
    let busy = Scene {
        threads: vec![server(0.97, 0.0), generator(0.3, 0.0)],
        rate_hz: 20_000.0,
        ..Scene::default()
    };
    let new_connections = |of_tcp: &[(&tare_model::metric::Descriptor, Subject, f64)]| {
        let counts = [
            (&network::SOFTNET_PACKETS, Subject::Cpu(0), 100_000.0),
            (&connections::SERVER_SEGMENTS_IN, Subject::Machine, 9_000.0),
            (&connections::CLIENT_SEGMENTS_IN, Subject::Machine, 9_000.0),
        ];
        counted(counted(asked(&busy), &busy, &counts), &busy, of_tcp)
    };
    silent(&new_connections(&[]), Cause::SoftirqSaturated);
    silent(&new_connections(&tcp(45_000.0)), Cause::SoftirqSaturated);
    // So few segments of TCP are not all of the packets, whoever sent them.
    has_bottleneck(&new_connections(&tcp(11_000.0)), Cause::SoftirqSaturated);
    // It may speak something else than TCP.
    let mut datagrams = flooded(1000.0);
    for trial in &mut datagrams.trials {
        trial.observation.columns.retain(|column| !column.metric.starts_with("connections."));
    }
    silent(&counted(datagrams, &scene, &tcp(10.0)), Cause::SoftirqSaturated);
}

/// The kernel's thread for packets works for whoever they are sent to.
#[test]
fn the_kernels_thread_for_the_servers_own_packets_is_nobody_else() {
    let thread = Thread::new(Role::Other, "ksoftirqd/0", 14, 0, 0.3, 0.0);
    let threads = vec![server(0.69, 0.3), generator(0.3, 0.0), thread];
    let outcome = explain(&asked(&Scene { threads, ..Scene::default() }));
    assert_eq!(outcome.verdict.bottleneck, Cause::ServerCpuBound, "{:#?}", outcome.verdict.findings);
}

#[test]
fn threads_that_only_collect_garbage_are_known_by_their_names() {
    let collecting = |run: f64| {
        let collector = Thread::new(Role::Sut, "GC Thread#0", 4713, 0, run, 0.0);
        asked(&Scene {
            threads: vec![server(0.97 - run, 0.0), collector, generator(0.3, 0.0)],
            ..Scene::default()
        })
    };
    let outcome = has_bottleneck(&collecting(0.4), Cause::GcPauses);
    assert!(finding(&outcome, Cause::GcPauses).unwrap().summary.starts_with("41 %"));
    let some = explain(&collecting(0.1));
    assert!(some.verdict.bottleneck == Cause::ServerCpuBound && finding(&some, Cause::GcPauses).is_some());
    silent(&collecting(0.01), Cause::GcPauses);
}

#[test]
fn of_others_only_sampled_stacks_tell() {
    let sampled = |collecting: u64| {
        each(asked(&Scene::default()), |trial| {
            let mut folder = Folder::default();
            let mut folded = Folded::new(Some(999.0));
            let thread = folder.frame(Frame::mark("thread"));
            let mut frame = |symbol: &str| {
                folder.frame(Frame { symbol: symbol.into(), module: None, kind: FrameKind::User })
            };
            let (serve, collect) = (frame("net/http.(*conn).serve"), frame("runtime.gcAssistAlloc.func2"));
            folded.add(Role::Sut, thread, vec![serve], 100 - collecting);
            folded.add(Role::Sut, thread, vec![serve, collect], collecting);
            folded.add(Role::Load, thread, vec![collect], 500);
            let stacks =
                folder.close(Reading::Measured(folded), Reading::missing("not asked for"), Vec::new());
            trial.observation.stacks = Some(Box::new(stacks));
        })
    };
    has_bottleneck(&sampled(40), Cause::GcPauses);
    silent(&sampled(1), Cause::GcPauses);
    // Where they were sampled after the trials, they show it as well.
    let after = |record: Record| {
        let mut record = record;
        let taken = record.trials.iter_mut().filter_map(|trial| trial.observation.stacks.take());
        record.profile = taken.map(|stacks| *stacks).collect();
        record
    };
    has_bottleneck(&after(sampled(40)), Cause::GcPauses);
    silent(&after(sampled(1)), Cause::GcPauses);
}

/// Instructions a cycle and of a request at the asked level; 2 and 20,000 where the server is full.
fn on_a_pmu(ipc: f64, instructions: f64) -> Record {
    let (scene, full) = (Scene { rate_hz: 50_000.0, ..idle() }, Scene::default());
    each(with_saturating(64, &scene, &full), |trial| {
        let (of, run, ipc, each) =
            if trial.level == 0 { (&scene, 0.3, ipc, instructions) } else { (&full, 0.97, 2.0, 20_000.0) };
        let counts = [
            (&pmu::CORE_ENABLED_NS, run * 1e9),
            (&pmu::CORE_RUNNING_NS, run * 1e9),
            (&pmu::INSTRUCTIONS, each * of.rate_hz),
            (&pmu::CYCLES, each * of.rate_hz / ipc),
        ];
        let columns = counts.map(|(metric, hz)| of.column(metric, Subject::Task(0), hz));
        trial.observation.columns.extend(columns);
    })
}

#[test]
fn the_same_instructions_at_more_cycles_are_cold_caches() {
    let outcome = explain(&on_a_pmu(1.0, 20_000.0));
    let found = finding(&outcome, Cause::ColdCaches).unwrap();
    assert!((found.effect_ln - 2f64.ln()).abs() < 0.01, "{found:#?}");
    silent(&on_a_pmu(1.98, 20_000.0), Cause::ColdCaches);
    // Other code ran.
    silent(&on_a_pmu(1.0, 30_000.0), Cause::ColdCaches);
    // Without a PMU it is said why.
    let blind = each(asked(&Scene::default()), |trial| {
        trial.observation.absences.push(tare_model::observation::Absence {
            metric: pmu::CYCLES.id.to_owned(),
            subject: None,
            reason: Missing::new("this machine has no PMU"),
        });
    });
    let outcome = silent(&blind, Cause::ColdCaches);
    assert!(could_not_judge(&outcome, "cold-caches"), "{:#?}", outcome.verdict.warnings);
}

/// Eight trials, each so much faster than the one before.
fn moving(each_ln: f64) -> Record {
    let trial = |at: u32| (0, Scene::default().scaled((each_ln * f64::from(at)).exp()));
    record(vec![level(Purpose::Asked, 64)], &(0..8).map(trial).collect::<Vec<_>>())
}

#[test]
fn a_drift_takes_what_one_half_of_the_trials_had_less_than_the_other() {
    for each_ln in [0.05, -0.05] {
        let outcome = explain(&moving(each_ln));
        let found = finding(&outcome, Cause::NotSteady).unwrap();
        assert!((found.effect_ln - 0.2).abs() < 1e-3, "{found:#?}");
    }
    silent(&moving(0.005), Cause::NotSteady);
}
