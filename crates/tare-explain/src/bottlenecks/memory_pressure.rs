//! `memory-pressure`: the program waited for memory that had to be taken back first, or read in again because it had been.
//!
//! The kernel counts both as pressure, of a control group or of the machine. Whose memory it was follows from what the SUT did
//! in that time: asleep on a page or a disk, or at work in the kernel; never more than that is put down to it. What it waited
//! for are its own pages, so that net has it.

use crate::accounting::Closed;
use crate::accounting::ratio;
use crate::accounting::{Asleep, Thread};
use crate::bottlenecks::bottleneck::{Bottleneck, Confirm, Page, Scope};
use crate::bottlenecks::draft::{Draft, number, number_if, percent};
use crate::bottlenecks::input::Input;
use crate::bottlenecks::rank::{Claim, Rank};
use crate::bottlenecks::signs::bounds::{LOSS_SHARE_MIN, NOTICE_SHARE};
use crate::bottlenecks::signs::sides::server;
use crate::capacity::levels::Accounting;
use tare_model::observation::Role;
use tare_model::outcome::{Cause, GrossIs, TareCause};

/// Less that is read in again each second is no sign of anything.
const REFAULTED_BYTES_HZ_MIN: f64 = 4e4;

pub(crate) static BOTTLENECK: Bottleneck = Bottleneck {
    cause: Cause::MemoryPressure,
    title: "Too little memory is the bottleneck",
    scope: Scope::Any,
    needs: &[Input::Sut, Input::MemoryPressure],
    gross_is: GrossIs::Capacity,
    holds,
    applies: |accounting| share(&accounting.asked.pool).is_some_and(|share| share >= NOTICE_SHARE),
    describe,
    confirm: Confirm::Cannot {
        why: "memory that was taken back is read again for seconds",
        instead: "raise the group's limit, and run again",
    },
    injections: &["little-memory"],
    page: &PAGE,
};

/// Whether it takes more than noise, and more than the lack of load.
fn holds(accounting: &Accounting) -> Option<Claim> {
    server(accounting)?;
    let share = share(&accounting.asked.pool).unwrap_or(0.0);
    let most = share >= LOSS_SHARE_MIN && share >= accounting.lost(TareCause::NoWork);
    most.then(|| Claim::at(Rank::MemoryReclaimed))
}

/// Of the SUT's CPU entitlement; `None` where it is not known, 0 where nothing says that it was the SUT's memory.
fn share(window: &Closed) -> Option<f64> {
    let (memory, sut) = (&window.around.memory, window.sut.as_ref()?);
    let stalled_s = memory.stalled_s?;
    let refaulted_bytes = memory.refaulted_bytes.unwrap_or(0.0);
    let was_short = memory.limit_hits.is_some_and(|hits| hits >= 1.0)
        || ratio(refaulted_bytes, window.span.wall_s) >= REFAULTED_BYTES_HZ_MIN;
    let of_threads = |seconds: fn(&Thread) -> f64| window.threads_of(Role::Sut).map(seconds).sum::<f64>();
    let faults_s = of_threads(|thread| thread.asleep(Asleep::Fault));
    let asleep_s = faults_s + of_threads(|thread| thread.asleep(Asleep::Disk));
    // The machine's pressure, and what it reads in again, may be others': a server that writes to a disk beside a build waits for none of it.
    let is_own = memory.is_groups || memory.limit_hits.is_some_and(|hits| hits >= 1.0);
    let own_s = if is_own {
        // The kernel takes only the most wanted pages for pressure; whoever waits for a disk waits for all that it had to read again.
        let again = memory.read_bytes.map_or(0.0, |read| ratio(refaulted_bytes, read).min(1.0));
        let reclaiming_s = of_threads(|thread| thread.modes.system_s);
        stalled_s.min(asleep_s + reclaiming_s).max(asleep_s * again)
    } else {
        // Whoever waits for a disk may write to it: pages alone are memory.
        stalled_s.min(faults_s)
    };
    Some(if was_short { ratio(own_s, sut.entitled_s).min(1.0) } else { 0.0 })
}

