//! How far a generator has come, while it runs.

/// How far a generator has come since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Live {
    /// Whole answers, errors of status included.
    pub answers: u64,
    /// Errors of all kinds.
    pub errors: u64,
    /// Latencies of the answers, together, but for those of the last few; wraps.
    pub waited_ns: u64,
}

impl std::ops::Add for Live {
    type Output = Live;

    fn add(self, more: Live) -> Live {
        Live {
            answers: self.answers + more.answers,
            errors: self.errors + more.errors,
            waited_ns: self.waited_ns.wrapping_add(more.waited_ns),
        }
    }
}
