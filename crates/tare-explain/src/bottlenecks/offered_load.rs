//! `offered-load`: a fixed rate below capacity; nothing is wrong.

use crate::accounting::Closed;
use crate::bottlenecks::bottleneck::{Bottleneck, Confirm, Page, Scope};
use crate::bottlenecks::draft::{Draft, number, number_if, percent};
use crate::bottlenecks::input::Input;
use crate::bottlenecks::rank::{Claim, Rank};
use crate::capacity::levels::Accounting;
use crate::capacity::schedule;
use tare_model::outcome::{Cause, GrossIs, TareCause};

pub(crate) static BOTTLENECK: Bottleneck = Bottleneck {
    cause: Cause::OfferedLoad,
    title: "Nothing is short: the offered load is the bottleneck",
    scope: Scope::Http,
    needs: &[Input::Requests],
    gross_is: GrossIs::Offered,
    holds,
    applies,
    describe,
    confirm: Confirm::By("rate"),
    injections: &["fixed-rate"],
    page: &PAGE,
};

fn holds(accounting: &Accounting) -> Option<Claim> {
    applies(accounting).then(|| Claim::at(Rank::RateReached))
}

fn applies(accounting: &Accounting) -> bool {
    schedule::reached(&accounting.asked.pool)
}

/// Of the schedule, what did not miss its answer.
fn followed_share(pool: &Closed) -> Option<f64> {
    let scheduled = pool.answered.scheduled.filter(|scheduled| *scheduled > 0.0)?;
    Some(1.0 - schedule::missing(pool)? / scheduled)
}

fn describe(accounting: &Accounting) -> Draft {
    let pool = &accounting.asked.pool;
    let achieved = followed_share(pool).unwrap_or(0.0);
    let rate_hz = pool.rate_hz().unwrap_or(0.0);
    let busy = accounting.sut().map(|sut| sut.busy() / sut.cpus());
    let beside =
        busy.map_or(String::new(), |busy| format!(" with the server busy {} of its CPUs", percent(busy)));
    let mut evidence =
        vec![number("answered, share of scheduled", achieved, "share"), number("rate", rate_hz, "req/s")];
    evidence.extend(number_if("server busy, share of its CPUs", busy, "share"));
    evidence.extend(number_if(
        "server idle for want of requests, share of its CPUs",
        accounting.sut().map(|sut| sut.tare_share(TareCause::NoWork)),
        "share",
    ));
    Draft {
        summary: format!(
            "The server answered the {rate_hz:.0} req/s that it was asked for ({:.1} % of the schedule){beside}: the rate is the bottleneck.",
            100.0 * achieved
        ),
        effect_ln: accounting.effect(TareCause::NoWork),
        confidence: accounting.support(followed_share, 1.0 - schedule::MISSING_MAX),
        evidence,
        remedy: "nothing is wrong; to see what the server can do, raise the rate or drive a closed loop"
            .to_owned(),
        confirm:
            "at a rate that is a fifth higher more are answered, with an elasticity above 0.5 (--confirm)"
                .to_owned(),
    }
}

static PAGE: Page = Page {
    brief: "A fixed rate was asked for and reached: the rate is the bottleneck.",
    means: &[
        "The load was an open loop (`--rate`, `--steps`), and 99 % or more of the scheduled requests were \
         answered. Throughput is the rate that was asked for. Nothing is wrong.",
        "Gross says nothing about capacity here. Latency at this rate is the figure to read.",
    ],
    evidence: &[
        "Answered requests as a share of the scheduled ones, and the rate.",
        "Server: the share of its CPUs that was busy, and the share that was idle for want of requests. The \
         idle share is the room that is left.",
    ],
    looks_the_same: &[
        "`server-cpu-bound`: the schedule was missed because the server is full. Less than 99 % was \
         answered, and the result is not valid.",
        "`load-generator-bound`: the generator could not send on time. The schedule was missed, and the \
         generator has no time left.",
    ],
    to_do: &[
        "To see what the server can do, raise the rate, leave out `--rate` (a closed loop), or have the \
         highest rate found that keeps a latency: `tare load --find 'p99<5ms' URL`.",
        "To compare latencies of two versions, keep the rate: this is the right load for it.",
    ],
    to_confirm: &[
        "`tare run --confirm --rate 10k URL` sends a fifth more in pairs of short trials. The rate of \
         answers must follow with an elasticity of 0.5 or more.",
    ],
    source: &["The generator's own count of scheduled and answered requests. B. Schroeder, A. Wierman, M. \
         Harchol-Balter, Open Versus Closed: A Cautionary Tale, NSDI 2006."],
};
