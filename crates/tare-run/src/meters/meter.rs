//! What every meter can do.

use crate::loads::load::Counted;
use tare_model::trial::Measure;

/// A way to count a trial's result.
pub(crate) trait Meter: Sync {
    /// The result.
    ///
    /// # Errors
    /// What was given, where this is not its kind.
    fn read(&self, counted: Counted) -> Result<Measure, Counted>;
}
