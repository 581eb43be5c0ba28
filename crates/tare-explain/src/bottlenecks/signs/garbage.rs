//! How much of the program's CPU time goes into collecting garbage.

use crate::accounting::{helpers, ratio};
use crate::bottlenecks::signs::locks::parks_threads;
use crate::capacity::levels::Accounting;
use tare_model::Missing;
use tare_model::observation::Role;
use tare_model::stacks::Stacks;

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

/// Of fewer samples a share says little.
const SAMPLES_MIN: f64 = 100.0;

/// Why it cannot be judged: a program of Go collects on any of its threads, and no stacks were sampled.
pub(crate) fn unseen(accounting: &Accounting) -> Option<Missing> {
    (parks_threads(accounting) && share(accounting).is_none()).then(|| {
        Missing::with_remedy(
            "the program's runtime (Go) collects garbage on the threads that serve, and too few call stacks were sampled",
            "sample more of them (--stacks), or set GODEBUG=gctrace=1",
        )
    })
}

/// Share of the SUT's CPU time, and how it is known; `None` where neither names nor stacks show it.
pub(crate) fn share(accounting: &Accounting) -> Option<(f64, &'static str)> {
    let named = by_threads(accounting).map(|share| (share, "by the names of its threads"));
    let sampled = by_stacks(accounting).map(|share| (share, "by sampled call stacks"));
    named.into_iter().chain(sampled).max_by(|a, b| a.0.total_cmp(&b.0))
}

/// `None` where no thread has such a name.
fn by_threads(accounting: &Accounting) -> Option<f64> {
    let pool = &accounting.asked.pool;
    let collects = pool.threads_of(Role::Sut).filter(|thread| helpers::collects(&thread.id.name));
    let run_s = collects.map(|thread| thread.run_s);
    let run_s = run_s.reduce(|a, b| a + b)?;
    Some(ratio(run_s, pool.sut.as_ref()?.run_s))
}

fn by_stacks(accounting: &Accounting) -> Option<f64> {
    let sampled = accounting.sampled().into_iter().filter_map(collecting);
    let (part, whole) = sampled.reduce(|a, b| (a.0 + b.0, a.1 + b.1))?;
    (whole >= SAMPLES_MIN).then(|| part / whole)
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
