//! `load-generator-bound`: the generator gave out first, so the figure is a lower bound of the server's.

use crate::bottlenecks::bottleneck::{Bottleneck, Confirm, Page, Scope};
use crate::bottlenecks::draft::{Draft, number, number_if, percent};
use crate::bottlenecks::input::Input;
use crate::bottlenecks::rank::{Claim, Rank};
use crate::bottlenecks::signs::bounds::{LOSS_SHARE_MIN, NOTICE_SHARE};
use crate::bottlenecks::signs::sides::{Side, fuller_side, generator_is_full};
use crate::bottlenecks::signs::together::kept_off;
use crate::capacity::generator;
use crate::capacity::levels::Accounting;
use crate::capacity::summary::names_of;
use tare_model::observation::Role;
use tare_model::outcome::{Cause, Evidence, GrossIs, TareCause};
use tare_model::plan::Generator;

pub(crate) static BOTTLENECK: Bottleneck = Bottleneck {
    cause: Cause::LoadGeneratorBound,
    title: "The load generator is the bottleneck",
    scope: Scope::Http,
    needs: &[Input::Load],
    gross_is: GrossIs::LowerBound,
    holds,
    // Only worth saying when it is the bottleneck: a full generator costs nothing while something else is in the way.
    applies: |_| false,
    describe,
    confirm: Confirm::By("generator-cpu"),
    injections: &["none", "costly-requests", "generator-neighbour"],
    page: &PAGE,
};

/// Where it has nothing left; or, while more of nothing else would help, others keep it off its CPUs for longer than the server, or it
/// has little left.
fn holds(accounting: &Accounting) -> Option<Claim> {
    if generator_is_full(accounting) {
        return Some(Claim::at(Rank::GeneratorFull));
    }
    let longer = kept_off(accounting).or_else(|| fuller_side(accounting));
    (longer == Some(Side::Generator)).then(|| Claim::at(Rank::FullerSide))
}

fn describe(accounting: &Accounting) -> Draft {
    let pool = &accounting.asked.pool;
    let server = match accounting.sut() {
        Some(sut) => format!(
            "the server was busy {:.2} of its {:.2} CPUs and waited for requests {} of the time",
            sut.busy(),
            sut.cpus(),
            percent(sut.tare_share(TareCause::NoWork))
        ),
        None => "the server's side cannot be seen from here".to_owned(),
    };
    let waits = generator::kept_off_share(pool).filter(|_| kept_off(accounting) == Some(Side::Generator));
    let (how, confidence, remedy) = match waits {
        Some(waits) => (
            format!("other programs kept it off its CPUs {} of the time", percent(waits)),
            accounting.support(generator::kept_off_share, LOSS_SHARE_MIN),
            "stop the other programs on the generator's CPUs, or give the generator other CPUs (--load-cpus)",
        ),
        None => (
            format!(
                "it was running or ready {} of the time",
                percent(generator::fullness(pool).unwrap_or(0.0))
            ),
            accounting.support(generator::fullness, generator::SATURATED),
            more_for_it(accounting),
        ),
    };
    Draft {
        summary: format!(
            "The load generator ({}) is the bottleneck: {how}, while {server}.",
            names_of(pool, Role::Load)
        ),
        effect_ln: accounting.effect(TareCause::NoWork),
        confidence,
        evidence: evidence(accounting),
        remedy: remedy.to_owned(),
        confirm: "with a third of the generator's CPU time taken throughput falls with an elasticity above 0.5 (--confirm); with one more thread on a CPU of its own it rises".to_owned(),
    }
}

/// What to do for a generator that is full; options are those of tare's own alone.
fn more_for_it(accounting: &Accounting) -> &'static str {
    match accounting.http.map(|http| &http.generator) {
        Some(Generator::Started { .. } | Generator::Attached { .. }) => {
            "give the generator more CPUs (--load-cpus) and, by its own options, as many threads or more requests at once on a connection; or \
             take one that needs less CPU per request"
        }
        Some(Generator::Own { .. }) | None => {
            "give the generator more CPUs and as many threads (-t, --load-cpus), or take one that needs less CPU per request"
        }
    }
}

fn evidence(accounting: &Accounting) -> Vec<Evidence> {
    let full = generator::fullness(&accounting.asked.pool).unwrap_or(0.0);
    let (sut, load) = (accounting.sut(), accounting.load());
    let kept_off = load.map(|load| load.tare_share(TareCause::Preempted));
    let mut evidence = vec![number("generator running or ready, share of its threads' time", full, "share")];
    evidence.extend(number_if("generator busy", load.map(|load| load.busy()), "CPUs"));
    evidence.extend(number_if(
        "generator ready while others ran, share of its CPUs",
        kept_off.filter(|share| *share >= NOTICE_SHARE),
        "share",
    ));
    evidence.extend(number_if("generator threads at work", load.map(|load| load.serving()), "count"));
    let busy = sut.map(|sut| sut.busy() / sut.cpus());
    evidence.extend(number_if("server busy, share of its CPUs", busy, "share"));
    evidence.extend(number_if(
        "server idle for want of requests, share of its CPUs",
        sut.map(|sut| sut.tare_share(TareCause::NoWork)),
        "share",
    ));
    evidence
}

static PAGE: Page = Page {
    brief: "The load generator had no CPU time left: the rate is a lower bound.",
    means: &[
        "The generator's threads ran, or were ready to run, for 90 % of the time or more, or its CPUs were \
         full, while the server had time to spare. The rate is what the generator can send, not what the \
         server can answer.",
        "Gross is a lower bound here. A faster server does not show in it at all.",
    ],
    evidence: &[
        "Generator running or ready: of its serving threads' time, the share in which they ran, waited for \
         a CPU, or lost it to the hypervisor or to interrupts.",
        "Server: the CPUs that it kept busy, of those it may use, and the share of them that was idle for \
         want of requests.",
        "Generator ready while others ran: shown from 3 % on. Then somebody else holds the generator back.",
    ],
    looks_the_same: &[
        "`cpu-contended`: other programs keep both sides off their CPUs, and the server waits longer. The \
         generator is named if it waits longer, though it is not full.",
        "`server-cpu-bound`: both sides are full. The server is named unless it has clearly more time left \
         than the generator.",
        "`too-little-concurrency`: both sides have time left, and more connections bring more.",
        "`placement-conflict`: the two use one CPU or one core, and each takes the other's time.",
    ],
    to_do: &[
        "Give the generator more CPUs and a thread for each: `tare run -t 4 --load-cpus 4-7 URL`, or have \
         layouts tried first: `tare run --find-layout URL`.",
        "Take a generator that needs less CPU per request (`tare run --load 'wrk -t4 -c256 -d10s URL'`), or \
         load from another host.",
        "If the same figure is to be compared later, keep the generator as it is and compare CPU time per \
         request instead of the rate.",
    ],
    to_confirm: &[
        "`tare run --confirm URL` takes a third of the generator's CPU time in pairs of short trials. The \
         rate must follow with an elasticity of 0.5 or more.",
        "By hand: `top -H -p PID` shows the generator's threads near 100 %. One more thread on a CPU of its \
         own raises the rate.",
    ],
    source: &[
        "`/proc/PID/task/TID/schedstat` of the generator's threads (run and wait), run and idle time of its \
         CPUs. B. Gregg, Systems Performance, 2nd edition, chapter 12: the client may be what is measured.",
    ],
};
