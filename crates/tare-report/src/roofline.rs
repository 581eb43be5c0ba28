//! The roofline of one core: what it computes at most, and what memory gives it at most, over how much is computed for each byte (Williams,
//! Waterman, Patterson: Roofline, CACM 52 (4), 2009). Both axes are logarithms.

use crate::block::{Axis, Block, Chart, Hue, Line, Panel, Point, Text};
use crate::format::{percent, ratio, with_unit};

/// What is drawn left and right of the ridge, and below the roof, in powers of ten.
const AROUND: f64 = 2.0;
const BELOW: f64 = 3.0;
const ABOVE: f64 = 0.5;

/// What one core can do at most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Roof {
    /// Integer operations per second: the ceiling `integer`.
    pub operations_hz: f64,
    /// Bytes per second: the ceiling `memory-read-1`.
    pub bytes_hz: f64,
}

/// What a program did in each second of CPU time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Done {
    /// Instructions.
    pub instructions_hz: f64,
    /// Bytes that came from memory.
    pub bytes_hz: f64,
}

impl Roof {
    /// `None` where one of both is not known.
    pub fn of(value: impl Fn(&str) -> Option<f64>) -> Option<Roof> {
        let known = |name: &str| value(name).filter(|value| value.is_finite() && *value > 0.0);
        Some(Roof { operations_hz: known("integer")?, bytes_hz: known("memory-read-1")? })
    }

    /// Operations for each byte from which on memory is no bound.
    fn ridge(self) -> f64 {
        self.operations_hz / self.bytes_hz
    }

    /// Operations per second at most, with so many for each byte.
    fn at(self, per_byte: f64) -> f64 {
        (self.bytes_hz * per_byte).min(self.operations_hz)
    }
}

impl Done {
    /// Instructions for each byte.
    fn per_byte(self) -> f64 {
        self.instructions_hz / self.bytes_hz
    }
}

/// What the program did against its roof, in words.
pub(crate) fn sentence(roof: Roof, done: Done) -> String {
    let (per_byte, most) = (done.per_byte(), roof.at(done.per_byte()));
    let bound = match per_byte < roof.ridge() {
        true => "memory",
        false => "the core",
    };
    format!(
        "In each second of CPU time the server executed {} instructions, {} for each byte that it waited for from memory. With so many {bound} \
         lets one core execute {} at most: it used {}.",
        with_unit(done.instructions_hz, ""),
        ratio(per_byte),
        with_unit(most, ""),
        percent(done.instructions_hz / most)
    )
}

/// The drawing.
pub(crate) fn chart(roof: Roof, done: Option<Done>) -> Block {
    let ridge = roof.ridge();
    let done = done.filter(|done| done.per_byte().is_finite() && done.per_byte() > 0.0);
    let at = done.map_or(ridge, Done::per_byte);
    let x_ends = [ridge.min(at).log10() - AROUND, ridge.max(at).log10() + AROUND].map(f64::round);
    let top = roof.operations_hz.log10();
    let lowest = done.map_or(top, |done| done.instructions_hz.log10()).min(top);
    let y_ends = [(lowest.min(top - BELOW + 1.0) - 1.0).floor(), top + ABOVE];
    let point = |per_byte: f64, what: &str| {
        let most = roof.at(per_byte);
        let words = format!("{what}: {} at {} for each byte", with_unit(most, "op/s"), ratio(per_byte));
        Point { x: per_byte.log10(), y: most.log10().max(y_ends[0]), words }
    };
    // The slope begins where it comes into the drawing.
    let first = 10f64.powf(x_ends[0].max(y_ends[0] - roof.bytes_hz.log10()));
    let line = vec![
        point(first, "memory"),
        point(ridge, "memory and the core"),
        point(10f64.powf(x_ends[1]), "the core"),
    ];
    let mut lines =
        vec![Line { name: "roof of one core".into(), hue: Hue::Net, joined: true, runs: vec![line] }];
    lines.extend(done.map(|done| {
        let words = format!(
            "this run: {} at {} for each byte",
            with_unit(done.instructions_hz, "instructions/s"),
            ratio(done.per_byte())
        );
        let point = Point { x: done.per_byte().log10(), y: done.instructions_hz.log10(), words };
        Line { name: "this run".into(), hue: Hue::Server, joined: false, runs: vec![vec![point]] }
    }));
    let x = logarithmic("operations for each byte from memory", x_ends, ratio);
    let y = logarithmic("operations in a second of CPU time", y_ends, |value| with_unit(value, ""));
    let panel = Panel { y, lines, bands: Vec::new() };
    Block::Chart(Chart { caption: "Roofline of one core".into(), x, panels: vec![panel] })
}

