//! Plan files: what to vary, how often, and what is expected of it, written down before anything is measured.
//!
//! [`read`] judges the text alone, [`PlanFile::resolve`] whether this machine can do it; neither starts anything. [`order`] orders the
//! cells of a block at random, [`expect`] and [`judge`] compare what was expected with what came out, by [`Intervals`]; [`run()`] carries it out.

mod around;
pub mod expect;
pub mod figures;
mod flags;
mod interim;
pub mod judge;
pub(crate) mod nearest;
mod order;
mod planfile;
mod read;
mod resolve;
mod run;
mod settings;

pub use flags::as_plan;
pub use interim::Intervals;
pub use order::orders;
pub use planfile::{Case, Factor, PlanFile};
pub use read::read;
pub use resolve::{Cell, Study};
pub use run::{Setup, Studied, run};
pub use settings::Settings;

#[cfg(test)]
mod tests;
