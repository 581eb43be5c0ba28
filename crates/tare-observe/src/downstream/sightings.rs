//! What samples of a caller's connections say: on which of them it waited for an answer. Pure.

use std::collections::BTreeMap;
use tare_sys::sockdiag::TcpEnd;

/// Connections that are kept of a window, at most.
const CONNECTIONS_MAX: usize = 16_384;
/// Who sends so many times without an answer, each fourth at least, is not asking.
const ASKS_MIN: u32 = 4;

/// How a connection was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Waiting,
    Idle,
    Unsure,
    /// Nobody has accepted it.
    Queued,
    /// Nothing is ever answered on it.
    OneWay,
}

/// One connection over the window.
#[derive(Debug, Clone)]
struct Connection {
    first_ns: u64,
    last_ns: u64,
    first_out: u32,
    last_out: u32,
    waiting: u32,
    unsure: u32,
    queued: u32,
    seen: u32,
}

/// All connections that lead to one program, by their sockets.
#[derive(Debug, Clone, Default)]
pub(super) struct Sightings(BTreeMap<u64, Connection>);

/// What they say together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Summary {
    pub(super) open: u64,
    pub(super) waiting: u64,
    pub(super) unsure: u64,
    pub(super) queued: u64,
    /// Segments sent per second, by those that were seen twice.
    pub(super) sends_hz: Option<f64>,
}

impl Sightings {
    pub(super) fn add(&mut self, inode: u64, at_ns: u64, sent: u32, state: State) {
        if self.0.len() >= CONNECTIONS_MAX && !self.0.contains_key(&inode) {
            return;
        }
        let new = Connection {
            first_ns: at_ns,
            last_ns: at_ns,
            first_out: sent,
            last_out: sent,
            waiting: 0,
            unsure: 0,
            queued: 0,
            seen: 0,
        };
        let connection = self.0.entry(inode).or_insert(new);
        (connection.last_ns, connection.last_out) = (at_ns, sent);
        connection.seen += 1;
        match state {
            State::Waiting => connection.waiting += 1,
            State::Unsure => connection.unsure += 1,
            State::Queued => {
                connection.queued += 1;
                connection.waiting += 1;
            }
            State::Idle | State::OneWay => {}
        }
    }

    /// `first_ns` and `last_ns`: the first sample of the window and the last.
    pub(super) fn summary(&self, first_ns: u64, last_ns: u64) -> Summary {
        let mut all = Summary::default();
        let mut sends_hz = None;
        for connection in self.0.values() {
            all.open += u64::from(connection.seen);
            all.queued += u64::from(connection.queued);
            // One that came or went between the samples is there for one call: as long as it is there, that is waited for.
            let is_short = connection.first_ns > first_ns || connection.last_ns < last_ns;
            let (sure, unsure) = if is_short { (connection.unsure, 0) } else { (0, connection.unsure) };
            all.waiting += u64::from(connection.waiting + sure);
            all.unsure += u64::from(unsure);
            let apart_s = connection.last_ns.saturating_sub(connection.first_ns) as f64 / 1e9;
            if apart_s > 0.0 && connection.last_out > 0 {
                let sent = connection.last_out.saturating_sub(connection.first_out);
                *sends_hz.get_or_insert(0.0) += f64::from(sent) / apart_s;
            }
        }
        // Where some connections live for one call and others for many, neither kind alone is all calls.
        let lasting = self.0.values().filter(|connection| connection.last_ns > connection.first_ns).count();
        Summary { sends_hz: sends_hz.filter(|_| 2 * lasting > self.0.len()), ..all }
    }
}

/// Whether somebody waits for an answer on a TCP connection. Data that was sent after the last that was received waits for one. Where
/// both were in the same tick of the kernel's, a connection on which every segment was answered by one tells by their numbers.
pub(super) fn tcp_state(end: &TcpEnd, is_accepted: bool) -> State {
    match (end.data_out, end.data_in) {
        (0, _) => State::Idle,
        (sent, received) if sent >= ASKS_MIN && received.saturating_mul(ASKS_MIN) < sent => State::OneWay,
        _ if !is_accepted => State::Queued,
        (_, 0) => State::Waiting,
        (sent, received) => match end.sent_ago_ms.cmp(&end.received_ago_ms) {
            std::cmp::Ordering::Less => State::Waiting,
            std::cmp::Ordering::Greater => State::Idle,
            std::cmp::Ordering::Equal if sent == received => State::Idle,
            std::cmp::Ordering::Equal if sent == received + 1 => State::Waiting,
            std::cmp::Ordering::Equal => State::Unsure,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(data_out: u32, data_in: u32, sent_ago_ms: u32, received_ago_ms: u32) -> TcpEnd {
        let at = "127.0.0.1:1".parse().unwrap();
        TcpEnd {
            local: at,
            remote: at,
            inode: 1,
            listens: false,
            waiting: 0,
            data_out,
            data_in,
            bytes_in: 0,
            sent_ago_ms,
            received_ago_ms,
        }
    }

    #[test]
    fn who_sent_last_waits() {
        let state = |end: TcpEnd| tcp_state(&end, true);
        assert_eq!(state(end(5, 9, 0, 4)), State::Waiting);
        assert_eq!(state(end(5, 9, 8, 4)), State::Idle);
        assert_eq!(state(end(5, 5, 4, 4)), State::Idle);
        assert_eq!(state(end(6, 5, 4, 4)), State::Waiting);
        assert_eq!(state(end(5, 9, 4, 4)), State::Unsure);
        assert_eq!((state(end(0, 0, 9, 9)), state(end(1, 0, 0, 9))), (State::Idle, State::Waiting));
        assert_eq!(tcp_state(&end(1, 0, 0, 9), false), State::Queued);
        // A log that is sent away is no question.
        assert_eq!(state(end(900, 1, 0, 700)), State::OneWay);
    }

    #[test]
    fn connections_for_one_call_are_waited_for_and_pooled_ones_may_be() {
        let mut seen = Sightings::default();
        for at_ns in [0, 500_000_000, 1_000_000_000] {
            seen.add(7, at_ns, 1, State::Unsure);
        }
        seen.add(8, 500_000_000, 1, State::Unsure);
        let summary = seen.summary(0, 1_000_000_000);
        assert_eq!((summary.open, summary.waiting, summary.unsure), (4, 1, 3));
        assert_eq!(summary.sends_hz, None, "half of them live for one call");
        let mut pooled = Sightings::default();
        pooled.add(7, 0, 100, State::Idle);
        pooled.add(7, 2_000_000_000, 300, State::Queued);
        let summary = pooled.summary(0, 2_000_000_000);
        assert_eq!((summary.sends_hz, summary.waiting, summary.queued), (Some(100.0), 1, 1));
    }
}
