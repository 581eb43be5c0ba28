//! Sums, and what stays unclaimed.

pub(crate) mod residual;
pub(crate) mod window;
