//! `offered-load`: a fixed rate below capacity; nothing is wrong.

use super::{Draft, Input, Rule, Scope, number, number_if, percent};
use crate::bottlenecks::decide::reached_schedule;
use crate::capacity::levels::Accounting;
use tare_model::outcome::{Cause, TareCause};

pub(super) static RULE: Rule =
    Rule { cause: Cause::OfferedLoad, scope: Scope::Http, needs: &[Input::Requests], applies, describe };

fn applies(accounting: &Accounting) -> bool {
    reached_schedule(&accounting.asked.pool)
}

fn describe(accounting: &Accounting) -> Draft {
    let pool = &accounting.asked.pool;
    let achieved =
        pool.answered.requests.zip(pool.answered.scheduled).filter(|(_, scheduled)| *scheduled > 0.0);
    let achieved = achieved.map_or(0.0, |(requests, scheduled)| requests / scheduled);
    let rate_hz = pool.rate_hz().unwrap_or(0.0);
    let busy = accounting.sut().map(|sut| sut.busy() / sut.cpus());
    let beside =
        busy.map_or(String::new(), |busy| format!(" with the server busy {} of its CPUs", percent(busy)));
    let mut evidence =
        vec![number("answered, share of scheduled", achieved, "share"), number("rate", rate_hz, "req/s")];
    evidence.extend(number_if("server busy, share of its CPUs", busy, "share"));
    evidence.extend(number_if(
        "server starved, share of its CPUs",
        accounting.sut().map(|sut| sut.tare_share(TareCause::NoWork)),
        "share",
    ));
    Draft {
        summary: format!(
            "The server answered the {rate_hz:.0} req/s that it was asked for ({:.1} % of the schedule){beside}: the rate is the bottleneck.",
            100.0 * achieved
        ),
        effect_ln: accounting.effect(TareCause::NoWork),
        confidence: accounting
            .support(|window| Some(window.answered.requests? / window.answered.scheduled?), 0.99),
        evidence,
        remedy: "nothing is wrong; to see what the server can do, raise the rate or drive a closed loop"
            .to_owned(),
        confirm:
            "at a rate that is a fifth higher more are answered, with an elasticity above 0.5 (--confirm)"
                .to_owned(),
    }
}
