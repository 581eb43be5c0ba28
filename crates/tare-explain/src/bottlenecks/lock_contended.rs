//! `lock-contended`: serving threads slept in a futex. The program's own: it stays in net.

use super::{Draft, Input, Rule, Scope};
use crate::accounting::Asleep;
use crate::bottlenecks::decide;
use crate::capacity::levels::Accounting;
use crate::capacity::summary::own_wait;
use tare_model::outcome::Cause;

pub(super) static RULE: Rule = Rule {
    cause: Cause::LockContended,
    scope: Scope::Any,
    needs: &[Input::Sut, Input::Sleeps],
    applies,
    describe,
};

fn applies(accounting: &Accounting) -> bool {
    own_wait(accounting, Asleep::Lock) >= 0.1 && decide::may_be_a_lock(accounting)
}

fn describe(accounting: &Accounting) -> Draft {
    super::own_wait_draft(
        accounting,
        Asleep::Lock,
        "slept in a lock",
        "find the lock (perf lock, a stack of the sleeping thread) and hold it for less or split it",
        "with half the threads the wait for the lock falls more than the work does",
    )
}
