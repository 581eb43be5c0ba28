//! Drawings as inline SVG that stretches with the page, labels as text of the page so that they never shrink.

use super::escape::{Escaped, put};
use crate::block::{Band, Bar, Bars, Chart, Hue, Line, Panel, Step};
use std::fmt::Write;

/// Parts of a bar narrower than this have no number on them.
const LABELLED: f64 = 0.12;
/// Parts narrower than this would not be seen.
const SEEN: f64 = 0.0005;
/// The side of a plot in its own units; it is stretched to its place.
const SIDE: f64 = 1000.0;

/// A waterfall, one row for each step.
pub(super) fn steps(page: &mut String, steps: &[Step]) {
    page.push_str("<div class=\"rows steps\">\n");
    for step in steps {
        let [low, high] = [step.span[0].min(step.span[1]), step.span[0].max(step.span[1])].map(unit);
        put(
            page,
            format_args!(
                "<span class=\"label\">{0}</span><svg class=\"bar\" role=\"img\" aria-label=\"{0} {1}\">\
                 <title>{0} {1}, {2}</title>\
                 <rect class=\"rail\" width=\"100%\" height=\"100%\"/>\
                 <rect class=\"{3}\" x=\"{4:.3}%\" width=\"{5:.3}%\" height=\"100%\"/></svg>\
                 <span class=\"number\">{1}</span>\n",
                Escaped(&step.label),
                Escaped(&step.figure),
                Escaped(&step.meaning),
                class(step.hue),
                low * 100.0,
                // A step too small to be drawn to scale is still there.
                ((high - low) * 100.0).max(0.25),
            ),
        );
    }
    page.push_str("</div>\n");
}

/// Stacked bars with their legend.
pub(super) fn bars(page: &mut String, bars: &Bars) {
    let shown = |hue: Hue| {
        let parts = bars.rows.iter().flat_map(|bar| &bar.parts);
        parts.into_iter().any(|(part, share, _)| *part == hue && *share >= SEEN)
    };
    put(page, format_args!("<figure><figcaption>{}</figcaption>\n", Escaped(&bars.caption)));
    page.push_str("<p class=\"legend\">");
    keys(page, bars.legend.iter().filter(|(hue, _)| shown(*hue)).map(|(hue, name)| (*hue, name.as_str())));
    page.push_str("</p>\n<div class=\"rows\">\n");
    bars.rows.iter().for_each(|row| bar(page, row));
    page.push_str("</div></figure>\n");
}

fn bar(page: &mut String, bar: &Bar) {
    put(
        page,
        format_args!(
            "<span class=\"label\">{0}</span><svg class=\"bar\" role=\"img\" aria-label=\"{0}\">",
            Escaped(&bar.label)
        ),
    );
    // Parts that do not sum to one (accounting never quite closes) are shown as they are, and cut at the end.
    let mut from = 0.0;
    for (hue, share, words) in &bar.parts {
        let share = unit(*share).min(1.0 - from);
        if share < SEEN {
            continue;
        }
        put(
            page,
            format_args!(
                "<g><title>{}</title><rect class=\"{}\" x=\"{:.3}%\" width=\"{:.3}%\" height=\"100%\"/>",
                Escaped(words),
                class(*hue),
                from * 100.0,
                share * 100.0
            ),
        );
        if share >= LABELLED {
            let (middle, percent) = ((from + share / 2.0) * 100.0, share * 100.0);
            let kind = if *hue == Hue::Idle { "on-idle" } else { "on-fill" };
            put(
                page,
                format_args!(
                    "<text class=\"{kind}\" x=\"{middle:.3}%\" y=\"50%\">{percent:.0}\u{a0}%</text>"
                ),
            );
        }
        page.push_str("</g>");
        from += share;
    }
    page.push_str("</svg>\n");
}

/// Panels above each other, over one horizontal axis.
pub(super) fn chart(page: &mut String, chart: &Chart) {
    put(page, format_args!("<figure><figcaption>{}</figcaption>\n", Escaped(&chart.caption)));
    for panel in &chart.panels {
        put(
            page,
            format_args!("<p class=\"legend\"><span class=\"ylabel\">{}</span>", Escaped(&panel.y.label)),
        );
        // The axis names a single line.
        if panel.lines.len() > 1 {
            keys(page, panel.lines.iter().map(|line| (line.hue, line.name.as_str())));
        }
        page.push_str("</p>\n");
        plot(page, chart, panel);
    }
    page.push_str("<div class=\"xaxis\">");
    for (at, name) in &chart.x.ticks {
        let left = place(*at, chart.x.ends) * 100.0;
        put(page, format_args!("<span style=\"left:{left:.3}%\">{}</span>", Escaped(name)));
    }
    put(page, format_args!("</div>\n<p class=\"axis dim\">{}</p></figure>\n", Escaped(&chart.x.label)));
}

