//! One file per cause. A rule names the data it needs, says whether the cause cost anything, and can always
//! describe what it sees, so that the bottleneck has its finding even when it cost nothing.

mod blocked_on_disk;
mod blocked_on_downstream;
mod clock_dropped;
mod cold_caches;
mod cpu_contended;
mod cpu_quota_throttled;
mod cross_cpu_wakeups;
pub(crate) mod decide;
pub(crate) mod delayed_ack;
mod errors;
pub(crate) mod gc_pauses;
pub(crate) mod hypotheses;
mod input;
mod kernel_lock_contended;
mod listen_overflow;
mod load_generator_bound;
mod lock_contended;
pub(crate) mod memory_pressure;
pub(crate) mod network_ceiling;
mod not_steady;
mod offered_load;
mod one_thread_bound;
mod oversubscribed;
mod placement_conflict;
pub(crate) mod ports_exhausted;
mod program_cpu_bound;
mod program_idle;
mod server_cpu_bound;
pub(crate) mod softirq_saturated;
mod steal;
mod too_little_concurrency;
pub(crate) mod too_noisy;
mod unknown;

use crate::accounting::Asleep;
use crate::accounting::Loss;
use crate::capacity::levels::Accounting;
use crate::capacity::summary::own_wait;
use input::Input;
pub(crate) use input::{clock_missing, sut_unseen};
use std::collections::BTreeMap;
use tare_model::Missing;
use tare_model::observation::Role;
use tare_model::outcome::{Cause, Evidence, Finding};

/// A share of the CPU entitlement below this is not worth a finding.
pub const NOTICE_SHARE: f64 = 0.03;

/// How one cause is judged.
pub(crate) struct Rule {
    pub cause: Cause,
    /// Which workloads it makes sense for.
    pub scope: Scope,
    /// What it cannot judge without.
    pub needs: &'static [Input],
    /// Whether it is worth a finding when it is not the bottleneck.
    pub applies: fn(&Accounting) -> bool,
    /// What it sees, in any case.
    pub describe: fn(&Accounting) -> Draft,
}

/// The workloads a rule is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Http,
    Command,
    Any,
}

/// A finding without its cause.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub summary: String,
    pub effect_ln: f64,
    pub confidence: f64,
    pub evidence: Vec<Evidence>,
    pub remedy: String,
    pub confirm: String,
}

/// Every rule. The order is for reading only: findings are ranked by effect.
pub(crate) static RULES: &[&Rule] = &[
    &errors::RULE,
    &offered_load::RULE,
    &load_generator_bound::RULE,
    &server_cpu_bound::RULE,
    &one_thread_bound::RULE,
    &cpu_quota_throttled::RULE,
    &cpu_contended::RULE,
    &placement_conflict::RULE,
    &oversubscribed::RULE,
    &steal::RULE,
    &clock_dropped::RULE,
    &cold_caches::RULE,
    &cross_cpu_wakeups::RULE,
    &softirq_saturated::RULE,
    &lock_contended::RULE,
    &kernel_lock_contended::RULE,
    &memory_pressure::RULE,
    &blocked_on_disk::RULE,
    &gc_pauses::RULE,
    &blocked_on_downstream::RULE,
    &too_little_concurrency::RULE,
    &listen_overflow::RULE,
    &network_ceiling::RULE,
    &delayed_ack::RULE,
    &ports_exhausted::RULE,
    &not_steady::RULE,
    &too_noisy::RULE,
    &program_cpu_bound::RULE,
    &program_idle::RULE,
    &unknown::RULE,
];

/// Every cause that there is a rule for.
pub fn causes() -> impl Iterator<Item = Cause> {
    RULES.iter().map(|rule| rule.cause)
}

/// What the rules found, and what they could not judge.
pub(crate) struct Judgement {
    /// By effect, largest first.
    pub findings: Vec<Finding>,
    /// Causes that could not be judged, by the reason.
    pub unjudged: Vec<(Missing, Vec<Cause>)>,
}

