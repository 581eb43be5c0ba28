//! Why the server's threads did not run: asleep by reason, and behind whom they waited.

use super::{Medium, Section, Source};
use crate::block::{Block, Column, Row, Table, Text};
use crate::format::{count, percent, seconds};
use tare_record::observation::Role;
use tare_record::outcome::{RoleLedger, ServingLedger};
use tare_record::schedule::{Quantiles, ScheduleSource, SwitchBooks};

pub(crate) static SECTION: Section =
    Section { title: "Asleep and waiting", media: &[Medium::Terminal, Medium::Page], build };

/// Rows of a list, at most, and the least share that has one.
const ROWS_MAX: usize = 6;
const SHARE_SHOWN: f64 = 0.005;

fn build(source: &Source) -> Vec<Block> {
    let ledger = &source.outcome.ledger;
    let (Some(sut), Some(switches)) = (&ledger.sut, &ledger.switches) else { return Vec::new() };
    let Some(how) = switches.blocked_source else { return Vec::new() };
    let mut rows = sleeps(sut, switches);
    rows.extend(waits(switches));
    rows.extend(wakes(switches));
    rows.extend(locks(switches));
    if rows.is_empty() {
        return Vec::new();
    }
    let mut blocks = vec![
        Block::Line(Text::dim(method(how, switches.looked_share))),
        Block::Table(Table {
            columns: vec![Column::words("", 0), Column::figures("", 0), Column::words("", 1)],
            rows,
        }),
    ];
    if switches.events_lost > 0 {
        let lost = format!("{} events were lost: what they told is missing here.", switches.events_lost);
        blocks.push(Block::Line(Text::plain(lost)));
    }
    blocks
}

fn method(how: ScheduleSource, looked_share: f64) -> String {
    let looks = "up to a hundred looks a second at what they were doing";
    match how {
        ScheduleSource::Looks => {
            format!("Of its serving threads, by {looks}; --trace tells every switch.")
        }
        ScheduleSource::Tracepoints if looked_share > 0.0 => format!(
            "Of its serving threads, by every switch (tracepoints); {} of their time by {looks}, since the switches left the books of those threads open.",
            percent(looked_share)
        ),
        ScheduleSource::Tracepoints => "Of its serving threads, by every switch (tracepoints).".to_owned(),
    }
}

fn cells(what: impl Into<String>, figure: String, detail: impl Into<String>) -> Row {
    Row::Cells(vec![Text::plain(what.into()), Text::plain(figure), Text::dim(detail.into())])
}

fn sleeps(sut: &RoleLedger, switches: &SwitchBooks) -> Vec<Row> {
    // A main thread that waits for its workers all day would hide what they wait for.
    let ServingLedger { wall_s, blocked_s, .. } = &sut.serving;
    let mut parts: Vec<(&String, &f64)> =
        blocked_s.iter().filter(|(_, slept_s)| **slept_s >= SHARE_SHOWN * wall_s).collect();
    parts.sort_by(|a, b| b.1.total_cmp(a.1));
    let row = |(why, slept_s): (&String, &f64)| {
        let peers = switches.downstream.iter().map(|peer| format!("{} {}", peer.peer, percent(peer.share)));
        let detail = match why.as_str() {
            "event" => "for events, or a socket that it accepted".to_owned(),
            "lock" => "for a lock (futex)".to_owned(),
            "disk" => "for a disk".to_owned(),
            "downstream" => peers.take(ROWS_MAX).collect::<Vec<_>>().join(", "),
            "timer" => "for a time to pass".to_owned(),
            "fault" => "for a page of memory".to_owned(),
            _ => seconds(*slept_s),
        };
        cells(format!("asleep: {why}"), percent(slept_s / wall_s), detail)
    };
    parts.into_iter().map(row).collect()
}

fn waits(switches: &SwitchBooks) -> Vec<Row> {
    let shown = switches.preempted_by.iter().filter(|one| one.share >= SHARE_SHOWN).take(ROWS_MAX);
    let row = |one: &tare_record::schedule::Preemptor| {
        let whose = match one.role {
            Role::Sut => "its own",
            Role::Load => "load generator",
            Role::Tare => "tare",
            Role::Other => "another program",
        };
        let name = if one.pid == 0 { one.name.clone() } else { format!("{}/{}", one.name, one.pid) };
        cells(
            format!("waited behind {name}"),
            percent(one.share),
            format!("{}, {whose}", seconds(one.wait_s)),
        )
    };
    shown.map(row).collect()
}

fn wakes(switches: &SwitchBooks) -> Vec<Row> {
    let times = |one: &Quantiles| {
        let ns = |ns: f64| seconds(ns / 1e9);
        format!("90 % within {}, 99 % within {}, longest within {}", ns(one.p90), ns(one.p99), ns(one.max))
    };
    let named = [("for a CPU", &switches.run_queue_ns), ("from wake-up to running", &switches.wake_up_ns)];
    let mut rows: Vec<Row> = named
        .into_iter()
        .filter_map(|(name, of)| of.as_ref().map(|one| cells(name, count(one.count), times(one))))
        .collect();
    rows.extend(switches.woken_hz.as_ref().map(|woken| {
        let all = woken.sut + woken.load + woken.interrupt + woken.other;
        let detail = format!(
            "a second: own threads {}, generator {}, interrupts {}, others {}; {} across CPUs",
            count(woken.sut),
            count(woken.load),
            count(woken.interrupt),
            count(woken.other),
            count(woken.cross_cpu)
        );
        cells("woken", count(all), detail)
    }));
    rows.extend(switches.migrations_hz.map(|hz| cells("moved to another CPU", count(hz), "a second")));
    rows
}

fn locks(switches: &SwitchBooks) -> Vec<Row> {
    let shown = switches.kernel_locks.iter().filter(|lock| lock.share >= SHARE_SHOWN).take(ROWS_MAX);
    let row = |lock: &tare_record::schedule::LockShare| {
        let how = if lock.spins { "spinning" } else { "sleeping" };
        cells(
            format!("kernel lock at {}", lock.at),
            percent(lock.share),
            format!("{how}, {} a second", count(lock.contended_hz)),
        )
    };
    shown.map(row).collect()
}
