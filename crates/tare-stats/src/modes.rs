//! Whether a series alternates between two levels.

use crate::describe::{is_same_reading, mean, smallest_step};

/// √n times the dip that n independent values of a uniform distribution, the hardest case with one mode, exceed in one of a
/// thousand series, for any n (simulated; a test repeats it).
const ROOT_DIP_MAX: f64 = 0.72;
/// Each third of a series must have at least this share of either level: a step or a single disturbance has not.
const SHARE_MIN: f64 = 0.05;

/// The means about the two modes of values in the order of their time, the lower first: where the modes lie more than `apart` (a share) from
/// each other, and the series comes back to both. `None` otherwise.
///
/// By the dip (Hartigan and Hartigan, Annals of Statistics 13, 1985): how far the distribution of the values is from the nearest with one mode,
/// be that skewed or flat. An autocorrelated series counts as fewer independent values.
/// Rounded values count as spread evenly within a step, and all values as uncertain by `apart`, so that steps and close
/// levels are no modes.
pub(crate) fn two_modes(values: &[f64], apart: f64) -> Option<[f64; 2]> {
    let independent = independent(values)?;
    let sorted = spread(values);
    if dip(&blurred(&sorted, apart)) * independent.sqrt() <= ROOT_DIP_MAX {
        return None;
    }
    let between = between(&sorted)?;
    let comes_back = |third: &[f64]| {
        let share = third.iter().filter(|value| **value < between).count() as f64 / third.len() as f64;
        (SHARE_MIN..=1.0 - SHARE_MIN).contains(&share)
    };
    if !values.chunks(values.len().div_ceil(3)).all(comes_back) {
        return None;
    }
    let (low, high): (Vec<f64>, Vec<f64>) = values.iter().partition(|value| **value < between);
    Some([mean(&low)?, mean(&high)?])
}

/// How many independent values would say as much: n over the autocorrelation time, from pairs of autocorrelations while their sum is
/// above zero (Geyer, Statistical Science 7, 1992), up to a quarter of the series. `None` where all are equal.
fn independent(values: &[f64]) -> Option<f64> {
    let centre = mean(values)?;
    let product = |lag: usize| -> f64 {
        let pairs = values.iter().zip(values.get(lag..).unwrap_or_default());
        pairs.map(|(one, other)| (one - centre) * (other - centre)).sum()
    };
    let variance = Some(product(0)).filter(|variance| *variance > 0.0)?;
    let pairs = (0..values.len() / 4).step_by(2).map(|lag| (product(lag) + product(lag + 1)) / variance);
    let time = 2.0 * pairs.take_while(|pair| *pair > 0.0).sum::<f64>() - 1.0;
    Some(values.len() as f64 / time.max(1.0))
}

/// The values in order, equal ones spread evenly over the smallest step between two.
fn spread(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let step = smallest_step(values).unwrap_or(0.0);
    let each = |equal: &[f64]| -> Vec<f64> {
        let place = |at: usize| (at as f64 + 0.5) / equal.len() as f64 - 0.5;
        equal.iter().enumerate().map(|(at, value)| value + step * place(at)).collect()
    };
    sorted.chunk_by(|one, other| is_same_reading(*one, *other)).flat_map(each).collect()
}

/// The values in order, each moved within a share of it: evenly, by multiples of the golden section, so the result is always the same. A series with one
/// mode keeps one.
fn blurred(sorted: &[f64], share: f64) -> Vec<f64> {
    let golden = 0.5 * (5f64.sqrt() - 1.0);
    let moved = |(at, value): (usize, &f64)| value * (1.0 + share * ((at as f64 * golden).fract() - 0.5));
    let mut blurred: Vec<f64> = sorted.iter().enumerate().map(moved).collect();
    blurred.sort_by(f64::total_cmp);
    blurred
}

