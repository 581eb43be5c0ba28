//! Commands, as hyperfine's users know them: mean ± σ, range, user and system time, and how they compare.

use super::source::{Medium, Section, Source};
use super::stopping;
use crate::block::{Block, Chart, Column, Hue, Line, Note, Panel, Point, Row, Table, Text, Tone};
use crate::format::{self, NONE, count, percent, seconds};
use crate::plot;
use crate::words;
use tare_model::outcome::{CommandSummary, Contrast, NetOrMissing};

pub(crate) static SECTION: Section =
    Section { title: "Runs", media: &[Medium::Terminal, Medium::Page], build };

fn build(source: &Source) -> Vec<Block> {
    let commands = &source.outcome.answers.commands;
    if commands.is_empty() {
        return Vec::new();
    }
    let many = commands.len() > 1;
    let mut blocks = vec![Block::Notes(commands.iter().map(|command| note(command, many)).collect())];
    blocks.extend(every_run(commands).map(Block::Chart));
    blocks
}

/// The wall time of every run: a drift, a slow first run and a run apart are seen here first.
fn every_run(commands: &[CommandSummary]) -> Option<Chart> {
    const DOTS_MAX: usize = 1000;
    const HUES: [Hue; 6] = [Hue::Server, Hue::Load, Hue::Net, Hue::Tare, Hue::Throttled, Hue::Others];
    let runs = commands.iter().map(|command| command.times_s.len()).max().filter(|runs| *runs > 1)?;
    let slowest = commands.iter().flat_map(|command| &command.times_s).copied().fold(0.0, f64::max);
    let point = |(at, time_s): (usize, &f64)| Point {
        x: at as f64 + 1.0,
        y: *time_s,
        words: format!("run {}: {}", at + 1, seconds(*time_s)),
    };
    let line = |(command, hue): (&CommandSummary, &Hue)| Line {
        name: command.command.clone(),
        hue: *hue,
        joined: false,
        runs: vec![command.times_s.iter().enumerate().step_by(1 + runs / DOTS_MAX).map(point).collect()],
    };
    let lines = commands.iter().zip(HUES.iter().cycle()).map(line).collect();
    let mut x = plot::from_zero("run", runs as f64, count);
    x.ticks.retain(|(at, _)| at.fract() == 0.0 && *at > 0.0);
    x.ends = [0.0, runs as f64 + 1.0];
    let y = plot::from_zero("wall time", slowest, seconds);
    Some(Chart { caption: "Every run".into(), x, panels: vec![Panel { y, lines, bands: Vec::new() }] })
}

/// Several commands side by side.
pub(crate) static COMPARISON: Section =
    Section { title: "Comparison", media: &[Medium::Terminal, Medium::Page], build: build_comparison };

fn build_comparison(source: &Source) -> Vec<Block> {
    let commands = &source.outcome.answers.commands;
    if commands.len() < 2 { Vec::new() } else { vec![comparison(commands)] }
}

/// The table that hyperfine exports, for one command too.
pub(crate) static TABLE: Section = Section { title: "", media: &[Medium::Markdown], build: build_table };

fn build_table(source: &Source) -> Vec<Block> {
    let commands = &source.outcome.answers.commands;
    if commands.is_empty() { Vec::new() } else { vec![comparison(commands)] }
}

fn note(command: &CommandSummary, among_others: bool) -> Note {
    let times = [command.min_s, command.median_s, command.max_s, command.user_s, command.system_s];
    let [min, median, max, user, system] = times.map(seconds);
    let mut lines = vec![
        ("mean ± σ", format!("{} (user {user}, system {system})", mean(command))),
        ("min … max", format!("{min} … {max}, median {median}")),
    ];
    lines.extend(command.start_up.as_ref().map(|start| {
        let took = seconds(start.median_s);
        ("start-up", format!("{took} of each run: {}, median of {}", start.program, start.runs))
    }));
    let stopped = command.stopping.as_ref().filter(|_| among_others);
    lines.extend(stopped.map(|stopped| ("mean is", stopping::known(stopped, "run"))));
    let failed = failed(command);
    if failed > 0 {
        lines.push(("exit", format!("{} did not end with 0", words::things(failed, "run"))));
    }
    let tone = if failed > 0 { Tone::Warn } else { Tone::Strong };
    let aside = words::things(command.runs as usize, "run");
    Note { title: Text::new(&command.command, tone), aside, body: String::new(), lines }
}

