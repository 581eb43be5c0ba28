//! A gate: is what a branch does now worse than it was? A run is held against a baseline's, or against the level of a history
//! since its last change point.
//!
//! Two records know what trials of a run differ by, not what runs do: addresses, heaps, the machine's hour. Of that last, figures that were
//! not interleaved with the reference server allow for what such trials promise. A history knows all of it, so its intervals are
//! those in which one more run of the same program would lie. Two builds that are measured interleaved know most: launches of both,
//! within the same minutes.

mod figures;
mod history;
mod interleaved;
mod judge;
mod row;

pub use figures::run;
pub(super) use figures::run_of;
pub use interleaved::interleaved;
pub use judge::{Asked, against_baseline, against_history, is_kept};
pub(super) use judge::{effects, pair};

#[cfg(test)]
mod tests;
