//! `gc-pauses`: the program's runtime collects garbage, on its own threads or on those that serve.
//!
//! What can be seen from outside: the JVM and .NET collect on threads of their own, which have names. Go does it on the
//! threads that serve, and node and Python on theirs: only sampled call stacks show it there. How long all threads were stopped
//! at once cannot be seen from outside; which share of the CPU time went there, and how uneven answers are, can. The program's own: net has it.

use crate::bottlenecks::bottleneck::{Bottleneck, Confirm, Page, Scope};
use crate::bottlenecks::draft::{Draft, number, number_if, percent};
use crate::bottlenecks::input::Input;
use crate::bottlenecks::rank::{Claim, Rank};
use crate::bottlenecks::signs::garbage;
use crate::bottlenecks::signs::sides::server_is_full;
use crate::capacity::levels::Accounting;
use tare_model::outcome::{Cause, GrossIs};

/// Of the SUT's CPU time, what is worth a finding, and what makes it the reason that the server is full.
const NOTICE_SHARE: f64 = 0.05;
const BOTTLENECK_SHARE: f64 = 0.25;

pub(crate) static BOTTLENECK: Bottleneck = Bottleneck {
    cause: Cause::GcPauses,
    title: "Collecting garbage is the bottleneck",
    scope: Scope::Any,
    needs: &[Input::Sut, Input::Collector],
    gross_is: GrossIs::Capacity,
    holds,
    applies: |accounting| garbage::share(accounting).is_some_and(|(share, _)| share >= NOTICE_SHARE),
    describe,
    confirm: Confirm::Cannot {
        why: "a runtime takes its heap when it starts",
        instead: "run again with twice the heap (GOGC=200, twice -Xmx)",
    },
    injections: &["garbage"],
    page: &PAGE,
};

/// Whether collecting is a large part of what a full server does.
fn holds(accounting: &Accounting) -> Option<Claim> {
    let collects = garbage::share(accounting).is_some_and(|(share, _)| share >= BOTTLENECK_SHARE);
    (collects && server_is_full(accounting)).then(|| Claim::at(Rank::FullOfOneWork))
}

fn describe(accounting: &Accounting) -> Draft {
    let (share, known) = garbage::share(accounting).unwrap_or((0.0, "not known"));
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
        remedy: "allocate less for a request (an allocation profile says where), or give the collector more room (GOGC, \
                 GOMEMLIMIT, -Xmx)"
            .to_owned(),
        confirm: "with twice the heap (GOGC=200, twice -Xmx) it collects half as often, and throughput rises".to_owned(),
    }
}

static PAGE: Page = Page {
    brief: "The program's runtime spent CPU time on collecting garbage.",
    means: &[
        "The runtime collected garbage on its own threads (JVM, .NET) or on those that serve (Go, Node.js, \
         Python). From 5 % of the program's CPU time on it is a finding; from 25 % on it is named as what \
         makes a full server full.",
        "It is the program's own work, so it stays in net. How long all threads stood still at once cannot \
         be seen from outside.",
    ],
    evidence: &[
        "Share of the CPU time, and how it is known: by the names of threads, or by sampled call stacks.",
        "Median and 99.9th percentile of latency. Pauses make the distance between them large.",
    ],
    looks_the_same: &[
        "`server-cpu-bound`: the server is full of other work. Without call stacks a Go program's collector \
         looks the same (`--stacks=0`, or no right to sample them).",
        "`memory-pressure`: the kernel takes pages back, not the runtime.",
        "Spikes of latency without garbage: `tare why` says what moved in them.",
    ],
    to_do: &[
        "Allocate less for each request. An allocation profile says where: `go tool pprof -alloc_space`, \
         async-profiler `-e alloc`, `tare run --stacks URL` and `tare flame`.",
        "Give the collector more room: GOGC=200 or GOMEMLIMIT, twice -Xmx, `--max-semi-space-size` \
         (Node.js).",
        "Choose another collector when pauses matter more than throughput (ZGC, Shenandoah).",
    ],
    to_confirm: &[
        "There is no intervention: a runtime takes its heap when it starts. Run again with twice the heap. \
         It collects half as often, and the rate rises.",
        "By hand: `GODEBUG=gctrace=1`, `-Xlog:gc`, `node --trace-gc`, `jstat -gcutil PID 1000`.",
    ],
    source: &[
        "schedstat of threads with a collector's name; call stacks sampled by perf events. R. Jones, A. \
         Hosking, E. Moss, The Garbage Collection Handbook, 2nd edition, 2023.",
    ],
};