/// The place that splits sorted values such that least of their variance is within the two parts (Fisher, Journal of the American
/// Statistical Association 53, 1958).
fn between(sorted: &[f64]) -> Option<f64> {
    let (n, centre) = (sorted.len() as f64, mean(sorted)?);
    let mut sum = 0.0;
    let explained = sorted.windows(2).zip(1u32..).map(|(pair, low)| {
        sum += pair[0] - centre;
        let low = f64::from(low);
        (sum * sum / (low * (n - low)), 0.5 * (pair[0] + pair[1]))
    });
    explained.max_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, place)| place)
}

/// Hartigan's dip of sorted values (Applied Statistics 34, 1985, algorithm AS 217, with Mächler's corrections): half of the least distance
/// that a band about some distribution with one mode must have to hold all steps of theirs. From 1/(2n) to 1/4.
fn dip(sorted: &[f64]) -> f64 {
    let Some(last) = sorted.len().checked_sub(1).filter(|last| sorted[0] < sorted[*last]) else { return 0.0 };
    let (below, above) = (hull(sorted, Side::Below), hull(sorted, Side::Above));
    let (mut low, mut high) = (0, last);
    let mut widest = 1.0;
    loop {
        let chain = |from: usize, to: usize, next: &[usize]| -> Vec<usize> {
            let mut chain = vec![from];
            while let Some(at) = chain.last().filter(|at| **at != to) {
                chain.push(next[*at]);
            }
            chain
        };
        let (minorant, majorant) = (chain(high, low, &below), chain(low, high, &above));
        let (distance, at_minorant, at_majorant) = apart(sorted, &minorant, &majorant);
        if distance < widest {
            break;
        }
        let within =
            minorant[at_minorant..].windows(2).map(|pair| bulge(sorted, pair[1], pair[0], Side::Below));
        let beyond =
            majorant[at_majorant..].windows(2).map(|pair| bulge(sorted, pair[0], pair[1], Side::Above));
        widest = within.chain(beyond).fold(widest, f64::max);
        let narrowed = (minorant[at_minorant], majorant[at_majorant]);
        if narrowed == (low, high) {
            break;
        }
        (low, high) = narrowed;
    }
    widest / (2.0 * sorted.len() as f64)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// The greatest convex function below the steps.
    Below,
    /// The least concave one above.
    Above,
}

/// For each value the next corner of the hull of all before it (`Below`) or after it (`Above`).
fn hull(sorted: &[f64], side: Side) -> Vec<usize> {
    let last = sorted.len() - 1;
    let mut next = vec![if side == Side::Below { 0 } else { last }; sorted.len()];
    let (end, places): (usize, Vec<usize>) = match side {
        Side::Below => (0, (1..=last).collect()),
        Side::Above => (last, (0..last).rev().collect()),
    };
    let length = |from: usize, to: usize| from.abs_diff(to) as f64;
    let width = |from: usize, to: usize| (sorted[from] - sorted[to]).abs();
    for place in places {
        let mut corner = if side == Side::Below { place - 1 } else { place + 1 };
        while corner != end {
            let after = next[corner];
            if width(place, corner) * length(corner, after) < width(corner, after) * length(place, corner) {
                break;
            }
            corner = after;
        }
        next[place] = corner;
    }
    next
}

/// The largest distance between the two hulls, and the corners of each at which it is.
fn apart(sorted: &[f64], minorant: &[usize], majorant: &[usize]) -> (f64, usize, usize) {
    let (mut at_minorant, mut at_majorant) = (minorant.len() - 1, majorant.len() - 1);
    if at_minorant == 1 && at_majorant == 1 {
        return (1.0, at_minorant, at_majorant);
    }
    let mut largest = 0.0;
    let (mut left, mut right) = (minorant.len() - 2, 1);
    loop {
        let (corner, other) = (minorant[left], majorant[right]);
        if corner > other {
            let before = minorant[left + 1];
            let slope = (corner - before) as f64 / (sorted[corner] - sorted[before]);
            let distance = (other - before + 1) as f64 - (sorted[other] - sorted[before]) * slope;
            if distance >= largest {
                (largest, at_minorant, at_majorant) = (distance, left + 1, right);
            }
            right = (right + 1).min(majorant.len() - 1);
        } else {
            let before = majorant[right - 1];
            let slope = (other - before) as f64 / (sorted[other] - sorted[before]);
            let distance = (sorted[corner] - sorted[before]) * slope + 1.0 - (corner - before) as f64;
            if distance >= largest {
                (largest, at_minorant, at_majorant) = (distance, left, right);
            }
            left = left.saturating_sub(1);
        }
        if minorant[left] == majorant[right] {
            return (largest, at_minorant, at_majorant);
        }
    }
}

