//! `cpu-contended`: somebody else ran on the program's CPU while it was ready to.

use super::{Draft, Input, NOTICE_SHARE, Rule, Scope, number, percent};
use crate::bottlenecks::decide::LOSS_SHARE_MIN;
use crate::capacity::levels::Accounting;
use crate::capacity::summary::neighbours;
use tare_model::outcome::{Cause, TareCause};

/// Of what was lost, neighbours that are named must have run for so much.
const SEEN_SHARE_MIN: f64 = 0.5;

pub(super) static RULE: Rule = Rule {
    cause: Cause::CpuContended,
    scope: Scope::Any,
    needs: &[Input::Sut, Input::Waits],
    applies,
    describe,
};

fn applies(accounting: &Accounting) -> bool {
    accounting.lost(TareCause::Preempted) >= NOTICE_SHARE
}

fn describe(accounting: &Accounting) -> Draft {
    let share = accounting.lost(TareCause::Preempted);
    let neighbours = neighbours(&accounting.asked.pool);
    // Who was seen to run for a small part only of what was lost did not take it.
    let lost_cpus = accounting.sut().map_or(0.0, |sut| share * sut.cpus());
    let seen_cpus: f64 = neighbours.iter().map(|(_, busy)| busy).sum();
    let who = match neighbours.first().filter(|_| seen_cpus >= SEEN_SHARE_MIN * lost_cpus) {
        Some((name, busy)) => format!("{name}, which took {} of a CPU there,", percent(*busy)),
        None => "Somebody whom no look at the processes caught".to_owned(),
    };
    let mut evidence = vec![number("ready while others ran, share of the CPU entitlement", share, "share")];
    evidence.extend(
        neighbours
            .into_iter()
            .take(5)
            .map(|(name, busy)| number(format!("{name} on the same CPUs"), busy, "CPUs")),
    );
    Draft {
        summary: format!("{who} kept the program off its CPU {} of the time it could have used.", percent(share)),
        effect_ln: accounting.effect(TareCause::Preempted),
        confidence: accounting.support_loss(TareCause::Preempted, LOSS_SHARE_MIN),
        evidence,
        remedy: "stop the neighbour or move it to other CPUs (taskset -p), or give the program CPUs of its own (--sut-cpus)".to_owned(),
        confirm: "with the neighbour stopped the wait is gone and throughput rises".to_owned(),
    }
}
