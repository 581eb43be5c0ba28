//! What one thread counts in one window, all of its memory allocated beforehand.

use crate::fault::Fault;
use crate::live::Live;
use crate::slices::Slices;
use tare_model::latency::Latencies;
use tare_model::trial::ErrorKind;

/// Every status has three digits.
const STATUS_CODES: usize = 1000;

/// Everything one thread counted from one cut to the next.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) window: Window,
    pub(crate) answers: u64,
    /// Of these, the ones that came when other loops were to send.
    pub(crate) out_of_turn: u64,
    /// Latencies of the answers in the histograms, together; wraps.
    pub(crate) waited_ns: u64,
    pub(crate) errors: [u64; ErrorKind::ALL.len()],
    /// Of these, how many for each reason that is known.
    pub(crate) reasons: Vec<(Fault, u64)>,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    /// Answers by their status.
    pub(crate) status_codes: Box<[u64; STATUS_CODES]>,
    pub(crate) times: Times,
    pub(crate) slices: Slices,
    /// Answers that are alike and not in the histograms yet.
    run: Run,
    pub(crate) at_end: AtEnd,
}

/// From when to when it was counted.
#[derive(Debug, Default)]
pub(crate) struct Window {
    /// The thread's own stamp when it began.
    pub(crate) begin_ns: u64,
    /// The thread's own stamp when it handed over.
    pub(crate) end_ns: u64,
    /// Stamps of all clocks at both ends: monotonic, raw, the thread's CPU time.
    clocks_ns: [(u64, u64, u64); 2],
}

/// How long things took.
#[derive(Debug)]
pub(crate) struct Times {
    pub(crate) latency: Latencies,
    /// Of the answers that came in more than one piece: time to the first byte, and the whole.
    pub(crate) first_byte_apart: Latencies,
    pub(crate) whole_apart: Latencies,
    pub(crate) lateness: Latencies,
    /// Time to open connections.
    pub(crate) connect: Latencies,
}

/// What holds at the window's end.
#[derive(Debug, Default)]
pub(crate) struct AtEnd {
    /// Open loop: arrivals that fell due in the window.
    pub(crate) scheduled: Option<u64>,
    /// Sent or due, and unanswered.
    pub(crate) in_flight: u64,
    /// Open connections.
    pub(crate) connections: u32,
    /// Requests that connections hold in flight.
    pub(crate) room: u64,
    /// HTTP/2: streams that each connection may have at once.
    pub(crate) allowed: u32,
    /// Where a redirect led to.
    pub(crate) redirected_to: Option<String>,
}

/// Answers that came together to requests that were sent together: of pipelined ones usually all.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    count: u64,
    origin_ns: u64,
    now_ns: u64,
    status: u16,
}

impl Tally {
    pub(crate) fn new() -> Self {
        Tally {
            window: Window::default(),
            answers: 0,
            waited_ns: 0,
            out_of_turn: 0,
            errors: [0; ErrorKind::ALL.len()],
            reasons: Vec::new(),
            bytes_in: 0,
            bytes_out: 0,
            status_codes: Box::new([0; STATUS_CODES]),
            times: Times {
                latency: Latencies::new(),
                first_byte_apart: Latencies::new(),
                whole_apart: Latencies::new(),
                lateness: Latencies::new(),
                connect: Latencies::new(),
            },
            slices: Slices::new(),
            run: Run::default(),
            at_end: AtEnd::default(),
        }
    }

    /// Begins a window; slices count from `origin_ns`, which all threads share.
    pub(crate) fn begin(&mut self, origin_ns: u64, begin_ns: u64) {
        self.window.begin_ns = begin_ns;
        self.window.end_ns = begin_ns;
        self.slices.begin(origin_ns);
    }

    /// What the clocks (monotonic, raw, CPU time) read when the window began.
    pub(crate) fn begin_clocks(&mut self, clocks_ns: (u64, u64, u64)) {
        self.window.clocks_ns = [clocks_ns; 2];
    }

    /// What they read when it ended.
    pub(crate) fn end_clocks(&mut self, clocks_ns: (u64, u64, u64)) {
        self.window.clocks_ns[1] = clocks_ns;
    }

    /// The window by each of the clocks.
    pub(crate) fn clocks_ns(&self) -> (u64, u64, u64) {
        let [begin, end] = self.window.clocks_ns;
        (end.0.saturating_sub(begin.0), end.1.saturating_sub(begin.1), end.2.saturating_sub(begin.2))
    }

