//! `server-cpu-bound`: the server used what CPU it had.

use super::{Draft, Input, Rule, Scope, number, number_if, percent};
use crate::capacity::generator;
use crate::capacity::levels::Accounting;
use tare_model::outcome::{Cause, TareCause};

pub(super) static RULE: Rule = Rule {
    cause: Cause::ServerCpuBound,
    scope: Scope::Http,
    needs: &[Input::Sut],
    // Only worth saying when it is the bottleneck: else something else is in its way.
    applies: |_| false,
    describe,
};

fn busy_share(accounting: &Accounting) -> f64 {
    accounting.sut().map_or(0.0, |sut| sut.busy() / sut.cpus())
}

fn describe(accounting: &Accounting) -> Draft {
    let pool = &accounting.asked.pool;
    let (busy, entitled) = accounting.sut().map_or((0.0, 0.0), |sut| (sut.busy(), sut.cpus()));
    let cost_ns = pool.sut.as_ref().and_then(|sut| pool.per_request(sut.run_s)).map(|cost_s| cost_s * 1e9);
    let each = cost_ns.map_or(String::new(), |cost_ns| format!(", {:.2} µs of CPU a request", cost_ns / 1e3));
    let mut evidence = vec![
        number("server busy", busy, "CPUs"),
        number("server's CPU entitlement", entitled, "CPUs"),
        number("server starved, share of its CPUs", accounting.lost(TareCause::NoWork), "share"),
    ];
    evidence.extend(number_if("CPU time of a request", cost_ns, "ns"));
    evidence.extend(number_if("generator running or ready", generator::fullness(pool), "share"));
    Draft {
        summary: format!(
            "The server is the bottleneck: it was busy {} of the {entitled:.2} CPUs it can use{each}.",
            percent(busy_share(accounting))
        ),
        effect_ln: 0.0,
        confidence: accounting.support(
            |window| window.sut.as_ref().filter(|sut| sut.entitled_s > 0.0).map(|sut| sut.busy() / sut.cpus()),
            0.85,
        ),
        evidence,
        remedy: "make a request cheaper (profile the server), or give it more CPUs and threads to use them".to_owned(),
        confirm: "with a third of the server's CPU time taken throughput falls with an elasticity above 0.5 (--confirm); with another generator thread it does not rise".to_owned(),
    }
}
