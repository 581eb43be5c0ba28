//! Which build this is, as `build.rs` found it.

/// The number alone.
pub const SHORT: &str = env!("CARGO_PKG_VERSION");

/// `HASH (DATE)` or `unknown`.
pub const COMMIT: &str = env!("TARE_COMMIT");

/// What `tare --version` prints behind the name.
pub const LONG: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit: ",
    env!("TARE_COMMIT"),
    "\ntarget: ",
    env!("TARE_TARGET"),
    "\nfeatures: ",
    env!("TARE_FEATURES"),
    "\nprofile: ",
    env!("TARE_PROFILE"),
);
