//! `lock-contended`: serving threads slept for a lock: in a futex, or for a file's. The program's own: it stays in net.

use crate::accounting::{Asleep, LimitedBy};
use crate::bottlenecks::bottleneck::{Bottleneck, Confirm, Page, Scope};
use crate::bottlenecks::draft::{Draft, duration, number, number_if, percent, program_wait_draft};
use crate::bottlenecks::input::Input;
use crate::bottlenecks::rank::{Claim, Rank};
use crate::bottlenecks::signs::bounds::LOSS_SHARE_MIN;
use crate::bottlenecks::signs::free::free_cpus;
use crate::bottlenecks::signs::lock_callers::named_lock;
use crate::bottlenecks::signs::locks::{Monitors, kept_share, may_be_a_lock, monitors};
use crate::bottlenecks::signs::parallel::below_cpus;
use crate::capacity::levels::Accounting;
use tare_model::outcome::{Cause, GrossIs, TareCause};

pub(crate) static BOTTLENECK: Bottleneck = Bottleneck {
    cause: Cause::LockContended,
    title: "A lock is the bottleneck",
    scope: Scope::Any,
    needs: &[Input::Sut, Input::Sleeps],
    gross_is: GrossIs::Capacity,
    holds,
    applies,
    describe,
    confirm: Confirm::Cannot {
        why: "a lock of the program cannot be given or taken",
        instead: "run again with half the threads",
    },
    injections: &["lock"],
    page: &PAGE,
};

/// By futexes, else by the monitors of a Java virtual machine.
fn holds(accounting: &Accounting) -> Option<Claim> {
    let of_monitors =
        || monitors(accounting).map(|found| Claim::at(Rank::OwnWaits).of_share(found.waiting()));
    by_futexes(accounting).or_else(of_monitors)
}

/// More than noise, and of a server more than the lack of load. Where it is what lets so few threads run at once, it says more than their
/// number.
fn by_futexes(accounting: &Accounting) -> Option<Claim> {
    let share = kept_share(accounting);
    let most = accounting.command.is_some() || share >= accounting.lost(TareCause::NoWork);
    let seen = below_cpus(accounting).is_some_and(|limit| limit.by == LimitedBy::Seen);
    let rank = if seen { Rank::LimitFull } else { Rank::OwnWaits };
    (share >= LOSS_SHARE_MIN && most && may_be_a_lock(accounting)).then(|| Claim::at(rank).of_share(share))
}

fn applies(accounting: &Accounting) -> bool {
    kept_share(accounting) >= 0.1 && may_be_a_lock(accounting) || monitors(accounting).is_some()
}

fn describe(accounting: &Accounting) -> Draft {
    if let Some(found) = monitors(accounting).filter(|_| by_futexes(accounting).is_none()) {
        return of_monitors(accounting, found);
    }
    let share = kept_share(accounting);
    let mut draft = program_wait_draft(
        accounting,
        Asleep::Lock,
        "slept in a lock",
        "find the lock (perf lock, a stack of the sleeping thread) and hold it for less or split it",
        "with half the threads the wait for the lock falls more than the work does",
    );
    if let (Some(sut), Some(free)) = (accounting.sut(), free_cpus(accounting)) {
        draft.summary = format!(
            "Threads with work slept in a lock: {:.2} CPUs were busy of {} that the program may use, {free:.2} were free, and a lock \
             of its own kept threads from {} of the CPUs that they could have used.",
            sut.busy(),
            sut.usable.len(),
            percent(share)
        );
        draft.evidence.insert(
            0,
            number("kept from CPUs by a lock, share of what its threads could use", share, "share"),
        );
        draft.evidence.insert(1, number("CPUs that it may use and nobody did", free, "CPUs"));
        draft.confidence = if accounting.asked.trials.len() > 1 { 0.9 } else { 0.6 };
    }
    if let Some(lock) = named_lock(accounting) {
        draft.summary += &lock.sentence();
        draft.evidence.push(number(
            format!("contended locks taken in {}", lock.function),
            lock.share,
            "share",
        ));
    }
    add_traced_lock(accounting, &mut draft);
    draft
}

