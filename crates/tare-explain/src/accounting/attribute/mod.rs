//! Each second gets its owner: who preempted, who was throttled, what a sleep was for.

pub(super) mod cpus;
pub(super) mod entitlement;
mod program_locks;
pub(super) mod stage;
pub(super) mod switches;
pub(super) mod taken;
pub(super) mod thread;
pub(super) mod wait;
pub(super) mod wait_owners;
pub(super) mod waited;
pub(super) mod working;
