//! How long the window of a launch should be, learnt from the first ones.
//!
//! A launch takes time that shows nothing (starting, warming up, ending), and a window shows the layout of its launch alone. With
//! a variance `between` launches and one `within` them for a second of load, and `rest` seconds beside the window, a given time shows
//! most with windows of √(rest · within / between) (Kalibera and Jones, Rigorous Benchmarking in Reasonable Time, ISMM 2013, the optimum
//! for two levels of repetition).

use std::time::Duration;

/// Launches that it is learnt from.
const LEARN_FROM: usize = 6;
/// Who has room for fewer launches than these has none to learn anything.
const LAUNCHES_MIN: f64 = 40.0;
/// Of what is left, so many launches are to be at least.
const LAUNCHES_LEFT_MIN: f64 = 20.0;
/// Longer windows than so many times the rest save next to nothing.
const OVER_REST_MAX: f64 = 3.0;

/// The length of windows, and what it is learnt from.
pub(super) struct Length {
    window: Duration,
    /// The effect in both halves of each window so far, as logarithms; `None` once there is nothing to learn any more.
    halves: Option<Vec<[f64; 2]>>,
}

impl Length {
    /// Windows as long as the user asked for, or of this length until it is known better.
    pub fn new(asked: Option<Duration>, usual: Duration) -> Length {
        Length { window: asked.unwrap_or(usual), halves: asked.is_none().then(Vec::new) }
    }

    pub fn window(&self) -> Duration {
        self.window
    }

    /// Whether the halves of a window are looked at, and later windows may be longer.
    pub fn is_learning(&self) -> bool {
        self.halves.is_some()
    }

    /// Another launch, which took so many seconds; so many are left.
    pub fn learn(&mut self, effect: Option<[f64; 2]>, took_s: f64, left_s: f64) {
        let Some(halves) = &mut self.halves else { return };
        let Some(effect) = effect.filter(|_| left_s / took_s.max(1e-3) >= LAUNCHES_MIN) else {
            self.halves = None;
            return;
        };
        halves.push(effect);
        if halves.len() < LEARN_FROM {
            return;
        }
        let window_s = self.window.as_secs_f64();
        let rest_s = (took_s - window_s).max(0.0);
        let best_s = best_s(halves, window_s, rest_s).min(left_s / LAUNCHES_LEFT_MIN - rest_s);
        // Never shorter: a percentile that some launches have too few answers for is reported for none.
        self.window = Duration::try_from_secs_f64(best_s.max(window_s)).unwrap_or(self.window);
        self.halves = None;
    }
}

/// How far an arm had come.
#[derive(Debug, Clone, Copy)]
pub(super) struct Count {
    pub cpu_ns: Option<u64>,
    pub answers: u64,
}

/// CPU time of a request of each arm, seconds, between one of these counts and the next; nothing for an arm of which one is not known.
pub(super) fn costs_s(counts: &[Vec<Count>]) -> Vec<Vec<f64>> {
    let arms = counts.first().map_or(0, Vec::len);
    let cost_s = |at: usize, pair: &[Vec<Count>]| {
        Some(cost_ln(pair.first()?.get(at)?, pair.get(1)?.get(at)?)?.exp() / 1e9)
    };
    let of_arm = |at: usize| counts.windows(2).map(|pair| cost_s(at, pair)).collect::<Option<Vec<f64>>>();
    (0..arms).map(|at| of_arm(at).unwrap_or_default()).collect()
}

/// What the others' CPU time of a request differs by from that of the first arm and its A/A control, in the halves of a window that begins,
/// divides and ends with these counts; the mean of the others' logarithms. `None` where there are no halves, or a cost is not known.
pub(super) fn effect(counts: &[Vec<Count>]) -> Option<[f64; 2]> {
    let [begin, middle, end] = counts else { return None };
    let half = |from: &[Count], to: &[Count]| {
        let costs_ln: Option<Vec<f64>> = from.iter().zip(to).map(|(from, to)| cost_ln(from, to)).collect();
        let costs_ln = costs_ln?;
        let [first, aa_control, others @ ..] = costs_ln.as_slice() else { return None };
        let mean = others.iter().sum::<f64>() / others.len().max(1) as f64;
        (!others.is_empty()).then(|| mean - (first + aa_control) / 2.0)
    };
    Some([half(begin, middle)?, half(middle, end)?])
}

fn cost_ln(from: &Count, to: &Count) -> Option<f64> {
    let cpu_ns = to.cpu_ns?.checked_sub(from.cpu_ns?).filter(|ns| *ns > 0)?;
    let answers = to.answers.checked_sub(from.answers).filter(|answers| *answers > 0)?;
    Some((cpu_ns as f64 / answers as f64).ln())
}

