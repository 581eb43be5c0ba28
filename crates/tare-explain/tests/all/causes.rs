//! Causes that lie beside the time accounting: each in a record where it is the bottleneck, or its finding, and in one like it where it
//! is not.

use crate::support::*;
use std::collections::BTreeMap;
use tare_explain::explain;
use tare_model::downstream::DownstreamSeen;
use tare_model::latency::Latencies;
use tare_model::metric::{Descriptor, Subject};
use tare_model::metrics::{client, connections, memory, network, open_files, pmu, pressure};
use tare_model::observation::Role;
use tare_model::outcome::{Cause, Finding, GrossIs, Outcome};
use tare_model::plan::Purpose;
use tare_model::stacks::{Folded, Folder, Frame, FrameKind};
use tare_model::trial::{ErrorKind, HttpDetail, HttpSample, Measure, RESET, Trial};
use tare_model::{Missing, Reading, Record};

/// Neither side full: 30 % and 20 % busy, at 64 connections.
fn idle() -> Scene {
    Scene { threads: vec![server(0.3, 0.0), generator(0.2, 0.0)], rate_hz: 10_000.0, ..Scene::default() }
}

fn each(mut record: Record, change: impl Fn(&mut Trial)) -> Record {
    record.trials.iter_mut().for_each(change);
    record
}

/// Adds counters that grew so fast.
fn counted(record: Record, scene: &Scene, counts: &[(&Descriptor, Subject, f64)]) -> Record {
    each(record, |trial| {
        let columns = counts.iter().map(|(metric, subject, hz)| scene.column(metric, subject.clone(), *hz));
        trial.observation.columns.extend(columns);
    })
}

/// Adds a gauge.
fn level(record: Record, metric: &Descriptor, subject: &Subject, value: f64) -> Record {
    each(record, |trial| {
        let mut column = Scene::default().column(metric, subject.clone(), 0.0);
        column.samples.iter_mut().for_each(|sample| sample.value = value);
        trial.observation.columns.push(column);
    })
}

fn sampled(record: Record, change: impl Fn(&mut HttpSample)) -> Record {
    each(record, |trial| {
        if let Measure::Http(sample) = &mut trial.sample {
            change(sample);
        }
    })
}

fn finding(outcome: &Outcome, cause: Cause) -> Option<&Finding> {
    outcome.verdict.findings.iter().find(|finding| finding.cause == cause)
}

fn has_bottleneck(record: &Record, cause: Cause) -> Outcome {
    let outcome = explain(record);
    assert_eq!(
        outcome.verdict.bottleneck, cause,
        "{:#?}\n{:#?}",
        outcome.verdict.findings, outcome.verdict.warnings
    );
    let found = finding(&outcome, cause).expect("the bottleneck has its finding");
    assert!(!found.evidence.is_empty() && !found.remedy.is_empty() && !found.confirm.is_empty());
    outcome
}

fn silent(record: &Record, cause: Cause) -> Outcome {
    let outcome = explain(record);
    assert!(
        outcome.verdict.bottleneck != cause && finding(&outcome, cause).is_none(),
        "{:#?}",
        outcome.verdict.findings
    );
    outcome
}

/// Of 20,000 answers, `late` that end after 41 ms, and whether those begin at once.
fn late(late: u64, begin_at_once: bool, acks_hz: f64) -> Record {
    late_by(late, (41_000_000, 300_000), begin_at_once, acks_hz)
}

/// The same, ending after `ended_ns`, where the others begin and end after `begun_ns`.
fn late_by(late: u64, times_ns: (u64, u64), begin_at_once: bool, acks_hz: f64) -> Record {
    late_in(&idle(), late, times_ns, begin_at_once, acks_hz)
}

/// The same in a scene.
fn late_in(
    scene: &Scene,
    late: u64,
    (ended_ns, begun_ns): (u64, u64),
    begin_at_once: bool,
    acks_hz: f64,
) -> Record {
    let record = sampled(asked(scene), |sample| {
        let mut latency = Latencies::new();
        latency.record_n(begun_ns, 20_000 - late);
        let mut first_byte = latency.clone();
        latency.record_n(ended_ns, late);
        first_byte.record_n(if begin_at_once { begun_ns } else { ended_ns }, late);
        sample.latency = Reading::Measured(latency);
        sample.detail = Some(Box::new(HttpDetail { first_byte, ..HttpDetail::default() }));
    });
    counted(record, scene, &[(&client::DELAYED_ACKS, Subject::Machine, acks_hz)])
}

