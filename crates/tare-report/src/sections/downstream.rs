//! The local programs that the server calls, and those that they call in turn, as a tree.

use super::source::{Medium, Section, Source};
use crate::block::{Block, Column, Row, Table, Text, Tone};
use crate::format::{NONE, count, hundredths, percent, seconds};
use tare_model::downstream::{DownstreamAccounting, DownstreamLimit};

pub(crate) static SECTION: Section =
    Section { title: "What it calls", media: &[Medium::Terminal, Medium::Markdown, Medium::Page], build };

/// Programs that are shown.
const ROWS_MAX: usize = 16;

fn build(source: &Source) -> Vec<Block> {
    let programs = &source.outcome.accounting.downstream;
    let mut rows = Vec::new();
    add_rows(programs, None, 0, &mut rows);
    if rows.is_empty() {
        return Vec::new();
    }
    let columns = vec![
        Column::words("program", 0),
        Column::words("called at", 2),
        Column::figures("CPUs", 0),
        Column::figures("on the server's", 1),
        Column::figures("connections", 3),
        Column::figures("requests waiting, %", 0),
        Column::figures("wait a request", 0),
        Column::figures("calls a request", 1),
        Column::words("full", 0),
    ];
    vec![Block::Table(Table { columns, rows })]
}

/// Who is called by `caller`, each followed by who it calls. Each level is deeper in the list, so that this ends.
fn add_rows(programs: &[DownstreamAccounting], caller: Option<u32>, depth: usize, rows: &mut Vec<Row>) {
    for (at, program) in (0u32..).zip(programs) {
        let is_here = program.caller == caller && caller.is_none_or(|caller| caller < at);
        if is_here && rows.len() < ROWS_MAX {
            rows.push(row(program, depth));
            add_rows(programs, Some(at), depth + 1, rows);
        }
    }
}

fn row(program: &DownstreamAccounting, depth: usize) -> Row {
    let pid = program.pids.first().map_or(String::new(), |pid| format!("/{pid}"));
    let more = match program.pids.len() {
        0 | 1 => String::new(),
        pids => format!(" (+{})", pids - 1),
    };
    let name = format!("{}{}{pid}{more}", "  ".repeat(depth), program.name);
    let figure = |value: Option<f64>, format: fn(f64) -> String| value.map_or(NONE.to_owned(), format);
    let waited = match (program.waited, program.waited_at_most) {
        (Some(least), Some(most)) if most - least < 0.01 => hundredths(least),
        (Some(least), Some(most)) => format!("{}…{}", hundredths(least), hundredths(most)),
        _ => NONE.to_owned(),
    };
    let full = Text::new(
        limit(program),
        if program.limit == DownstreamLimit::None { Tone::Dim } else { Tone::Strong },
    );
    Row::Cells(vec![
        Text::strong(name),
        Text::dim(program.at.join(", ")),
        Text::plain(count(program.busy_cpus)),
        Text::plain(count(program.busy_on_sut_cpus)),
        Text::dim(figure(program.connections, count)),
        Text::plain(waited),
        Text::plain(figure(program.wait_s_per_request, seconds)),
        Text::plain(figure(program.calls_per_request, count)),
        full,
    ])
}

fn limit(program: &DownstreamAccounting) -> String {
    let full = percent(program.fullness);
    match program.limit {
        DownstreamLimit::OneThread => format!("one thread: {full}"),
        DownstreamLimit::AllThreads => format!("all its threads: {full}"),
        DownstreamLimit::OneAtATime => "one CPU, though more are free".to_owned(),
        DownstreamLimit::Cpus => format!("its CPUs: {full}"),
        DownstreamLimit::Quota => format!("its quota: {full}"),
        DownstreamLimit::None => format!("no ({full})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(name: &str, caller: Option<u32>) -> DownstreamAccounting {
        DownstreamAccounting {
            name: name.to_owned(),
            at: vec!["127.0.0.1:1".to_owned()],
            pids: vec![7, 8],
            caller,
            busy_cpus: 0.5,
            busy_on_sut_cpus: 0.0,
            connections: None,
            waited: None,
            waited_at_most: None,
            wait_s_per_request: None,
            queued: None,
            calls_per_request: None,
            limit: DownstreamLimit::None,
            fullness: 0.5,
        }
    }

    #[test]
    fn a_tree_is_shown_and_a_circle_ends() {
        let programs = [program("app", None), program("db", Some(0)), program("odd", Some(2))];
        let mut rows = Vec::new();
        add_rows(&programs, None, 0, &mut rows);
        let names: Vec<String> = rows
            .iter()
            .map(|row| match row {
                Row::Cells(cells) | Row::Total(cells) => cells[0].text.clone(),
                Row::Heading(text) => text.text.clone(),
            })
            .collect();
        assert_eq!(names, ["app/7 (+1)", "  db/7 (+1)"]);
    }
}
