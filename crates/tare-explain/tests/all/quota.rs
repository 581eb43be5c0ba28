//! Quotas of the network: named from a counter, or from a rate of packets that more load does not raise; and who looks like one and is none.

use crate::changes::*;
use crate::support::*;
use tare_explain::explain;
use tare_model::latency::Latencies;
use tare_model::metric::{Descriptor, Subject};
use tare_model::metrics::{connections, link, network};
use tare_model::observation::Column;
use tare_model::outcome::{Cause, Outcome};
use tare_model::plan::{Transport, Workload};
use tare_model::trial::{Measure, Trial};
use tare_model::{Reading, Record};

const MACHINE: Subject = Subject::Machine;

/// Packets per second that were sent and that came in, each way.
#[derive(Clone, Copy)]
struct Flow {
    to_server: (f64, f64),
    to_generator: (f64, f64),
}

/// A quota of 5,000 packets a second: of 6,250 to the generator as many come through.
const QUOTA: Flow = Flow { to_server: (5_300.0, 5_300.0), to_generator: (6_250.0, 5_000.0) };
/// As many lost, by chance: in both directions.
const RADIO: Flow = Flow { to_server: (6_250.0, 5_600.0), to_generator: (6_250.0, 5_600.0) };

impl Flow {
    fn times(self, factor: f64) -> Flow {
        let scaled = |(sent, arrived): (f64, f64)| (sent * factor, arrived * factor);
        Flow { to_server: scaled(self.to_server), to_generator: scaled(self.to_generator) }
    }

    fn turned(self) -> Flow {
        Flow { to_server: self.to_generator, to_generator: self.to_server }
    }

    fn columns(self, scene: &Scene) -> Vec<Column> {
        let counts = [
            (&connections::TO_SERVER_SENT, self.to_server.0),
            (&connections::TO_SERVER_ARRIVED, self.to_server.1),
            (&connections::TO_GENERATOR_SENT, self.to_generator.0),
            (&connections::TO_GENERATOR_ARRIVED, self.to_generator.1),
        ];
        counts.into_iter().map(|(metric, hz)| scene.column(metric, MACHINE, hz)).collect()
    }
}

/// Adds to the trials of one level.
fn at_level(record: Record, level: u32, columns: Vec<Column>) -> Record {
    each(record, |trial: &mut Trial| {
        if trial.level == level {
            trial.observation.columns.extend(columns.iter().cloned());
        }
    })
}

/// Requests that stand still for lost packets most of their time: 10,000 of 6.4 ms, and 300 packets a second sent again.
fn stalled(record: Record, scene: &Scene) -> Record {
    let record = sampled(record, |sample| {
        let mut latency = Latencies::new();
        latency.record_n(6_400_000, 20_000);
        sample.latency = Reading::Measured(latency);
    });
    let counts: Vec<(&Descriptor, Subject, f64)> = vec![
        (&connections::BUSY_NS, MACHINE, 64.0 * 0.3e9),
        (&connections::RECEIVER_FULL_NS, MACHINE, 0.0),
        (&connections::BYTES_ACKED, MACHINE, 1e6),
        (&connections::SERVER_SEGMENTS, MACHINE, 6_000.0),
        (&connections::SERVER_RETRANSMITS, MACHINE, 300.0),
        (&connections::CLIENT_SEGMENTS, MACHINE, 6_000.0),
        (&connections::CLIENT_RETRANSMITS, MACHINE, 0.0),
        (&connections::SERVER_TIMED_OUT_NS, MACHINE, 64.0 * 0.4e9),
        (&connections::CLIENT_TIMED_OUT_NS, MACHINE, 0.0),
        (&network::SOFTNET_DROPS, Subject::Cpu(0), 0.0),
    ];
    counted(gauge(record, &connections::OPEN, &MACHINE, 64.0), scene, &counts)
}