/// The best length of windows, from the effect in both halves of windows of `window_s`.
fn best_s(halves: &[[f64; 2]], window_s: f64, rest_s: f64) -> f64 {
    let count = halves.len().max(2) as f64;
    let mean = halves.iter().flatten().sum::<f64>() / (2.0 * count);
    // What the halves of a launch differ by varies by 4/window of what a second does, their mean by 1/window of it and by all that
    // launches differ by.
    let apart = halves.iter().map(|[one, other]| (one - other).powi(2)).sum::<f64>() / count;
    let whole =
        halves.iter().map(|[one, other]| ((one + other) / 2.0 - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let within = window_s * apart / 4.0;
    let between = whole - apart / 4.0;
    let longest_s = OVER_REST_MAX * rest_s;
    // Launches that differ by no more than their halves do not differ.
    if between > 0.0 { (rest_s * within / between).sqrt().min(longest_s) } else { longest_s }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Launches that differ by `between`, with halves that differ by `within` beside it, of both signs, one after the other.
    fn halves(between: f64, within: f64) -> Vec<[f64; 2]> {
        let signs = [[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, 1.0], [-1.0, -1.0]];
        signs
            .map(|[launch, half]| [launch * between + half * within, launch * between - half * within])
            .to_vec()
    }

    #[test]
    fn windows_are_long_where_launches_are_alike_and_stay_where_they_differ() {
        assert!((best_s(&halves(0.0, 0.02), 0.6, 0.4) - 1.2).abs() < 1e-9);
        assert!(best_s(&halves(0.05, 0.005), 0.6, 0.4) < 0.1);
        // Six launches at ±0.02 vary by 6/5 of its square, of which the square of 0.01 is what their halves alone would give.
        let known = (0.4 * 0.6 * 0.01f64.powi(2) / (1.2 * 0.02f64.powi(2) - 0.01f64.powi(2))).sqrt();
        let learnt = best_s(&halves(0.02, 0.01), 0.6, 0.4);
        assert!((learnt - known).abs() < 1e-9 && (0.25..0.26).contains(&known), "{learnt} {known}");
    }

    #[test]
    fn an_effect_is_of_the_others_against_the_first_and_its_aa_control() {
        let at = |counts: [(u64, u64); 4]| {
            counts.map(|(cpu_ns, answers)| Count { cpu_ns: Some(cpu_ns), answers }).to_vec()
        };
        let begin = at([(7, 1), (9, 2), (5, 3), (0, 0)]);
        let middle = at([(107, 11), (109, 12), (205, 13), (200, 10)]);
        let end = at([(207, 21), (209, 22), (305, 23), (300, 20)]);
        let effect_of =
            |counts: &[&Vec<Count>]| effect(&counts.iter().map(|count| (*count).clone()).collect::<Vec<_>>());
        let [first, second] = effect_of(&[&begin, &middle, &end]).unwrap();
        assert!((first - 2f64.ln()).abs() < 1e-9 && second.abs() < 1e-9, "{first} {second}");
        assert_eq!(effect_of(&[&begin, &end]), None);
        let mut gone = middle.clone();
        gone[3].cpu_ns = None;
        assert_eq!(effect_of(&[&begin, &gone, &end]), None);
        // Nothing was answered in the second half.
        assert_eq!(effect_of(&[&begin, &end, &end]), None);
    }

    #[test]
    fn learns_once_and_only_where_there_is_time() {
        let usual = Duration::from_millis(600);
        let asked = Length::new(Some(Duration::from_secs(2)), usual);
        assert!(!asked.is_learning() && asked.window() == Duration::from_secs(2));
        let mut hurried = Length::new(None, usual);
        hurried.learn(Some([0.0; 2]), 1.0, 19.0);
        assert!(!hurried.is_learning() && hurried.window() == usual);
        let mut unseen = Length::new(None, usual);
        unseen.learn(None, 1.0, 100.0);
        assert!(!unseen.is_learning() && unseen.window() == usual);
        let mut length = Length::new(None, usual);
        for effect in halves(0.0, 0.02) {
            assert!(length.is_learning() && length.window() == usual);
            length.learn(Some(effect), 1.0, 100.0);
        }
        assert!(!length.is_learning());
        assert_eq!(length.window(), Duration::from_millis(1200));
    }

    proptest! {
        /// Whatever the launches were, windows stay between their first length and what leaves enough launches.
        #[test]
        fn no_window_is_beyond_its_bounds(effects in prop::collection::vec(prop::array::uniform2(-1.0..1.0f64), 6..7), took_s in 0.61..5.0f64, left_s in 300.0..600.0f64) {
            let mut length = Length::new(None, Duration::from_millis(600));
            effects.iter().for_each(|effect| length.learn(Some(*effect), took_s, left_s));
            prop_assert!(!length.is_learning());
            let window_s = length.window().as_secs_f64();
            prop_assert!((0.6..=(3.0 * took_s).max(0.6) + 1e-6).contains(&window_s), "{window_s}");
        }
    }
}
