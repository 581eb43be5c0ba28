//! Change points: where the mean or the variance of a series changes.
//!
//! PELT (Killick, Fearnhead and Eckley 2012) finds, exactly, the segmentation with the least Σ cost + penalty × changes, where
//! the cost of a segment is −2 ln of the likelihood of independent normal values with the segment's own mean and variance. The data
//! decide how high the penalty is: CROPS (Haynes, Eckley and Fearnhead 2017) lists every segmentation that is
//! best for some penalty in a range, and the knee of their number over the penalty (Kneedle: Satopää et al. 2011) separates
//! changes that explain much from those that follow the noise.

use crate::describe::{median, smallest_step};

/// Fewest values in a segment: one value has no variance.
const SEGMENT_MIN: usize = 2;
/// The least penalty that is tried, in ln n: about the Bayesian information criterion of a place, a mean and a variance.
const PENALTY_LN_MIN: f64 = 4.0;
/// The penalty where the curve has no knee, in ln n (Barrett et al. 2017).
const PENALTY_LN_USUAL: f64 = 15.0;
/// Most segmentations that are searched for between the least penalty and none at all.
const SEARCHES_MAX: usize = 200;
/// Longest series that is segmented: the worst case is quadratic.
pub const VALUES_MAX: usize = 20_000;

/// A segmentation that is the best for some penalty.
#[derive(Debug, Clone)]
struct Segmentation {
    /// The lowest penalty for which it is.
    penalty: f64,
    /// Starts of all segments but the first, ascending.
    changes: Vec<usize>,
    /// Σ cost of its segments, without penalties.
    cost: f64,
}

/// The starts of all segments but the first, ascending, each at least two values after the one before.
///
/// `None` for fewer than two values, more than [`VALUES_MAX`], or one that is not finite.
pub fn change_points(values: &[f64]) -> Option<Vec<usize>> {
    if !(SEGMENT_MIN..=VALUES_MAX).contains(&values.len()) {
        return None;
    }
    let sums = Sums::of(values)?;
    let found = sums.segmentations();
    Some(match at_knee(&found) {
        Some(segmentation) => segmentation.changes.clone(),
        None => sums.segment(PENALTY_LN_USUAL * sums.ln_n()).changes,
    })
}

/// Sums of the first values and of their squares, so that any segment's cost takes constant time.
struct Sums {
    sums: Vec<(f64, f64)>,
    /// Values are rounded: equal ones in a row have the variance of the rounding, not zero.
    variance_min: f64,
}

impl Sums {
    /// Values are centred and scaled first: it changes the cost of every segmentation by the same, and keeps digits.
    fn of(values: &[f64]) -> Option<Sums> {
        let centre = median(values)?;
        let spread = values.iter().map(|value| (value - centre).abs()).sum::<f64>() / values.len() as f64;
        let spread = if spread > 0.0 && spread.is_finite() { spread } else { 1.0 };
        let step = smallest_step(values).unwrap_or(0.0) / spread;
        let (mut sum, mut squares) = (0.0, 0.0);
        let of_first = values.iter().map(|value| {
            let scaled = (value - centre) / spread;
            sum += scaled;
            squares += scaled * scaled;
            (sum, squares)
        });
        let sums = std::iter::once((0.0, 0.0)).chain(of_first).collect();
        Some(Sums { sums, variance_min: (step * step / 12.0).max(1e-12) })
    }

    fn len(&self) -> usize {
        self.sums.len() - 1
    }

    fn ln_n(&self) -> f64 {
        (self.len() as f64).ln()
    }

    /// −2 ln likelihood of the values in `from..to`, up to a constant for each value.
    fn cost(&self, from: usize, to: usize) -> f64 {
        let n = (to - from) as f64;
        let sum = self.sums[to].0 - self.sums[from].0;
        let squares = self.sums[to].1 - self.sums[from].1;
        let variance = ((squares - sum * sum / n) / n).max(self.variance_min);
        n * (variance.ln() + 1.0)
    }

    /// The best segmentation at one penalty.
    fn segment(&self, penalty: f64) -> Segmentation {
        let n = self.len();
        // For each prefix: the least cost with its penalties, and where the last segment starts.
        let mut best = vec![(-penalty, 0usize); n + 1];
        let mut starts: Vec<(usize, f64)> = vec![(0, 0.0)];
        for end in SEGMENT_MIN..=n {
            let mut least = (f64::INFINITY, 0);
            for (start, cost) in &mut starts {
                *cost = best[*start].0 + self.cost(*start, end);
                if *cost < least.0 {
                    least = (*cost, *start);
                }
            }
            best[end] = (least.0 + penalty, least.1);
            // A start that costs more than this now costs more at every later end.
            starts.retain(|(_, cost)| *cost <= best[end].0);
            if end + 1 >= 2 * SEGMENT_MIN {
                starts.push((end + 1 - SEGMENT_MIN, 0.0));
            }
        }
        let mut changes = Vec::new();
        let mut at = best[n].1;
        while at > 0 {
            changes.push(at);
            at = best[at].1;
        }
        changes.reverse();
        let cost = best[n].0 - penalty * changes.len() as f64;
        Segmentation { penalty, changes, cost }
    }