/// The asked level with 64 connections and one with 256, each with its flow.
fn two_levels(asked_flow: Flow, more_flow: Flow, more_hz: f64) -> Record {
    let scene = idle();
    let more = Scene { rate_hz: more_hz, ..idle() };
    let record = stalled(with_saturating(64, &scene, &more), &scene);
    let record = at_level(record, 0, asked_flow.columns(&scene));
    at_level(record, 1, more_flow.columns(&more))
}

fn summary(outcome: &Outcome) -> &str {
    &finding(outcome, Cause::NetworkQuota).expect("named").summary
}

#[test]
fn as_many_packets_with_four_times_the_connections_are_a_quota() {
    let outcome = has_bottleneck(&two_levels(QUOTA, QUOTA.times(1.02), 10_200.0), Cause::NetworkQuota);
    let text = summary(&outcome);
    assert!(
        text.starts_with("5100 packets a second come through from the server to the generator, 20 %"),
        "{text}"
    );
    assert!(finding(&outcome, Cause::NetworkCeiling).is_none(), "said once");
    let figure = &finding(&outcome, Cause::NetworkQuota).unwrap().evidence[0];
    assert!(figure.unit == "packets/s" && (figure.value / 5_100.0 - 1.0).abs() < 0.01, "{figure:?}");
    let turned = has_bottleneck(&two_levels(QUOTA.turned(), QUOTA.turned(), 10_000.0), Cause::NetworkQuota);
    assert!(summary(&turned).contains("from the generator to the server"), "{}", summary(&turned));
}

#[test]
fn who_gets_more_through_or_loses_both_ways_has_no_quota() {
    // One direction alone, and four times the connections get twice as many through: losses by chance.
    let outcome = silent(&two_levels(QUOTA, QUOTA.times(2.0), 20_000.0), Cause::NetworkQuota);
    assert_eq!(outcome.verdict.bottleneck, Cause::NetworkCeiling);
    // Radio, and a rate that a limit of the server's own keeps where it is.
    let radio = silent(&two_levels(RADIO, RADIO, 10_000.0), Cause::NetworkQuota);
    assert_eq!(radio.verdict.bottleneck, Cause::NetworkCeiling);
    // The CPU's own queue dropped them.
    let scene = idle();
    let drops = [(&network::SOFTNET_DROPS, Subject::Cpu(1), 1_250.0)];
    silent(&counted(two_levels(QUOTA, QUOTA, 10_000.0), &scene, &drops), Cause::NetworkQuota);
}

#[test]
fn a_flat_rate_without_losses_is_the_servers_own() {
    // A limit in the server, a database, a timer: both sides idle, four times the connections bring nothing, nothing is lost.
    let lossless = Flow { to_server: (5_000.0, 5_000.0), to_generator: (5_000.0, 5_000.0) };
    let record = two_levels(lossless, lossless, 10_000.0);
    let record = each(record, |trial| {
        for column in &mut trial.observation.columns {
            if column.metric == connections::SERVER_RETRANSMITS.id
                || column.metric == connections::SERVER_TIMED_OUT_NS.id
            {
                column.samples.iter_mut().for_each(|sample| sample.value = 0.0);
            }
        }
    });
    silent(&record, Cause::NetworkQuota);
}

#[test]
fn a_side_without_time_to_spare_is_the_bottleneck_itself() {
    let full = Scene { threads: vec![server(0.97, 0.0), generator(0.2, 0.0)], ..idle() };
    let record = stalled(with_saturating(64, &full, &full), &full);
    let record = each(record, |trial| trial.observation.columns.extend(QUOTA.columns(&full)));
    silent(&record, Cause::NetworkQuota);
}

#[test]
fn a_server_whose_cpus_are_not_seen_may_be_what_is_flat() {
    let mut record = two_levels(QUOTA, QUOTA, 10_000.0);
    for trial in &mut record.trials {
        trial.observation.tasks.retain(|task| task.role != tare_model::observation::Role::Sut);
    }
    silent(&record, Cause::NetworkQuota);
}