/// Monitors of a Java virtual machine.
fn of_monitors(accounting: &Accounting, found: Monitors) -> Draft {
    Draft {
        summary: format!(
            "Requests pass a lock of the Java virtual machine one by one (synchronized): a request found it taken {:.1} times, {:.1} \
             requests were in flight, and {:.1} threads at once did something.",
            found.per_request, found.in_flight, found.active
        ),
        confidence: if accounting.asked.trials.len() > 1 { 0.9 } else { 0.6 },
        evidence: vec![
            number("times that a request found a monitor taken", found.per_request, "count"),
            number("requests in flight", found.in_flight, "count"),
            number("threads that did something at once", found.active, "count"),
            number("waiting, share of the requests in flight", found.waiting(), "share"),
        ],
        remedy: "find the monitor (jcmd PID Thread.print under load: BLOCKED threads and \"waiting to lock\"), and hold it for less or \
                 split it"
            .to_owned(),
        confirm: "with half the work inside of it the rate nearly doubles".to_owned(),
        ..Draft::default()
    }
}

/// The lock itself, where switches were traced.
fn add_traced_lock(accounting: &Accounting, draft: &mut Draft) {
    let pool = &accounting.asked.pool;
    let serving_s = accounting.sut().map_or(0.0, |sut| sut.serving_s);
    let locks = pool.switches.program_locks.shares(pool.span.wall_s, serving_s);
    let Some(lock) = locks.first() else { return };
    let held = lock
        .held_ns
        .map_or(String::new(), |held_ns| format!(", held for {} each time", duration(held_ns / 1e9)));
    // Runs of a program have threads of their own: then none has most of it.
    let mostly = lock.holders.first().filter(|holder| holder.share > 0.5);
    let holder = mostly.map_or(String::new(), |holder| {
        format!("; {} (thread {}) had it in {} of the cases", holder.name, holder.tid, percent(holder.share))
    });
    draft.summary += &format!(" Most of it was for {}{held}{holder}.", lock.at);
    draft.evidence.push(number(format!("slept for {}", lock.at), lock.share, "share"));
    draft.evidence.push(number("sleeps for it", lock.contended_hz, "/s"));
    draft.evidence.extend(number_if("held, on average", lock.held_ns, "ns"));
    draft.remedy = format!("hold {} for less, or split it", lock.at);
}

static PAGE: Page = Page {
    brief: "Serving threads slept for a lock of the program (a futex, or a file's lock).",
    means: &[
        "Threads that handle requests were asleep in locks, and most of the time another serving thread \
         was awake that can have held the lock. Requests pass one by one through what the lock protects: a \
         serial bottleneck.",
        "More CPUs do not help. It is the program's own structure, so net is bounded by it.",
    ],
    evidence: &[
        "Share of the entitlement in which serving threads slept in locks, and the same for each thread.",
        "Only futexes whose word says that a lock is taken count: parked threads, condition variables and \
         threads that are joined sleep with other words. A lock of a file (flock, fcntl) counts, a semaphore (semop) does not.",
        "Of a Java virtual machine: how often a thread found a monitor taken, by its own count (hsperfdata). Locks of `java.util.concurrent` \
         are in no such count.",
        "Not judged for Go: what a thread of its waits for cannot be seen from outside.",
    ],
    looks_the_same: &[
        "An idle pool: threads that wait for work sleep in futexes (condition variables) as well. tare \
         excludes the case in which nobody is awake who can hold a lock.",
        "`blocked-on-disk`, `blocked-on-downstream`: the holder of the lock sleeps there, and everybody \
         else waits for it. Look at the holder.",
        "`kernel-lock-contended`: the lock is the kernel's. Threads spin or sleep inside of system calls.",
        "`one-thread-bound`: one thread does it all, and the others have nothing to do.",
    ],
    to_do: &[
        "A file's lock: sessions of PHP keep their file locked for a whole request (`session_write_close()` ends that early), SQLite and package \
         managers lock a database. `cat /proc/locks` lists who has one and who waits.",
        "Another lock: `tare run --trace URL` names it, who had it and for how long. Who asks for it: `tare run \
         --stacks-off-cpu URL` and `tare flame --off-cpu`, or the runtime's own profile (Go: mutex profile, JVM: `jcmd PID Thread.print`).",
        "Hold it for less, split it (one per shard), or replace it (a counter for each thread, \
         read-copy-update).",
        "Less at once can be faster: fewer threads mean fewer hand-overs.",
    ],
    to_confirm: &[
        "There is no intervention: a lock of the program cannot be given or taken. Run again with half the \
         threads: the wait falls by more than the rate does.",
        "By hand: `cat /proc/PID/task/TID/wchan` shows futex_wait_queue (locks_lock_inode_wait or fcntl_setlk for a file's lock) for most serving threads.",
    ],
    source: &[
        "Samples of wchan and state, or traced switches, where the lock's address is the first argument of \
         futex(2); /proc/locks lists the locks of files. Net at a lock follows the machine repairman's \
         model: M. Reiser, S. Lavenberg, Mean-Value Analysis of Closed Multichain Queuing Networks, JACM \
         1980.",
    ],
};
