//! `program-cpu-bound`: a command that was on a CPU, or ready for one, for most of its time.

use crate::accounting::{Limit, LimitedBy};
use crate::bottlenecks::bottleneck::{Bottleneck, Confirm, Page, Scope};
use crate::bottlenecks::draft::{Draft, program_shares};
use crate::bottlenecks::program_time::ProgramTime;
use crate::bottlenecks::rank::{Claim, Rank};
use crate::bottlenecks::signs::parallel::works_by_itself;
use crate::capacity::levels::Accounting;
use crate::capacity::runs::CPU_BOUND;
use tare_model::outcome::{Cause, GrossIs};

pub(crate) static BOTTLENECK: Bottleneck = Bottleneck {
    cause: Cause::ProgramCpuBound,
    title: "The program itself is the bottleneck",
    scope: Scope::Command,
    needs: &[],
    gross_is: GrossIs::Capacity,
    holds,
    applies: |_| false,
    describe,
    confirm: Confirm::Cannot {
        why: "interleaved blocks need a server that goes on",
        instead: "compare runs of the program with 'tare compare'",
    },
    injections: &["program-computes"],
    page: &PAGE,
};

fn holds(accounting: &Accounting) -> Option<Claim> {
    let ready = accounting.ready_cpus()?;
    (ready >= CPU_BOUND).then(|| Claim::at(Rank::ProgramTime))
}

fn describe(accounting: &Accounting) -> Draft {
    let (busy, support, mut evidence) = program_shares(accounting, |cpus| cpus >= CPU_BOUND);
    let time = ProgramTime::of(accounting).filter(ProgramTime::is_part);
    evidence.extend(time.iter().flat_map(ProgramTime::evidence));
    let at_once = works_by_itself(accounting).map_or_else(String::new, |limit| at_once(&limit, accounting));
    let summary = match &time {
        None => format!("The program itself is the bottleneck: {busy}.{at_once}"),
        Some(time) => {
            format!(
                "The program itself is the bottleneck for a part of its time only: {busy}, and {}.{at_once}",
                time.words()
            )
        }
    };
    Draft {
        summary,
        // What it waited is not explained by its work.
        confidence: support * time.map_or(1.0, |time| 1.0 - time.waiting),
        evidence,
        remedy: "profile it; a faster clock or more threads help if it can use them".to_owned(),
        confirm: "the time of a run follows the work it is given".to_owned(),
        ..Draft::default()
    }
}

/// Of a program that could use more CPUs than its threads do.
fn at_once(limit: &Limit, accounting: &Accounting) -> String {
    let usable = accounting.sut().map_or(0, |sut| sut.usable.len());
    let threads = limit.threads.round().max(1.0);
    let works = match (limit.by, threads <= 1.0) {
        (LimitedBy::Threads, true) => "One thread works".to_owned(),
        (LimitedBy::Threads, false) => format!("{threads:.0} threads work"),
        (_, true) => "One thread works at a time".to_owned(),
        (_, false) => format!("{threads:.0} threads work at a time"),
    };
    format!(" {works}: more of the {usable} CPUs that the program may use do not help.")
}

static PAGE: Page = Page {
    brief: "A program that ends was on a CPU, or ready for one, for most of its time.",
    means: &[
        "The runs kept their CPUs busy, and nobody else took much. The wall time is the program's work at \
         this clock.",
    ],
    evidence: &[
        "CPUs kept busy on average (user and kernel time over wall time, from the kernel's account of the \
         runs).",
        "CPUs that others kept it off.",
    ],
    looks_the_same: &[
        "`cpu-contended`, `cpu-quota-throttled`, `steal`: the program was ready and did not run. They come \
         first from 12 % on.",
        "`program-idle`: it was on no CPU for most of the time.",
        "One thread that works (of many, or one after the other, as a runtime moves the work): 1.0 CPU busy on a large machine is a serial program, as a \
         benchmark of one thread is. The summary says so. More CPUs do not help.",
    ],
    to_do: &[
        "Profile it: `perf record -g -- PROGRAM` and `perf report`, `perf stat -d -- PROGRAM`.",
        "See whether it uses all CPUs: `tare run -- PROGRAM` shows CPUs busy; compare with the number there \
         are.",
        "Compare two versions interleaved: `tare compare --command ./old --command ./new`.",
    ],
    to_confirm: &[
        "There is no intervention: pairs of trials need a server that goes on. With half the work the time \
         halves; at a clock that is held lower it grows in proportion.",
    ],
    source: &[
        "wait4(2) usage of each run (user and system time), schedstat of its threads. The iron law of \
         performance: time = instructions × cycles per instruction / clock (J. Emer, D. Clark, ISCA 1984).",
    ],
};
