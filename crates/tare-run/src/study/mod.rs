//! Plan files: what to vary, how often, and what is expected of it, written down before anything is measured.
//!
//! [`read`] judges the text alone, [`PlanFile::resolve`] whether this machine can do it; neither starts anything. [`order`] orders the
//! cells of a block at random, [`expect`] and [`judge`] compare what was expected with what came out, by [`Intervals`]; [`hold`] runs it.

pub mod expect;
pub mod figures;
mod flags;
mod hold;
mod interim;
pub mod judge;
pub(crate) mod nearest;
mod order;
mod planfile;
mod read;
mod resolve;
mod settings;

pub use flags::as_plan;
pub use hold::{Setup, Studied, hold};
pub use interim::Intervals;
pub use order::orders;
pub use planfile::{Case, Factor, PlanFile};
pub use read::read;
pub use resolve::{Cell, Study};
pub use settings::Settings;

#[cfg(test)]
mod tests;
