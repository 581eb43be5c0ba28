//! Several trials of one kind.

use crate::accounting::Closed;
use tare_stats::{Interval, Jackknife, jackknife};

/// Several trials of one kind, each alone and together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Level {
    pub trials: Vec<Closed>,
    pub pool: Closed,
    /// Trials that there should be; as many as there are, or more.
    pub planned: usize,
}

impl Level {
    pub fn new(trials: Vec<Closed>) -> Self {
        let pool = Closed::pool(&trials);
        Level { planned: trials.len(), trials, pool }
    }

    pub fn of_planned(mut self, trials: usize) -> Self {
        self.planned = self.planned.max(trials);
        self
    }

    /// All of them but one.
    pub fn without(&self, skip: Option<usize>) -> Closed {
        Closed::pool(
            self.trials
                .iter()
                .enumerate()
                .filter(|(place, _)| Some(*place) != skip)
                .map(|(_, window)| window),
        )
    }

    /// Jackknife over the trials of anything computed from pooled trials.
    pub fn spread(&self, statistic: impl Fn(&Closed) -> Option<Vec<f64>>) -> Option<Vec<Jackknife>> {
        jackknife(self.trials.len(), |skip| match skip {
            None => statistic(&self.pool),
            skip => statistic(&self.without(skip)),
        })
    }

    /// 95 % interval of one figure.
    pub fn interval(&self, statistic: impl Fn(&Closed) -> Option<f64>) -> Option<Interval> {
        self.spread(|window| Some(vec![statistic(window)?]))?.first()?.ci95()
    }
}
