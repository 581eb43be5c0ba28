//! `unknown`: the time accounting names no cause that explains the figure.

use crate::accounting::Asleep;
use crate::bottlenecks::bottleneck::{Bottleneck, Confirm, Page, Scope};
use crate::bottlenecks::draft::{Draft, duration, number, number_if, percent};
use crate::bottlenecks::rank::{Claim, Rank};
use crate::bottlenecks::signs::bounds::{LOSS_SHARE_MIN, NOTICE_SHARE};
use crate::bottlenecks::signs::concurrency::{held, little_more, more_connections_bring_more};
use crate::bottlenecks::signs::locks::{monitors, parks, parks_threads};
use crate::bottlenecks::signs::sides::waits_itself;
use crate::bottlenecks::signs::workers::Pool;
use crate::capacity::generator;
use crate::capacity::levels::Accounting;
use crate::capacity::summary::program_wait;
use tare_model::outcome::{Cause, GrossIs};

pub(crate) static BOTTLENECK: Bottleneck = Bottleneck {
    cause: Cause::Unknown,
    title: "The bottleneck could not be named",
    scope: Scope::Any,
    needs: &[],
    gross_is: GrossIs::LowerBound,
    holds,
    applies: |_| false,
    describe,
    confirm: Confirm::Cannot {
        why: "there is no cause to try",
        instead: "change one thing at a time: connections, --threads, CPUs",
    },
    injections: &[],
    page: &PAGE,
};

/// Where nothing was measured, where the largest of the program's own waits has no name, where its threads are put to sleep for reasons
/// that it alone knows; and where nobody else claims to be it.
fn holds(accounting: &Accounting) -> Option<Claim> {
    let pool = &accounting.asked.pool;
    if accounting.http.is_some() && (pool.span.trials == 0 || pool.answered.requests == Some(0.0)) {
        return Some(Claim::at(Rank::NothingMeasured));
    }
    // Who has a monitor may sleep with it.
    let timer_explained = Pool::exhausted(accounting).is_some() || monitors(accounting).is_some();
    let nameless = [(Asleep::Fault, false), (Asleep::Timer, timer_explained)];
    let nameless = nameless.map(|(why, explained)| waits_itself(accounting, why).filter(|_| !explained));
    let nameless = nameless.into_iter().flatten().max_by(Claim::by_share);
    let parked = (parks(accounting) && more_connections_bring_more(accounting) != Some(true))
        .then(|| Claim::at(Rank::Parked));
    nameless.or(parked).or_else(|| Some(Claim::at(Rank::NothingNamed)))
}

fn describe(accounting: &Accounting) -> Draft {
    let pool = &accounting.asked.pool;
    let mut evidence = Vec::new();
    if let Some(sut) = accounting.sut() {
        evidence.push(number("busy, share of the CPU entitlement", sut.busy() / sut.cpus(), "share"));
        for (loss, share) in sut.lost_s.keys().map(|loss| (loss, sut.share(*loss))) {
            if share >= NOTICE_SHARE {
                evidence.push(number(
                    format!("{}, share of the CPU entitlement", loss.name()),
                    share,
                    "share",
                ));
            }
        }
    }
    evidence.extend(number_if("generator running or ready", generator::fullness(pool), "share"));
    evidence.extend(number_if("largest residual of the accounting", pool.residuals().0, "share"));
    Draft {
        summary: format!("{}.", why(accounting)),
        evidence,
        remedy: if accounting.command.is_some() {
            "read the warnings for what could not be seen; take a longer run or more privileges, or look into the program with its own \
             profiler, `perf trace` or `strace -f -c`"
        } else if parks_threads(accounting) {
            "look into the program: its block and mutex profiles (net/http/pprof), or `tare run --stacks-off-cpu` and then `tare flame --off-cpu`"
        } else {
            "read the warnings for what could not be seen; try more connections, a longer trial or more privileges"
        }
        .to_owned(),
        confirm: "a change of one thing at a time (connections, generator threads, CPUs) that moves the figure names it".to_owned(),
        ..Draft::default()
    }
}

/// What stands in the way of a name.
fn why(accounting: &Accounting) -> String {
    let pool = &accounting.asked.pool;
    let known = if pool.span.trials == 0 {
        "No trial was finished"
    } else if pool.answered.requests == Some(0.0) {
        "No request was answered"
    } else if accounting.sut().is_none() {
        "The program cannot be seen from here"
    } else if pool.residuals().0.is_some_and(|residual| residual > crate::accounting::NO_VERDICT) {
        "The time accounting does not close"
    } else if parks_threads(accounting) && program_wait(accounting, Asleep::Lock) >= NOTICE_SHARE {
        "The program's runtime (Go) had threads asleep for want of work, or because goroutines waited for each other or for \
         other servers: which of these it was cannot be seen from outside"
    } else if program_wait(accounting, Asleep::Timer) >= LOSS_SHARE_MIN {
        "The program lets time pass (nanosleep and the like) while it could work, and neither side is full"
    } else if let Some((latency_s, cpu_s)) = held(accounting) {
        let connections = match (little_more(accounting), accounting.saturating_level) {
            (Some(share), Some(level)) => {
                format!("; {} connections brought {} more at most", level.connections, percent(share))
            }
            _ => ", or for more connections".to_owned(),
        };
        return format!(
            "A request takes {}, of which {} is CPU time of both sides: it waits for something that cannot be seen from outside (a lock on the \
             server's data, another request, a queue of its own){connections}",
            duration(latency_s),
            duration(cpu_s)
        );
    } else {
        "Neither side is full, and nothing that was lost explains the figure"
    };
    known.to_owned()
}

static PAGE: Page = Page {
    brief: "The data names no bottleneck.",
    means: &[
        "tare names a cause only on evidence that no healthy program shows as well. Here either something \
         could not be seen (no right to read, a runtime that parks its threads, a server on another host), \
         or the time accounting does not close to 5 %, or nobody was full.",
        "Gross of a server is a lower bound then, unless a level with more connections was hardly faster.",
    ],
    evidence: &[
        "Busy share of the entitlement, and every loss of 3 % or more.",
        "How full the generator was, and the largest residual of the accounting.",
        "The warnings of the result: each says what was not seen, and what to do about it.",
    ],
    looks_the_same: &[
        "`too-little-concurrency`: named when a level with more connections was faster. With `--no-levels` \
         there is none to compare with.",
        "A wait that the program makes itself (timers, rate limiters, goroutines that wait for each other) \
         looks like an idle thread from outside.",
    ],
    to_do: &[
        "Do what the warnings say, mostly: run as root, or with CAP_SYS_PTRACE, CAP_PERFMON and CAP_BPF; use \
         `--trace`.",
        "Look into the program: its block and mutex profiles (Go: net/http/pprof), `tare run \
         --stacks-off-cpu URL` and `tare flame --off-cpu`.",
        "Change one thing at a time: connections (`-c`), generator threads (`-t`), the server's CPUs \
         (`--sut-cpus`). What moves the figure is the bottleneck.",
    ],
    to_confirm: &[
        "`tare run --confirm URL` tries the first finding instead, if there is one that can be tried.",
        "By hand: `top -H` (who is full), `ss -ti` (what is on its way), `perf sched timehist` (who waits).",
    ],
    source: &[
        "All observations of the record. B. Gregg, The USE Method: utilization, saturation and errors of \
         every resource.",
    ],
};
