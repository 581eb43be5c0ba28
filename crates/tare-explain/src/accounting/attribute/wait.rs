//! The parts of a thread's wait.

use crate::accounting::raw::by_role::{ByRole, ROLES};

/// The parts of a thread's wait, in seconds; they sum to it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Wait {
    pub throttled_s: f64,
    /// By who ran; the thread's own role among them.
    pub behind_s: ByRole,
    pub scheduler_s: f64,
}

impl Wait {
    pub fn sum(&self) -> f64 {
        self.throttled_s + self.behind_s.sum() + self.scheduler_s
    }

    /// The same parts of a share of it.
    pub fn scaled(&self, share: f64) -> Wait {
        let mut behind_s = self.behind_s;
        for role in ROLES {
            *behind_s.of_mut(role) *= share;
        }
        Wait { throttled_s: self.throttled_s * share, behind_s, scheduler_s: self.scheduler_s * share }
    }

    pub fn absorb(&mut self, other: &Wait) {
        self.throttled_s += other.throttled_s;
        self.behind_s.absorb(&other.behind_s);
        self.scheduler_s += other.scheduler_s;
    }
}
