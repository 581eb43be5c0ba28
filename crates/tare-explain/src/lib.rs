//! Observations → accounting → iron law → verdict: a pure function of the record, so that an old record can be
//! explained again.
//!
//! The way through the room is the order of its folders: `accounting` does the time accounting of every trial, stage by stage (`raw`, `reconcile`,
//! `attribute`, `close`: threads, CPUs, waits, CPU entitlement); `capacity` pools them by level and carries gross to net by the iron law;
//! `bottlenecks` decides what holds the figure and asks every rule what was lost; `timeline` tells how it went over time ([`stopping`] is
//! asked while the trials run, too); `outcome` writes it all down ([`explain()`]); `contrast` sets two outcomes against each other.
//!
//! Nothing here reads a file, a clock or the machine; no record, however odd, makes it panic or yield a number
//! that is not one.

mod accounting;
pub mod bottlenecks;
mod capacity;
mod contrast;
mod outcome;
mod timeline;

pub use bottlenecks::{LOSS_SHARE_MIN, NOTICE_SHARE};
pub use capacity::stopping;
pub use contrast::{frames, gate, why};
pub use outcome::explain::explain;
pub use outcome::load;