#[test]
fn answers_that_end_40_ms_after_they_began_wait_for_an_acknowledgement() {
    let outcome = has_bottleneck(&late(15_000, true, 7_500.0), Cause::DelayedAck);
    let summary = &finding(&outcome, Cause::DelayedAck).unwrap().summary;
    assert!(summary.contains("75 % of the answers") && summary.contains("delayed ACK"), "{summary}");
    // On a busy machine an answer begins late, and ends later by as much; without that it is a program's own delay.
    has_bottleneck(&late_by(15_000, (51_000_000, 8_000_000), true, 7_500.0), Cause::DelayedAck);
    silent(&late_by(15_000, (51_000_000, 300_000), true, 7_500.0), Cause::DelayedAck);
    silent(&late_by(15_000, (80_000_000, 39_000_000), true, 7_500.0), Cause::DelayedAck);
    // A program may let 41 ms pass itself, as often: then nothing that it wrote waits to be sent.
    let ends = |unsent: f64| {
        let scene = idle();
        let counters = [
            (&connections::BUSY_NS, 1e6),
            (&connections::RECEIVER_FULL_NS, 0.0),
            (&connections::BYTES_ACKED, 1e6),
            (&connections::SERVER_SEGMENTS, 2e4),
            (&connections::SERVER_RETRANSMITS, 0.0),
        ];
        let counters = counters.map(|(metric, hz)| (metric, Subject::Machine, hz));
        let record = counted(late(15_000, true, 7_500.0), &scene, &counters);
        let record = level(record, &connections::OPEN, &Subject::Machine, 64.0);
        level(record, &connections::UNSENT, &Subject::Machine, unsent)
    };
    has_bottleneck(&ends(50.0), Cause::DelayedAck);
    silent(&ends(0.0), Cause::DelayedAck);
    // Whoever takes CPU time meanwhile holds up the rest alone.
    let contended = Scene {
        threads: vec![
            server(0.3, 0.4),
            generator(0.2, 0.0),
            Thread::new(Role::Other, "python3", 900, 0, 0.6, 0.0),
        ],
        ..idle()
    };
    assert_eq!(explain(&asked(&contended)).verdict.bottleneck, Cause::CpuContended);
    has_bottleneck(&late_in(&contended, 15_000, (41_000_000, 300_000), true, 7_500.0), Cause::DelayedAck);
    // Some of them are a finding and hold nothing up.
    let some = explain(&late(20, true, 10.0));
    assert!(
        some.verdict.bottleneck != Cause::DelayedAck && finding(&some, Cause::DelayedAck).is_some(),
        "{:#?}",
        some.verdict.findings
    );
}

#[test]
fn a_program_that_takes_40_ms_is_no_delayed_acknowledgement() {
    silent(&late(15_000, false, 7_500.0), Cause::DelayedAck);
    silent(&late(15_000, true, 0.0), Cause::DelayedAck);
    let foreign = sampled(late(15_000, true, 7_500.0), |sample| sample.detail = None);
    let outcome = silent(&foreign, Cause::DelayedAck);
    assert!(could_not_judge(&outcome, "delayed-ack"), "{:#?}", outcome.verdict.warnings);
}

fn could_not_judge(outcome: &Outcome, cause: &str) -> bool {
    outcome
        .verdict
        .warnings
        .iter()
        .any(|warning| warning.id == "could-not-judge" && warning.text.contains(cause))
}

