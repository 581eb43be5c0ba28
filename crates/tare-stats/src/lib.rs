//! Pure statistics on slices of `f64`: no I/O, no dependencies, no panics.
//!
//! One contract holds everywhere: a result that the data cannot give (too few values, a value that is not finite,
//! a logarithm of nothing) is `None`, never NaN and never a made-up zero.

mod describe;
mod divisia;
mod interval;
mod jackknife;
mod simultaneous;
mod student;

pub use describe::{mean, median, quantile, stdev, trimmed_mean};
pub use divisia::log_mean;
pub use interval::{Estimate, Interval, mean_interval, paired_difference, paired_log_ratio};
pub use jackknife::{Jackknife, jackknife};
pub use simultaneous::simultaneous_intervals;
pub use student::t_quantile;
