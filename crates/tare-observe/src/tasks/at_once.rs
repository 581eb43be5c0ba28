//! How many threads of the SUT ran or were ready at once, sample by sample: what a runtime lets run, and what waits for each other,
//! shows here and in no sum.

use super::watched::Watched;
use tare_model::observation::Role;

/// More at once than these are counted as so many.
const AT_ONCE_MAX: usize = 256;

/// Samples by the number of threads that were running or ready.
#[derive(Debug, Default)]
pub(super) struct AtOnce(Vec<u64>);

impl AtOnce {
    pub(super) fn begin(&mut self) {
        self.0.clear();
    }

    /// Counts those that were sampled just now; of the others what the last sample found still holds.
    pub(super) fn count(&mut self, watched: &[Watched]) {
        let ready = watched.iter().filter(|watched| watched.role == Role::Sut && watched.is_ready()).count();
        let at = ready.min(AT_ONCE_MAX);
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        self.0[at] += 1;
    }

    pub(super) fn counts(&self) -> Vec<u64> {
        self.0.clone()
    }
}