#[test]
fn connections_without_a_port_are_not_the_servers_errors() {
    let failing = |kind| asked(&Scene { errors: vec![(kind, 30_000)], ..idle() });
    let with_ports = |record| {
        let record = level(record, &client::PORTS, &Subject::Machine, 500.0);
        level(record, &client::TIME_WAIT, &Subject::Machine, 480.0)
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
        let record = level(record, &open_files::OPEN, &Subject::Machine, open);
        let record = level(record, &open_files::LIMIT, &Subject::Machine, 40.0);
        level(record, &connections::WAITING, &Subject::Machine, waiting)
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

/// 64 connections whose answers are on their way for a share of the time; segments sent again by the server, each second.
fn on_the_way(scene: &Scene, share: f64, resent_hz: f64) -> Record {
    on_their_way(asked(scene), scene, share, resent_hz)
}

fn on_their_way(record: Record, scene: &Scene, share: f64, resent_hz: f64) -> Record {
    let machine = || Subject::Machine;
    counted(
        level(record, &connections::OPEN, &machine(), 64.0),
        scene,
        &[
            (&connections::BUSY_NS, machine(), 64.0 * share * 1e9),
            (&connections::RECEIVER_FULL_NS, machine(), 0.0),
            (&connections::BYTES_ACKED, machine(), 12.5e6),
            (&connections::SERVER_SEGMENTS, machine(), 10_000.0),
            (&connections::SERVER_RETRANSMITS, machine(), resent_hz),
            (&connections::CLIENT_SEGMENTS, machine(), 10_000.0),
            (&connections::CLIENT_RETRANSMITS, machine(), 0.0),
        ],
    )
}

#[test]
fn answers_that_are_on_their_way_while_both_sides_wait_meet_a_ceiling() {
    let outcome = has_bottleneck(&on_the_way(&idle(), 0.97, 0.0), Cause::NetworkCeiling);
    let summary = &finding(&outcome, Cause::NetworkCeiling).unwrap().summary;
    assert!(summary.contains("97 %") && summary.contains("12.5 MB a second"), "{summary}");
    // Not on the way, or not with so few connections, or not while a side is full.
    silent(&on_the_way(&idle(), 0.2, 0.0), Cause::NetworkCeiling);
    // The head of an answer that comes later is acknowledged after 40 ms, on 56 of 64 connections at a time.
    let heads = [(&client::DELAYED_ACKS, Subject::Machine, 1400.0)];
    silent(&counted(on_the_way(&idle(), 0.97, 0.0), &idle(), &heads), Cause::NetworkCeiling);
    // The head is there at once, and the server takes 30 ms for the rest; a large answer is on its way meanwhile.
    let head_first = |bytes_hz: f64| {
        let record = late_by(19_000, (30_000_000, 300_000), true, 0.0);
        let mut record = on_their_way(record, &idle(), 0.97, 0.0);
        let columns = record.trials.iter_mut().flat_map(|trial| &mut trial.observation.columns);
        for column in columns.filter(|column| column.metric == connections::BYTES_ACKED.id) {
            column.samples = idle().column(&connections::BYTES_ACKED, Subject::Machine, bytes_hz).samples;
        }
        record
    };
    silent(&head_first(1e6), Cause::NetworkCeiling);
    has_bottleneck(&head_first(2e8), Cause::NetworkCeiling);
    let mut few = on_the_way(&idle(), 0.97, 0.0);
    if let tare_model::plan::Workload::Http(http) = &mut few.plan.workload {
        http.levels[0].connections = 2;
    }
    assert_eq!(silent(&few, Cause::NetworkCeiling).verdict.bottleneck, Cause::TooLittleConcurrency);
    let full = Scene { threads: vec![server(0.3, 0.0), generator(0.97, 0.0)], ..idle() };
    silent(&on_the_way(&full, 0.97, 0.0), Cause::NetworkCeiling);
}

#[test]
fn a_ceiling_gives_four_times_the_connections_little_more() {
    let at = |saturating: &Scene| on_their_way(with_saturating(64, &idle(), saturating), &idle(), 0.97, 0.0);
    let busy = |server_busy, rate_hz| Scene {
        threads: vec![server(server_busy, 0.0), generator(0.2, 0.0)],
        rate_hz,
        ..Scene::default()
    };
    has_bottleneck(&at(&busy(0.34, 11_500.0)), Cause::NetworkCeiling);
    // Twice as much, or little more as the server is full by then.
    silent(&at(&busy(0.6, 20_000.0)), Cause::NetworkCeiling);
    silent(&at(&busy(0.97, 11_500.0)), Cause::NetworkCeiling);
}

#[test]
fn what_the_accounting_misses_does_not_fill_sides_with_time_to_spare() {
    // Interrupts of idle CPUs are in no counter: 8 % of these.
    let missing = Scene { hidden: 0.08, ..idle() };
    let outcome = has_bottleneck(&on_the_way(&missing, 0.97, 0.0), Cause::NetworkCeiling);
    assert!(!outcome.verdict.valid, "what requests cost is not known");
    let much = Scene { hidden: 0.55, ..idle() };
    assert_eq!(
        silent(&on_the_way(&much, 0.97, 0.0), Cause::NetworkCeiling).verdict.bottleneck,
        Cause::Unknown
    );
}

#[test]
fn requests_that_stand_still_for_lost_packets_are_the_networks() {
    // 10,000 requests of 6.4 ms each are 64 s; 200 lost segments cost 40 s of them.
    let slow = |record| {
        sampled(record, |sample| {
            let mut latency = Latencies::new();
            latency.record_n(6_400_000, 20_000);
            sample.latency = Reading::Measured(latency);
        })
    };
    let outcome = has_bottleneck(&slow(on_the_way(&idle(), 0.2, 200.0)), Cause::NetworkCeiling);
    let summary = &finding(&outcome, Cause::NetworkCeiling).unwrap().summary;
    assert!(summary.starts_with("Packets are lost") && summary.contains("1.00 %"), "{summary}");
    silent(&slow(on_the_way(&idle(), 0.2, 10.0)), Cause::NetworkCeiling);
    // Few are sent again, as each was lost time and again: the kernel counts how long that took.
    let few = || slow(on_the_way(&idle(), 0.2, 25.0));
    silent(&few(), Cause::NetworkCeiling);
    let waited = [(&connections::SERVER_TIMED_OUT_NS, Subject::Machine, 40e9)];
    has_bottleneck(&counted(few(), &idle(), &waited), Cause::NetworkCeiling);
}

#[test]
fn a_generator_that_the_hypervisor_holds_up_has_no_time_to_spare() {
    let at =
        |load_steal| Scene { threads: vec![server(0.3, 0.0), generator(0.3, 0.3)], load_steal, ..idle() };
    has_bottleneck(&on_the_way(&at(0.0), 0.97, 0.0), Cause::NetworkCeiling);
    let outcome = silent(&on_the_way(&at(0.35), 0.97, 0.0), Cause::NetworkCeiling);
    assert_eq!(
        (outcome.verdict.bottleneck, outcome.figures.gross_is),
        (Cause::LoadGeneratorBound, GrossIs::LowerBound)
    );
}

#[test]
fn requests_that_fail_of_lost_packets_do_not_hide_them() {
    let failing = |errors: &[(ErrorKind, u64)], resent_hz| {
        let record = on_the_way(&Scene { errors: errors.to_vec(), ..idle() }, 0.2, resent_hz);
        sampled(record, |sample| {
            let mut latency = Latencies::new();
            latency.record_n(6_400_000, 20_000);
            sample.latency = Reading::Measured(latency);
        })
    };
    let outcome = has_bottleneck(&failing(&[(ErrorKind::Timeout, 60)], 200.0), Cause::NetworkCeiling);
    assert!(
        !outcome.verdict.valid && finding(&outcome, Cause::Errors).is_some(),
        "{:#?}",
        outcome.verdict.findings
    );
    // Nothing was lost; or what failed had its answer.
    has_bottleneck(&failing(&[(ErrorKind::Timeout, 60)], 10.0), Cause::Errors);
    has_bottleneck(&failing(&[(ErrorKind::Timeout, 60), (ErrorKind::Status, 100)], 200.0), Cause::Errors);
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
}

/// A group that is at its bottleneck, with somebody waiting for memory for a share of the time.
fn short_of_memory(stalled: f64, hits_hz: f64) -> Record {
    let mut reading = server(0.4, 0.0);
    reading.samples = Some([0.1, 0.0, 0.9, 0.0]);
    let scene = Scene { threads: vec![reading, generator(0.2, 0.0)], ..idle() };
    let group = || Subject::Group("/web".to_owned());
    let record = level(asked(&scene), &memory::LIMIT_BYTES, &group(), f64::from(64 << 20));
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
    // Hardly any pressure, but most of what it waited for had been in memory before; or little of it.
    let read =
        |hz| counted(short_of_memory(0.02, 500.0), &idle(), &[(&memory::READ_BYTES, Subject::Machine, hz)]);
    has_bottleneck(&read(2.1e6), Cause::MemoryPressure);
    assert_eq!(explain(&read(2e8)).verdict.bottleneck, Cause::BlockedOnDisk);
}

fn flooded(own_hz: f64) -> Record {
    let scene = Scene { threads: vec![server(0.97, 0.0), generator(0.3, 0.0)], ..Scene::default() };
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
    record(vec![crate::support::level(Purpose::Asked, 64)], &(0..8).map(trial).collect::<Vec<_>>())
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