    /// Every segmentation that is best for some penalty from the least on, by ascending penalty; the last has no change.
    fn segmentations(&self) -> Vec<Segmentation> {
        let none =
            Segmentation { penalty: f64::INFINITY, changes: Vec::new(), cost: self.cost(0, self.len()) };
        let mut found = vec![self.segment(PENALTY_LN_MIN * self.ln_n())];
        // Upper neighbours of the last one found; others may lie between the two.
        let mut open = vec![none];
        let mut searches = 0;
        while let (Some(upper), Some(lower)) = (open.pop(), found.last()) {
            let fewer = lower.changes.len().saturating_sub(upper.changes.len());
            if fewer == 0 {
                continue;
            }
            // At this penalty both are equally good; any other that is better lies between them.
            let penalty = (upper.cost - lower.cost) / fewer as f64;
            let between = (fewer > 1 && searches < SEARCHES_MAX).then(|| self.segment(penalty));
            searches += 1;
            let inside = upper.changes.len() + 1..lower.changes.len();
            match between.filter(|between| inside.contains(&between.changes.len())) {
                Some(between) => open.extend([upper, between]),
                None => found.push(Segmentation { penalty, ..upper }),
            }
        }
        found
    }
}

/// The segmentation at the knee of the number of changes over the penalty, looked for from the highest penalty down;
/// `None` where the curve has none.
fn at_knee(found: &[Segmentation]) -> Option<&Segmentation> {
    let (first, last) = (found.first()?, found.last()?);
    if found.len() < 3 {
        return None;
    }
    let counts = (first.changes.len() - last.changes.len()) as f64;
    // Both axes from 0 to 1; the knee is where the curve, turned to rise, stands highest above the diagonal.
    let heights: Vec<f64> = found
        .iter()
        .map(|at| {
            let fewer = (first.changes.len() - at.changes.len()) as f64 / counts;
            fewer - (at.penalty - first.penalty) / (last.penalty - first.penalty)
        })
        .collect();
    let step = 1.0 / (found.len() - 1) as f64;
    let mut top: Option<usize> = None;
    let mut threshold = 0.0;
    for at in (1..found.len()).rev() {
        let beside = heights.get(at + 1).map(|after| (*after, heights[at - 1]));
        if beside.is_some_and(|(after, before)| heights[at] >= after && heights[at] >= before) {
            (top, threshold) = (Some(at), heights[at] - step);
        } else if beside.is_some_and(|(after, before)| heights[at] <= after && heights[at] <= before) {
            threshold = 0.0;
        }
        if top.is_some() && heights[at - 1] < threshold {
            return found.get(top?);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Noise;
    use proptest::prelude::*;

    /// Levels with unit noise, each for so many values.
    fn levels(levels: &[(f64, usize)]) -> Vec<f64> {
        let mut noise = Noise::new(7);
        let values = levels.iter().flat_map(|(level, count)| std::iter::repeat_n(*level, *count));
        values.map(|level| level + noise.normal()).collect()
    }

    #[test]
    fn a_change_is_found_where_it_is() {
        let found = change_points(&levels(&[(20.0, 300), (10.0, 400), (14.0, 300)])).unwrap();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].abs_diff(300) <= 2 && found[1].abs_diff(700) <= 4, "{found:?}");
    }

    #[test]
    fn the_search_is_exact() {
        // Against every possible segmentation of a short series.
        let values = levels(&[(0.0, 5), (30.0, 4), (5.0, 5)]);
        let sums = Sums::of(&values).unwrap();
        let penalty = 5.0;
        let mut least = f64::INFINITY;
        for mask in 0u32..1 << (values.len() - 1) {
            let mut edges = vec![0];
            edges.extend((1..values.len()).filter(|at| mask & (1 << (at - 1)) != 0));
            edges.push(values.len());
            if edges.windows(2).all(|edge| edge[1] - edge[0] >= SEGMENT_MIN) {
                let cost: f64 = edges.windows(2).map(|edge| sums.cost(edge[0], edge[1])).sum();
                least = least.min(cost + penalty * (edges.len() - 2) as f64);
            }
        }
        let found = sums.segment(penalty);
        assert!((found.cost + penalty * found.changes.len() as f64 - least).abs() < 1e-9);
    }

    #[test]
    fn what_cannot_be_segmented_is_none() {
        assert_eq!(change_points(&[]), None);
        assert_eq!(change_points(&[1.0]), None);
        assert_eq!(change_points(&[1.0, f64::NAN, 2.0]), None);
        assert_eq!(change_points(&vec![1.0; VALUES_MAX + 1]), None);
        assert_eq!(change_points(&[3.0; 100]), Some(vec![]));
    }

    proptest! {
        #[test]
        fn changes_ascend_and_leave_room(values in prop::collection::vec(-1e6..1e6f64, 2..200)) {
            let changes = change_points(&values).unwrap();
            let mut edges = vec![0];
            edges.extend(changes);
            edges.push(values.len());
            prop_assert!(edges.windows(2).all(|edge| edge[0] + SEGMENT_MIN <= edge[1]), "{edges:?}");
        }

        #[test]
        fn neither_scale_nor_place_matters(values in prop::collection::vec(0.0..10.0f64, 2..60)) {
            let other: Vec<f64> = values.iter().map(|value| value * 1024.0).collect();
            prop_assert_eq!(change_points(&values), change_points(&other));
        }
    }
}
