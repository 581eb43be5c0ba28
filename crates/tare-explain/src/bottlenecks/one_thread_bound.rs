//! `one-thread-bound`: one of several serving threads is full while the others have time left.

use crate::bottlenecks::bottleneck::{Bottleneck, Confirm, Page, Scope};
use crate::bottlenecks::draft::{Draft, number, percent};
use crate::bottlenecks::input::Input;
use crate::bottlenecks::rank::{Claim, Rank};
use crate::bottlenecks::signs::parallel::{below_cpus, filled, working_threads};
use crate::bottlenecks::signs::sides::{one_thread_is_full, server};
use crate::capacity::levels::Accounting;
use tare_model::observation::Role;
use tare_model::outcome::{Cause, GrossIs, TareCause};

pub(crate) static BOTTLENECK: Bottleneck = Bottleneck {
    cause: Cause::OneThreadBound,
    title: "One thread of the server is the bottleneck",
    scope: Scope::Http,
    needs: &[Input::Sut],
    gross_is: GrossIs::Capacity,
    holds,
    applies,
    describe,
    confirm: Confirm::By("one-thread-cpu"),
    injections: &["hot-thread", "one-loop"],
    page: &PAGE,
};

fn holds(accounting: &Accounting) -> Option<Claim> {
    server(accounting)?;
    if works_alone(accounting) {
        return filled(accounting);
    }
    applies(accounting).then(|| Claim::at(Rank::OneThreadFull))
}

/// Whether a single thread does the work, and the program may use more CPUs than that.
fn works_alone(accounting: &Accounting) -> bool {
    working_threads(accounting) == 1 && below_cpus(accounting).is_some()
}

fn applies(accounting: &Accounting) -> bool {
    one_thread_is_full(accounting)
}

fn describe(accounting: &Accounting) -> Draft {
    let mut shares: Vec<(String, f64)> = accounting
        .asked
        .pool
        .threads_of(Role::Sut)
        .filter(|thread| thread.is_one() && thread.serves() && thread.wall_s > 0.0)
        .map(|thread| (thread.label(), thread.run_s / thread.wall_s))
        .collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (name, fullest) = shares.first().cloned().unwrap_or_default();
    let others: Vec<f64> = shares.iter().skip(1).map(|(_, share)| *share).collect();
    let mean = tare_stats::mean(&others).unwrap_or(0.0);
    let alone = works_alone(accounting);
    let summary = if alone {
        let cpus = accounting.sut().map_or(0, |sut| sut.usable.len());
        format!(
            "One thread does the server's work ({name}): it was on a CPU {} of the time. The server may use {cpus} CPUs, and the one thread can use one.",
            percent(fullest)
        )
    } else {
        format!(
            "One thread of the server ({name}) was on a CPU {} of the time while its {} others averaged {}.",
            percent(fullest),
            others.len(),
            percent(mean)
        )
    };
    Draft {
        summary,
        effect_ln: accounting.effect(TareCause::NoWork),
        confidence: match alone {
            true => accounting.support(
                |window| window.sut.as_ref().filter(|sut| sut.entitled_s > 0.0).map(|sut| sut.busy() / sut.cpus()),
                0.85,
            ),
            false if fullest >= 0.9 && mean < 0.5 => 1.0,
            false => 0.0,
        },
        evidence: shares
            .iter()
            .take(8)
            .map(|(name, share)| number(name.clone(), *share, "share of a CPU"))
            .collect(),
        remedy: "spread the work: more processes or threads with a listener each (SO_REUSEPORT, a cluster module, more workers), or connections spread evenly"
            .to_owned(),
        confirm:
            "with a third of that thread's CPU time taken throughput falls with an elasticity above 0.5 (--confirm)"
                .to_owned(),
    }
}

static PAGE: Page = Page {
    brief: "One serving thread is full, the others have time left (serial bottleneck).",
    means: &[
        "One thread of the server was on a CPU for 90 % of the time or more, and its other serving threads \
         averaged less than half; or one thread does all the work (an event loop) while the server may use \
         more CPUs. All requests pass through that thread: an acceptor, a single event loop, \
         a writer, a logger.",
        "More CPUs do not help. Net is bounded by what this thread can do, because it is the program's own \
         structure.",
    ],
    evidence: &["Share of a CPU of each serving thread, fullest first."],
    looks_the_same: &[
        "`server-cpu-bound`: all serving threads are full.",
        "`lock-contended`: threads take turns because of a lock. Then they sleep in futexes, and no single \
         thread is full.",
        "Uneven load: connections that live long may all have landed on one of several equal threads. With \
         more connections, or a second run, another thread is the full one.",
    ],
    to_do: &[
        "Find what the thread does: `perf top -t TID`, or `tare run --stacks URL` and `tare flame \
         --by-thread`.",
        "Divide its work: a listening socket for each thread (SO_REUSEPORT), several event loops, work \
         handed out in larger pieces.",
        "Move work off it (parsing, compression, logging, TLS handshakes) to the threads that have time.",
    ],
    to_confirm: &[
        "`tare run --confirm URL` takes a third of that one thread's CPU time in pairs of short trials. The \
         rate must follow with an elasticity of 0.5 or more.",
        "By hand: `top -H -p PID` shows one thread near 100 % and the rest far below. A second process of \
         the server on the same port doubles the rate.",
    ],
    source: &[
        "schedstat of each thread. G. Amdahl, Validity of the single processor approach, AFIPS 1967: the \
         serial part bounds the whole.",
    ],
};
