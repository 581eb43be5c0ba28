//! Which values the factor takes: those that were named, or of a range first a geometric sequence, then more where the curve bends.

use std::str::FromStr;

/// Most levels that are chosen; a list may name more, up to `LIST_MAX`.
const CHOSEN_MAX: usize = 9;
/// Of a range at first, so that there is room for those at the bend.
const FIRST_MAX: usize = 7;
const LIST_MAX: usize = 64;
/// A bend is a figure that is this far from the straight line between its neighbours, as a share of the highest figure: less may be noise.
const BEND_MIN: f64 = 0.05;
/// Two values of a factor that is no whole number are different by this, as a share.
const APART_MIN: f64 = 0.1;

/// The levels that were asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum Levels {
    /// These, ascending.
    List(Vec<f64>),
    /// From the first to the last, chosen while it is measured.
    Range(f64, f64),
}

impl FromStr for Levels {
    type Err = String;

    fn from_str(text: &str) -> Result<Levels, String> {
        if let Some((min, max)) = text.split_once("..") {
            let (min, max) = (number(min)?, number(max.trim_start_matches('='))?);
            return match min < max {
                true => Ok(Levels::Range(min, max)),
                false => Err(format!("'{text}' does not go up; write a range as 1..64")),
            };
        }
        let mut values = text.split(',').map(number).collect::<Result<Vec<f64>, String>>()?;
        values.sort_by(f64::total_cmp);
        values.dedup();
        match values.len() {
            1..=LIST_MAX => Ok(Levels::List(values)),
            count => Err(format!("{count} levels are more than {LIST_MAX}; write a range as 1..64")),
        }
    }
}

/// A number above 0: `64`, `1k`, `2.5M`.
fn number(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let (digits, factor) = match text.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&text[..at], 1e3),
        Some((at, 'm' | 'M')) => (&text[..at], 1e6),
        Some((at, 'g' | 'G')) => (&text[..at], 1e9),
        _ => (text, 1.0),
    };
    let value = digits.parse::<f64>().ok().map(|value| value * factor);
    value.filter(|value| value.is_finite() && *value > 0.0 && *value <= 1e12).ok_or_else(|| {
        format!("'{text}' is not a number above 0; write levels as 1,2,4,8 or as a range 1..64")
    })
}

impl Levels {
    /// The value, where there is only one: then nothing is varied by it.
    pub fn single(&self) -> Option<f64> {
        match self {
            Levels::List(values) => values.first().copied().filter(|_| values.len() == 1),
            Levels::Range(..) => None,
        }
    }

    /// Those to begin with, ascending.
    pub(super) fn first(&self, is_whole: bool) -> Vec<f64> {
        let (min, max) = match self {
            Levels::List(values) => return values.clone(),
            Levels::Range(min, max) => (*min, *max),
        };
        let ratio = (max / min).powf(1.0 / (FIRST_MAX - 1) as f64).max(2.0);
        let steps = ((max / min).ln() / ratio.ln() - 1e-9).floor().max(0.0) as i32;
        let between = (1..=steps).map(|step| nice(min * ratio.powi(step), is_whole));
        let mut values: Vec<f64> = between.filter(|value| *value > min && *value < max).collect();
        values.extend([min, max]);
        values.sort_by(f64::total_cmp);
        values.dedup();
        values
    }

    /// The next ones, from figures at those that there are: the middles on both sides of the sharpest bend that has room. None where
    /// nothing bends any more, there is no room, or there are enough.
    pub(super) fn next(&self, seen: &[(f64, f64)], is_whole: bool) -> Vec<f64> {
        if matches!(self, Levels::List(_)) {
            return Vec::new();
        }
        let mut bends: Vec<(f64, usize)> =
            (1..seen.len().saturating_sub(1)).map(|at| (bend(seen, at), at)).collect();
        bends.retain(|(bend, _)| *bend >= BEND_MIN);
        bends.sort_by(|one, other| other.0.total_cmp(&one.0));
        let room = CHOSEN_MAX.saturating_sub(seen.len());
        let middles = bends.into_iter().map(|(_, at)| {
            let pairs = [(at, at + 1), (at - 1, at)];
            pairs
                .into_iter()
                .filter_map(|(low, high)| middle(seen[low].0, seen[high].0, is_whole))
                .collect::<Vec<f64>>()
        });
        let mut next = middles.into_iter().find(|middles| !middles.is_empty()).unwrap_or_default();
        next.truncate(room);
        next
    }
}

