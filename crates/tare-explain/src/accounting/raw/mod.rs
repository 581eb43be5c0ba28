//! Counters of one trial as differences, with their units; nothing is corrected.

pub(super) mod around;
pub(super) mod asleep;
pub(super) mod bounds;
pub(super) mod by_role;
pub(super) mod cpus;
pub(super) mod downstream;
pub(super) mod ended;
pub(crate) mod helpers;
pub(super) mod idle_periods;
pub(super) mod quota;
pub(super) mod ratio;
pub(super) mod readings;
pub(super) mod runtimes;
pub(super) mod stage;
pub(super) mod threads;
pub(super) mod way;
