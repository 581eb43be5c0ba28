//! `oversubscribed`: more threads of one side than CPUs for them, so that they wait for each other's turn.

use crate::accounting::Closed;
use crate::accounting::{Entitlement, ratio};
use crate::bottlenecks::bottleneck::{Bottleneck, Confirm, Page, Scope};
use crate::bottlenecks::draft::{Draft, number, percent};
use crate::bottlenecks::input::Input;
use crate::bottlenecks::signs::bounds::NOTICE_SHARE;
use crate::bottlenecks::signs::sides::taken_by_others;
use crate::capacity::levels::Accounting;
use crate::capacity::summary::names_of;
use tare_model::observation::Role;
use tare_model::outcome::{Cause, GrossIs, TareCause};

pub(crate) static BOTTLENECK: Bottleneck = Bottleneck {
    cause: Cause::Oversubscribed,
    title: "More threads than CPUs are the bottleneck",
    scope: Scope::Any,
    needs: &[Input::Waits],
    gross_is: GrossIs::Capacity,
    holds: |accounting| {
        taken_by_others(accounting, TareCause::SelfContention).filter(|_| more_threads_than_cpus(accounting))
    },
    applies,
    describe,
    confirm: Confirm::Cannot {
        why: "how many threads a program has is its own",
        instead: "run again with one thread for each CPU (generator: --threads)",
    },
    injections: &["server-oversubscribed", "generator-oversubscribed"],
    page: &PAGE,
};

/// How oversubscribed one side is.
struct Oversubscription {
    role: Role,
    threads: f64,
    cpus: f64,
    /// Share of its threads' time that they waited behind each other.
    waiting: f64,
    involuntary_hz: Option<f64>,
    voluntary_hz: Option<f64>,
}

fn oversubscription(window: &Closed, role: Role, entitlement: &Entitlement) -> Option<Oversubscription> {
    let threads = || window.threads_of(role).filter(|thread| thread.serves());
    let wall_s: f64 = threads().map(|thread| thread.wall_s).sum();
    let waited_s: f64 = threads().map(|thread| thread.wait.behind_s.of(role)).sum();
    let rate =
        |sum: Option<f64>| sum.filter(|_| window.span.wall_s > 0.0).map(|count| count / window.span.wall_s);
    (!entitlement.usable.is_empty() && wall_s > 0.0).then(|| Oversubscription {
        role,
        threads: entitlement.serving(),
        cpus: entitlement.usable.len() as f64,
        waiting: ratio(waited_s, wall_s),
        involuntary_hz: rate(window.sum_of(role, |thread| thread.switched.involuntary)),
        voluntary_hz: rate(window.sum_of(role, |thread| thread.switched.voluntary)),
    })
}

impl Oversubscription {
    fn is_oversubscribed(&self) -> bool {
        self.waiting >= NOTICE_SHARE && self.threads > self.cpus + 0.5
    }
}

/// The server if it is oversubscribed, else the generator if that is, else whichever is there.
fn worst(accounting: &Accounting) -> Option<Oversubscription> {
    let sut = accounting.sut().and_then(|sut| oversubscription(&accounting.asked.pool, Role::Sut, sut));
    let load = accounting.load().and_then(|load| oversubscription(&accounting.asked.pool, Role::Load, load));
    match (sut, load) {
        (Some(sut), _)
            if sut.is_oversubscribed() || accounting.lost(TareCause::SelfContention) >= NOTICE_SHARE =>
        {
            Some(sut)
        }
        (_, Some(load)) if load.is_oversubscribed() => Some(load),
        (sut, load) => sut.or(load),
    }
}

/// As many threads as CPUs are not too many, whatever else takes one of those.
fn more_threads_than_cpus(accounting: &Accounting) -> bool {
    accounting.sut().is_some_and(|sut| sut.usable.is_empty() || sut.serving() > sut.usable.len() as f64 + 0.5)
}

fn applies(accounting: &Accounting) -> bool {
    accounting.lost(TareCause::SelfContention) >= NOTICE_SHARE && more_threads_than_cpus(accounting)
        || worst(accounting).is_some_and(|oversubscription| oversubscription.is_oversubscribed())
}

/// How long a thread waits for its turn among n runnable ones on a CPU: (n − 1) slices, each the scheduler's
/// base slice rounded up to whole ticks.
fn turn_s(accounting: &Accounting, threads_per_cpu: f64) -> Option<f64> {
    let tick_hz = f64::from(*accounting.record.machine.tick_hz.value()?);
    let slice_s = *accounting.record.machine.base_slice_ns.value()? as f64 / 1e9;
    let slices = (threads_per_cpu - 1.0).max(0.0);
    (tick_hz > 0.0).then(|| slices * (slice_s * tick_hz).ceil() / tick_hz)
}

