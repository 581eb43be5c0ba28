//! How far two runs lie apart in time: a machine's interference differs by more between those that lie further apart.

use crate::capacity::levels::Accounting;

/// A record that lasted for no time is broken, and no number.
const LENGTH_S_MIN: f64 = 1e-3;

/// How many lengths of a run the one began before the other, of their starts (seconds since 1970) and their lengths in seconds.
pub(crate) fn lengths(a: (u64, f64), b: (u64, f64)) -> f64 {
    2.0 * a.0.abs_diff(b.0) as f64 / (a.1 + b.1).max(LENGTH_S_MIN)
}

impl Accounting<'_> {
    /// When it was started, seconds since 1970, and how long it took.
    pub fn place(&self) -> (u64, f64) {
        (self.record.plan.started_unix_s, self.length_s())
    }

    /// From the first sample of the asked load's trials to the last; without samples what the trials took.
    pub fn length_s(&self) -> f64 {
        let elapsed_s: f64 = self.measured_trials().map(|(window, _)| window.answered.elapsed_s).sum();
        let columns = self.measured_trials().flat_map(|(_, trial)| &trial.observation.columns);
        let ends =
            columns.filter_map(|column| Some((column.samples.first()?.at_ns, column.samples.last()?.at_ns)));
        let length_ns = ends.reduce(|whole, one| (whole.0.min(one.0), whole.1.max(one.1)));
        length_ns.map_or(0.0, |(first, last)| last.saturating_sub(first) as f64 / 1e9).max(elapsed_s)
    }
}

#[cfg(test)]
mod tests {
    use super::lengths;

    #[test]
    fn in_lengths_of_a_run_and_always_a_number() {
        assert_eq!(lengths((1000, 10.0), (1030, 20.0)), 2.0);
        assert_eq!(lengths((1030, 20.0), (1000, 10.0)), 2.0);
        assert_eq!(lengths((5, 0.0), (5, 0.0)), 0.0);
        assert!(lengths((0, 0.0), (u64::MAX, 0.0)).is_finite());
    }
}