fn mean(command: &CommandSummary) -> String {
    let stdev = command.stdev_s.map(|stdev| format!(" ± {}", seconds(stdev)));
    seconds(command.gross.value) + &stdev.unwrap_or_default()
}

fn failed(command: &CommandSummary) -> usize {
    command.exit_codes.iter().filter(|code| **code != Some(0)).count()
}

/// Every command against the fastest.
fn comparison(commands: &[CommandSummary]) -> Block {
    let fastest = fastest(commands);
    let columns = vec![
        Column::words("command", 0),
        Column::figures("mean ± σ", 0),
        Column::figures("min", 2),
        Column::figures("max", 2),
        Column::figures("net", 1),
        Column::words("relative", 0),
        Column::words("CPU time", 2),
    ];
    let row = |command: &CommandSummary| {
        let best = fastest.is_some_and(|fastest| std::ptr::eq(fastest, command));
        Row::Cells(vec![
            Text::plain(&command.command),
            Text::strong(mean(command)),
            Text::plain(seconds(command.min_s)),
            Text::plain(seconds(command.max_s)),
            Text::plain(match &command.net {
                NetOrMissing::Net(net) => seconds(net.value),
                NetOrMissing::Missing(_) => NONE.into(),
            }),
            match &command.against_fastest {
                _ if best => Text::new("1.00", Tone::Good),
                Some(against) => Text::plain(relative(&against.wall_time)),
                None => Text::plain(NONE),
            },
            match command.against_fastest.as_ref().map(|against| &against.cpu_time) {
                _ if best => Text::plain("1.00"),
                Some(Some(cpu)) => Text::plain(relative(cpu)),
                Some(None) | None => Text::plain(NONE),
            },
        ])
    };
    Block::Table(Table { columns, rows: commands.iter().map(row).collect() })
}

/// The command that the others are held against.
pub(super) fn fastest(commands: &[CommandSummary]) -> Option<&CommandSummary> {
    let others = commands.iter().filter(|command| command.against_fastest.is_some()).count();
    let none = commands.iter().find(|command| command.against_fastest.is_none());
    none.filter(|_| others > 0 && others + 1 == commands.len())
}

/// A ratio with its interval, or that there is no difference to be seen.
fn relative(contrast: &Contrast) -> String {
    match contrast.interval {
        Some([low, high]) if contrast.distinguishable => {
            format!("{} ({} … {})", format::ratio(contrast.ratio), format::ratio(low), format::ratio(high))
        }
        _ => format!("not distinguishable{}", beyond(contrast)),
    }
}

/// How small a difference would have shown.
fn beyond(contrast: &Contrast) -> String {
    contrast.smallest_detectable.map_or_else(String::new, |share| format!(" (±{})", percent(share)))
}

/// One command against the fastest, as a part of a sentence.
pub(super) fn against_fastest(command: &CommandSummary) -> Option<String> {
    let against = command.against_fastest.as_ref()?;
    let name = format!("`{}`", command.command);
    let wall = &against.wall_time;
    let time = match (wall.interval, wall.smallest_detectable) {
        (Some([low, high]), _) if wall.distinguishable && wall.ratio >= 1.0 => format!(
            "{} times faster than {name} ({} to {})",
            format::ratio(wall.ratio),
            format::ratio(low),
            format::ratio(high)
        ),
        (_, Some(share)) => format!(
            "not distinguishable from {name}: the smallest difference this run could show is {}",
            percent(share)
        ),
        _ => format!("not distinguishable from {name}: there are too few runs for an interval"),
    };
    let cpu = against.cpu_time.as_ref().filter(|cpu| cpu.distinguishable && cpu.interval.is_some());
    let cpu = cpu.map(|cpu| format!(", which uses {} times its CPU time", format::ratio(cpu.ratio)));
    Some(time + &cpu.unwrap_or_default())
}
