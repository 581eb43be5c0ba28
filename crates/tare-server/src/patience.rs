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
    /// with each piece taken; a head and a body run from their start, which is a new one after an answer (a client that
    /// sends requests without a pause may never be seen between two of them).
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
        let another = peer.connection.take_answered() && matches!(patience, Patience::Head | Patience::Body);
        if patience == peer.patience && patience != Patience::Idle && !progress && !another {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;

    use tare_http::limits::Limits;

    use crate::connection::Engine;
    use crate::routes::Routes;

    #[test]
    fn each_head_and_each_body_has_a_time_of_its_own() {
        let mut engine = Engine::new(Arc::new(Routes::default()), Limits::default(), 0);
        let (socket, _other) = UnixStream::pair().unwrap();
        let mut peer = Peer::new(socket.into(), &engine);
        let mut after = |bytes: &str| {
            peer.receive(bytes.as_bytes(), &mut Vec::new(), &mut engine);
            Patience::renewed(&mut peer)
        };
        let (head, rest) = ("GET /a HTTP/1.1\r\nHo", "st: h\r\n\r\n");
        assert_eq!(after(head), Some(Patience::Head));
        assert_eq!(after("st:"), None, "a head that drips");
        assert_eq!(after(&format!(" h\r\n\r\n{head}")), Some(Patience::Head), "the head of the next request");
        assert_eq!(after("s"), None);
        let post = "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nx";
        assert_eq!(after(&format!("{}{post}", &rest[1..])), Some(Patience::Body));
        assert_eq!(after(&format!("x{post}")), Some(Patience::Body), "the body of the next request");
        assert_eq!(after("x"), Some(Patience::Idle));
    }
}
