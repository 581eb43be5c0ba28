//! Axes for plots: round ticks, and ends that hold every point.

use crate::block::Axis;

/// Ticks on an axis at most.
const TICKS_MAX: usize = 6;

/// An axis from zero to a round number at or above `max`.
pub(crate) fn from_zero(label: &str, max: f64, words: impl Fn(f64) -> String) -> Axis {
    let max = if max.is_finite() && max > 0.0 { max } else { 1.0 };
    let step = step(max);
    let count = (max / step).ceil().clamp(1.0, TICKS_MAX as f64) as usize;
    let ticks = (0..=count).map(|at| at as f64 * step).map(|at| (at, short(&words(at)))).collect();
    Axis { label: label.into(), ends: [0.0, count as f64 * step], ticks }
}

/// The same figure without zeros at its end: `8 ms` for `8.00 ms`.
fn short(text: &str) -> String {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (figure, unit) = text.split_at(end);
    match figure.contains('.') {
        true => format!("{}{unit}", figure.trim_end_matches('0').trim_end_matches('.')),
        false => text.into(),
    }
}

/// The smallest of 1, 2, 2.5, 5 × a power of ten that needs few enough ticks.
fn step(max: f64) -> f64 {
    let power = 10f64.powf((max / TICKS_MAX as f64).log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * power);
    let fits = |step: &f64| *step > 0.0 && max / *step <= TICKS_MAX as f64;
    steps.into_iter().find(fits).unwrap_or(max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ticks_are_round() {
        let axis = from_zero("", 178_412.0, |at| format!("{at}"));
        let named: Vec<&str> = axis.ticks.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(named, ["0", "50000", "100000", "150000", "200000"]);
    }

    #[test]
    fn ticks_are_short() {
        let read = ["8.00 ms", "50.0k", "100k", "0.50", "–", "2.50 µs"].map(short);
        assert_eq!(read, ["8 ms", "50k", "100k", "0.5", "–", "2.5 µs"]);
    }

    proptest! {
        #[test]
        fn every_point_is_within(max in prop_oneof![1e-12..1e-6f64, 0.0..1e9f64, prop::num::f64::ANY]) {
            let axis = from_zero("", max, |at| at.to_string());
            prop_assert!((2..=TICKS_MAX + 1).contains(&axis.ticks.len()));
            let readable = max.is_finite() && (1e-290..1e290).contains(&max);
            prop_assert!(!readable || axis.ends[1] >= max * (1.0 - 1e-9), "{max} {axis:?}");
        }
    }
}
