//! `cold-caches`: the same instructions took more cycles than where the server is full: its caches are colder, or somebody shares
//! them. Needs a PMU: without one it is only known that a request costs more CPU time.

use crate::accounting::Closed;
use crate::accounting::Core;
use crate::bottlenecks::bottleneck::{Bottleneck, Confirm, Page, Scope};
use crate::bottlenecks::draft::{Draft, number};
use crate::bottlenecks::input::Input;
use crate::capacity::levels::Accounting;
use tare_model::outcome::{Cause, GrossIs};

/// Cycles of an instruction above this are more than trials differ by, on the log.
const NOTICE_LN: f64 = 0.05;
/// Where a request takes another number of instructions, other code ran: then it is not the caches.
const SAME_CODE_LN: f64 = 0.05;

pub(crate) static BOTTLENECK: Bottleneck = Bottleneck {
    cause: Cause::ColdCaches,
    title: "Cold caches are the bottleneck",
    scope: Scope::Http,
    needs: &[Input::Sut, Input::Requests, Input::Events],
    gross_is: GrossIs::Capacity,
    holds: |_| None,
    applies: |accounting| {
        slowed(accounting, &accounting.asked.pool)
            .is_some_and(|slowed| slowed.ln >= NOTICE_LN && slowed.code_ln.abs() <= SAME_CODE_LN)
    },
    describe,
    confirm: Confirm::Cannot {
        why: "caches cannot be given or taken a little",
        instead: "move the neighbour to another cache, or pin to another core",
    },
    injections: &["memory-neighbour"],
    page: &PAGE,
};

/// The asked level against the one that fills the server.
struct Slowed {
    /// Of instructions per cycle.
    ln: f64,
    /// Of instructions per request.
    code_ln: f64,
    ipc: [f64; 2],
}

fn slowed(accounting: &Accounting, asked: &Closed) -> Option<Slowed> {
    let figures = |window: &Closed| {
        let Core { instructions, cycles, counted_s } = window.hardware.sut.as_ref()?.core()?;
        // Of the run that was not counted as of the rest.
        let run_s = window.sut.as_ref()?.run_s;
        let each = window.per_request(instructions * run_s / counted_s)?;
        Some((instructions / cycles, each)).filter(|(ipc, each)| *ipc > 0.0 && *each > 0.0)
    };
    let (here, full) = (figures(asked)?, figures(&accounting.saturating.as_ref()?.pool)?);
    Some(Slowed { ln: (full.0 / here.0).ln(), code_ln: (here.1 / full.1).ln(), ipc: [here.0, full.0] })
}

fn describe(accounting: &Accounting) -> Draft {
    let found = slowed(accounting, &accounting.asked.pool);
    let Slowed { ln, code_ln, ipc } = found.unwrap_or(Slowed { ln: 0.0, code_ln: 0.0, ipc: [0.0; 2] });
    Draft {
        summary: format!(
            "The same instructions took {:.0} % more cycles than where the server is full ({:.2} instead of {:.2} instructions a cycle).",
            100.0 * (ln.exp() - 1.0),
            ipc[0],
            ipc[1]
        ),
        effect_ln: ln,
        confidence: accounting.support(|window| Some(slowed(accounting, window)?.ln), NOTICE_LN),
        evidence: vec![
            number("instructions per cycle", ipc[0], "count"),
            number("the same where the server is full", ipc[1], "count"),
            number("instructions of a request, to those where it is full", code_ln.exp(), "count"),
        ],
        remedy: "keep others off the core and its last-level cache (CPUs of its own, --placement), and sleep less between requests"
            .to_owned(),
        confirm: "with the neighbour on another cache, or more connections, instructions per cycle rise".to_owned(),
    }
}

static PAGE: Page = Page {
    brief: "The same instructions took more cycles than at saturation.",
    means: &[
        "At the asked load an instruction took 5 % more cycles or more than at the load that fills the \
         server, and a request took the same number of instructions. So the code is the same, and the core \
         waited more: for caches, the TLB or memory that others use.",
        "A server that sleeps between requests finds its caches used by others when it wakes up.",
    ],
    evidence: &[
        "Instructions per cycle at the asked load and at the saturating one.",
        "Instructions per request, as a ratio of the two. It must be near 1.",
    ],
    looks_the_same: &[
        "`clock-dropped`: the cycles are the same, each takes longer.",
        "`cross-cpu-wakeups`: a request takes more instructions, because it wakes somebody.",
        "`placement-conflict` with SMT siblings: the core is shared, and instructions per cycle fall as \
         well.",
    ],
    to_do: &[
        "Keep others off the core and its last-level cache: `tare run --sut-cpus 0-3 --load-cpus 8-11 URL` \
         with CPUs of another cache (`tare doctor --topology`), or divide the cache (resctrl, `pqos`).",
        "Sleep less between requests: more connections for each thread, fewer threads.",
        "Use less memory for a request: smaller structures, huge pages for a large heap (`tare tune --apply \
         --thp always`).",
    ],
    to_confirm: &[
        "There is no intervention: a cache cannot be given a little at a time. Move the neighbour to \
         another cache, or use more connections. Instructions per cycle rise.",
        "By hand: `perf stat -e instructions,cycles,cache-misses,dTLB-load-misses -p PID -- sleep 5`.",
    ],
    source: &[
        "Hardware counters of the server's threads (instructions, cycles). Needs a PMU. U. Drepper, What \
         Every Programmer Should Know About Memory, 2007.",
    ],
};
