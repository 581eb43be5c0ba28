//! Rate and busy CPUs over the whole session, on one time axis.

use super::source::{Medium, Section, Source};
use crate::block::{Block, Chart, Hue, Line, Panel, Point};
use crate::format::{count, seconds, with_unit};
use crate::plot;
use crate::series::{self, Stretch, Timeline};

pub(crate) static SECTION: Section = Section { title: "Over time", media: &[Medium::Page], build };

fn build(source: &Source) -> Vec<Block> {
    let timelines = series::timelines(source.record);
    let rate = |hz: f64| with_unit(hz, "req/s");
    let cpus = |busy: f64| format!("{} CPUs busy", count(busy));
    let panels = [
        panel("req/s", &timelines, &[("requests", Hue::Server, |timeline| &timeline.rate_hz)], rate),
        panel(
            "busy CPUs",
            &timelines,
            &[
                ("server", Hue::Server, |timeline| &timeline.sut_cpus),
                ("load generator", Hue::Load, |timeline| &timeline.load_cpus),
                ("everybody", Hue::Others, |timeline| &timeline.all_cpus),
            ],
            cpus,
        ),
    ];
    let panels: Vec<Panel> = panels.into_iter().flatten().collect();
    let points = panels.iter().flat_map(|panel| &panel.lines).flat_map(|line| &line.runs).flatten();
    let end_s = points.map(|point| point.x).fold(0.0, f64::max);
    if panels.is_empty() {
        return Vec::new();
    }
    let mut x = plot::from_zero("since the first trial began", end_s, |s| format!("{}\u{a0}s", count(s)));
    x.ticks.retain(|(at, _)| *at <= end_s);
    x.ends[1] = end_s;
    vec![Block::Chart(Chart { caption: "Rate and busy CPUs".into(), x, panels })]
}

type Pick = fn(&Timeline) -> &Vec<Stretch>;

/// One panel, if there is anything in it.
fn panel(
    label: &str,
    timelines: &[Timeline],
    lines: &[(&str, Hue, Pick)],
    words: impl Fn(f64) -> String,
) -> Option<Panel> {
    let lines: Vec<Line> = lines
        .iter()
        .map(|(name, hue, pick)| Line {
            name: (*name).into(),
            hue: *hue,
            joined: true,
            runs: timelines.iter().map(|timeline| run(name, pick(timeline), &words)).collect(),
        })
        .filter(|line| line.runs.iter().any(|run| !run.is_empty()))
        .collect();
    let points = lines.iter().flat_map(|line| &line.runs).flatten();
    let highest = points.map(|point| point.y).fold(0.0, f64::max);
    (!lines.is_empty()).then(|| Panel { y: plot::from_zero(label, highest, count), lines, bands: Vec::new() })
}

/// Each stretch is a point in its middle, the first and the last reach to the ends of the window.
fn run(name: &str, stretches: &[Stretch], words: &impl Fn(f64) -> String) -> Vec<Point> {
    let last = stretches.len().saturating_sub(1);
    let place = |(at, stretch): (usize, &Stretch)| match at {
        0 => stretch.begin_s,
        at if at == last => stretch.end_s,
        _ => (stretch.begin_s + stretch.end_s) / 2.0,
    };
    let point = |(at, stretch): (usize, &Stretch)| Point {
        x: place((at, stretch)),
        y: stretch.value,
        words: format!("{name}: {} at {}", words(stretch.value), seconds(stretch.begin_s)),
    };
    stretches.iter().enumerate().map(point).collect()
}
