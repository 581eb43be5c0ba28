//! `program-idle`: a command that mostly slept.

use crate::bottlenecks::bottleneck::{Bottleneck, Confirm, Page, Scope};
use crate::bottlenecks::draft::{Draft, program_shares};
use crate::bottlenecks::program_time::ProgramTime;
use crate::bottlenecks::rank::{Claim, Rank};
use crate::capacity::levels::Accounting;
use crate::capacity::runs::CPU_BOUND;
use tare_model::outcome::{Cause, GrossIs};

pub(crate) static BOTTLENECK: Bottleneck = Bottleneck {
    cause: Cause::ProgramIdle,
    title: "The program's own waits are the bottleneck",
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
    injections: &["program-sleeps"],
    page: &PAGE,
};

fn holds(accounting: &Accounting) -> Option<Claim> {
    let ready = accounting.ready_cpus()?;
    (ready < CPU_BOUND).then(|| Claim::at(Rank::ProgramTime))
}

fn describe(accounting: &Accounting) -> Draft {
    let (busy, support, mut evidence) = program_shares(accounting, |cpus| cpus < CPU_BOUND);
    let time = ProgramTime::of(accounting);
    evidence.extend(time.iter().flat_map(ProgramTime::evidence));
    let waited = time.as_ref().map_or_else(String::new, |time| format!(", and {}", time.words()));
    // A tenth on a CPU is nobody's doubt; half of the time is.
    let explained = time.map_or(1.0, |time| if time.waiting >= 0.9 { 1.0 } else { time.waiting });
    Draft {
        summary: format!("The program mostly waits: {busy}{waited}."),
        confidence: support * explained,
        evidence,
        remedy: "find what it waits for (timer, disk, network, another process); a faster CPU does not help"
            .to_owned(),
        confirm: "strace -c, or the stacks of its sleeping threads, names the wait".to_owned(),
        ..Draft::default()
    }
}

static PAGE: Page = Page {
    brief: "A program that ends was on no CPU for most of its time: it waited.",
    means: &[
        "The runs used less CPU time than most of their wall time, and nobody else took it. The program \
         slept for reasons of its own. A faster CPU does not help.",
    ],
    evidence: &[
        "CPUs kept busy on average (user and kernel time over wall time).",
        "CPUs that others kept it off.",
    ],
    looks_the_same: &[
        "`program-cpu-bound`: it was on a CPU, or ready for one.",
        "`cpu-quota-throttled`: it was ready, and a quota stopped it.",
        "A program that hands its work to a daemon (a container runtime, a build server) uses no CPU \
         itself. The daemon does.",
    ],
    to_do: &[
        "Find what it waits for: `strace -f -c PROGRAM` (time in calls), `strace -f -r PROGRAM` (when), \
         `perf trace -s -- PROGRAM`.",
        "Files: put them on tmpfs for a try, or read them once before (`--prepare`).",
        "Waits one after the other: start them together.",
    ],
    to_confirm: &[
        "There is no intervention: pairs of trials need a server that goes on. With the wait taken away (a \
         stub, tmpfs, no sleep) the time falls by as much.",
    ],
    source: &[
        "wait4(2) usage of each run against its wall time. B. Gregg, Systems Performance, 2nd edition, \
         section 5.4.2 (off-CPU analysis).",
    ],
};
