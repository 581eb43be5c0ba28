//! `unknown`: the accounting name no cause that explains the figure.

use super::{Draft, NOTICE_SHARE, Rule, Scope, number, number_if};
use crate::accounting::Asleep;
use crate::bottlenecks::decide::{self, LOSS_SHARE_MIN};
use crate::capacity::generator;
use crate::capacity::levels::Accounting;
use crate::capacity::summary::own_wait;
use tare_model::outcome::Cause;

pub(super) static RULE: Rule =
    Rule { cause: Cause::Unknown, scope: Scope::Any, needs: &[], applies: |_| false, describe };

fn describe(accounting: &Accounting) -> Draft {
    let pool = &accounting.asked.pool;
    let mut evidence = Vec::new();
    if let Some(sut) = accounting.sut() {
        evidence.push(number("busy, share of the CPU entitlement", sut.busy() / sut.cpus(), "share"));
        for (loss, share) in sut.lost_s.keys().map(|loss| (loss, sut.share(*loss))) {
            if share >= NOTICE_SHARE {
                evidence.push(number(
                    format!("{}, share of the CPU entitlement", loss.name()),
                    share,
                    "share",
                ));
            }
        }
    }
    evidence.extend(number_if("generator running or ready", generator::fullness(pool), "share"));
    evidence.extend(number_if("largest residual of the accounting", pool.residuals().0, "share"));
    let why = if pool.span.trials == 0 {
        "No trial was finished"
    } else if pool.answered.requests == Some(0.0) {
        "No request was answered"
    } else if accounting.sut().is_none() {
        "The program cannot be seen from here"
    } else if pool.residuals().0.is_some_and(|residual| residual > crate::accounting::NO_VERDICT) {
        "The accounting do not close"
    } else if decide::parks_threads(accounting) && own_wait(accounting, Asleep::Lock) >= NOTICE_SHARE {
        "The program's runtime (Go) had threads asleep for want of work, or because goroutines waited for each other or for \
         other servers: which of these it was cannot be seen from outside"
    } else if own_wait(accounting, Asleep::Timer) >= LOSS_SHARE_MIN {
        "The program lets time pass (nanosleep and the like) while it could work, and nobody's accounting are full"
    } else {
        "Nobody's accounting are full, and nothing that was lost explains the figure"
    };
    Draft {
        summary: format!("{why}."),
        evidence,
        remedy: if decide::parks_threads(accounting) {
            "look into the program: its block and mutex profiles (net/http/pprof), or `tare run --stacks-off-cpu`"
        } else {
            "read the warnings for what could not be seen; try more connections, a longer trial or more privileges"
        }
        .to_owned(),
        confirm: "a change of one thing at a time (connections, generator threads, CPUs) that moves the figure names it".to_owned(),
        ..Draft::default()
    }
}
