//! `cross-cpu-wakeups`: the server pays for waking a generator that sleeps between answers.

use super::{Draft, Input, Rule, Scope, number, number_if};
use crate::accounting::Closed;
use crate::capacity::levels::Accounting;
use tare_model::observation::Role;
use tare_model::outcome::{Cause, TareCause};

/// Fewer sleeps of the generator for each request do not show in the server's cost.
const PEER_SLEEPS_MIN: f64 = 0.3;
/// A cost part below this is noise between trials.
const NOTICE_LN: f64 = 0.05;

pub(super) static RULE: Rule = Rule {
    cause: Cause::CrossCpuWakeups,
    scope: Scope::Http,
    needs: &[Input::Sut, Input::Load, Input::Requests, Input::Net],
    applies,
    describe,
};

fn sleeps(window: &Closed, role: Role) -> Option<f64> {
    window.per_request(window.sum_of(role, |thread| thread.switched.voluntary)?)
}

fn applies(accounting: &Accounting) -> bool {
    let pool = &accounting.asked.pool;
    let peer = sleeps(pool, Role::Load).unwrap_or(0.0);
    let own = sleeps(pool, Role::Sut).unwrap_or(0.0);
    // Where the server sleeps as often, its own wake-ups are the cost.
    peer >= PEER_SLEEPS_MIN && own < 0.5 * peer && accounting.effect(TareCause::Cost) >= NOTICE_LN
}

fn describe(accounting: &Accounting) -> Draft {
    let pool = &accounting.asked.pool;
    let peer = sleeps(pool, Role::Load);
    let effect_ln = accounting.effect(TareCause::Cost);
    let mut evidence = Vec::new();
    evidence.extend(number_if("sleeps of the generator a request", peer, "count"));
    evidence.extend(number_if("sleeps of the server a request", sleeps(pool, Role::Sut), "count"));
    evidence.push(number("cost of a request above saturation", effect_ln.exp() - 1.0, "share"));
    Draft {
        summary: format!(
            "A request cost the server {:.0} % more than at saturation: the generator slept {:.2} times a request, and who wakes a sleeper pays for it.",
            100.0 * (effect_ln.exp() - 1.0),
            peer.unwrap_or(0.0)
        ),
        effect_ln,
        confidence: accounting.support(|window| sleeps(window, Role::Load), PEER_SLEEPS_MIN),
        evidence,
        remedy: "use fewer generator threads, each with more connections, so that they sleep less".to_owned(),
        confirm: "with half as many generator threads the server's CPU time of a request falls".to_owned(),
    }
}
