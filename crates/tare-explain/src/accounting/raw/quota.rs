//! The quota in force on the SUT: the tightest among its group and the group's ancestors.

use crate::accounting::raw::readings::Readings;
use tare_model::metric::Subject;
use tare_model::metrics::groups;

/// A CPU quota and how often it ran out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Quota {
    /// The group that carries it.
    pub group: String,
    /// CPUs' worth of time it allows.
    pub cpus: f64,
    /// Length of a period, seconds.
    pub period_s: f64,
    pub periods: Option<f64>,
    pub throttled_periods: Option<f64>,
}

impl Quota {
    pub fn read(readings: &Readings) -> Option<Quota> {
        let of = |path: &String| {
            let subject = Subject::Group(path.clone());
            let quota_ns = readings.level(&groups::QUOTA_NS, &subject)?;
            let period_ns = readings.level(&groups::PERIOD_NS, &subject).filter(|period| *period > 0.0)?;
            Some(Quota {
                group: path.clone(),
                cpus: quota_ns / period_ns,
                period_s: period_ns / 1e9,
                periods: readings.growth(&groups::PERIODS, &subject),
                throttled_periods: readings.growth(&groups::THROTTLED_PERIODS, &subject),
            })
        };
        let quotas = readings.observation.sut_groups.iter().filter_map(of);
        quotas.min_by(|a, b| a.cpus.total_cmp(&b.cpus))
    }

    /// Two windows' quota: the tighter one's terms, with both windows' counts where it is the same group.
    pub fn pooled(mine: Option<Quota>, other: Option<&Quota>) -> Option<Quota> {
        let (Some(mine), Some(other)) = (mine.as_ref(), other) else {
            return mine.or_else(|| other.cloned());
        };
        let sum = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a + b);
        let same = mine.group == other.group;
        let tighter = if other.cpus < mine.cpus { other } else { mine };
        let mut pooled = tighter.clone();
        if same {
            pooled.periods = sum(mine.periods, other.periods);
            pooled.throttled_periods = sum(mine.throttled_periods, other.throttled_periods);
        }
        Some(pooled)
    }
}