/// Why there is a roof and no point below it.
pub(crate) fn no_point(why: &str) -> Block {
    Block::Line(Text::dim(format!("The run is not in the drawing: {why}")))
}

/// Ticks at whole powers of ten.
fn logarithmic(label: &str, ends: [f64; 2], words: impl Fn(f64) -> String) -> Axis {
    let (first, last) = (ends[0].ceil() as i32, ends[1].floor() as i32);
    // As many as the decades of what was measured: a figure that is none has no axis.
    let ticks = (first..=last).take(20).map(|at| (f64::from(at), words(10f64.powi(at)))).collect();
    Axis { label: label.into(), ends, ticks }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 16 G operations and 8 GB a second: the ridge is at 2.
    const ROOF: Roof = Roof { operations_hz: 16e9, bytes_hz: 8e9 };

    fn drawn(done: Option<Done>) -> Chart {
        let Block::Chart(chart) = chart(ROOF, done) else { unreachable!("a chart") };
        chart
    }

    #[test]
    fn the_roof_is_memory_up_to_the_ridge_and_the_core_from_there_on() {
        assert_eq!((ROOF.at(0.5), ROOF.at(2.0), ROOF.at(50.0)), (4e9, 16e9, 16e9));
        let chart = drawn(None);
        let line = &chart.panels[0].lines[0].runs[0];
        assert!((line[1].x - 2f64.log10()).abs() < 1e-9 && (line[1].y - 16e9f64.log10()).abs() < 1e-9);
        assert!(line[0].y < line[1].y && line[1].y == line[2].y, "{line:?}");
        let within = |value: f64, ends: [f64; 2]| ends[0] - 1e-9 <= value && value <= ends[1] + 1e-9;
        for point in line {
            assert!(within(point.x, chart.x.ends) && within(point.y, chart.panels[0].y.ends), "{chart:?}");
        }
        assert_eq!(chart.panels[0].lines.len(), 1);
    }

    #[test]
    fn a_run_is_a_point_below_its_roof() {
        // 2 G instructions and 4 GB a second: half an instruction for each byte, where memory lets 4 G.
        let done = Done { instructions_hz: 2e9, bytes_hz: 4e9 };
        let chart = drawn(Some(done));
        let point = &chart.panels[0].lines[1].runs[0][0];
        assert!((point.x - 0.5f64.log10()).abs() < 1e-9 && (point.y - 2e9f64.log10()).abs() < 1e-9);
        let text = sentence(ROOF, done).replace('\u{a0}', " ");
        assert!(text.contains("memory lets one core") && text.contains("it used 50 %"), "{text}");
        // Hardly a byte: the core is the roof, and the drawing reaches so far.
        let computes = Done { instructions_hz: 4e9, bytes_hz: 1e4 };
        assert!(sentence(ROOF, computes).contains("the core lets one core execute"));
        assert!(drawn(Some(computes)).x.ends[1] > 5.6);
    }

    #[test]
    fn a_roof_needs_both_of_its_sides() {
        let known = |name: &str| (name == "integer").then_some(1e9);
        assert_eq!(Roof::of(known), None);
        assert_eq!(Roof::of(|_| Some(f64::NAN)), None);
        assert!(Roof::of(|_| Some(1.0)).is_some());
    }
}
