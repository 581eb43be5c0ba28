//! `gc-pauses`: the program's runtime collects garbage, on its own threads or on those that serve.
//!
//! What can be seen from outside: the JVM and .NET collect on threads of their own, which have names. Go does it on the
//! threads that serve, and node and Python on theirs: there only sampled call stacks tell. How long all threads were stopped
//! at once is told by nobody outside; what of the CPU time went there, and how uneven answers are, is. The program's own: net has it.

use super::{Draft, Input, Rule, Scope, number, number_if, percent};
use crate::accounting::ratio;
use crate::bottlenecks::decide::parks_threads;
use crate::capacity::levels::Accounting;
use tare_model::Missing;
use tare_model::observation::Role;
use tare_model::outcome::Cause;
use tare_model::stacks::Stacks;

/// Of the SUT's CPU time, what is worth a finding, and what makes it the reason that the server is full.
const NOTICE_SHARE: f64 = 0.05;
const BOTTLENECK_SHARE: f64 = 0.25;

/// How the names of threads begin that do nothing else.
static COLLECTORS: &[&str] = &[
    "G1 ",
    "GC Thread",
    "GC task",
    "ParGC",
    "Gang worker",
    "Concurrent Mark",
    "VM Thread",
    "ZGC",
    "ZWorker",
    "ZDriver",
    "XWorker",
    "Shenandoah",
    "GenShen",
    ".NET Server GC",
    ".NET BGC",
];
/// How the functions begin under which nothing else is done.
static COLLECTING: &[&str] = &[
    "runtime.gcBgMarkWorker",
    "runtime.gcAssistAlloc",
    "runtime.gcStart",
    "runtime.gcMark",
    "runtime.bgsweep",
    "runtime.bgscavenge",
    "runtime.(*mheap).reclaim",
    "v8::internal::Heap::CollectGarbage",
    "v8::internal::Scavenger",
    "v8::internal::MarkCompact",
    "v8::internal::ConcurrentMarking",
    "gc_collect_main",
    "_PyGC_Collect",
    "PyGC_Collect",
];

pub(super) static RULE: Rule = Rule {
    cause: Cause::GcPauses,
    scope: Scope::Any,
    needs: &[Input::Sut, Input::Collector],
    applies: |accounting| share(accounting).is_some_and(|(share, _)| share >= NOTICE_SHARE),
    describe,
};

/// Whether collecting is a large part of what a full server does.
pub(crate) fn holds(accounting: &Accounting) -> bool {
    share(accounting).is_some_and(|(share, _)| share >= BOTTLENECK_SHARE)
}

/// Why it cannot be judged: a program of Go collects on any of its threads, and no stacks were sampled.
pub(crate) fn unseen(accounting: &Accounting) -> Option<Missing> {
    (parks_threads(accounting) && share(accounting).is_none()).then(|| {
        Missing::with_remedy(
            "the program's runtime (Go) collects garbage on the threads that serve",
            "sample call stacks (--stacks), or set GODEBUG=gctrace=1",
        )
    })
}

/// Share of the SUT's CPU time, and how it is known; `None` where neither names nor stacks tell.
fn share(accounting: &Accounting) -> Option<(f64, &'static str)> {
    let named = by_threads(accounting).map(|share| (share, "by the names of its threads"));
    let sampled = by_stacks(accounting).map(|share| (share, "by sampled call stacks"));
    named.into_iter().chain(sampled).max_by(|a, b| a.0.total_cmp(&b.0))
}

/// `None` where no thread has such a name.
fn by_threads(accounting: &Accounting) -> Option<f64> {
    let pool = &accounting.asked.pool;
    let collects = |name: &str| COLLECTORS.iter().any(|begin| name.starts_with(begin));
    let run_s =
        pool.threads_of(Role::Sut).filter(|thread| collects(&thread.id.name)).map(|thread| thread.run_s);
    let run_s = run_s.reduce(|a, b| a + b)?;
    Some(ratio(run_s, pool.sut.as_ref()?.run_s))
}

fn by_stacks(accounting: &Accounting) -> Option<f64> {
    let sampled = accounting
        .asked_trials()
        .filter_map(|trial| trial.observation.stacks.as_deref())
        .filter_map(collecting);
    let (part, whole) = sampled.reduce(|a, b| (a.0 + b.0, a.1 + b.1))?;
    (whole > 0.0).then(|| part / whole)
}

/// Samples of the SUT under a function that collects, and all of them.
fn collecting(stacks: &Stacks) -> Option<(f64, f64)> {
    let profile = stacks.on_cpu.value()?;
    let collects = |index: &u32| {
        let frame = stacks.frame(*index);
        frame.is_some_and(|frame| COLLECTING.iter().any(|begin| frame.symbol.starts_with(begin)))
    };
    let (mut part, mut whole) = (0.0, 0.0);
    for stack in profile.stacks.iter().filter(|stack| stack.role == Role::Sut) {
        whole += stack.value as f64;
        if stack.frames.iter().any(collects) {
            part += stack.value as f64;
        }
    }
    Some((part, whole))
}

fn describe(accounting: &Accounting) -> Draft {
    let (share, known) = share(accounting).unwrap_or((0.0, "not known"));
    let latencies = accounting.latencies();
    let at = |quantile: f64| latencies.as_ref()?.quantile_ns(quantile).map(|ns| ns as f64);
    let mut evidence =
        vec![number(format!("collecting garbage, share of the CPU time, {known}"), share, "share")];
    evidence.extend(number_if("median latency", at(0.5), "ns"));
    evidence.extend(number_if("99.9th percentile", at(0.999), "ns"));
    Draft {
        summary: format!("{} of the program's CPU time went into collecting garbage ({known}).", percent(share)),
        effect_ln: 0.0,
        // Stacks are of all trials together.
        confidence: if share >= NOTICE_SHARE { 1.0 } else { 0.0 },
        evidence,
        remedy: "allocate less for a request (an allocation profile tells where), or give the collector more room (GOGC, \
                 GOMEMLIMIT, -Xmx)"
            .to_owned(),
        confirm: "with twice the heap (GOGC=200, twice -Xmx) it collects half as often, and throughput rises".to_owned(),
    }
}
