//! Each CPU: whose it was, and in which mode it was busy.

use super::{Medium, Section, Source};
use crate::block::{Block, Column, Row, Table, Text, Tone};
use crate::format::hundredths;
use tare_record::outcome::CpuLedger;

pub(crate) static SECTION: Section =
    Section { title: "CPUs", media: &[Medium::Terminal, Medium::Page], build };

/// From here on a loss is marked.
const LOSS: f64 = 0.05;

fn build(source: &Source) -> Vec<Block> {
    let cpus = &source.outcome.ledger.cpus;
    if cpus.is_empty() {
        return Vec::new();
    }
    let who = if source.http().is_some() { "server" } else { "program" };
    let columns = vec![
        Column::figures("CPU", 0),
        Column::figures(&format!("%{who}"), 0),
        Column::figures("%load", 0),
        Column::figures("%tare", 2),
        Column::figures("%others", 0),
        Column::figures("%throttled", 0),
        Column::figures("%steal", 1),
        Column::figures("%irq", 3),
        Column::figures("%idle", 0),
        Column::figures("%user", 4),
        Column::figures("%kernel", 4),
        Column::figures("%softirq", 4),
    ];
    vec![Block::Table(Table { columns, rows: cpus.iter().map(row).collect() })]
}

fn row(cpu: &CpuLedger) -> Row {
    let loss =
        |share: f64| Text::new(hundredths(share), if share >= LOSS { Tone::Warn } else { Tone::Plain });
    let mode = |share: f64| Text::dim(hundredths(share));
    Row::Cells(vec![
        Text::strong(cpu.cpu.to_string()),
        Text::plain(hundredths(cpu.sut)),
        Text::plain(hundredths(cpu.load)),
        Text::plain(hundredths(cpu.tare)),
        loss(cpu.others),
        loss(cpu.throttled),
        loss(cpu.steal),
        Text::plain(hundredths(cpu.irq)),
        Text::plain(hundredths(cpu.idle)),
        mode(cpu.share.user),
        mode(cpu.share.system),
        mode(cpu.share.softirq),
    ])
}
