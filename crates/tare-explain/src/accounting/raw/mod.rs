//! Counters of one trial as differences, with their units; nothing is corrected.

pub(crate) mod around;
pub(crate) mod idle_periods;
pub(crate) mod quota;
pub(crate) mod readings;
