//! `cross-cpu-wakeups`: the server pays for waking a generator that sleeps between answers.

use crate::accounting::Closed;
use crate::bottlenecks::bottleneck::{Bottleneck, Confirm, Page, Scope};
use crate::bottlenecks::draft::{Draft, number, number_if};
use crate::bottlenecks::input::Input;
use crate::bottlenecks::signs::concurrency::spins;
use crate::capacity::fit::WAKEUP_TIMES_MAX;
use crate::capacity::iron::Point;
use crate::capacity::levels::Accounting;
use tare_model::observation::Role;
use tare_model::outcome::{Cause, GrossIs, TareCause};

/// Fewer sleeps of the generator for each request do not show in the server's cost.
const PEER_SLEEPS_MIN: f64 = 0.3;
/// A cost part is a finding from the first of these on, if its interval begins above the second.
const NOTICE_LN: f64 = 0.05;
const KNOWN_LN: f64 = 0.03;

pub(crate) static BOTTLENECK: Bottleneck = Bottleneck {
    cause: Cause::CrossCpuWakeups,
    title: "Waking threads on other CPUs is the bottleneck",
    scope: Scope::Http,
    needs: &[Input::Sut, Input::Load, Input::Requests, Input::Net],
    gross_is: GrossIs::Capacity,
    holds: |_| None,
    applies,
    describe,
    confirm: Confirm::Cannot {
        why: "where a program wakes its threads is its own",
        instead: "hold it on CPUs of one core or cache (--sut-cpus)",
    },
    injections: &[],
    page: &PAGE,
};

fn sleeps(window: &Closed, role: Role) -> Option<f64> {
    window.per_request(window.sum_of(role, |thread| thread.switched.voluntary)?)
}

fn applies(accounting: &Accounting) -> bool {
    let pool = &accounting.asked.pool;
    let peer = sleeps(pool, Role::Load).unwrap_or(0.0);
    let own = sleeps(pool, Role::Sut).unwrap_or(0.0);
    // Where the server sleeps as often, its own wake-ups are the cost; where it spins, that is.
    let wakes = peer >= PEER_SLEEPS_MIN && own < 0.5 * peer && !spins(accounting);
    let effect_ln = accounting.effect(TareCause::Cost);
    wakes && effect_ln >= NOTICE_LN && is_shown(accounting) && may_take(accounting, effect_ln)
}

/// Whether as many wake-ups may take as much: an event loop that finds more to do each time costs less for each, too.
fn may_take(accounting: &Accounting, effect_ln: f64) -> bool {
    let share = Point::of(&accounting.asked.pool).map_or(0.0, |point| point.woken_share());
    1.0 - (-effect_ln).exp() <= WAKEUP_TIMES_MAX * share
}

/// Whether the whole interval is above [`KNOWN_LN`]: noise between the trials is nobody's wake-ups.
fn is_shown(accounting: &Accounting) -> bool {
    let parts = accounting.net_estimate.iter().flat_map(|net| &net.parts);
    let mut intervals = parts.filter(|(cause, ..)| *cause == TareCause::Cost).map(|(.., interval)| interval);
    intervals.any(|interval| interval.as_ref().is_some_and(|interval| interval.lo >= KNOWN_LN))
}

fn describe(accounting: &Accounting) -> Draft {
    let pool = &accounting.asked.pool;
    let peer = sleeps(pool, Role::Load);
    let effect_ln = accounting.effect(TareCause::Cost);
    let (remedy, confirm) = match accounting.load().map(|load| load.serving()) {
        Some(threads) if threads > 1.0 => (
            "use fewer generator threads, each with more connections, so that they sleep less",
            "with half as many generator threads the server's CPU time of a request falls",
        ),
        _ => (
            "have the generator not sleep (tare's own: --busy-poll), unless your clients sleep as well: then this cost is a real one",
            "with a generator that does not sleep the server's CPU time of a request falls",
        ),
    };
    let mut evidence = Vec::new();
    evidence.extend(number_if("sleeps of the generator a request", peer, "count"));
    evidence.extend(number_if("sleeps of the server a request", sleeps(pool, Role::Sut), "count"));
    evidence.push(number("service demand above saturation", effect_ln.exp() - 1.0, "share"));
    Draft {
        summary: format!(
            "A request cost the server {:.0} % more than at saturation: the generator slept {:.2} times a request, and who wakes a sleeper pays for it.",
            100.0 * (effect_ln.exp() - 1.0),
            peer.unwrap_or(0.0)
        ),
        effect_ln,
        confidence: accounting.support(|window| sleeps(window, Role::Load), PEER_SLEEPS_MIN),
        evidence,
        remedy: remedy.to_owned(),
        confirm: confirm.to_owned(),
    }
}

static PAGE: Page = Page {
    brief: "The server pays for waking a generator that sleeps between answers.",
    means: &[
        "Who sends to a sleeping thread must wake it: a run-queue lock, an interrupt to another CPU, a CPU \
         that comes out of idle. That is CPU time of the sender, so that a request costs the server more \
         than at saturation, where nobody sleeps.",
        "The generator slept 0.3 times per request or more, and the server much less often.",
    ],
    evidence: &[
        "Sleeps of the generator and of the server, per request.",
        "CPU time per request above that at saturation.",
    ],
    looks_the_same: &[
        "`server-cpu-bound`: the server's own threads wake each other (work that is handed over). Then the \
         server sleeps as often as the generator.",
        "`cold-caches`: a request takes more cycles, but no more instructions.",
        "Real clients sleep as well. If this load is what your clients do, this cost is a real one.",
    ],
    to_do: &[
        "Use fewer generator threads with more connections each: `tare run -t 1 -c 64 URL`. A busy thread \
         sleeps less.",
        "Have the generator not sleep at all: `--busy-poll`. It takes a whole CPU for each thread.",
        "Put the two where wake-ups cost less: CPUs of one last-level cache (`tare doctor --topology`).",
    ],
    to_confirm: &[
        "There is no intervention: where threads are woken is the scheduler's decision. With half as many \
         generator threads CPU time per request falls.",
        "By hand: `perf stat -e sched:sched_wakeup,sched:sched_switch -p PID -- sleep 5`, and `perf trace \
         -s -p PID`.",
    ],
    source: &[
        "Voluntary switches of both sides in `/proc/PID/task/TID/status`; CPU time per request at two \
         loads. Linux: kernel/sched/core.c (try_to_wake_up).",
    ],
};
