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
/// Values count as no farther from the median than so many median distances: the square of a larger one leaves the others no digits.
const SCALED_MAX: f64 = 1e6;

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
    change_points_above(values, 0.0)
}

/// [`change_points`] where no segment counts as having a smaller standard deviation than `spread_min`, in the unit of the values.
pub(crate) fn change_points_above(values: &[f64], spread_min: f64) -> Option<Vec<usize>> {
    if !(SEGMENT_MIN..=VALUES_MAX).contains(&values.len()) {
        return None;
    }
    let sums = Sums::of(values, spread_min)?;
    let found = sums.segmentations();
    Some(match at_knee(&found) {
        Some(segmentation) => segmentation.changes.clone(),
        None => sums.segment(PENALTY_LN_USUAL * sums.ln_n()).changes,
    })
}

/// Sums of the first values and of their squares, so that any segment's cost takes constant time.
struct Sums {
    sums: Vec<f64>,
    squares: Vec<f64>,
    /// Values are rounded: equal ones in a row have the variance of the rounding, not zero.
    variance_min: f64,
}

impl Sums {
    /// Values are centred and scaled first: it changes the cost of every segmentation by the same, and keeps digits.
    fn of(values: &[f64], spread_min: f64) -> Option<Sums> {
        let centre = median(values)?;
        let distances: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
        let step = smallest_step(values).unwrap_or(0.0);
        // By the median distance: the mean one is that of the largest value, which may leave the others no digits.
        let scale = [median(&distances)?, step, spread_min].into_iter().fold(0.0, f64::max);
        let scale = if scale > 0.0 && scale.is_finite() { scale } else { 1.0 };
        let (mut sums, mut squares) = (vec![0.0], vec![0.0]);
        let (mut sum, mut square) = (0.0, 0.0);
        for value in values {
            let scaled = ((value - centre) / scale).clamp(-SCALED_MAX, SCALED_MAX);
            sum += scaled;
            square += scaled * scaled;
            sums.push(sum);
            squares.push(square);
        }
        let variance_min = (step / scale).powi(2) / 12.0;
        Some(Sums { sums, squares, variance_min: variance_min.max((spread_min / scale).powi(2)).max(1e-12) })
    }

    fn len(&self) -> usize {
        self.sums.len() - 1
    }

    fn ln_n(&self) -> f64 {
        (self.len() as f64).ln()
    }

    /// −2 ln likelihood of the values in `from..to`, up to a constant for each value.
    fn cost(&self, from: usize, to: usize) -> f64 {
        let (sum, square) = (self.sums[to] - self.sums[from], self.squares[to] - self.squares[from]);
        cost((to - from) as f64, sum, square, self.variance_min)
    }