fn describe(accounting: &Accounting) -> Draft {
    let pool = &accounting.asked.pool;
    let memory = &pool.around.memory;
    let share_now = share(pool).unwrap_or(0.0);
    let per_s = |count: Option<f64>| count.map(|count| ratio(count, pool.span.wall_s));
    let stalled = per_s(memory.stalled_s);
    let mut evidence = vec![number("waited for memory, share of the CPU entitlement", share_now, "share")];
    evidence.extend(number_if("time in which somebody waited for memory (PSI)", stalled, "s per s"));
    evidence.extend(number_if("times that its group reached its limit", per_s(memory.limit_hits), "1/s"));
    evidence.extend(number_if("read in again", per_s(memory.refaulted_bytes), "B/s"));
    evidence.extend(number_if("read from disks by everybody", per_s(memory.read_bytes), "B/s"));
    let whose = match &memory.tightest {
        Some((group, bytes)) => {
            evidence.push(number(format!("limit of {group}"), *bytes, "B"));
            format!("its group {group} may use {:.0} MiB", bytes / f64::from(1 << 20))
        }
        None => "the machine has too little".to_owned(),
    };
    Draft {
        summary: format!(
            "The program waited {} of the time it could have used for memory that had to be taken back or read in again: {whose}.",
            percent(share_now)
        ),
        effect_ln: 0.0,
        confidence: accounting.support(share, LOSS_SHARE_MIN.min(share_now)),
        evidence,
        remedy: "raise the group's limit (memory.max and memory.high, memory.limit_in_bytes), or have the program keep less \
                 in memory"
            .to_owned(),
        confirm: "with twice the limit nobody waits for memory (memory.pressure stands still)".to_owned(),
    }
}

static PAGE: Page = Page {
    brief: "The program waited for memory to be taken back, or be read in again.",
    means: &[
        "Its control group, or the machine, had no free memory. The kernel took pages back while threads \
         waited, and pages that had been taken were read in again from disk.",
        "They are the program's own pages, so the wait stays in net: with this much memory the program can \
         do no more.",
    ],
    evidence: &[
        "Share of the entitlement that went to waiting for memory. It is never more than the time in which \
         the program slept on a page or a disk, or worked in the kernel.",
        "Memory pressure (PSI), in seconds per second; how often the group reached its limit; bytes read in \
         again per second.",
        "The tightest limit and its group.",
    ],
    looks_the_same: &[
        "`blocked-on-disk`: the program reads files that never were in memory. No limit is reached, and \
         little is read in again.",
        "`gc-pauses`: the runtime's own heap is too small. The kernel has free memory then.",
        "A group that is full of page cache is normal. It costs nothing while nobody waits: PSI stands \
         still.",
    ],
    to_do: &[
        "Raise the limit of the group: `memory.max` and `memory.high` (v2), `memory.limit_in_bytes` (v1), \
         the pod's or the container's memory limit.",
        "Have the program keep less: smaller caches, GOMEMLIMIT or -Xmx below the group's limit (`tare run \
         --fit-runtime --sut CMD URL` sets them).",
        "Look for others in the same group: a log writer's page cache counts as well.",
    ],
    to_confirm: &[
        "There is no intervention: memory that was taken back is read again for seconds. With twice the \
         limit nobody waits for memory.",
        "By hand, in the group's folder: `cat memory.pressure memory.events` twice (total, high, max), and \
         `grep workingset_refault memory.stat`.",
    ],
    source: &[
        "`memory.pressure`, `memory.events`, `memory.stat` of the groups, or `/proc/pressure/memory` and \
         `/proc/vmstat`. Linux: Documentation/accounting/psi.rst, Documentation/admin-guide/cgroup-v2.rst.",
    ],
};