    /// Forgets all counts, keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.answers = 0;
        self.waited_ns = 0;
        self.out_of_turn = 0;
        self.errors = [0; ErrorKind::ALL.len()];
        self.reasons.clear();
        self.bytes_in = 0;
        self.bytes_out = 0;
        self.status_codes.fill(0);
        self.times.latency.clear();
        self.times.first_byte_apart.clear();
        self.times.whole_apart.clear();
        self.times.lateness.clear();
        self.times.connect.clear();
        self.run = Run::default();
        self.at_end = AtEnd::default();
    }

    /// A whole answer at `now_ns` to a request whose latency counts from `origin_ns`; it is in the histograms after
    /// [`Tally::settle`].
    #[inline]
    pub(crate) fn answered(&mut self, origin_ns: u64, now_ns: u64, status: u16) {
        self.answers += 1;
        if (self.run.origin_ns, self.run.now_ns, self.run.status) != (origin_ns, now_ns, status) {
            self.settle();
            self.run = Run { count: 0, origin_ns, now_ns, status };
        }
        self.run.count += 1;
    }

    /// The last answer was none after all; false where it is in the histograms already.
    #[cold]
    pub(crate) fn take_back(&mut self) -> bool {
        let is_pending = self.run.count > 0;
        self.run.count -= u64::from(is_pending);
        self.answers -= u64::from(is_pending);
        is_pending
    }

    /// Counts the answers that wait to be.
    #[inline]
    pub(crate) fn settle(&mut self) {
        let Run { count, origin_ns, now_ns, status } = self.run;
        if count == 0 {
            return;
        }
        self.run.count = 0;
        let latency_ns = now_ns.saturating_sub(origin_ns);
        self.waited_ns = self.waited_ns.wrapping_add(latency_ns.wrapping_mul(count));
        match count {
            1 => self.times.latency.record(latency_ns),
            _ => self.times.latency.record_n(latency_ns, count),
        }
        self.slices.count(now_ns, latency_ns, count);
        if let Some(of_code) = self.status_codes.get_mut(usize::from(status)) {
            *of_code += count;
        }
    }

    /// How far it has come.
    #[inline]
    pub(crate) fn live(&self) -> Live {
        Live { answers: self.answers, errors: self.errors.iter().sum(), waited_ns: self.waited_ns }
    }

    /// The answer at `now_ns` to a request from `origin_ns` had begun at `first_ns`.
    pub(crate) fn came_apart(&mut self, origin_ns: u64, first_ns: u64, now_ns: u64) {
        self.times.first_byte_apart.record(first_ns.saturating_sub(origin_ns));
        self.times.whole_apart.record(now_ns.saturating_sub(origin_ns));
    }

    pub(crate) fn failed(&mut self, fault: impl Into<Fault>) {
        let fault = fault.into();
        self.errors[index_of(fault.kind)] += 1;
        if fault.why.is_empty() {
            return;
        }
        // There are few reasons.
        match self.reasons.iter_mut().find(|(known, _)| *known == fault) {
            Some((_, count)) => *count += 1,
            None => self.reasons.push((fault, 1)),
        }
    }
}

/// Position of a kind in [`ErrorKind::ALL`].
fn index_of(kind: ErrorKind) -> usize {
    match kind {
        ErrorKind::Connect => 0,
        ErrorKind::Io => 1,
        ErrorKind::Timeout => 2,
        ErrorKind::Status => 3,
        ErrorKind::Malformed => 4,
        ErrorKind::PortsExhausted => 5,
        ErrorKind::Tls => 6,
        ErrorKind::Unexpected => 7,
        ErrorKind::StreamReset => 8,
        ErrorKind::StreamRefused => 9,
        ErrorKind::GoAway => 10,
        ErrorKind::BodyFile => 11,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_counters_agree() {
        for (index, kind) in ErrorKind::ALL.into_iter().enumerate() {
            assert_eq!(index_of(kind), index);
        }
    }

    #[test]
    fn answers_alike_are_counted_together() {
        let mut tally = Tally::new();
        tally.begin(0, 0);
        for (origin_ns, now_ns, status) in [(1, 1001, 200), (1, 1001, 200), (1, 1001, 404), (2, 3002, 200)] {
            tally.answered(origin_ns, now_ns, status);
        }
        tally.settle();
        tally.settle();
        assert_eq!((tally.answers, tally.times.latency.count()), (4, 4));
        assert_eq!(tally.times.latency.quantile_ns(0.75), Some(1000));
        assert_eq!((tally.status_codes[200], tally.status_codes[404]), (3, 1));
        tally.clear();
        assert_eq!(tally.status_codes[200], 0);
    }
}
