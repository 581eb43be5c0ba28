//! `program-cpu-bound`: a command that was on a CPU, or ready for one, for most of its time.

use super::{Draft, Rule, Scope};
use crate::capacity::levels::Accounting;
use tare_model::outcome::Cause;

pub(super) static RULE: Rule =
    Rule { cause: Cause::ProgramCpuBound, scope: Scope::Command, needs: &[], applies: |_| false, describe };

fn describe(accounting: &Accounting) -> Draft {
    let (summary, confidence, evidence) =
        super::program_shares(accounting, |cpus| cpus >= crate::capacity::command::CPU_BOUND);
    Draft {
        summary: format!("The program itself is the bottleneck: {summary}."),
        confidence,
        evidence,
        remedy: "profile it; a faster clock or more threads help if it can use them".to_owned(),
        confirm: "the time of a run follows the work it is given".to_owned(),
        ..Draft::default()
    }
}
