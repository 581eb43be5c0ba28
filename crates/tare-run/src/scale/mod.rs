//! How a figure grows: one factor is varied over levels, each measured once in each block, on a fresh launch.
//!
//! `sweep` is what is asked for and what came of it, `factor` what is varied and how it is set, `levels` which values it takes, `pace` how long each
//! is measured and how often, `figure` what is taken of a launch, `level` what the launches of a level come to; `run` does it.
//! Copies of a service that run at once are `instances`.

mod factor;
mod figure;
mod instances;
mod level;
mod levels;
mod pace;
mod run;
mod sweep;
mod warnings;

pub use factor::{Factor, Setting, takes_n};
pub use figure::{Metering, Work};
pub use instances::{Part, measure as instance};
pub use levels::Levels;
pub use sweep::{InstancesAsked, Setup, Sweep, Swept};

use crate::progress::Progress;

/// Measures a sweep. What was measured before a failure or an interruption is kept.
pub fn run(sweep: &Sweep, setup: &Setup, progress: &mut dyn Progress) -> Swept {
    match sweep.factor {
        Factor::Instances => instances::run(sweep, setup, progress),
        _ => run::run(sweep, setup, progress),
    }
}
