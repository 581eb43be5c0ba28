//! Where each connection of a thread stands.

use std::collections::VecDeque;

/// Connections of one thread that are being opened at once: the ramp, so that accept queues do not overflow.
const CONNECTING_MAX: u32 = 128;

/// Where a connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// In the queue of those to be opened.
    Waiting,
    /// Failed; to be opened later.
    Resting {
        until_ns: u64,
    },
    /// Closed until there is a request for it.
    Idle,
    Connecting {
        since_ns: u64,
    },
    Open,
}

/// The connections of one thread.
#[derive(Debug)]
pub(crate) struct Connections {
    stages: Vec<Stage>,
    waiting: VecDeque<u32>,
    connecting: u32,
    resting: u32,
}

impl Connections {
    /// So many, all of them to be opened.
    pub(crate) fn new(count: u32) -> Self {
        Connections {
            stages: vec![Stage::Waiting; count as usize],
            waiting: (0..count).collect(),
            connecting: 0,
            resting: 0,
        }
    }

    pub(crate) fn count(&self) -> u32 {
        self.stages.len() as u32
    }

    #[inline]
    pub(crate) fn stage(&self, c: u32) -> Stage {
        self.stages[c as usize]
    }

    /// Leaves the stage that `c` is in for `stage`.
    fn enter(&mut self, c: u32, stage: Stage) -> Stage {
        let left = std::mem::replace(&mut self.stages[c as usize], stage);
        match left {
            Stage::Connecting { .. } => self.connecting -= 1,
            Stage::Resting { .. } => self.resting -= 1,
            Stage::Waiting | Stage::Idle | Stage::Open => {}
        }
        left
    }

    /// Takes the next one to be opened out of the queue, if the ramp allows one more.
    pub(crate) fn next_waiting(&mut self) -> Option<u32> {
        if self.connecting < CONNECTING_MAX { self.waiting.pop_front() } else { None }
    }

    /// To be opened, after those that are to be already.
    pub(crate) fn queue(&mut self, c: u32) {
        self.enter(c, Stage::Waiting);
        self.waiting.push_back(c);
    }

    pub(crate) fn idle(&mut self, c: u32) {
        self.enter(c, Stage::Idle);
    }

    pub(crate) fn connect(&mut self, c: u32, since_ns: u64) {
        self.enter(c, Stage::Connecting { since_ns });
        self.connecting += 1;
    }

    /// It can be used; since when it was being opened, if it was.
    pub(crate) fn open(&mut self, c: u32) -> Option<u64> {
        match self.enter(c, Stage::Open) {
            Stage::Connecting { since_ns } => Some(since_ns),
            _ => None,
        }
    }

    /// To be opened later.
    pub(crate) fn rest(&mut self, c: u32, until_ns: u64) {
        self.enter(c, Stage::Resting { until_ns });
        self.resting += 1;
    }

    pub(crate) fn any_rests(&self) -> bool {
        self.resting > 0
    }

    /// Whether none is being opened, or to be opened now.
    pub(crate) fn are_tried(&self) -> bool {
        self.connecting == 0 && self.waiting.is_empty()
    }

    pub(crate) fn count_open(&self) -> u32 {
        self.stages.iter().filter(|stage| **stage == Stage::Open).count() as u32
    }

    /// Those that are open, or soon will be again.
    pub(crate) fn count_held(&self) -> u64 {
        let held = |stage: &&Stage| matches!(stage, Stage::Open | Stage::Connecting { .. } | Stage::Waiting);
        self.stages.iter().filter(held).count() as u64
    }
}
