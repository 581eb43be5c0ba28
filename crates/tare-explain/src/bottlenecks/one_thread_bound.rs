//! `one-thread-bound`: one of several serving threads is full while the others have time left.

use super::{Draft, Input, Rule, Scope, number, percent};
use crate::bottlenecks::decide::one_thread_is_full;
use crate::capacity::levels::Accounting;
use tare_model::observation::Role;
use tare_model::outcome::{Cause, TareCause};

pub(super) static RULE: Rule =
    Rule { cause: Cause::OneThreadBound, scope: Scope::Http, needs: &[Input::Sut], applies, describe };

fn applies(accounting: &Accounting) -> bool {
    one_thread_is_full(&accounting.asked.pool)
}

fn describe(accounting: &Accounting) -> Draft {
    let mut shares: Vec<(String, f64)> = accounting
        .asked
        .pool
        .threads_of(Role::Sut)
        .filter(|thread| thread.is_one() && thread.serves() && thread.wall_s > 0.0)
        .map(|thread| (thread.label(), thread.run_s / thread.wall_s))
        .collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (name, fullest) = shares.first().cloned().unwrap_or_default();
    let others: Vec<f64> = shares.iter().skip(1).map(|(_, share)| *share).collect();
    let mean = tare_stats::mean(&others).unwrap_or(0.0);
    Draft {
        summary: format!(
            "One thread of the server ({name}) was on a CPU {} of the time while its {} others averaged {}.",
            percent(fullest),
            others.len(),
            percent(mean)
        ),
        effect_ln: accounting.effect(TareCause::NoWork),
        confidence: if fullest >= 0.9 && mean < 0.5 { 1.0 } else { 0.0 },
        evidence: shares
            .iter()
            .take(8)
            .map(|(name, share)| number(name.clone(), *share, "share of a CPU"))
            .collect(),
        remedy: "spread the work: a listener for each thread (SO_REUSEPORT), or connections dealt out evenly"
            .to_owned(),
        confirm:
            "with a third of that thread's CPU time taken throughput falls with an elasticity above 0.5 (--confirm)"
                .to_owned(),
    }
}
