//! Which bottleneck holds the figure, and what was lost beside it. All that is known about one stands in its own file; here is the list
//! of them, and how one is chosen.

mod bottleneck;
mod draft;
pub(crate) mod hypotheses;
mod input;
mod rank;
mod reasons;
pub(crate) mod signs;

mod blocked_on_disk;
mod blocked_on_downstream;
mod clock_dropped;
mod cold_caches;
mod cpu_contended;
mod cpu_quota_throttled;
mod cross_cpu_wakeups;
mod delayed_ack;
mod errors;
mod gc_pauses;
mod kernel_lock_contended;
mod listen_overflow;
mod load_generator_bound;
mod lock_contended;
mod memory_pressure;
mod network_ceiling;
mod network_quota;
mod not_steady;
mod offered_load;
mod one_thread_bound;
mod open_files_exhausted;
mod oversubscribed;
mod parallelism_limited;
mod placement_conflict;
mod ports_exhausted;
mod program_cpu_bound;
mod program_idle;
mod program_time;
mod server_cpu_bound;
mod softirq_saturated;
mod steal;
mod too_little_concurrency;
pub(crate) mod too_noisy;
mod unknown;
mod workers_exhausted;

pub use bottleneck::{Bottleneck, Confirm, Page};
pub(crate) use input::{clock_missing, sut_unseen};
pub use signs::bounds::{LOSS_SHARE_MIN, NOTICE_SHARE};

use crate::capacity::levels::Accounting;
use bottleneck::Scope;
use std::collections::BTreeMap;
use tare_model::Missing;
use tare_model::outcome::{Cause, Finding, GrossIs};

/// Every bottleneck. Of two with the same claim the later one counts; else the order is for reading only.
static ALL: &[&Bottleneck] = &[
    &errors::BOTTLENECK,
    &offered_load::BOTTLENECK,
    &load_generator_bound::BOTTLENECK,
    &server_cpu_bound::BOTTLENECK,
    &parallelism_limited::BOTTLENECK,
    &one_thread_bound::BOTTLENECK,
    &cpu_quota_throttled::BOTTLENECK,
    &cpu_contended::BOTTLENECK,
    &placement_conflict::BOTTLENECK,
    &oversubscribed::BOTTLENECK,
    &steal::BOTTLENECK,
    &clock_dropped::BOTTLENECK,
    &cold_caches::BOTTLENECK,
    &cross_cpu_wakeups::BOTTLENECK,
    &softirq_saturated::BOTTLENECK,
    &lock_contended::BOTTLENECK,
    &kernel_lock_contended::BOTTLENECK,
    &memory_pressure::BOTTLENECK,
    &workers_exhausted::BOTTLENECK,
    &blocked_on_disk::BOTTLENECK,
    &gc_pauses::BOTTLENECK,
    &blocked_on_downstream::BOTTLENECK,
    &too_little_concurrency::BOTTLENECK,
    &listen_overflow::BOTTLENECK,
    &network_ceiling::BOTTLENECK,
    &network_quota::BOTTLENECK,
    &delayed_ack::BOTTLENECK,
    &ports_exhausted::BOTTLENECK,
    &open_files_exhausted::BOTTLENECK,
    &not_steady::BOTTLENECK,
    &too_noisy::BOTTLENECK,
    &program_cpu_bound::BOTTLENECK,
    &program_idle::BOTTLENECK,
    &unknown::BOTTLENECK,
];

/// Every bottleneck that can be named.
pub fn all() -> &'static [&'static Bottleneck] {
    ALL
}

/// What is known about a cause.
pub fn of(cause: Cause) -> &'static Bottleneck {
    ALL.iter().find(|bottleneck| bottleneck.cause == cause).unwrap_or(&&unknown::BOTTLENECK)
}

/// The bottleneck and what it makes of the gross figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub cause: Cause,
    pub gross_is: GrossIs,
}

/// Names the bottleneck: the claim with the first rank, and there the largest share. Where the time accounting is open, what is judged by
/// it has no name.
pub(crate) fn decide(accounting: &Accounting, open: bool) -> Verdict {
    let claims: Vec<_> =
        in_scope(accounting).map(|bottleneck| (bottleneck, (bottleneck.holds)(accounting))).collect();
    let claimed = claims.iter().filter_map(|(bottleneck, claim)| Some((*bottleneck, (*claim)?)));
    let first = claimed.max_by(|a, b| a.1.order(&b.1));
    reasons::report(accounting, &claims, first, open);
    match first {
        Some((bottleneck, claim)) if open && claim.by_time => {
            Verdict { cause: Cause::Unknown, gross_is: bottleneck.gross_is }
        }
        Some((bottleneck, _)) => Verdict { cause: bottleneck.cause, gross_is: bottleneck.gross_is },
        None => Verdict { cause: Cause::Unknown, gross_is: unknown::BOTTLENECK.gross_is },
    }
}

fn in_scope(accounting: &Accounting) -> impl Iterator<Item = &'static Bottleneck> {
    let (http, command) = (accounting.http.is_some(), accounting.command.is_some());
    ALL.iter().copied().filter(move |bottleneck| match bottleneck.scope {
        Scope::Http => http,
        Scope::Command => command,
        Scope::Any => true,
    })
}

/// What was found, and what could not be judged.
pub(crate) struct Judgement {
    /// By effect, largest first.
    pub findings: Vec<Finding>,
    /// Causes that could not be judged, by the reason.
    pub unjudged: Vec<(Missing, Vec<Cause>)>,
}

/// Asks every bottleneck what was lost to it.
pub(crate) fn judge(accounting: &Accounting, named: Cause) -> Judgement {
    let mut findings = Vec::new();
    let mut unjudged: BTreeMap<(String, String), Vec<Cause>> = BTreeMap::new();
    for bottleneck in in_scope(accounting) {
        if bottleneck.cause == named {
            findings.push(finding(bottleneck, accounting));
        } else if let Some(missing) = bottleneck.needs.iter().find_map(|input| input.missing(accounting)) {
            unjudged.entry((missing.why, missing.remedy)).or_default().push(bottleneck.cause);
        } else if (bottleneck.applies)(accounting) {
            findings.push(finding(bottleneck, accounting));
        }
    }
    findings.sort_by(|a, b| b.effect_ln.abs().total_cmp(&a.effect_ln.abs()));
    let unjudged =
        unjudged.into_iter().map(|((why, remedy), causes)| (Missing { why, remedy }, causes)).collect();
    Judgement { findings, unjudged }
}

fn finding(bottleneck: &Bottleneck, accounting: &Accounting) -> Finding {
    let draft = (bottleneck.describe)(accounting);
    let finite = |value: f64| if value.is_finite() { value } else { 0.0 };
    Finding {
        cause: bottleneck.cause,
        title: bottleneck.title.to_owned(),
        summary: draft.summary,
        effect_ln: finite(draft.effect_ln),
        confidence: finite(draft.confidence).clamp(0.0, 1.0),
        evidence: draft.evidence.into_iter().filter(|number| number.value.is_finite()).collect(),
        remedy: draft.remedy,
        confirm: draft.confirm,
    }
}

#[cfg(test)]
mod tests;
