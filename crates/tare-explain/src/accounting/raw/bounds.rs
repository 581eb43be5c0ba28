//! How far accounting may be from closing.

/// Above this share the residual is printed.
pub(crate) const OPEN: f64 = 0.01;
/// Above this share there is no verdict.
pub(crate) const NO_VERDICT: f64 = 0.05;

/// CPU time that nobody claims counts from this share of a CPU on: less is what the stamps of a scan of all threads leave open.
pub(crate) const UNCLAIMED_CPUS: f64 = 0.02;

/// The edges of a window are read within about a millisecond, so that the accounting of a shorter one than this
/// cannot close to [`OPEN`] however right it is: it is not checked.
pub(crate) const CHECKED_S_MIN: f64 = 0.1;
