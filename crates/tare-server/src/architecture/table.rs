//! Every architecture, by name.

use super::dispatch::Dispatch;
use super::layout::Architecture;
use super::reactor::Reactor;
use super::shared_nothing::SharedNothing;

/// Every architecture, the default first.
pub const ARCHITECTURES: &[&dyn Architecture] = &[&SharedNothing, &Reactor, &Dispatch];

/// The architecture of a [`crate::Config`] that does not name one.
pub const DEFAULT: &dyn Architecture = &SharedNothing;

/// The architecture of that name.
pub fn find(name: &str) -> Option<&'static dyn Architecture> {
    ARCHITECTURES.iter().copied().find(|a| a.name() == name)
}