fn plot(page: &mut String, chart: &Chart, panel: &Panel) {
    page.push_str("<div class=\"plot\">");
    for (at, name) in &panel.y.ticks {
        let bottom = place(*at, panel.y.ends) * 100.0;
        put(
            page,
            format_args!("<span class=\"ytick\" style=\"bottom:{bottom:.3}%\">{}</span>", Escaped(name)),
        );
    }
    put(
        page,
        format_args!(
            "<svg viewBox=\"0 0 {SIDE} {SIDE}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">",
            Escaped(&chart.caption)
        ),
    );
    for (at, _) in &panel.y.ticks {
        let y = (1.0 - place(*at, panel.y.ends)) * SIDE;
        put(page, format_args!("<path class=\"grid\" d=\"M0 {y:.1}H{SIDE}\"/>"));
    }
    for (at, _) in &chart.x.ticks {
        let x = place(*at, chart.x.ends) * SIDE;
        put(page, format_args!("<path class=\"grid\" d=\"M{x:.1} 0V{SIDE}\"/>"));
    }
    panel.bands.iter().for_each(|one| band(page, chart, panel, one));
    panel.lines.iter().for_each(|line| draw(page, chart, panel, line));
    page.push_str("</svg></div>\n");
}

/// Along the lower edge, and back along the upper one.
fn band(page: &mut String, chart: &Chart, panel: &Panel, band: &Band) {
    let spot = |x: f64, y: f64| (place(x, chart.x.ends) * SIDE, (1.0 - place(y, panel.y.ends)) * SIDE);
    let edges: Vec<&[f64; 3]> =
        band.edges.iter().filter(|edge| edge.iter().all(|end| end.is_finite())).collect();
    let lower = edges.iter().map(|[x, low, _]| spot(*x, *low));
    let upper = edges.iter().rev().map(|[x, _, high]| spot(*x, *high));
    let mut path = String::new();
    for (at, (x, y)) in lower.chain(upper).enumerate() {
        write!(path, "{}{x:.1} {y:.1}", if at == 0 { 'M' } else { 'L' }).ok();
    }
    if !path.is_empty() {
        let (hue, name) = (class(band.hue), Escaped(&band.name));
        put(page, format_args!("<path class=\"band {hue}\" d=\"{path}Z\"><title>{name}</title></path>"));
    }
}

fn draw(page: &mut String, chart: &Chart, panel: &Panel, line: &Line) {
    let spots: Vec<Vec<(f64, f64, &str)>> = line
        .runs
        .iter()
        .map(|run| {
            let finite = run.iter().filter(|point| point.x.is_finite() && point.y.is_finite());
            let spot = |point: &crate::block::Point| {
                (place(point.x, chart.x.ends) * SIDE, (1.0 - place(point.y, panel.y.ends)) * SIDE)
            };
            finite.map(|point| (spot(point).0, spot(point).1, point.words.as_str())).collect()
        })
        .collect();
    let hue = class(line.hue);
    if line.joined {
        let mut path = String::new();
        for run in &spots {
            for (at, (x, y, _)) in run.iter().enumerate() {
                write!(path, "{}{x:.1} {y:.1}", if at == 0 { 'M' } else { 'L' }).ok();
            }
        }
        put(page, format_args!("<path class=\"line {hue}\" d=\"{path}\"/>"));
    }
    // A line of no length with a round cap is a dot that stays round however the plot is stretched.
    let kind = if line.joined { "spot" } else { "dot" };
    for (x, y, words) in spots.iter().flatten() {
        put(
            page,
            format_args!(
                "<path class=\"{kind} {hue}\" d=\"M{x:.1} {y:.1}h0\"><title>{}</title></path>",
                Escaped(words)
            ),
        );
    }
}

/// What each hue stands for.
fn keys<'a>(page: &mut String, names: impl Iterator<Item = (Hue, &'a str)>) {
    for (hue, name) in names {
        let hue = class(hue);
        put(
            page,
            format_args!(
                "<span><svg class=\"key\"><rect class=\"{hue}\" width=\"100%\" height=\"100%\"/></svg>{}</span>",
                Escaped(name)
            ),
        );
    }
}

/// Where a value lies on an axis, 0..=1.
fn place(value: f64, ends: [f64; 2]) -> f64 {
    unit((value - ends[0]) / (ends[1] - ends[0]))
}

/// A share that can be drawn.
fn unit(share: f64) -> f64 {
    if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
}

/// A hue's class in the style sheet.
fn class(hue: Hue) -> &'static str {
    match hue {
        Hue::Server => "server",
        Hue::Load => "load",
        Hue::Tare => "tare",
        Hue::Others => "others",
        Hue::Throttled => "throttled",
        Hue::Steal => "steal",
        Hue::Irq => "irq",
        Hue::Idle => "idle",
        Hue::Net => "net",
    }
}
