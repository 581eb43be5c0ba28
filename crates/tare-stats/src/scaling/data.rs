//! The levels of a sweep as a fit takes them.

use super::curve::Curve;
use super::least_squares::{Minimum, minimise};

/// How the noise of samples goes with their size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noise {
    /// The same at every level, in the figure's unit: plain least squares.
    Equal,
    /// A share of the figure: least squares of logarithms.
    Relative,
}

/// A level: a factor's value, above 0, and every sample there, above 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// The factor.
    pub n: f64,
    /// The figure, sample by sample.
    pub samples: Vec<f64>,
}

/// What the samples of a level come to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Point {
    pub n: f64,
    /// Mean of the samples, or of their logarithms.
    pub y: f64,
    /// How many.
    pub count: f64,
    /// Sum of squares around the mean.
    pub within: f64,
}

/// All levels.
#[derive(Debug, Clone)]
pub(super) struct Data {
    pub points: Vec<Point>,
    pub noise: Noise,
    /// The level that is left out: a parameter of its own moves it anywhere.
    pub without: Option<usize>,
}

/// A curve and what it misses.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fitted {
    pub curve: Curve,
    /// Sum of squares over all samples.
    pub rss: f64,
}

impl Data {
    /// Levels with figures of size one.
    pub fn new(levels: &[Level], noise: Noise) -> Data {
        let point = |level: &Level| {
            let values: Vec<f64> = match noise {
                Noise::Equal => level.samples.clone(),
                Noise::Relative => level.samples.iter().map(|value| value.ln()).collect(),
            };
            let count = values.len() as f64;
            let y = values.iter().sum::<f64>() / count;
            let within = values.iter().map(|value| (value - y) * (value - y)).sum();
            Point { n: level.n, y, count, within }
        };
        Data { points: levels.iter().map(point).collect(), noise, without: None }
    }

    /// The same without a level.
    pub fn leaving(&self, without: usize) -> Data {
        Data { without: Some(without), ..self.clone() }
    }

    /// Levels that count, with their places.
    pub fn used(&self) -> impl Iterator<Item = (usize, &Point)> {
        self.points.iter().enumerate().filter(|(index, _)| self.without != Some(*index))
    }

    /// How many samples.
    pub fn samples(&self) -> f64 {
        self.points.iter().map(|point| point.count).sum()
    }

    /// Sum of squares of samples around the means of their levels.
    pub fn within(&self) -> f64 {
        self.points.iter().map(|point| point.within).sum()
    }

    /// What a curve misses a level's mean by.
    pub fn miss(&self, curve: &Curve, point: &Point) -> f64 {
        let value = curve.at(point.n);
        match self.noise {
            Noise::Equal => point.y - value,
            Noise::Relative => point.y - value.ln(),
        }
    }

    /// Sum of squares of a curve.
    pub fn rss(&self, curve: &Curve) -> f64 {
        let square = |point: &Point| point.count * self.miss(curve, point) * self.miss(curve, point);
        self.within() + self.used().map(|(_, point)| square(point)).sum::<f64>()
    }

    /// The γ that fits best where all else is known.
    pub fn scaled(&self, shape: &Curve) -> Curve {
        let mut sums = [0.0, 0.0];
        for (_, point) in self.used() {
            let value = shape.at(point.n);
            match self.noise {
                Noise::Equal => {
                    (sums[0], sums[1]) =
                        (sums[0] + point.count * point.y * value, sums[1] + point.count * value * value)
                }
                Noise::Relative => {
                    (sums[0], sums[1]) =
                        (sums[0] + point.count * (point.y - value.ln()), sums[1] + point.count)
                }
            }
        }
        let scale = sums[0] / sums[1];
        shape.times(if self.noise == Noise::Relative { scale.exp() } else { scale })
    }

    /// The best curve of those that `curve` makes of parameters within bounds.
    pub fn fit(
        &self,
        curve: &dyn Fn(&[f64]) -> Curve,
        start: &[f64],
        bounds: &[(f64, f64)],
    ) -> Option<(Fitted, Minimum)> {
        let residuals = |at: &[f64], out: &mut Vec<f64>| {
            let curve = curve(at);
            out.clear();
            out.extend(self.used().map(|(_, point)| point.count.sqrt() * self.miss(&curve, point)));
        };
        let found = minimise(&residuals, start, bounds)?;
        let fitted = Fitted { curve: curve(&found.at), rss: found.rss + self.within() };
        fitted.rss.is_finite().then_some((fitted, found))
    }
}