    /// The best segmentation at one penalty.
    fn segment(&self, penalty: f64) -> Segmentation {
        let n = self.len();
        // For each prefix: the least cost with its penalties, and where the last segment starts.
        let mut best = vec![(-penalty, 0usize); n + 1];
        let mut starts = Starts::default();
        starts.push(self, 0, -penalty);
        for end in SEGMENT_MIN..=n {
            let (cost, start) = starts.least(self, end);
            best[end] = (cost + penalty, start);
            // A start that costs more than this now costs more at every later end.
            starts.keep_up_to(best[end].0);
            if end + 1 >= 2 * SEGMENT_MIN {
                let start = end + 1 - SEGMENT_MIN;
                starts.push(self, start, best[start].0);
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
            // Below zero only where costs are lost in the rounding of far larger values.
            let is_open = fewer > 1 && searches < SEARCHES_MAX && penalty > 0.0;
            let between = is_open.then(|| self.segment(penalty));
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

/// −2 ln likelihood of `n` values with this sum and sum of squares, up to a constant for each.
#[inline(always)]
fn cost(n: f64, sum: f64, square: f64, variance_min: f64) -> f64 {
    let each = 1.0 / n;
    n * (ln((square - sum * sum * each) * each, variance_min) + 1.0)
}

/// Where the last segment may start, one array for each of their figures: a loop over them takes several at once.
#[derive(Default)]
struct Starts {
    at: Vec<f64>,
    sums: Vec<f64>,
    squares: Vec<f64>,
    best: Vec<f64>,
    costs: Vec<f64>,
}

impl Starts {
    fn push(&mut self, sums: &Sums, at: usize, best: f64) {
        self.at.push(at as f64);
        self.sums.push(sums.sums[at]);
        self.squares.push(sums.squares[at]);
        self.best.push(best);
        self.costs.push(0.0);
    }

    /// The least cost up to an end, and the start it has.
    fn least(&mut self, sums: &Sums, end: usize) -> (f64, usize) {
        let (to, sum, square) = (end as f64, sums.sums[end], sums.squares[end]);
        let before = self.at.iter().zip(&self.sums).zip(&self.squares).zip(&self.best);
        for (found, (((at, sum_at), square_at), best)) in self.costs.iter_mut().zip(before) {
            *found = best + cost(to - at, sum - sum_at, square - square_at, sums.variance_min);
        }
        let least = self.costs.iter().copied().fold(f64::INFINITY, f64::min);
        let start = self.costs.iter().position(|cost| *cost == least).unwrap_or(0);
        (least, self.at[start] as usize)
    }

    /// Forgets those that cost more.
    fn keep_up_to(&mut self, limit: f64) {
        let mut kept = 0;
        for at in 0..self.costs.len() {
            self.at[kept] = self.at[at];
            self.sums[kept] = self.sums[at];
            self.squares[kept] = self.squares[at];
            self.best[kept] = self.best[at];
            kept += usize::from(self.costs[at] <= limit);
        }
        for figures in [&mut self.at, &mut self.sums, &mut self.squares, &mut self.best, &mut self.costs] {
            figures.truncate(kept);
        }
    }
}

/// Natural logarithm of the larger of a number and a least one, which must be above zero and no denormal number, to 1e-12.
///
/// x = 2^e·m with m from √½ to √2, and ln m = 2 artanh s with s = (m − 1)/(m + 1), by its series (Abramowitz and Stegun 4.1.27).
/// Without branches and calls, so that the compiler takes several at once: most of the time of a search is spent here.
#[inline(always)]
fn ln(value: f64, least: f64) -> f64 {
    const ROOT_HALF: u64 = std::f64::consts::FRAC_1_SQRT_2.to_bits();
    const EXPONENT: u64 = 0xfff << 52;
    // A number from 2^52 on has its last digit at one: whole numbers are added to it as bits.
    const WHOLE: f64 = (1u64 << 52) as f64;
    let bits = value.max(least).to_bits();
    let above = bits.wrapping_sub(ROOT_HALF);
    // 1,024 more than the exponent, which may be below zero.
    let raised = above.wrapping_add(1 << 62) >> 52;
    let exponent = f64::from_bits(raised | WHOLE.to_bits()) - (WHOLE + 1024.0);
    let m = f64::from_bits(bits.wrapping_sub(above & EXPONENT));
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let terms = [15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0].into_iter();
    exponent * std::f64::consts::LN_2 + s * terms.fold(0.0, |sum, odd| sum * z + 2.0 / odd)
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
        let sums = Sums::of(&values, 0.0).unwrap();
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
    fn logarithms_are_those_of_the_library() {
        let numbers = std::iter::successors(Some(1e-12f64), |number| Some(number * 1.0137));
        for number in numbers.take_while(|number| *number < 1e16).chain([1.0, 2f64.sqrt(), 0.5f64.sqrt()]) {
            let (ours, exact) = (ln(number, 1e-12), number.ln());
            assert!((ours - exact).abs() <= 1e-12 * exact.abs().max(1.0), "{number}: {ours}, {exact}");
        }
        for below in [0.0, -3.0, f64::NAN] {
            assert!((ln(below, 1e-12) - 1e-12f64.ln()).abs() < 1e-10);
        }
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
