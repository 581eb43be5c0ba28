//! Each second gets its owner: who preempted, who was throttled, what a sleep was for.

pub(crate) mod entitlement;
pub(crate) mod switches;
pub(crate) mod taken;
pub(crate) mod wait;
