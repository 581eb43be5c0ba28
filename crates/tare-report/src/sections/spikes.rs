//! Moments of high latency, and what moved in them.

use super::source::{Medium, Section, Source};
use super::text::join;
use crate::block::{Align, Block, Chart, Column, Hue, Line, Panel, Point, Row, Table, Text};
use crate::format::{bytes, count, hertz, percent, seconds};
use crate::plot;
use tare_model::Reading;
use tare_model::outcome::{Moved, SpikeTimeline, Spikes};

pub(crate) static SECTION: Section =
    Section { title: "Spikes of latency", media: &[Medium::Terminal, Medium::Page], build };

/// Slices that a line of text has room for.
const SPARKS_MAX: usize = 72;
/// Series that a screen is given.
const ROWS_MAX: usize = 6;

fn build(source: &Source) -> Vec<Block> {
    let Reading::Measured(spikes) = &source.outcome.over_time.spikes else { return Vec::new() };
    // A spike or two is what every server has; nothing can be said about them.
    let Reading::Measured(moved) = &spikes.moved else { return Vec::new() };
    let mut blocks = vec![Block::Line(Text::plain(summary(spikes)))];
    blocks.push(match moved.is_empty() {
        true => Block::Line(Text::plain(format!("None of {} series moved with them.", spikes.series))),
        false => Block::Table(table(moved)),
    });
    if spikes.series_left_out > 0 {
        let words = format!("{} more series were not compared with them.", spikes.series_left_out);
        blocks.push(Block::Line(Text::dim(words)));
    }
    if let Some(timeline) = &spikes.timeline {
        blocks.extend(sparks(timeline));
        blocks.push(Block::Chart(chart(timeline)));
    }
    blocks
}

fn summary(spikes: &Spikes) -> String {
    let share = percent(f64::from(spikes.spikes) / f64::from(spikes.slices.max(1)));
    let highest = spikes.largest.first().map(|spike| match spike.p99_ns {
        Some(ns) => format!("the highest {}", seconds(ns / 1e9)),
        None => "the worst without any answer".into(),
    });
    let bursts = spikes.throttle_bursts.value().filter(|bursts| bursts.slices > 0);
    join([
        format!("{} of {} slices stand out ({share})", spikes.spikes, spikes.slices),
        spikes
            .p99_median_ns
            .map(|ns| format!("99th percentile usually {}", seconds(ns / 1e9)))
            .unwrap_or_default(),
        highest.unwrap_or_default(),
        bursts
            .map(|bursts| {
                format!("a quota held back in {} slices, {} of them spikes", bursts.slices, bursts.with_spike)
            })
            .unwrap_or_default(),
    ])
}

fn table(moved: &[Moved]) -> Table {
    let columns = vec![
        Column { title: "moved with them".into(), align: Align::Left, rank: 0 },
        Column::figures("in spikes", 0),
        Column::figures("otherwise", 0),
        Column::figures("spikes with it", 1),
        Column::figures("by chance", 2),
    ];
    let row = |one: &Moved| {
        Row::Cells(vec![
            Text::plain(&one.series),
            Text::plain(figure(one.in_spikes, &one.unit)),
            Text::plain(figure(one.in_quiet, &one.unit)),
            Text::plain(percent(one.spikes_with)),
            Text::dim(percent(one.chance)),
        ])
    };
    Table { columns, rows: moved.iter().take(ROWS_MAX).map(row).collect() }
}

fn figure(value: f64, unit: &str) -> String {
    match unit {
        "s/s" => format!("{} s/s", count(value)),
        "/s" => format!("{}/s", count(value)),
        "Hz" => hertz(value),
        "B" => bytes(value),
        "s" => seconds(value),
        "µJ/s" => format!("{} W", count(value / 1e6)),
        other => format!("{} {other}", count(value)),
    }
}

/// The timeline as two lines of text, one above the other.
fn sparks(timeline: &SpikeTimeline) -> Vec<Block> {
    let p99: Vec<f64> = timeline.p99_ns.iter().map(|ns| ns.unwrap_or(f64::INFINITY)).collect();
    let name = timeline.series.as_deref().unwrap_or_default();
    let mut lines = vec![("p99".to_string(), spark(&p99))];
    if !timeline.values.is_empty() {
        lines.push((name.to_string(), spark(&timeline.values)));
    }
    vec![Block::Pairs(lines)]
}

/// Each value as a block of its height between the least and the most; several in one take the highest.
fn spark(values: &[f64]) -> String {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let each = values.len().div_ceil(SPARKS_MAX).max(1);
    let highest = |chunk: &[f64]| chunk.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let tops: Vec<f64> = values.chunks(each).map(highest).collect();
    let finite = || tops.iter().copied().filter(|value| value.is_finite());
    let (least, most) = (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
    let height = |value: &f64| {
        let share = if most > least { (value - least) / (most - least) } else { 0.0 };
        HEIGHTS[((share * 7.0).round().clamp(0.0, 7.0)) as usize]
    };
    tops.iter().map(height).collect()
}

/// The same to scale.
fn chart(timeline: &SpikeTimeline) -> Chart {
    let end_s = timeline.ends_s.last().copied().unwrap_or(0.0);
    let mut x = plot::from_zero("since the trial began", end_s, |s| format!("{}\u{a0}s", count(s)));
    x.ticks.retain(|(at, _)| *at <= end_s);
    x.ends[1] = end_s;
    let p99 = timeline.p99_ns.iter().copied();
    let mut panels = vec![panel("99th percentile", Hue::Server, timeline, p99, &|ns| seconds(ns / 1e9))];
    if let Some(series) = &timeline.series {
        let values = timeline.values.iter().map(|value| Some(*value));
        panels.push(panel(series, Hue::Throttled, timeline, values, &|value| figure(value, &timeline.unit)));
    }
    Chart { caption: format!("Trial {}: latency and what moved with it", timeline.trial), x, panels }
}

fn panel(
    name: &str,
    hue: Hue,
    timeline: &SpikeTimeline,
    values: impl Iterator<Item = Option<f64>>,
    words: &dyn Fn(f64) -> String,
) -> Panel {
    let mut runs: Vec<Vec<Point>> = vec![Vec::new()];
    for (&x, value) in timeline.ends_s.iter().zip(values) {
        match (value.filter(|value| value.is_finite()), runs.last_mut()) {
            (Some(y), Some(run)) => {
                run.push(Point { x, y, words: format!("{name}: {} at {}", words(y), seconds(x)) });
            }
            _ => runs.push(Vec::new()),
        }
    }
    let highest = runs.iter().flatten().map(|point| point.y).fold(0.0, f64::max);
    runs.retain(|run| !run.is_empty());
    Panel {
        y: plot::from_zero(name, highest, words),
        lines: vec![Line { name: name.into(), hue, joined: true, runs }],
        bands: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparks_show_heights_and_stalls() {
        assert_eq!(spark(&[0.0, 7.0, 3.0, f64::INFINITY]), "▁█▄█");
        assert_eq!(spark(&[5.0, 5.0]), "▁▁");
        assert_eq!(spark(&[]), "");
        let long: Vec<f64> = (0..300).map(|at| f64::from(u8::from(at == 299))).collect();
        let drawn = spark(&long);
        assert!(drawn.chars().count() <= SPARKS_MAX && drawn.ends_with('█'), "{drawn}");
    }
}