/// Asks every rule.
pub(crate) fn judge(accounting: &Accounting, bottleneck: Cause) -> Judgement {
    let mut findings = Vec::new();
    let mut unjudged: BTreeMap<(String, String), Vec<Cause>> = BTreeMap::new();
    let in_scope = |rule: &&&Rule| match rule.scope {
        Scope::Http => accounting.http.is_some(),
        Scope::Command => accounting.command.is_some(),
        Scope::Any => true,
    };
    for rule in RULES.iter().filter(in_scope) {
        if rule.cause == bottleneck {
            findings.push(finding(rule, accounting));
        } else if let Some(missing) = rule.needs.iter().find_map(|input| input.missing(accounting)) {
            unjudged.entry((missing.why, missing.remedy)).or_default().push(rule.cause);
        } else if (rule.applies)(accounting) {
            findings.push(finding(rule, accounting));
        }
    }
    findings.sort_by(|a, b| b.effect_ln.abs().total_cmp(&a.effect_ln.abs()));
    let unjudged =
        unjudged.into_iter().map(|((why, remedy), causes)| (Missing { why, remedy }, causes)).collect();
    Judgement { findings, unjudged }
}

fn finding(rule: &Rule, accounting: &Accounting) -> Finding {
    let draft = (rule.describe)(accounting);
    let finite = |value: f64| if value.is_finite() { value } else { 0.0 };
    Finding {
        cause: rule.cause,
        summary: draft.summary,
        effect_ln: finite(draft.effect_ln),
        confidence: finite(draft.confidence).clamp(0.0, 1.0),
        evidence: draft.evidence.into_iter().filter(|number| number.value.is_finite()).collect(),
        remedy: draft.remedy,
        confirm: draft.confirm,
    }
}

fn number(name: impl Into<String>, value: f64, unit: &str) -> Evidence {
    Evidence { name: name.into(), value, unit: unit.to_owned() }
}

/// A number that may not be there: then it is no evidence.
fn number_if(name: &str, value: Option<f64>, unit: &str) -> Option<Evidence> {
    value.map(|value| number(name, value, unit))
}

/// A share as whole percent for a sentence.
fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// The finding of a wait that is the program's own: net has it, so it explains nothing of the tare.
fn own_wait_draft(accounting: &Accounting, why: Asleep, verb: &str, remedy: &str, confirm: &str) -> Draft {
    let share = own_wait(accounting, why);
    let mut evidence = vec![number(format!("{verb}, share of the CPU entitlement"), share, "share")];
    for thread in
        accounting.asked.pool.threads_of(Role::Sut).filter(|thread| thread.asleep(why) > 0.0).take(8)
    {
        evidence.push(number(
            thread.label(),
            thread.asleep(why) / thread.wall_s.max(f64::MIN_POSITIVE),
            "share",
        ));
    }
    Draft {
        summary: format!("The program's threads {verb} {} of the time they could have used.", percent(share)),
        effect_ln: 0.0,
        confidence: accounting.support(|window| Some(window.sut.as_ref()?.share(Loss::Program(why))), 0.1),
        evidence,
        remedy: remedy.to_owned(),
        confirm: confirm.to_owned(),
    }
}

/// What a command did with its time: a sentence's middle, how far the runs bear `holds` out, and the numbers.
fn program_shares(accounting: &Accounting, holds: fn(f64) -> bool) -> (String, f64, Vec<Evidence>) {
    let on_cpu = crate::capacity::command::rusage_cpus(accounting.runs());
    let mut evidence = Vec::new();
    evidence.extend(number_if("on a CPU (user and kernel time)", on_cpu, "CPUs"));
    evidence.extend(number_if(
        "kept off a CPU by others",
        crate::capacity::command::taken_cpus(&accounting.asked.pool),
        "CPUs",
    ));
    let each =
        accounting.runs().filter_map(|run| crate::capacity::command::rusage_cpus(std::iter::once(run)));
    let held: Vec<bool> = each.map(holds).collect();
    let support = held.iter().filter(|held| **held).count() as f64 / held.len().max(1) as f64;
    let text = on_cpu.map_or("its CPU time is unknown".to_owned(), |cpus| {
        format!("it kept {cpus:.2} CPUs busy on average")
    });
    (text, support, evidence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_cause_has_one_rule() {
        let causes: HashSet<Cause> = RULES.iter().map(|rule| rule.cause).collect();
        assert_eq!(causes.len(), RULES.len());
    }
}
