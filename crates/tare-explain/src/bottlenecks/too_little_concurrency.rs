//! `too-little-concurrency`: too few requests in flight to keep either side at work.

use super::{Draft, Input, Rule, Scope, number, number_if, percent};
use crate::bottlenecks::decide::more_connections_bring_more;
use crate::capacity::generator;
use crate::capacity::levels::Accounting;
use tare_model::outcome::{Cause, TareCause};

pub(super) static RULE: Rule = Rule {
    cause: Cause::TooLittleConcurrency,
    scope: Scope::Http,
    needs: &[Input::Sut, Input::Load, Input::Requests],
    applies: |_| false, // Room on both sides is only worth saying when it is the bottleneck.
    describe,
};

fn describe(accounting: &Accounting) -> Draft {
    let pool = &accounting.asked.pool;
    let rate_hz = pool.rate_hz();
    let level = accounting.asked_level;
    let connections = level.map(|level| f64::from(level.connections));
    let busy = accounting.sut().map(|sut| sut.busy() / sut.cpus());
    let generator = generator::fullness(pool);
    // Little's law: requests in flight = rate × time of one.
    let response_s = accounting.mean_latency_s();
    let mut evidence = Vec::new();
    evidence.extend(number_if("connections", connections, "count"));
    evidence.extend(number_if("rate", rate_hz, "req/s"));
    evidence.extend(number_if("time of a request", response_s, "s"));
    evidence.extend(number_if(
        "in flight by Little's law",
        rate_hz.zip(response_s).map(|(rate_hz, response_s)| rate_hz * response_s),
        "count",
    ));
    evidence.extend(number_if("server busy, share of its CPUs", busy, "share"));
    evidence.extend(number_if("generator running or ready", generator, "share"));
    let more = accounting.saturating.as_ref().and_then(|level| level.pool.rate_interleaved_hz());
    let many = accounting.saturating_level.map(|level| level.connections);
    let mut compared = String::new();
    if let Some((more_hz, many)) = more.zip(many) {
        evidence.push(number(format!("rate at {many} connections"), more_hz, "req/s"));
        compared = format!("; at {many} connections it answered {more_hz:.0} req/s");
    }
    Draft {
        summary: format!(
            "Too few requests are in flight: with {:.0} connection{} the server was busy {} and the generator {}{compared}.",
            connections.unwrap_or(0.0),
            if connections == Some(1.0) { "" } else { "s" },
            busy.map_or("an unknown share".to_owned(), percent),
            generator.map_or("an unknown share".to_owned(), percent)
        ),
        effect_ln: accounting.effect(TareCause::NoWork),
        confidence: match more_connections_bring_more(accounting) {
            Some(true) => 1.0,
            Some(false) => 0.0,
            None => accounting.support_loss(TareCause::NoWork, crate::bottlenecks::decide::LOSS_SHARE_MIN),
        },
        evidence,
        remedy: "open more connections (-c), unless this concurrency is what your clients have".to_owned(),
        confirm: "with half as many connections more throughput rises with an elasticity above 0.3 (--confirm), and the time of a request hardly does"
            .to_owned(),
    }
}