fn transport(mut record: Record, transport: Transport) -> Record {
    let Workload::Http(http) = &mut record.plan.workload else { panic!("a server") };
    http.transport = transport;
    record
}

fn on_device(record: Record, metric: &Descriptor, device: &str, hz: f64) -> Record {
    counted(record, &idle(), &[(metric, Subject::Device(device.to_owned()), hz)])
}

#[test]
fn a_cards_counter_names_its_quota_and_direction() {
    let base = || transport(stalled(asked(&idle()), &idle()), Transport::Remote);
    assert_eq!(explain(&base()).verdict.bottleneck, Cause::NetworkCeiling);
    let out = on_device(base(), &link::BYTES_OUT_EXCEEDED, "eth0", 300.0);
    let outcome = has_bottleneck(&out, Cause::NetworkQuota);
    let text = summary(&outcome);
    assert!(
        text.contains("from the generator to the server") && text.contains("eth0 counted 300 a second"),
        "{text}"
    );
    assert!(text.contains("bw_out_allowance_exceeded"), "{text}");
    let both =
        has_bottleneck(&on_device(base(), &link::PACKETS_EXCEEDED, "eth0", 300.0), Cause::NetworkQuota);
    assert!(summary(&both).contains("in a direction that is not seen"), "{}", summary(&both));
    // The card is not on the way between two namespaces, and the quotas of names and connections are others.
    let inside = transport(on_device(base(), &link::PACKETS_EXCEEDED, "eth0", 300.0), Transport::Namespace);
    silent(&inside, Cause::NetworkQuota);
    silent(&on_device(base(), &link::LINK_LOCAL_EXCEEDED, "eth0", 300.0), Cause::NetworkQuota);
    silent(&on_device(base(), &link::PACKETS_EXCEEDED, "eth0", 0.2), Cause::NetworkQuota);
    // 300 segments a second are sent again: what a short burst or another program takes of a quota now and then is not why.
    let bursts = explain(&on_device(base(), &link::BYTES_IN_EXCEEDED, "eth0", 10.0));
    assert_eq!(bursts.verdict.bottleneck, Cause::NetworkCeiling);
}

#[test]
fn a_counter_beside_requests_that_are_not_held_up_is_a_finding_alone() {
    let record = transport(asked(&Scene::default()), Transport::Remote);
    let record = on_device(record, &link::PACKETS_EXCEEDED, "eth0", 50.0);
    let record = counted(
        record,
        &Scene::default(),
        &[
            (&connections::CLIENT_SEGMENTS, MACHINE, 6_000.0),
            (&connections::CLIENT_RETRANSMITS, MACHINE, 0.0),
        ],
    );
    let outcome = explain(&record);
    assert_ne!(outcome.verdict.bottleneck, Cause::NetworkQuota);
    assert!(summary(&outcome).contains("That it held the rate is not seen"), "{}", summary(&outcome));
}

#[test]
fn a_queue_that_keeps_to_a_rate_is_named_where_it_is_on_the_way_that_takes_the_time() {
    let base = |flow: Flow| {
        let record = transport(stalled(asked(&idle()), &idle()), Transport::Namespace);
        at_level(record, 0, flow.columns(&idle()))
    };
    let queue = |record, device: &str| on_device(record, &link::QDISC_OVERLIMITS, device, 4_000.0);
    let outcome = has_bottleneck(&queue(base(QUOTA), "the server's eth tbf"), Cause::NetworkQuota);
    assert!(
        summary(&outcome).contains("the server's eth tbf counted 4000 a second"),
        "{}",
        summary(&outcome)
    );
    // The generator's own queue sends the other way; and one that only orders packets has no rate.
    silent(&queue(base(QUOTA), "eth tbf"), Cause::NetworkQuota);
    has_bottleneck(&queue(base(QUOTA.turned()), "eth tbf"), Cause::NetworkQuota);
    silent(&queue(base(QUOTA), "the server's eth fq_codel"), Cause::NetworkQuota);
}

