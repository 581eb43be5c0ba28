//! Layouts of the generator that were tried before the session.

use super::source::{Medium, Section, Source};
use crate::block::{Block, Column, Row, Table, Text};
use crate::format::{count, with_unit};
use tare_model::cpuset::CpuSet;
use tare_model::plan::TriedLayout;

pub(crate) static SECTION: Section = Section {
    title: "Generator layouts tried",
    media: &[Medium::Terminal, Medium::Markdown, Medium::Page],
    build,
};

fn build(source: &Source) -> Vec<Block> {
    let tried = &source.outcome.conditions.tried_layouts;
    if tried.is_empty() {
        return Vec::new();
    }
    let columns = vec![
        Column::figures("threads", 0),
        Column::words("on CPUs", 0),
        Column::figures("rate", 0),
        Column::figures("busy CPUs", 1),
        Column::figures("could send", 0),
        Column::words("", 0),
    ];
    let rows = tried.iter().enumerate().map(|(at, layout)| row(layout, at == 0)).collect();
    vec![Block::Table(Table { columns, rows })]
}

fn row(layout: &TriedLayout, taken: bool) -> Row {
    let cpus: CpuSet = layout.cpus.iter().copied().collect();
    Row::Cells(vec![
        Text::plain(layout.threads.to_string()),
        Text::plain(cpus.to_string()),
        Text::plain(with_unit(layout.rate_hz, "req/s")),
        Text::plain(count(layout.busy_cpus)),
        Text::plain(with_unit(layout.capacity_hz, "req/s")),
        Text::strong(if taken { "taken" } else { "" }),
    ])
}