fn describe(accounting: &Accounting) -> Draft {
    let Some(oversubscription) = worst(accounting) else {
        return Draft {
            summary: "No side's threads could be counted against its CPUs.".to_owned(),
            ..Draft::default()
        };
    };
    let side = if oversubscription.role == Role::Load { "generator" } else { "program" };
    let per_cpu = ratio(oversubscription.threads, oversubscription.cpus);
    let turn = turn_s(accounting, per_cpu);
    let waits = turn.map_or(String::new(), |turn_s| {
        format!(
            "; among {per_cpu:.1} runnable threads on a CPU a turn comes after about {:.0} ms",
            1e3 * turn_s
        )
    });
    let mut evidence = vec![
        number(format!("threads of the {side}"), oversubscription.threads, "count"),
        number(format!("CPUs they may use ({side})"), oversubscription.cpus, "count"),
        number(
            format!("waiting behind each other, share of the {side}'s threads' time"),
            oversubscription.waiting,
            "share",
        ),
    ];
    evidence.extend(
        oversubscription
            .involuntary_hz
            .map(|hz| number(format!("involuntary switches of the {side}"), hz, "1/s")),
    );
    evidence.extend(
        oversubscription
            .voluntary_hz
            .map(|hz| number(format!("voluntary switches of the {side}"), hz, "1/s")),
    );
    evidence.extend(turn.map(|turn_s| number("wait for a turn by slice arithmetic", turn_s, "s")));
    let role = oversubscription.role;
    let waiting = move |window: &Closed| {
        let entitlement = if role == Role::Load { window.load.as_ref() } else { window.sut.as_ref() };
        oversubscription_share(window, role, entitlement?)
    };
    Draft {
        summary: format!(
            "The {side} ({}) has {:.0} threads at work on {:.0} CPU{}: they wait behind each other {} of their time{waits}.",
            names_of(&accounting.asked.pool, oversubscription.role),
            oversubscription.threads,
            oversubscription.cpus,
            if oversubscription.cpus > 1.0 { "s" } else { "" },
            percent(oversubscription.waiting)
        ),
        effect_ln: if role == Role::Sut { accounting.effect(TareCause::SelfContention) } else { 0.0 },
        confidence: accounting.support(waiting, NOTICE_SHARE),
        evidence,
        remedy: format!("use as many {side} threads as it has CPUs, or give it more CPUs"),
        confirm: "with one thread for each CPU the involuntary switches and the 99th percentile fall"
            .to_owned(),
    }
}

fn oversubscription_share(window: &Closed, role: Role, entitlement: &Entitlement) -> Option<f64> {
    oversubscription(window, role, entitlement).map(|oversubscription| oversubscription.waiting)
}

static PAGE: Page = Page {
    brief: "More threads than CPUs: they wait behind each other (self-contention).",
    means: &[
        "Several threads of the same side (server, program or generator) are ready at once on one CPU. Each \
         waits until the one in front has used its slice. With n runnable threads on a CPU that is about (n \
         - 1) slices, each rounded up to whole scheduler ticks.",
        "The CPU is full either way, so throughput may change little. Latency grows, and caches are used \
         worse.",
    ],
    evidence: &[
        "Threads at work and CPUs that they may use, for the side that is named.",
        "Share of its threads' time in which they waited behind each other.",
        "Involuntary and voluntary context switches per second, and the wait for a turn that follows from \
         the slice and the tick.",
    ],
    looks_the_same: &[
        "`cpu-contended`: the threads in front belong to another program.",
        "`cpu-quota-throttled`: many threads use a quota up fast, then nobody runs.",
        "`lock-contended`: threads sleep for a lock. Here they are ready.",
    ],
    to_do: &[
        "Use as many threads as CPUs: the server's worker count, GOMAXPROCS, the generator's `--threads`.",
        "Give the side more CPUs: `--sut-cpus`, `--load-cpus`.",
        "For fewer switches only: a longer slice, `tare tune --apply --base-slice 10ms`. Waiting for a turn \
         becomes longer.",
    ],
    to_confirm: &[
        "There is no intervention: the number of threads is the program's own. Run it again with one thread \
         for each CPU. Involuntary switches and the 99th percentile fall.",
        "By hand: `pidstat -wt -p PID 1` shows `nvcswch/s` of each thread.",
    ],
    source: &[
        "Wait time in schedstat, split by who ran on that CPU meanwhile; `/proc/PID/task/TID/status` for \
         switches; `/sys/kernel/debug/sched/base_slice_ns`. Linux: Documentation/scheduler/sched-eevdf.rst.",
    ],
};