/// How far a figure is from the straight line between its neighbours, as a share of the highest.
fn bend(seen: &[(f64, f64)], at: usize) -> f64 {
    let [(low, x_low), (n, x), (high, x_high)] = [seen[at - 1], seen[at], seen[at + 1]];
    let straight = x_low + (x_high - x_low) * (n - low) / (high - low);
    let highest = seen.iter().map(|(_, x)| *x).fold(0.0, f64::max);
    if highest > 0.0 { (x - straight).abs() / highest } else { 0.0 }
}

/// A value between two, where there is room for one.
fn middle(low: f64, high: f64, is_whole: bool) -> Option<f64> {
    let value = nice(0.5 * (low + high), is_whole);
    let is_apart = is_whole || (value - low > APART_MIN * low && high - value > APART_MIN * value);
    (value > low && value < high && is_apart).then_some(value)
}

/// A value that reads well: a whole number, or three digits.
fn nice(value: f64, is_whole: bool) -> f64 {
    if is_whole {
        return value.round();
    }
    let scale = 10f64.powf(value.log10().floor() - 2.0);
    (value / scale).round() * scale
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(text: &str) -> Levels {
        text.parse().unwrap()
    }

    #[test]
    fn reads_lists_and_ranges() {
        assert_eq!(of("8,1,2,2"), Levels::List(vec![1.0, 2.0, 8.0]));
        assert_eq!(of("1..1k"), Levels::Range(1.0, 1000.0));
        assert_eq!(of("1..=64"), Levels::Range(1.0, 64.0));
        assert_eq!((of("4").single(), of("1..4").single()), (Some(4.0), None));
        for bad in ["", "0", "a", "4..1", "3..3", "-1", "1,,2", "..", "1..", "nan", "1-4"] {
            assert!(bad.parse::<Levels>().is_err(), "{bad}");
        }
    }

    #[test]
    fn begins_geometrically() {
        assert_eq!(of("1..64").first(true), [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]);
        assert_eq!(of("1..2").first(true), [1.0, 2.0]);
        assert_eq!(of("1..6").first(true), [1.0, 2.0, 4.0, 6.0]);
        assert!(of("1..100k").first(true).len() <= FIRST_MAX);
        assert_eq!(of("1,3").first(true), [1.0, 3.0]);
    }

    #[test]
    fn goes_on_where_it_bends() {
        // Two CPUs: nothing is between 1 and 2.
        let two_cpus = [(1.0, 100.0), (2.0, 200.0), (4.0, 201.0), (8.0, 199.0)];
        assert_eq!(of("1..8").next(&two_cpus, true), [3.0]);
        let refined = [(1.0, 100.0), (2.0, 200.0), (3.0, 200.0), (4.0, 201.0), (8.0, 199.0)];
        assert_eq!(of("1..8").next(&refined, true), [0.0; 0]);
        let straight = [(1.0, 100.0), (2.0, 200.0), (4.0, 400.0)];
        assert_eq!(of("1..4").next(&straight, true), [0.0; 0]);
        let at_16: Vec<(f64, f64)> =
            [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0].map(|n: f64| (n, n.min(16.0))).to_vec();
        assert_eq!(of("1..64").next(&at_16, true), [24.0, 12.0]);
        // A list is taken as it is.
        assert_eq!(of("1,2,4,8").next(&two_cpus, true), [0.0; 0]);
    }

    proptest! {
        #[test]
        fn levels_are_in_the_range_and_few(min in 1u32..1000, more in 1u32..100_000, knee in 1.0..1e5f64) {
            let (min, max) = (f64::from(min), f64::from(min) + f64::from(more));
            let levels = Levels::Range(min, max);
            let mut seen: Vec<(f64, f64)> = levels.first(true).into_iter().map(|n| (n, n.min(knee))).collect();
            prop_assert!(seen.len() <= FIRST_MAX + 1 && seen.len() >= 2);
            for _ in 0..20 {
                let next = levels.next(&seen, true);
                if next.is_empty() { break }
                seen.extend(next.into_iter().map(|n| (n, n.min(knee))));
                seen.sort_by(|one, other| one.0.total_cmp(&other.0));
            }
            prop_assert!(seen.len() <= CHOSEN_MAX);
            prop_assert!(seen.windows(2).all(|pair| pair[0].0 < pair[1].0), "{seen:?}");
            prop_assert!(seen.iter().all(|(n, _)| *n >= min && *n <= max && n.fract() == 0.0));
            prop_assert!(levels.next(&seen, true).is_empty());
        }
    }
}
