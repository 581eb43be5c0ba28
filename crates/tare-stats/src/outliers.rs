//! Values so far from all those around them that they are somebody else's: a pause of the machine, not of what is measured.

/// Length of the windows in which a value may be wild, or the series' own where that is shorter.
const WINDOW: usize = 200;
/// The first values are never wild: they may be a warm-up.
const WARM_UP: usize = 30;
/// A value is wild in a window if it is farther from the median than this many times P99 − P1, as in the programs of Traini et al.
/// (2022); with P90 − P10, as in Barrett et al. (2017), what keeps coming back would be left out as well.
const WILD_SPREADS: f64 = 3.0;
/// The same times P90 − P10 of the window around a value (Barrett et al. 2017), which several slow values in a row do not widen.
const DISTURBED_SPREADS: f64 = 3.0;

/// A series whose wild values are known.
pub(crate) struct Tamed {
    /// Indices of the values that are wild in no window.
    pub kept: Vec<usize>,
    /// All values; wild ones are moved to where they would not be wild (winsorised: Dixon, Annals of Mathematical Statistics 31, 1960),
    /// so that a mean over them is not that of a single one, and still knows that there were some.
    pub values: Vec<f64>,
}

/// Finds the wild values of a series that is not empty. Up to `few` values more are wild if they are far from those around them by the narrower
/// bounds, and no others are.
pub(crate) fn tamed(values: &[f64], few: usize) -> Tamed {
    let length = WINDOW.min(values.len());
    let last = values.len() - length;
    let first = WARM_UP.min(last);
    let mut wild = vec![false; values.len()];
    let mut tame = values.to_vec();
    let mut disturbed = Vec::new();
    let mut sorted: Vec<f64> = values[..length].to_vec();
    sorted.sort_by(f64::total_cmp);
    for from in 0..=last {
        if from > 0 {
            let place = |sorted: &[f64], value: f64| sorted.partition_point(|other| *other < value);
            sorted.remove(place(&sorted, values[from - 1]));
            let entering = values[from + length - 1];
            sorted.insert(place(&sorted, entering), entering);
        }
        // Each value has one window about it; those at the ends share theirs.
        let centre = from + length / 2;
        let about =
            (if from == 0 { 0 } else { centre })..(if from == last { values.len() } else { centre + 1 });
        let narrow = Bounds::of(&sorted, 0.1, DISTURBED_SPREADS);
        let is_disturbed = |at: &usize| *at >= WARM_UP && narrow.moved(values[*at]).is_some();
        disturbed.extend(about.filter(is_disturbed).map(|at| (at, narrow)));
        if from < first {
            continue;
        }
        let bounds = Bounds::of(&sorted, 0.01, WILD_SPREADS);
        for at in from..from + length {
            let Some(moved) = bounds.moved(values[at]) else { continue };
            // Of several windows the one in which it would be the least far.
            if !wild[at] || (moved - bounds.middle).abs() < (tame[at] - bounds.middle).abs() {
                tame[at] = moved;
            }
            wild[at] = true;
        }
    }
    disturbed.retain(|(at, _)| !wild[*at]);
    if disturbed.len() <= few {
        for (at, bounds) in disturbed {
            wild[at] = true;
            tame[at] = bounds.moved(values[at]).unwrap_or(values[at]);
        }
    }
    Tamed { kept: (0..values.len()).filter(|at| !wild[*at]).collect(), values: tame }
}

/// Outside of these a value is far.
#[derive(Clone, Copy)]
struct Bounds {
    middle: f64,
    far: f64,
}

impl Bounds {
    /// So many times the distance between the quantile `q` and its opposite, on both sides of the median.
    fn of(sorted: &[f64], q: f64, times: f64) -> Bounds {
        Bounds { middle: at(sorted, 0.5), far: times * (at(sorted, 1.0 - q) - at(sorted, q)) }
    }

    /// The bound that a value is beyond, if it is.
    fn moved(&self, value: f64) -> Option<f64> {
        let distance = value - self.middle;
        (distance.abs() > self.far).then(|| self.middle + self.far.copysign(distance))
    }
}

/// Quantile of sorted values, between neighbours by their distance.
fn at(sorted: &[f64], q: f64) -> f64 {
    let position = q * (sorted.len() - 1) as f64;
    let below = sorted[position as usize];
    let above = sorted[(position as usize + 1).min(sorted.len() - 1)];
    below + position.fract() * (above - below)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Noise;

    #[test]
    fn a_wild_value_is_moved_to_the_edge_of_the_others() {
        let mut noise = Noise::new(3);
        let mut values: Vec<f64> = (0..600).map(|_| 1.0 + 0.01 * noise.normal()).collect();
        values[300] = 50.0;
        values[599] = 0.001;
        let found = tamed(&values, 0);
        assert_eq!(found.kept.len(), 598);
        assert!((1.05..1.2).contains(&found.values[300]), "{}", found.values[300]);
        assert!((0.8..0.95).contains(&found.values[599]), "{}", found.values[599]);
        assert_eq!(found.values[..300], values[..300]);
        // Of equal values the only other one is moved onto them.
        let mut equal = vec![2.0; 300];
        equal[70] = 3.0;
        assert_eq!(tamed(&equal, 0).values, [2.0; 300]);
    }
    #[test]
    fn a_few_in_a_row_are_wild_and_more_are_not() {
        let mut noise = Noise::new(4);
        let mut values: Vec<f64> = (0..600).map(|_| 1.0 + 0.01 * noise.normal()).collect();
        // Of a window that ends there the last of them are never alone.
        values[596..599].fill(3.0);
        let kept = |values: &[f64], few: usize| tamed(values, few).kept.len();
        assert_eq!((kept(&values, 5), kept(&values, 0)), (597, 598));
        assert!(tamed(&values, 5).values[596..599].iter().all(|value| *value < 1.2));
        values[580..590].fill(3.0);
        assert_eq!(kept(&values, 5), kept(&values, 0));
    }
}
