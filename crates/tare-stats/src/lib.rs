//! Pure statistics on slices of `f64`: no I/O, no dependencies, no panics.
//!
//! One contract holds everywhere: a result that the data cannot give (too few values, a value that is not finite,
//! a logarithm of nothing) is `None`, never NaN and never a made-up zero.

mod aa_control;
mod adjusted;
mod apart;
mod change_points;
mod changes;
mod describe;
mod divisia;
mod drift;
mod interval;
mod jackknife;
mod level;
mod median;
mod modes;
#[cfg(test)]
mod noise;
mod normal;
mod outliers;
mod pooled;
mod proportion;
mod random;
pub mod scaling;
mod sequence;
mod series;
mod simultaneous;
mod steady;
mod student;
mod trimmed;
mod verdict;

pub use aa_control::{Contrasts, contrasts, widened};
pub use adjusted::adjusted;
pub use change_points::level_change_points;
pub use changes::{VALUES_MAX, change_points};
pub use describe::{mean, median, quantile, stdev};
pub use divisia::log_mean;
pub use drift::drift;
pub use interval::{Estimate, Interval, Mean, mean_interval, paired_log_ratio};
pub use jackknife::{Jackknife, jackknife, pseudo_values};
pub use level::{Rules, Segment};
pub use median::median_interval;
pub use proportion::proportion_interval;
pub use random::SplitMix64;
pub use sequence::{Analysis, Foresight, LAUNCHES_MIN, PLANNED_MAX, Sequence};
pub use series::SERIES_MIN;
pub use simultaneous::{level_of_each, simultaneous_intervals};
pub use steady::{
    State, Steadiness, VALUES_MIN, steadiness, steadiness_by, steadiness_of_counts, steadiness_of_means,
};
pub use student::t_quantile;
pub use trimmed::trimmed_mean_interval;
pub use verdict::{Better, Verdict, verdict};
