//! Each CPU: whose it was, and in which mode it was busy.

use super::source::{Medium, Section, Source};
use crate::block::{Bar, Bars, Block, Column, Hue, Row, Table, Text, Tone};
use crate::format::{hundredths, percent};
use tare_model::outcome::CpuAccounting;

pub(crate) static SECTION: Section =
    Section { title: "CPUs", media: &[Medium::Terminal, Medium::Page], build };

/// Where the generator's column is.
const LOAD_AT: usize = 2;
/// From here on a loss is marked.
const LOSS: f64 = 0.05;

fn build(source: &Source) -> Vec<Block> {
    let cpus = &source.outcome.accounting.cpus;
    if cpus.is_empty() {
        return Vec::new();
    }
    let who = if source.http().is_some() { "server" } else { "program" };
    // Shown only where the server calls anybody here.
    let called = cpus.iter().any(|cpu| cpu.downstream > 0.0005);
    let mut columns = vec![
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
    let mut rows: Vec<Vec<Text>> = cpus.iter().map(row).collect();
    // Nobody loads a program.
    if source.http().is_none() {
        columns.remove(LOAD_AT);
        rows.iter_mut().for_each(|row| drop(row.remove(LOAD_AT)));
    }
    if called {
        columns.insert(2, Column::figures("%downstream", 0));
        for (row, cpu) in rows.iter_mut().zip(cpus) {
            row.insert(2, Text::plain(hundredths(cpu.downstream)));
        }
    }
    let table = Table { columns, rows: rows.into_iter().map(Row::Cells).collect() };
    vec![Block::Bars(bars(cpus, who, called)), Block::Table(table)]
}

/// A part of a CPU's time: its mark, its name, its share.
type Part<'a> = (Hue, &'a str, fn(&CpuAccounting) -> f64);

/// Whose each CPU was.
fn bars(cpus: &[CpuAccounting], who: &str, called: bool) -> Bars {
    let parts: [Part; 9] = [
        (Hue::Server, who, |cpu| cpu.sut),
        (Hue::Net, "downstream", |cpu| cpu.downstream),
        (Hue::Load, "load generator", |cpu| cpu.load),
        (Hue::Tare, "tare", |cpu| cpu.tare),
        (Hue::Others, "others", |cpu| cpu.others),
        (Hue::Throttled, "throttled", |cpu| cpu.throttled),
        (Hue::Steal, "steal", |cpu| cpu.steal),
        (Hue::Irq, "interrupts", |cpu| cpu.irq),
        (Hue::Idle, "idle", |cpu| cpu.idle),
    ];
    let parts: Vec<&Part> = parts.iter().filter(|(hue, ..)| called || *hue != Hue::Net).collect();
    let bar = |cpu: &CpuAccounting| Bar {
        label: format!("CPU {}", cpu.cpu),
        parts: parts
            .iter()
            .map(|(hue, name, share)| (*hue, share(cpu), format!("{name} {}", percent(share(cpu)))))
            .collect(),
    };
    Bars {
        caption: "Each CPU's time".into(),
        legend: parts.iter().map(|(hue, name, _)| (*hue, (*name).to_string())).collect(),
        rows: cpus.iter().map(bar).collect(),
    }
}

fn row(cpu: &CpuAccounting) -> Vec<Text> {
    let loss =
        |share: f64| Text::new(hundredths(share), if share >= LOSS { Tone::Warn } else { Tone::Plain });
    let mode = |share: f64| Text::dim(hundredths(share));
    vec![
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
    ]
}
