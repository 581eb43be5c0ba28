//! The version of everything that is printed or kept as JSON.

/// Raised when a key is renamed or goes away; keys may be added without.
pub const SCHEMA: u32 = 2;
