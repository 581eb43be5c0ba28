//! What all probes have in common.

use super::fault::ProbeFault;
use std::time::Instant;

/// A probe that is ready to ask: connected and logged in, where its protocol does so.
pub(super) trait Client: Send {
    /// Asks once and waits for the whole answer, until a deadline at most. After an error the client is not used again.
    fn ask(&mut self, deadline: Instant) -> Result<(), ProbeFault>;

    /// Whether it can ask again without a new connection.
    fn is_usable(&mut self) -> bool {
        true
    }
}
