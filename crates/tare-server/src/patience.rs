//! What a loop waits for, connection by connection, and for how long.

use std::time::Duration;

use crate::config::Timeouts;
use crate::connection::Waiting;
use crate::peers::Peer;

/// How often deadlines are looked at, and how long accepting pauses when descriptors ran out.
pub(crate) const TICK_NS: u64 = 250_000_000;

/// An answer's taker must take this much within the write timeout.
const WRITE_PROGRESS_BYTES: usize = 16 * 1024;

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
    /// What `peer` is waited for now, if its deadline is to be set anew: idle begins anew with each answer, writing
    /// with each piece taken; the others run from their start.
    #[inline]
    pub(crate) fn renewed(peer: &mut Peer) -> Option<Patience> {
        let patience = if peer.lingering {
            Patience::Linger
        } else if peer.has_unsent() {
            Patience::Write
        } else {
            match peer.waiting() {
                Waiting::Request => Patience::Idle,
                Waiting::Head => Patience::Head,
                Waiting::Body => Patience::Body,
                Waiting::End => Patience::Linger,
            }
        };
        let progress = patience == Patience::Write && peer.sent_since_deadline >= WRITE_PROGRESS_BYTES;
        if patience == peer.patience && patience != Patience::Idle && !progress {
            return None;
        }
        peer.patience = patience;
        peer.sent_since_deadline = 0;
        Some(patience)
    }

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
