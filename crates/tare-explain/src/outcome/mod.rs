//! Puts the stages together, and says what weakens the result.

pub(crate) mod accounting;
pub(crate) mod against;
pub(crate) mod ceiling;
mod compiles;
pub(crate) mod confirmation;
pub(crate) mod execution;
pub(crate) mod explain;
mod failures;
mod generator_report;
pub(crate) mod gross;
pub mod load;
pub(crate) mod metrics;
pub(crate) mod own_cost;
pub(crate) mod own_count;
pub(crate) mod patterns;
mod redirects;
pub(crate) mod requests;
mod sampling;
pub(crate) mod stages;
pub mod tool;
pub(crate) mod verdict;
pub(crate) mod warnings;
mod windows;
