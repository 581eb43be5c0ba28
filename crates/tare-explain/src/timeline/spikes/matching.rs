//! Which series moved when latency spiked, and how sure that is.
//!
//! Each series is ranked over all windows, and the ranks of the spike windows are summed (Mann–Whitney). How large such
//! a sum gets by chance is found by putting the spikes elsewhere, each as long as it was, and taking the largest of
//! *all* series each time (Westfall and Young's step-free max-T): what is left standing is not the luckiest of many.

/// Places that are tried for the spikes.
const SHUFFLES: usize = 999;

/// How one series went with the spikes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Match {
    /// Index of the series.
    pub series: usize,
    /// Chance that any of the series would go with the spikes as well as this if none had to do with them.
    pub p: f64,
    /// Standardised rank sum.
    pub z: f64,
    /// Share of the spike windows, and of the quiet ones, with more than the mean of both medians.
    pub spikes_with: f64,
    pub quiet_with: f64,
}

/// Which windows are spikes, and which are quiet; others are neither.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Marks {
    pub is_spike: Vec<bool>,
    pub is_quiet: Vec<bool>,
}

impl Marks {
    /// Of heights in units of their trial's median. A window is high where it is as high as the lowest spike, also in a trial where that does not
    /// stand out. Quiet is what is not high, not before a high window, and not one or two behind it: what made it may be seen there as well, as a
    /// series has in each window the most of this one and the one before.
    pub fn of(is_spike: Vec<bool>, heights: &[Option<f64>]) -> Marks {
        let spikes = is_spike.iter().zip(heights).filter(|(is_spike, _)| **is_spike);
        let lowest = spikes.filter_map(|(_, height)| *height).fold(f64::INFINITY, f64::min);
        let high = |at: usize| {
            is_spike[at] || heights.get(at).copied().flatten().is_some_and(|height| height >= lowest)
        };
        let is_quiet = (0..is_spike.len())
            .map(|at| !(at.saturating_sub(2)..(at + 2).min(is_spike.len())).any(high))
            .collect();
        Marks { is_spike, is_quiet }
    }
}

/// Compares every series with the spikes, best first. A series has a value for each window, larger where it moved.
pub(super) fn matches(series: &[Vec<f64>], marks: &Marks) -> Vec<Match> {
    let is_spike = marks.is_spike.as_slice();
    let spikes = is_spike.iter().filter(|is_spike| **is_spike).count();
    let quiet = is_spike.len() - spikes;
    if spikes == 0 || quiet == 0 {
        return Vec::new();
    }
    let ranked: Vec<Ranks> = series.iter().map(|values| Ranks::of(values, spikes)).collect();
    let chosen = |is_spike: &[bool]| -> Vec<usize> {
        is_spike.iter().enumerate().filter(|(_, is_spike)| **is_spike).map(|(at, _)| at).collect()
    };
    let here = chosen(is_spike);
    let observed: Vec<f64> = ranked.iter().map(|ranks| ranks.z(&here)).collect();
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let runs = runs(is_spike);
    let mut as_large = vec![1usize; series.len()];
    for _ in 0..SHUFFLES {
        let elsewhere = chosen(&placed(&runs, is_spike.len(), &mut random));
        let largest = ranked.iter().map(|ranks| ranks.z(&elsewhere)).fold(f64::NEG_INFINITY, f64::max);
        for (count, z) in as_large.iter_mut().zip(&observed) {
            *count += usize::from(largest >= *z);
        }
    }
    let mut found: Vec<Match> = (0..series.len())
        .map(|at| {
            let (spikes_with, quiet_with) = shares(&series[at], marks);
            let p = as_large[at] as f64 / (SHUFFLES + 1) as f64;
            Match { series: at, p, z: observed[at], spikes_with, quiet_with }
        })
        .collect();
    found.sort_by(|a, b| b.z.total_cmp(&a.z));
    found
}

/// Ranks of a series, and what their sum over so many windows is and varies by when they are drawn at random.
struct Ranks {
    ranks: Vec<f64>,
    mean: f64,
    deviation: f64,
}

