//! `blocked-on-disk`: serving threads slept in file I/O. The program's own: it stays in net.

use super::{Draft, Input, Rule, Scope};
use crate::accounting::Asleep;
use crate::capacity::levels::Accounting;
use crate::capacity::summary::own_wait;
use tare_model::outcome::Cause;

pub(super) static RULE: Rule = Rule {
    cause: Cause::BlockedOnDisk,
    scope: Scope::Any,
    needs: &[Input::Sut, Input::Sleeps],
    applies,
    describe,
};

fn applies(accounting: &Accounting) -> bool {
    own_wait(accounting, Asleep::Disk) >= 0.1
}

fn describe(accounting: &Accounting) -> Draft {
    super::own_wait_draft(
        accounting,
        Asleep::Disk,
        "slept in file I/O",
        "keep the data in memory, write asynchronously, or use a faster disk",
        "with the files on a memory file system the wait is gone",
    )
}
