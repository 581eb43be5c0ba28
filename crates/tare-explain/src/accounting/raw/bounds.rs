//! How far accounting may be from closing.

/// Above this share the residual is printed.
pub(crate) const OPEN: f64 = 0.01;
/// Above this share there is no verdict.
pub(crate) const NO_VERDICT: f64 = 0.05;

/// The edges of a window are read within about a millisecond, so that the accounting of a shorter one than this
/// cannot close to [`OPEN`] however right it is: it is not checked.
pub(crate) const CHECKED_S_MIN: f64 = 0.1;
