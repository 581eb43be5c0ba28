//! What lies between generator and server: acknowledgements that are held back, answers on their way, and lost packets.

use crate::changes::*;
use crate::support::*;
use tare_explain::explain;
use tare_model::latency::Latencies;
use tare_model::metric::Subject;
use tare_model::metrics::{client, connections};
use tare_model::observation::Role;
use tare_model::outcome::{Cause, GrossIs};
use tare_model::trial::{ErrorKind, HttpDetail};
use tare_model::{Reading, Record};

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
        let record = gauge(record, &connections::OPEN, &Subject::Machine, 64.0);
        gauge(record, &connections::UNSENT, &Subject::Machine, unsent)
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

/// 64 connections whose answers are on their way for a share of the time; segments sent again by the server, each second.
fn on_the_way(scene: &Scene, share: f64, resent_hz: f64) -> Record {
    on_their_way(asked(scene), scene, share, resent_hz)
}

fn on_their_way(record: Record, scene: &Scene, share: f64, resent_hz: f64) -> Record {
    let machine = || Subject::Machine;
    counted(
        gauge(record, &connections::OPEN, &machine(), 64.0),
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

/// One connection spends half of its time on the way; 64 times the connections bring seven times the rate, and no side is full then.
#[test]
fn a_rate_that_more_connections_raise_meets_no_ceiling() {
    let busy = |server_busy, rate_hz| Scene {
        threads: vec![server(server_busy, 0.0), generator(0.3, 0.0)],
        rate_hz,
        ..Scene::default()
    };
    let one = busy(0.49, 12_000.0);
    let record = on_their_way(with_saturating(1, &one, &busy(0.7, 83_500.0)), &one, 0.51, 0.0);
    let outcome = silent(&record, Cause::NetworkCeiling);
    assert_eq!(outcome.verdict.bottleneck, Cause::TooLittleConcurrency);
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
