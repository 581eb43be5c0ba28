//! `steal`: the hypervisor ran somebody else.

use super::{Draft, Input, NOTICE_SHARE, Rule, Scope, number, percent};
use crate::bottlenecks::decide::LOSS_SHARE_MIN;
use crate::capacity::levels::Accounting;
use tare_model::outcome::{Cause, TareCause};

pub(super) static RULE: Rule =
    Rule { cause: Cause::Steal, scope: Scope::Any, needs: &[Input::Sut, Input::Cpus], applies, describe };

fn applies(accounting: &Accounting) -> bool {
    accounting.lost(TareCause::Steal) >= NOTICE_SHARE
}

fn describe(accounting: &Accounting) -> Draft {
    let share = accounting.lost(TareCause::Steal);
    let cpus = accounting
        .asked
        .pool
        .cpus
        .iter()
        .filter(|(_, cpu)| cpu.times.steal_s > 0.0 && cpu.times.wall_s > 0.0);
    let mut evidence = vec![number("stolen, share of the CPU entitlement", share, "share")];
    evidence.extend(cpus.map(|(cpu, accounting)| {
        number(format!("steal on CPU {cpu}"), accounting.times.steal_s / accounting.times.wall_s, "share")
    }));
    Draft {
        summary: format!(
            "The hypervisor gave {} of the time the program could have used to another guest.",
            percent(share)
        ),
        effect_ln: accounting.effect(TareCause::Steal),
        confidence: accounting.support_loss(TareCause::Steal, LOSS_SHARE_MIN),
        evidence,
        remedy: "measure when the host is quieter, or on a machine with dedicated CPUs".to_owned(),
        confirm: "steal falls at another hour or on another host, and throughput rises".to_owned(),
    }
}
