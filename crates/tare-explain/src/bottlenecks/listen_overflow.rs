//! `listen-overflow`: connections were refused room in the accept queue.

use super::{Draft, Input, Rule, Scope, number};
use crate::capacity::levels::Accounting;
use tare_model::outcome::Cause;
use tare_model::trial::ErrorKind;

pub(super) static RULE: Rule =
    Rule { cause: Cause::ListenOverflow, scope: Scope::Http, needs: &[Input::Network], applies, describe };

fn applies(accounting: &Accounting) -> bool {
    accounting.asked.pool.around.listen_overflows.is_some_and(|overflows| overflows >= 1.0)
}

fn describe(accounting: &Accounting) -> Draft {
    let overflows = accounting.asked.pool.around.listen_overflows.unwrap_or(0.0);
    let refused = accounting.asked.pool.answered.errors.get(&ErrorKind::Connect).copied().unwrap_or(0.0);
    Draft {
        summary: format!(
            "{overflows:.0} connection attempts found the accept queue full ({refused:.0} failed for the generator)."
        ),
        effect_ln: 0.0,
        confidence: if overflows >= 1.0 { 1.0 } else { 0.0 },
        evidence: vec![
            number("accept queue overflows in this network namespace", overflows, "count"),
            number("failed connects of the generator", refused, "count"),
        ],
        remedy: "raise the server's backlog and net.core.somaxconn, or open connections more slowly"
            .to_owned(),
        confirm: "with a longer queue the counter stands still".to_owned(),
    }
}
