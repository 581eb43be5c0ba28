//! What every subject can do.

use super::sut::Sut;
use crate::error::LabError;
use crate::plan::Resolved;
use crate::running::Running;

/// A way to come by a server.
pub(crate) trait Subject: Sync {
    /// Whether this is what was asked for.
    fn is_asked(&self, resolved: &Resolved) -> bool;

    /// Why its processes are the ones, in a clause.
    fn why(&self) -> &'static str;

    /// Finds or starts it; what belongs to it is known then, or as soon as a generator is connected to it.
    fn open(&self, resolved: &Resolved, running: &mut Running<'_>) -> Result<Sut, LabError>;

    /// Stops what was started.
    fn close(&self, sut: &mut Sut, _resolved: &Resolved, _running: &mut Running<'_>) -> Result<(), LabError> {
        sut.stop();
        Ok(())
    }
}
