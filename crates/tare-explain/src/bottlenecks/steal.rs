//! `steal`: the hypervisor ran somebody else.

use super::{Draft, Input, NOTICE_SHARE, Rule, Scope, number, percent};
use crate::bottlenecks::limit::LOSS_SHARE_MIN;
use crate::capacity::books::Books;
use tare_model::outcome::{Cause, TareCause};

pub(super) static RULE: Rule =
    Rule { cause: Cause::Steal, scope: Scope::Any, needs: &[Input::Sut, Input::Cpus], applies, describe };

fn applies(books: &Books) -> bool {
    books.lost(TareCause::Steal) >= NOTICE_SHARE
}

fn describe(books: &Books) -> Draft {
    let share = books.lost(TareCause::Steal);
    let cpus = books.asked.pool.cpus.iter().filter(|(_, cpu)| cpu.steal_s > 0.0 && cpu.wall_s > 0.0);
    let mut evidence = vec![number("stolen, share of the allotment", share, "share")];
    evidence.extend(
        cpus.map(|(cpu, books)| number(format!("steal on CPU {cpu}"), books.steal_s / books.wall_s, "share")),
    );
    Draft {
        summary: format!(
            "The hypervisor gave {} of the time the program could have used to another guest.",
            percent(share)
        ),
        effect_ln: books.effect(TareCause::Steal),
        confidence: books.support_loss(TareCause::Steal, LOSS_SHARE_MIN),
        evidence,
        remedy: "measure when the host is quieter, or on a machine with dedicated CPUs".to_owned(),
        confirm: "steal falls at another hour or on another host, and throughput rises".to_owned(),
    }
}
