//! Which segments of a series belong to its last level.

use crate::describe::{mean, stdev};
use std::ops::Range;

/// Means that differ by less than this share count as equal (Traini et al. 2022).
pub(crate) const ALIKE_SHARE: f64 = 0.05;
/// Standard errors in half of a 95 % interval.
const ERRORS_95: f64 = 1.959_964;
/// A disturbance is at most this share of a series, and so many values at most: 3 of 120 may be, 5 from 200 on.
const DISTURBED_SHARE: f64 = 1.0 / 40.0;

/// A stretch without a change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Segment {
    /// Index of its first value.
    pub from: usize,
    /// Index after its last.
    pub to: usize,
    /// Mean of its values, wild ones included.
    pub mean: f64,
}

/// What counts as one level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// So many values together may be at another level for a moment; 0 or more. More than two in a hundred of a window move the bounds by which
    /// single values are wild, so that a few slow ones in a row are not. Those that come back are the series' own.
    pub disturbed_max: usize,
    /// Means farther apart than this share are not equal, however wide the interval of their ratio is; above 0. Without it the few values of a
    /// short segment equal everything.
    pub apart_max: f64,
}

impl Default for Rules {
    /// Those of [`crate::steadiness`].
    fn default() -> Self {
        Rules { disturbed_max: 5, apart_max: 4.0 * ALIKE_SHARE }
    }
}

impl Rules {
    /// How many of so many values may be disturbed.
    pub(crate) fn few_of(&self, values: usize) -> usize {
        self.disturbed_max.min((values as f64 * DISTURBED_SHARE) as usize)
    }
}

/// The last level of a series.
pub(crate) struct Level {
    /// Index of its first value.
    pub from: usize,
    /// Values after that which are not at the level.
    pub disturbed: Vec<Range<usize>>,
}

impl Level {
    /// Whether a value belongs to it.
    pub fn holds(&self, at: usize) -> bool {
        at >= self.from && !self.disturbed.iter().any(|disturbed| disturbed.contains(&at))
    }
}

/// The last segment with all before it that have its mean, but for a disturbance. `None` without segments.
pub(crate) fn last_level(values: &[f64], segments: &[Segment], rules: &Rules) -> Option<Level> {
    let disturbed_max = rules.few_of(values.len());
    // What is too short to be a level is not the last one, unless there is too much of it to be a disturbance.
    let is_last = |segment: &Segment| {
        segment.to - segment.from > disturbed_max && values.len() - segment.to <= disturbed_max
    };
    let last = segments.iter().rposition(is_last).unwrap_or(segments.len().checked_sub(1)?);
    let (before, after) = (&segments[..last], &segments[last + 1..]);
    let reached = |longest: usize| {
        let mut level =
            Level { from: segments[last].from, disturbed: after.iter().map(Segment::range).collect() };
        let mut passed = Vec::new();
        for segment in before.iter().rev() {
            if alike(&values[segments[last].range()], &values[segment.range()], rules.apart_max) {
                level.from = segment.from;
                level.disturbed.append(&mut passed);
            } else if segment.to - segment.from <= longest {
                passed.push(segment.range());
            } else {
                break;
            }
        }
        level
    };
    let level = reached(disturbed_max);
    let disturbed: usize = level.disturbed.iter().map(Range::len).sum();
    Some(if disturbed <= disturbed_max { level } else { reached(0) })
}

impl Segment {
    fn range(&self) -> Range<usize> {
        self.from..self.to
    }
}

/// Whether the ratio of two means may be within [`ALIKE_SHARE`] of 1: its 95 % interval (Kalibera and Jones 2013, here by
/// the delta method) reaches that far, and it is not beyond `apart_max` itself.
fn alike(one: &[f64], other: &[f64], apart_max: f64) -> bool {
    let (Some(one), Some(other)) = (Mean::of(one), Mean::of(other)) else { return false };
    let ratio = one.mean / other.mean;
    let half = ERRORS_95 * ratio * one.relative_error.hypot(other.relative_error);
    let may_be = ratio + half >= 1.0 - ALIKE_SHARE && ratio - half <= 1.0 + ALIKE_SHARE;
    may_be && ratio.max(1.0 / ratio) <= 1.0 + apart_max
}

/// A mean with its standard error as a share of it.
struct Mean {
    mean: f64,
    relative_error: f64,
}

impl Mean {
    fn of(values: &[f64]) -> Option<Mean> {
        let mean = mean(values)?;
        let error = stdev(values).unwrap_or(0.0) / (values.len() as f64).sqrt();
        Some(Mean { mean, relative_error: error / mean })
    }
}
