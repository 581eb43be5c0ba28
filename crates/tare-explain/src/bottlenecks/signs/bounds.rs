//! From where on something counts.

/// A loss below this share of the CPU entitlement is no bottleneck.
pub const LOSS_SHARE_MIN: f64 = 0.12;
/// A share of the CPU entitlement below this is not worth a finding.
pub const NOTICE_SHARE: f64 = 0.03;
