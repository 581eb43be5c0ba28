//! `too-little-concurrency`: too few requests in flight to keep either side at work.

use crate::bottlenecks::bottleneck::{Bottleneck, Confirm, Page, Scope};
use crate::bottlenecks::draft::{Draft, number, number_if, percent};
use crate::bottlenecks::input::Input;
use crate::bottlenecks::rank::{Claim, Rank};
use crate::bottlenecks::signs::bounds::LOSS_SHARE_MIN;
use crate::bottlenecks::signs::concurrency::{More, more_connections_bring_more, more_in_flight_would_help};
use crate::bottlenecks::signs::sides::server;
use crate::capacity::generator;
use crate::capacity::levels::Accounting;
use tare_model::outcome::{Cause, GrossIs, TareCause};

/// No more than this is sure without a level that has more connections.
const UNTRIED: f64 = 0.7;

pub(crate) static BOTTLENECK: Bottleneck = Bottleneck {
    cause: Cause::TooLittleConcurrency,
    title: "Too few connections are the bottleneck",
    scope: Scope::Http,
    needs: &[Input::Sut, Input::Load, Input::Requests],
    gross_is: GrossIs::LowerBound,
    holds,
    // Room on both sides is only worth saying when it is the bottleneck.
    applies: |_| false,
    describe,
    confirm: Confirm::By("connections"),
    injections: &["one-connection"],
    page: &PAGE,
};

/// An open loop that falls behind with room on both sides lacks requests in flight too. Where one of them was not seen at work, the
/// window has missed the load.
fn holds(accounting: &Accounting) -> Option<Claim> {
    let both_worked =
        server(accounting)?.run_s > 0.0 && generator::fullness(&accounting.asked.pool).is_some();
    (both_worked && more_in_flight_would_help(accounting)).then(|| Claim::at(Rank::FewInFlight))
}

fn describe(accounting: &Accounting) -> Draft {
    let pool = &accounting.asked.pool;
    let rate_hz = pool.rate_hz();
    let connections = accounting.connections();
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
    let many = accounting.saturating_level.map(|level| level.connections);
    let mut compared = String::new();
    if let Some((more, many)) = More::of(accounting).zip(many) {
        evidence.push(number(format!("rate at {many} connections, at least"), more.rate_hz, "req/s"));
        compared = format!("; at {many} connections it answered {:.0} req/s or more", more.rate_hz);
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
            None => UNTRIED * accounting.support_loss(TareCause::NoWork, LOSS_SHARE_MIN),
        },
        evidence,
        remedy: "open more connections (-c), unless this concurrency is what your clients have".to_owned(),
        confirm: "with half as many connections more throughput rises with an elasticity above 0.3 (--confirm), and the time of a request hardly does"
            .to_owned(),
    }
}

static PAGE: Page = Page {
    brief: "Too few requests are in flight to keep either side at work.",
    means: &[
        "Server and generator both have time to spare: each waits for the other's answer. In a closed loop \
         the rate is the number of requests in flight divided by the time of one (Little's law).",
        "Gross is a lower bound. If this is how many connections your clients have, the figure is right for \
         them, and the time of a request is what to improve.",
    ],
    evidence: &[
        "Connections, rate, time of a request, and requests in flight by Little's law.",
        "How busy server and generator were.",
        "The rate at a level with more connections, where it was measured. It must be 10 % higher \
         where a side is full there. Where both sides have time to spare it must be 1.5 times as high, or have an elasticity of \
         0.3 if that asks for less. Without such a level, four requests in flight for each thread are taken to be few.",
    ],
    looks_the_same: &[
        "`delayed-ack`, `network-ceiling`: both sides have time, and the time goes to the way between them.",
        "`lock-contended`, `blocked-on-downstream`: the server's threads sleep for its own reasons.",
        "`offered-load`: the rate is fixed, and it is reached.",
        "`parallelism-limited`, `workers-exhausted`, `unknown`: neither side is full, and more connections bring little more: the program \
         works on a fixed number of requests at once.",
    ],
    to_do: &[
        "Open more connections: `tare run -c 256 URL`, or have more in flight on each: `--pipeline 4`, \
         `--http2 --streams 16`.",
        "Where this concurrency is given, make a request shorter: fewer wake-ups, both sides on one \
         last-level cache, `--busy-poll`.",
    ],
    to_confirm: &[
        "`tare run --confirm URL` opens half as many connections more in pairs of short trials. The rate \
         must follow with an elasticity of 0.3 or more.",
        "By hand: twice the connections give nearly twice the rate, and the time of a request stays.",
    ],
    source: &[
        "Busy and idle time of both sides, the generator's latencies. J. Little, A Proof for the Queuing \
         Formula L = λW, Operations Research 1961.",
    ],
};
