//! `parallelism-limited`: as many of the program's threads run as can at once, and it may use more CPUs than that.

use crate::accounting::LimitedBy;
use crate::bottlenecks::bottleneck::{Bottleneck, Confirm, Page, Scope};
use crate::bottlenecks::draft::{Draft, number, number_if, percent};
use crate::bottlenecks::input::Input;
use crate::bottlenecks::rank::Claim;
use crate::bottlenecks::signs::free::free_cpus;
use crate::bottlenecks::signs::lock_callers::named_lock;
use crate::bottlenecks::signs::parallel::{below_cpus, filled, working_threads};
use crate::capacity::levels::Accounting;
use tare_model::outcome::{Cause, GrossIs};

pub(crate) static BOTTLENECK: Bottleneck = Bottleneck {
    cause: Cause::ParallelismLimited,
    title: "The program's own limit of parallelism is the bottleneck",
    scope: Scope::Any,
    needs: &[Input::Sut],
    gross_is: GrossIs::Capacity,
    holds,
    // Where the program does not reach its limit, it loses nothing by it.
    applies: |_| false,
    describe,
    confirm: Confirm::Cannot {
        why: "how many of its threads a program lets run is its own setting",
        instead: "raise this setting and run again",
    },
    injections: &[],
    page: &PAGE,
};

/// A single thread that works has a cause of its own, with a server; a program of one thread is just that.
fn holds(accounting: &Accounting) -> Option<Claim> {
    (working_threads(accounting) > 1).then(|| filled(accounting)).flatten()
}

/// What sets the limit: the fact, and how it is changed.
fn words(by: LimitedBy, limit: f64) -> (String, &'static str) {
    match by {
        LimitedBy::GoMaxProcs => (
            format!(
                "Go runs at most {limit:.0} of its threads at once (GOMAXPROCS is {limit:.0} in its environment)"
            ),
            "start it without GOMAXPROCS, or with as many as there are CPUs for it",
        ),
        LimitedBy::PythonLock => (
            "CPython runs one thread of each process at once (the global interpreter lock)".to_owned(),
            "start more processes (workers), or a build of Python without that lock",
        ),
        LimitedBy::RubyLock => (
            "Ruby runs one thread of each process at once (the global VM lock)".to_owned(),
            "start more processes (workers)",
        ),
        LimitedBy::Threads => (
            format!("only {limit:.0} of its threads do the work"),
            "give it as many workers or threads as there are CPUs for it",
        ),
        LimitedBy::Seen => (
            format!(
                "most of the time {limit:.0} of its threads ran at once, seldom more and hardly ever fewer, though others had work: \
                 something of its own holds the others, and what it is could not be seen"
            ),
            "look for a lock, a queue or a setting that lets so many run: the stacks of its sleeping threads (tare run \
             --stacks-off-cpu, then tare flame --off-cpu), the runtime's own settings (GOMAXPROCS, which Go takes from a quota since 1.25)",
        ),
    }
}

fn describe(accounting: &Accounting) -> Draft {
    let (Some(limit), Some(sut)) = (below_cpus(accounting), accounting.sut()) else {
        return Draft {
            summary: "The program has no limit of parallelism below the CPUs that it may use.".to_owned(),
            ..Draft::default()
        };
    };
    let (fact, remedy) = words(limit.by, limit.threads);
    let used = sut.busy() / sut.cpus();
    let full = |window: &crate::accounting::Closed| {
        window.sut.as_ref().filter(|sut| sut.entitled_s > 0.0).map(|sut| sut.busy() / sut.cpus())
    };
    let mut evidence = vec![
        number("threads that can run at once", limit.threads, "count"),
        number("threads that work", working_threads(accounting) as f64, "count"),
        number("CPUs that it may use", sut.usable.len() as f64, "count"),
        number("busy", sut.busy(), "CPUs"),
    ];
    evidence.extend(number_if("CPUs that it may use and nobody did", free_cpus(accounting), "CPUs"));
    // Where it is known what sets the limit, no lock explains it.
    let lock = named_lock(accounting).filter(|_| limit.by == LimitedBy::Seen);
    evidence.extend(
        lock.as_ref()
            .map(|lock| number(format!("contended locks taken in {}", lock.function), lock.share, "share")),
    );
    Draft {
        summary: format!(
            "The program may use {} CPUs and kept {:.2} busy, {} of what its limit allows: {fact}.{}",
            sut.usable.len(),
            sut.busy(),
            percent(used.min(1.0)),
            lock.map_or_else(String::new, |lock| lock.sentence())
        ),
        confidence: accounting.support(full, 0.85),
        evidence,
        remedy: remedy.to_owned(),
        confirm: "with the limit raised by one the rate rises, and one more CPU is busy".to_owned(),
        ..Draft::default()
    }
}

static PAGE: Page = Page {
    brief: "The program lets no more of its threads run at once; CPUs are free.",
    means: &[
        "The program kept as many CPUs busy as it can, and that is fewer than it may use. More CPUs do not help: the limit is \
         its runtime's or its own.",
        "Net is bounded by this limit, as it is a property of the program as it was started.",
    ],
    evidence: &[
        "Threads that can run at once, threads that work, and CPUs that the program may use.",
        "What sets the limit: GOMAXPROCS in the environment of a Go program, the one lock of CPython and Ruby, the number of \
         threads that work.",
        "Where the runtime is not known: samples of how many of its threads were running or ready. At most one in twenty \
         found fewer than the limit, and at most one in five found more.",
    ],
    looks_the_same: &[
        "`one-thread-bound`: a single thread does the work (an event loop).",
        "`lock-contended`: the threads that do not run sleep in a lock that another one has.",
        "`server-cpu-bound`: all CPUs that the program may use are busy.",
        "`too-little-concurrency`: so few requests are in flight that no more threads have work.",
    ],
    to_do: &[
        "Go: start it without GOMAXPROCS, or set it to the number of CPUs; `runtime.GOMAXPROCS` in the code does the same.",
        "Python and Ruby: more processes (`gunicorn -w 4`, `puma -w 4`).",
        "Others: more workers or threads, as many as CPUs.",
    ],
    to_confirm: &[
        "There is no intervention: the limit is the program's own. With the limit raised by one the rate rises, and one more CPU \
         is busy.",
        "By hand: `tr '\\0' '\\n' < /proc/PID/environ | grep GOMAXPROCS`, and `top -H -p PID`.",
    ],
    source: &[
        "`/proc/PID/environ`, `/proc/PID/exe` and the run time of each thread; samples of `/proc/PID/task/TID/syscall`. G. \
         Amdahl, Validity of the single processor approach, AFIPS 1967.",
    ],
};