/// How far the steps between two corners of a hull stand out from it, at least 1.
fn bulge(sorted: &[f64], from: usize, to: usize, side: Side) -> f64 {
    let slope = (to - from) as f64 / (sorted[to] - sorted[from]);
    let out = |at: usize| {
        let line = (sorted[at] - sorted[from]) * slope;
        match side {
            Side::Below => (at - from + 1) as f64 - line,
            Side::Above => line + 1.0 - (at - from) as f64,
        }
    };
    // Of two neighbours, or equal ones, there is nothing between.
    if to - from > 1 && slope.is_finite() { (from..=to).map(out).fold(1.0, f64::max) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Noise;

    const RUNS: usize = 300;

    /// The share of series of `n` values by `next` that are said to have two modes.
    fn share_with_two_modes(n: usize, mut next: impl FnMut(usize, &mut Noise) -> f64) -> f64 {
        let mut noise = Noise::new(17);
        let two_modes = (0..RUNS).filter(|_| {
            let values: Vec<f64> = (0..n).map(|at| next(at, &mut noise)).collect();
            two_modes(&values, 0.05).is_some()
        });
        two_modes.count() as f64 / RUNS as f64
    }

    /// Half of the least band, found by hand: as far apart as can be, evenly spread, and three heaps.
    #[test]
    fn the_dip_is_what_it_is_known_to_be() {
        let heaps = |heaps: &[f64]| -> Vec<f64> {
            heaps.iter().flat_map(|heap| (0..50).map(move |at| heap + 1e-6 * f64::from(at))).collect()
        };
        assert!((dip(&heaps(&[0.0, 1.0])) - 0.25).abs() < 0.01, "{}", dip(&heaps(&[0.0, 1.0])));
        let three = dip(&heaps(&[0.0, 1.0, 2.0]));
        assert!((three - 1.0 / 6.0).abs() < 0.01, "{three}");
        let even: Vec<f64> = (0..100).map(f64::from).collect();
        assert!((dip(&even) - 1.0 / 200.0).abs() < 1e-9, "{}", dip(&even));
        assert_eq!(dip(&[]), 0.0);
        assert_eq!(dip(&[3.0; 9]), 0.0);
        // Neither place, scale nor direction matters.
        let mut noise = Noise::new(2);
        for _ in 0..50 {
            let mut values: Vec<f64> = (0..40).map(|_| noise.normal()).collect();
            let mut turned: Vec<f64> = values.iter().map(|value| 5.0 - 3.0 * value).collect();
            values.sort_by(f64::total_cmp);
            turned.sort_by(f64::total_cmp);
            assert!((dip(&values) - dip(&turned)).abs() < 1e-9);
        }
    }

    /// The quantiles that Hartigan and Hartigan's table has for a uniform distribution: 0.0702 of 50 values and 0.0500 of 100 in five
    /// of a hundred series; and the one that is used here.
    #[test]
    fn even_values_dip_as_the_table_says() {
        let mut noise = Noise::new(23);
        for (n, at_95) in [(50, 0.0702), (100, 0.0500)] {
            let mut dips: Vec<f64> = (0..4000)
                .map(|_| {
                    let mut values: Vec<f64> = (0..n).map(|_| noise.uniform()).collect();
                    values.sort_by(f64::total_cmp);
                    dip(&values)
                })
                .collect();
            dips.sort_by(f64::total_cmp);
            let [found, rare] = [3800, 3996].map(|place| dips[place]);
            assert!((found / at_95 - 1.0).abs() < 0.03, "{n}: {found}");
            let rare = rare * f64::from(n).sqrt();
            assert!((0.9..1.05).contains(&(rare / ROOT_DIP_MAX)), "{n}: {rare}");
        }
    }

    /// A series' value at a place.
    type Kind<'a> = (&'a str, &'a dyn Fn(usize, &mut Noise) -> f64);

    #[test]
    fn what_has_one_mode_is_not_said_to_have_two() {
        for n in [30, 100, 600] {
            let past = |at: usize| at as f64 / n as f64;
            let raised = |is_raised: bool, by: f64| if is_raised { 10.0 + by } else { 10.0 };
            let kinds: [Kind; 10] = [
                ("even", &|_, noise| 1.0 + noise.uniform()),
                ("normal", &|_, noise| 10.0 + noise.normal()),
                ("skewed", &|_, noise| noise.normal().exp()),
                ("falling off", &|_, noise| 1.0 - 0.5 * noise.uniform().ln()),
                ("drifting", &|at, noise| 10.0 + 5.0 * past(at) + 0.1 * noise.normal()),
                ("warming up", &|at, noise| 10.0 + 20.0 * (-9.0 * past(at)).exp() + 0.2 * noise.normal()),
                ("a step", &|at, noise| raised(past(at) < 0.5, 2.0) + 0.2 * noise.normal()),
                ("passing", &|at, noise| raised((0.3..0.5).contains(&past(at)), 3.0) + 0.2 * noise.normal()),
                ("rounded", &|_, noise| (10.0 + 0.7 * noise.normal()).round()),
                ("modes too near, and a tail", &|at, noise| {
                    let tail = if noise.uniform() < 0.1 { 3.0 * noise.uniform() } else { 0.0 };
                    raised(at.is_multiple_of(2), 0.4) + tail + 0.02 * noise.normal()
                }),
            ];
            for (name, next) in kinds {
                let share = share_with_two_modes(n, next);
                assert!(share <= 0.01, "{name}, {n}: {share}");
            }
            for memory in [0.5f64, 0.9, 0.98] {
                let fresh = (1.0 - memory * memory).sqrt();
                let mut last = 0.0;
                let share = share_with_two_modes(n, |at, noise| {
                    last = if at == 0 { noise.normal() } else { memory * last + fresh * noise.normal() };
                    10.0 + last
                });
                assert!(share <= 0.02, "memory {memory}, {n}: {share}");
            }
        }
    }

    #[test]
    fn two_modes_are_found() {
        let mode = |slow: bool, spread: f64, noise: &mut Noise| {
            let level = if slow { 12.0 } else { 10.0 };
            level + spread * noise.normal()
        };
        let kinds: [(usize, Kind); 5] = [
            (60, ("alternating", &|at, noise| mode(at.is_multiple_of(2), 0.2, noise))),
            (100, ("drawn", &|_, noise| mode(noise.uniform() < 0.5, 0.2, noise))),
            (400, ("one in five", &|_, noise| mode(noise.uniform() < 0.2, 0.1, noise))),
            (600, ("for ten each", &|at, noise| mode((at / 10).is_multiple_of(2), 0.1, noise))),
            (200, ("rounded", &|_, noise| (10.0 * mode(noise.uniform() < 0.5, 0.2, noise)).round())),
        ];
        for (n, (name, next)) in kinds {
            let share = share_with_two_modes(n, next);
            assert!(share >= 0.95, "{name}: {share}");
        }
        let mut slow = false;
        let share = share_with_two_modes(600, |_, noise| {
            slow ^= noise.uniform() < 0.1;
            mode(slow, 0.1, noise)
        });
        assert!(share >= 0.95, "changing now and then: {share}");
    }

    #[test]
    fn what_is_all_alike_or_none_has_none() {
        assert_eq!(two_modes(&[], 0.05), None);
        assert_eq!(two_modes(&[2.0; 100], 0.05), None);
        assert_eq!(two_modes(&[f64::NAN; 100], 0.05), None);
    }
}
