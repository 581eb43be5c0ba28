//! Sums, and what stays unclaimed: the only stage that others read.

pub(super) mod answered;
pub(super) mod closed;
pub(super) mod residual;
mod unclaimed;