impl Ranks {
    fn of(values: &[f64], chosen: usize) -> Ranks {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
        let mut ranks = vec![0.0; values.len()];
        let mut begin = 0;
        while begin < order.len() {
            let same = order[begin..].iter().take_while(|at| values[**at] == values[order[begin]]).count();
            let tied = begin + same.max(1);
            // Equal values share the mean of their ranks.
            order[begin..tied].iter().for_each(|at| ranks[*at] = (begin + tied - 1) as f64 / 2.0);
            begin = tied;
        }
        let n = values.len() as f64;
        let mean = (n - 1.0) / 2.0;
        let variance = ranks.iter().map(|rank| (rank - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
        let k = chosen as f64;
        // Of k drawn from n without putting back.
        Ranks { ranks, mean: k * mean, deviation: (k * variance * (1.0 - k / n)).sqrt() }
    }

    /// 0 for a series that never moved.
    fn z(&self, chosen: &[usize]) -> f64 {
        let sum: f64 = chosen.iter().map(|at| self.ranks[*at]).sum();
        if self.deviation > 0.0 { (sum - self.mean) / self.deviation } else { 0.0 }
    }
}

/// Lengths of the stretches of spikes.
fn runs(is_spike: &[bool]) -> Vec<usize> {
    is_spike.split(|is_spike| !is_spike).map(<[bool]>::len).filter(|length| *length > 0).collect()
}

/// The same stretches in random order with the quiet windows between them at random.
fn placed(runs: &[usize], windows: usize, random: &mut Random) -> Vec<bool> {
    let quiet = windows - runs.iter().sum::<usize>();
    // A stretch begins after so many quiet windows; two may touch.
    let mut starts: Vec<(usize, usize)> =
        runs.iter().map(|length| (random.below(quiet + 1), *length)).collect();
    // Order among those that begin together is as they were drawn.
    starts.sort_by_key(|(start, _)| *start);
    let mut is_spike = Vec::with_capacity(windows);
    let mut quiet_so_far = 0;
    for (start, length) in starts {
        is_spike.extend(std::iter::repeat_n(false, start - quiet_so_far));
        quiet_so_far = start;
        is_spike.extend(std::iter::repeat_n(true, length));
    }
    is_spike.resize(windows, false);
    is_spike
}

/// The values of the windows that are marked.
pub(super) fn marked(values: &[f64], marks: &[bool]) -> Vec<f64> {
    values.iter().zip(marks).filter(|(_, is_marked)| **is_marked).map(|(value, _)| *value).collect()
}

fn shares(values: &[f64], marks: &Marks) -> (f64, f64) {
    let (spikes, quiet) = (marked(values, &marks.is_spike), marked(values, &marks.is_quiet));
    // A cause that is often there without a spike still divides them; a high percentile of the quiet ones would not.
    let medians = tare_stats::median(&spikes).zip(tare_stats::median(&quiet));
    let middle = medians.map_or(f64::INFINITY, |(spikes, quiet)| (spikes + quiet) / 2.0);
    let share = |values: &[f64]| {
        values.iter().filter(|value| **value > middle).count() as f64 / values.len().max(1) as f64
    };
    (share(&spikes), share(&quiet))
}

/// xorshift64: the same record is explained the same way every time.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ties_share_their_rank() {
        assert_eq!(Ranks::of(&[5.0, 1.0, 5.0, 0.0], 1).ranks, [2.5, 1.0, 2.5, 0.0]);
        assert_eq!(Ranks::of(&[2.0; 5], 2).z(&[0, 1]), 0.0);
    }

    #[test]
    fn what_is_as_high_as_a_spike_is_not_quiet_nor_is_what_is_near() {
        let mut is_spike = vec![false; 12];
        is_spike[3] = true;
        let heights: Vec<Option<f64>> = (0..12).map(|at| Some(if at == 3 { 8.0 } else { 1.0 })).collect();
        let quiet = |heights: &[Option<f64>]| {
            let quiet = Marks::of(is_spike.clone(), heights).is_quiet;
            (0..12).filter(|at| quiet[*at]).collect::<Vec<usize>>()
        };
        assert_eq!(quiet(&heights), [0, 1, 6, 7, 8, 9, 10, 11]);
        let mut other = heights.clone();
        other[9] = Some(9.0);
        assert_eq!(quiet(&other), [0, 1, 6, 7]);
        let unanswered: Vec<Option<f64>> = (0..12).map(|at| (at != 3).then_some(1.0)).collect();
        assert_eq!(quiet(&unanswered), quiet(&heights));
    }

    /// Of 200 series of noise none is found, nineteen times in twenty; the one that moves is.
    #[test]
    fn the_one_that_moved_is_found_among_many() {
        let mut random = Random(42);
        let mut false_alarms = 0;
        for round in 0..20 {
            let is_spike: Vec<bool> = (0..200).map(|at| (at + round) % 25 < 2).collect();
            let mut series: Vec<Vec<f64>> =
                (0..200).map(|_| (0..200).map(|_| random.below(1000) as f64).collect()).collect();
            let marks = Marks::of(is_spike, &[]);
            false_alarms += usize::from(matches(&series, &marks)[0].p <= 0.05);
            let spikes = marks.is_spike.iter();
            for (value, _) in series[17].iter_mut().zip(spikes).filter(|(_, is_spike)| **is_spike) {
                *value += 900.0;
            }
            let best = &matches(&series, &marks)[0];
            assert!(best.series == 17 && best.p <= 0.05 && best.spikes_with > 0.6, "{best:?}");
        }
        assert!(false_alarms <= 3, "{false_alarms}");
    }

    proptest! {
        #[test]
        fn spikes_stay_as_many_and_as_long(is_spike in prop::collection::vec(any::<bool>(), 1..60), seed in 1u64..) {
            let mut random = Random(seed);
            let placed = placed(&runs(&is_spike), is_spike.len(), &mut random);
            let count = |flags: &[bool]| flags.iter().filter(|flag| **flag).count();
            prop_assert_eq!((placed.len(), count(&placed)), (is_spike.len(), count(&is_spike)));
        }

        #[test]
        fn any_numbers_have_a_chance_between_0_and_1(
            values in prop::collection::vec(prop::num::f64::ANY, 30),
            is_spike in prop::collection::vec(any::<bool>(), 30),
        ) {
            for found in matches(&[values], &Marks::of(is_spike, &[])) {
                prop_assert!(found.p > 0.0 && found.p <= 1.0 && !found.z.is_nan(), "{found:?}");
            }
        }
    }
}
