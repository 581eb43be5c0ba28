//! `load-generator-bound`: the generator gave out first, so the figure is a lower bound of the server's.

use super::{Draft, Input, NOTICE_SHARE, Rule, Scope, number, number_if, percent};
use crate::capacity::generator;
use crate::capacity::levels::Accounting;
use crate::capacity::summary::names_of;
use tare_model::observation::Role;
use tare_model::outcome::{Cause, TareCause};

pub(super) static RULE: Rule = Rule {
    cause: Cause::LoadGeneratorBound,
    scope: Scope::Http,
    needs: &[Input::Load],
    // Only worth saying when it is the bottleneck: a full generator costs nothing while something else is in the way.
    applies: |_| false,
    describe,
};

fn describe(accounting: &Accounting) -> Draft {
    let pool = &accounting.asked.pool;
    let full = generator::fullness(pool).unwrap_or(0.0);
    let busy = accounting.sut().map(|sut| sut.busy() / sut.cpus());
    let server = match accounting.sut() {
        Some(sut) => format!(
            "the server was busy {:.2} of its {:.2} CPUs and waited for requests {} of the time",
            sut.busy(),
            sut.cpus(),
            percent(sut.tare_share(TareCause::NoWork))
        ),
        None => "the server's side cannot be seen from here".to_owned(),
    };
    let mut evidence = vec![number("generator running or ready, share of its threads' time", full, "share")];
    evidence.extend(number_if("generator busy", accounting.load().map(|load| load.busy()), "CPUs"));
    let kept_off = accounting.load().map(|load| load.tare_share(TareCause::Preempted));
    evidence.extend(number_if(
        "generator ready while others ran, share of its CPUs",
        kept_off.filter(|share| *share >= NOTICE_SHARE),
        "share",
    ));
    evidence.extend(number_if(
        "generator threads at work",
        accounting.load().map(|load| load.serving()),
        "count",
    ));
    evidence.extend(number_if("server busy, share of its CPUs", busy, "share"));
    evidence.extend(number_if(
        "server starved, share of its CPUs",
        accounting.sut().map(|sut| sut.tare_share(TareCause::NoWork)),
        "share",
    ));
    Draft {
        summary: format!(
            "The load generator ({}) is the bottleneck: it was running or ready {} of the time, while {server}.",
            names_of(pool, Role::Load),
            percent(full)
        ),
        effect_ln: accounting.effect(TareCause::NoWork),
        confidence: accounting.support(generator::fullness, generator::SATURATED),
        evidence,
        remedy:
            "give the generator more CPUs and as many threads (-t, --load-cpus), or take a cheaper generator"
                .to_owned(),
        confirm: "with a third of the generator's CPU time taken throughput falls with an elasticity above 0.5 (--confirm); with one more thread on a CPU of its own it rises".to_owned(),
    }
}
