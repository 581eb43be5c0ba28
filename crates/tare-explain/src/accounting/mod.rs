//! Where every thread's and every CPU's time went: the counters of one trial, stage by stage, until they close.

pub(crate) mod attribute;
pub(crate) mod close;
pub(crate) mod raw;
pub(crate) mod reconcile;
