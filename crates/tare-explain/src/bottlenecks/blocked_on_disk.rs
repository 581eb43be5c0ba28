//! `blocked-on-disk`: serving threads slept in file I/O. The program's own: it stays in net.

use crate::accounting::Asleep;
use crate::bottlenecks::bottleneck::{Bottleneck, Confirm, Page, Scope};
use crate::bottlenecks::draft::{Draft, program_wait_draft};
use crate::bottlenecks::input::Input;
use crate::bottlenecks::signs::sides::waits_itself;
use crate::capacity::levels::Accounting;
use crate::capacity::summary::program_wait;
use tare_model::outcome::{Cause, GrossIs};

pub(crate) static BOTTLENECK: Bottleneck = Bottleneck {
    cause: Cause::BlockedOnDisk,
    title: "The disk is the bottleneck",
    scope: Scope::Any,
    needs: &[Input::Sut, Input::Sleeps],
    gross_is: GrossIs::Capacity,
    holds: |accounting| waits_itself(accounting, Asleep::Disk),
    applies,
    describe,
    confirm: Confirm::Cannot {
        why: "a disk cannot be made a little faster",
        instead: "run again with the files on tmpfs",
    },
    injections: &["fsync"],
    page: &PAGE,
};

fn applies(accounting: &Accounting) -> bool {
    program_wait(accounting, Asleep::Disk) >= 0.1
}

fn describe(accounting: &Accounting) -> Draft {
    program_wait_draft(
        accounting,
        Asleep::Disk,
        "slept in file I/O",
        "keep the data in memory, write asynchronously, or use a faster disk",
        "with the files on a memory file system the wait is gone",
    )
}

static PAGE: Page = Page {
    brief: "Serving threads slept in file I/O (reads, fsync).",
    means: &[
        "Threads that handle requests were asleep in the kernel until a disk or a file system answered. A \
         request holds its thread for that time, and no other request can have it.",
        "This is the program's own wait, so it stays in net.",
    ],
    evidence: &[
        "Share of the entitlement in which serving threads slept in file I/O, and the same for each thread.",
        "Why a thread sleeps is known from samples of its kernel function (wchan), or exactly with \
         `--trace`.",
    ],
    looks_the_same: &[
        "`memory-pressure`: pages were taken back and are read in again. The group has reached its limit then.",
        "`lock-contended`: one thread writes and holds a lock, the others wait for the lock. Look at what \
         the holder does.",
        "`blocked-on-downstream`: the data comes from another server, for example a database.",
    ],
    to_do: &[
        "Find the calls: `strace -f -c -p PID`, `perf trace -s -p PID`, or `tare run --stacks-off-cpu URL` \
         and `tare flame --off-cpu`.",
        "Do it less often or later: one fsync for many requests, asynchronous writes, a log on another \
         thread.",
        "Keep the data in memory, or use a faster disk. More threads hide the wait while the disk has room.",
    ],
    to_confirm: &[
        "There is no intervention: a disk cannot be made a little faster. Run again with the files on \
         tmpfs. The wait is gone.",
        "By hand: `iostat -x 1` (await, %util), and `cat /proc/PID/task/TID/wchan` some times.",
    ],
    source: &[
        "Samples of wchan and state of each thread, or traced switches. B. Gregg, Systems Performance, 2nd \
         edition, chapters 8 and 9.",
    ],
};
