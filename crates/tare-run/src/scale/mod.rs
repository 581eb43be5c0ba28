//! How a figure grows: one factor is varied over levels, each measured once in each block, on a fresh launch.
//!
//! `factor` says what is varied and sets it, `levels` which values it takes, `pace` how long each is measured and how often, `figure` what is
//! taken of a launch, `level` what the launches of a level come to; `run` does it.

mod factor;
mod figure;
mod level;
mod levels;
mod pace;
mod run;
mod warnings;

pub use factor::{Factor, Setting, takes_n};
pub use figure::{Metering, Work};
pub use levels::Levels;
pub use run::{Setup, Sweep, Swept, run};
