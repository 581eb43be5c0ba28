//! Why a thread sleeps.

use tare_model::schedule::Sleep;

/// Why a thread sleeps, and where to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Why {
    pub(crate) sleep: Sleep,
    /// The other server, by its place in [`super::peers::Peers`].
    pub(crate) peer: Option<u16>,
}

impl From<Sleep> for Why {
    fn from(sleep: Sleep) -> Why {
        Why { sleep, peer: None }
    }
}
