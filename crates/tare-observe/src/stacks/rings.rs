//! All rings of an observer together.

use std::io;
use tare_sys::perf::Ring;

/// The first failure, after all were tried.
pub(super) fn enable(rings: &[Ring], on: bool) -> io::Result<()> {
    rings.iter().map(|ring| ring.enable(on)).fold(Ok(()), io::Result::and)
}
