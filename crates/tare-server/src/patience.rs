//! What a connection is waited for, and for how long.

use std::time::Duration;

use crate::config::Timeouts;

/// How often deadlines are looked at, and how long accepting pauses when descriptors ran out.
pub(crate) const TICK_NS: u64 = 250_000_000;

/// What a deadline is for: each has its own timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    Idle,
    Head,
    Body,
    Write,
    Linger,
}

impl Patience {
    /// The deadline of a patience that begins at `now_ns`.
    #[inline]
    pub(crate) fn deadline_ns(self, now_ns: u64, timeouts: &Timeouts, draining: bool) -> u64 {
        let timeout = match self {
            // At the end, a request that is on its way is still waited for: closing at once would cross it.
            Patience::Idle if draining => Duration::from_nanos(TICK_NS).min(timeouts.idle),
            Patience::Idle => timeouts.idle,
            Patience::Head => timeouts.head,
            Patience::Body => timeouts.body,
            Patience::Write => timeouts.write,
            Patience::Linger => timeouts.linger,
        };
        now_ns.saturating_add(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX))
    }
}
