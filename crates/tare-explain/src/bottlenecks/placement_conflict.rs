//! `placement-conflict`: server and generator stand in each other's way, on one CPU or one physical core.

use super::{Draft, Input, NOTICE_SHARE, Rule, Scope, number, percent};
use crate::bottlenecks::decide::LOSS_SHARE_MIN;
use crate::capacity::levels::Accounting;
use crate::capacity::summary::{shared_cores, shared_cpus};
use tare_model::outcome::{Cause, TareCause};

pub(super) static RULE: Rule = Rule {
    cause: Cause::PlacementConflict,
    scope: Scope::Http,
    needs: &[Input::Sut, Input::Load],
    applies,
    describe,
};

fn applies(accounting: &Accounting) -> bool {
    accounting.lost(TareCause::Placement) >= NOTICE_SHARE || !shared_cores(accounting).is_empty()
}

fn describe(accounting: &Accounting) -> Draft {
    let share = accounting.lost(TareCause::Placement);
    let shared = shared_cpus(&accounting.asked.pool);
    let cores = shared_cores(accounting);
    let mut evidence =
        vec![number("kept off its CPU by the generator, share of the CPU entitlement", share, "share")];
    for (cpu, sut, load) in &shared {
        evidence.push(number(format!("server on CPU {cpu}"), *sut, "share"));
        evidence.push(number(format!("generator on CPU {cpu}"), *load, "share"));
    }
    evidence.extend(cores.iter().map(|(sut, load)| {
        number(format!("CPUs {sut} (server) and {load} (generator) are one core"), 2.0, "threads")
    }));
    let summary = if share >= NOTICE_SHARE || cores.is_empty() {
        let list: Vec<String> = shared.iter().map(|(cpu, _, _)| cpu.to_string()).collect();
        format!(
            "Server and generator share CPU {}: the server lost {} of the time it could have used to the generator.",
            if list.is_empty() { "time".to_owned() } else { list.join(", ") },
            percent(share)
        )
    } else {
        let list: Vec<String> = cores.iter().map(|(sut, load)| format!("{sut}/{load}")).collect();
        format!(
            "Server and generator run on SMT siblings of the same cores ({}): each slows the other without a wait to show for it.",
            list.join(", ")
        )
    };
    Draft {
        summary,
        effect_ln: accounting.effect(TareCause::Placement),
        confidence: if share >= NOTICE_SHARE {
            accounting.support_loss(TareCause::Placement, LOSS_SHARE_MIN)
        } else {
            0.5
        },
        evidence,
        remedy: "put the generator on other physical cores than the server's (--load-cpus, --sut-cpus)"
            .to_owned(),
        confirm:
            "with the generator on another CPU the server's wait is gone and throughput rises (--confirm)"
                .to_owned(),
    }
}
