//! Observations → accounting → iron law → verdict: a pure function of the record, so that an old record can be
//! explained again.
//!
//! The way through the crate is the order of its folders. `accounting` finds where the time of every trial went, stage by stage (`raw`,
//! `reconcile`, `attribute`, `close`). `capacity` pools trials by level of load and computes net from gross by the iron law ([`stopping`]
//! is asked while the trials run, too). `timeline` shows how the figure went over time. [`bottlenecks`] decides what holds the figure, and
//! asks for every cause what it cost. `outcome` puts it all together ([`explain()`]). `contrast` sets two outcomes against each other. [`tool`] says what
//! other tools' results come to, [`probing`] which of several servers is slow under load.
//!
//! Nothing here reads a file, a clock or the machine; no record, however odd, makes it panic or yield a number
//! that is not one.

mod accounting;
pub mod bottlenecks;
mod capacity;
mod contrast;
mod outcome;
pub mod probing;
#[cfg(test)]
mod recorded;
mod timeline;

pub use bottlenecks::{LOSS_SHARE_MIN, NOTICE_SHARE};
pub use capacity::smt_worth;
pub use capacity::{efficiency, instances, reference_level, scaling, stopping};
pub use contrast::{frames, gate, tools, why};
pub use outcome::explain::explain;
pub use outcome::load;
pub use outcome::tool;
