//! `program-waits`: a command that mostly slept.

use super::{Draft, Rule, Scope};
use crate::capacity::levels::Accounting;
use tare_model::outcome::Cause;

pub(super) static RULE: Rule =
    Rule { cause: Cause::ProgramIdle, scope: Scope::Command, needs: &[], applies: |_| false, describe };

fn describe(accounting: &Accounting) -> Draft {
    let (summary, confidence, evidence) =
        super::program_shares(accounting, |cpus| cpus < crate::capacity::command::CPU_BOUND);
    Draft {
        summary: format!("The program mostly waits: {summary}."),
        confidence,
        evidence,
        remedy: "find what it waits for (timer, disk, network, another process); a faster CPU does not help"
            .to_owned(),
        confirm: "strace -c or a look at its sleeping threads names the wait".to_owned(),
        ..Draft::default()
    }
}