#[test]
fn requests_without_an_answer_in_time_do_not_hide_a_quota() {
    let record = each(two_levels(QUOTA, QUOTA, 10_000.0), |trial| {
        if let Measure::Http(sample) = &mut trial.sample {
            sample.errors = [(tare_model::trial::ErrorKind::Timeout, 60)].into_iter().collect();
        }
    });
    let outcome = has_bottleneck(&record, Cause::NetworkQuota);
    assert!(!outcome.verdict.valid);
}

/// A rule of the packet filter, and packets per second that it counts as dropped.
fn rule(record: Record, device: &str, per_s: f64, dropped_hz: Option<f64>) -> Record {
    let subject = Subject::Device(device.to_owned());
    let record = gauge(record, &link::LIMIT_PACKETS_HZ, &subject, per_s);
    match dropped_hz {
        Some(hz) => counted(record, &idle(), &[(&link::LIMIT_DROPS, subject, hz)]),
        None => record,
    }
}

#[test]
fn a_rule_that_drops_as_many_as_are_missing_has_the_figure() {
    let base = |flow: Flow| {
        let record = transport(stalled(asked(&idle()), &idle()), Transport::Namespace);
        at_level(record, 0, flow.columns(&idle()))
    };
    let counts =
        rule(base(QUOTA), "nftables t in, incoming, over 6000 packets/s, of some", 6_000.0, Some(1_200.0));
    let outcome = has_bottleneck(&counts, Cause::NetworkQuota);
    let text = summary(&outcome);
    assert!(text.starts_with("6000 packets a second pass from the server to the generator"), "{text}");
    assert!(text.contains("1200 a second (nftables t in"), "{text}");
    let figure = &finding(&outcome, Cause::NetworkQuota).unwrap().evidence[0];
    assert!(figure.unit == "packets/s" && figure.value == 6_000.0, "{figure:?}");
    // It counts far fewer than are missing, or nothing: it is about others.
    let others = rule(base(QUOTA), "nftables t in, incoming, over 10 packets/s, of some", 10.0, Some(20.0));
    assert_eq!(silent(&others, Cause::NetworkQuota).verdict.bottleneck, Cause::NetworkCeiling);
    silent(
        &rule(base(QUOTA), "nftables t in, incoming, over 10 packets/s, of some", 10.0, None),
        Cause::NetworkQuota,
    );
    // From another host only one end is seen: a rule for new ssh connections says nothing of what is lost on the line.
    let remote = |device: &str, hz: f64| {
        let record = transport(stalled(asked(&idle()), &idle()), Transport::Remote);
        rule(record, device, 10.0, Some(hz))
    };
    silent(&remote("nftables t in, incoming, over 10 packets/s, of some", 5.0), Cause::NetworkQuota);
    silent(&remote("nftables t in, incoming, over 10 packets/s, of some", 1e6), Cause::NetworkQuota);
    silent(&remote("nftables t in, incoming, over 10 packets/s", 5.0), Cause::NetworkQuota);
    has_bottleneck(&remote("nftables t in, incoming, over 10 packets/s", 1e6), Cause::NetworkQuota);
    // Every packet meets it, on the way on which they are lost, and on the other.
    let all = "the server's nftables t in, incoming, over 5000 packets/s";
    let turned = has_bottleneck(&rule(base(QUOTA.turned()), all, 5_000.0, None), Cause::NetworkQuota);
    assert!(summary(&turned).contains("from the generator to the server"), "{}", summary(&turned));
    silent(&rule(base(QUOTA), all, 5_000.0, None), Cause::NetworkQuota);
    // Packets go out there as they come in here.
    let out = rule(base(QUOTA), "the server's nftables t out, outgoing, over 5000 packets/s", 5_000.0, None);
    has_bottleneck(&out, Cause::NetworkQuota);
    // Nothing is held up.
    let busy = rule(transport(asked(&Scene::default()), Transport::Namespace), all, 5_000.0, Some(50.0));
    assert_ne!(explain(&busy).verdict.bottleneck, Cause::NetworkQuota);
}
