//! `kernel-lock-contended`: threads of the program contended for locks of the kernel. Where that is spinning it is run
//! time and looks like work. How the three explanations that compete for it stand is reported with it (`hypotheses`).

use crate::accounting::Closed;
use crate::accounting::ratio;
use crate::bottlenecks::bottleneck::{Bottleneck, Confirm, Page, Scope};
use crate::bottlenecks::draft::{Draft, number, number_if, percent};
use crate::bottlenecks::hypotheses;
use crate::bottlenecks::input::Input;
use crate::capacity::levels::Accounting;
use tare_model::outcome::{Cause, Evidence, GrossIs, Hypothesis, Judged};

pub(crate) static BOTTLENECK: Bottleneck = Bottleneck {
    cause: Cause::KernelLockContended,
    title: "Locks of the kernel are the bottleneck",
    scope: Scope::Any,
    needs: &[Input::Sut],
    gross_is: GrossIs::Capacity,
    holds: |_| None,
    applies,
    describe,
    confirm: Confirm::Cannot {
        why: "a lock of the kernel cannot be given or taken",
        instead: "run again with one thread",
    },
    injections: &[],
    page: &PAGE,
};

/// Less of the serving threads' time than this is no finding.
const NOTICE_SHARE: f64 = 0.03;

fn contended(window: &Closed) -> Option<f64> {
    let serving_s = window.sut.as_ref()?.serving_s;
    window.switches.is_traced().then(|| ratio(window.switches.contended_s(|_, _, _| true), serving_s))
}

fn at_sockets(window: &Closed) -> Option<f64> {
    let all_s = window.switches.contended_s(|_, _, _| true);
    (all_s > 0.0).then(|| window.switches.contended_s(|at, _, _| hypotheses::is_socket(at)) / all_s)
}

fn applies(accounting: &Accounting) -> bool {
    contended(&accounting.asked.pool).is_some_and(|share| share >= NOTICE_SHARE)
}

fn describe(accounting: &Accounting) -> Draft {
    let pool = &accounting.asked.pool;
    let share = contended(pool);
    let judged = hypotheses::of(pool);
    let spun = share.map(|_| {
        let all_s = pool.switches.contended_s(|_, _, _| true);
        ratio(pool.switches.contended_s(|_, spins, _| spins), all_s)
    });
    let mut evidence: Vec<Evidence> = Vec::new();
    evidence.extend(number_if(
        "contention for the kernel's locks, of the serving threads' time",
        share,
        "share",
    ));
    evidence.extend(number_if("of that by spinning", spun, "share"));
    if let Some((at, locks)) = pool.switches.most_contended() {
        evidence.push(number(format!("different locks at {at}, where most was"), f64::from(locks), "count"));
    }
    evidence.extend(number_if("of that at a socket's lock", at_sockets(pool), "share"));
    evidence
        .extend(judged.iter().filter_map(|one| number_if(&one.of, one.figure.value().copied(), &one.unit)));
    let place = pool.switches.most_contended().map_or(String::new(), |(at, _)| format!(", most at {at}"));
    Draft {
        summary: format!(
            "Threads of the program contended for locks of the kernel {} of their time{place}. {}.",
            share.map_or("an unknown share".to_owned(), percent),
            standings(&judged),
        ),
        effect_ln: 0.0,
        confidence: accounting.support(contended, NOTICE_SHARE),
        evidence,
        remedy: "give each thread sockets (SO_REUSEPORT), an epoll and files of its own, and keep interrupts off its CPUs"
            .to_owned(),
        confirm: "with one thread the contention is gone; perf lock contention names the callers".to_owned(),
    }
}

/// `Sockets' locks: supported; …`.
fn standings(judged: &[Judged]) -> String {
    let one = |judged: &Judged| {
        let name = match judged.hypothesis {
            Hypothesis::SocketLock => "Sockets' locks",
            Hypothesis::SoftirqOnBusyCpus => "soft interrupts forced onto busy CPUs",
            Hypothesis::CrossCpuWakeups => "wake-ups across CPUs",
        };
        format!("{name}: {}", hypotheses::word(judged.standing))
    };
    judged.iter().map(one).collect::<Vec<_>>().join("; ")
}

static PAGE: Page = Page {
    brief: "Threads contended for locks of the kernel, spinning or asleep.",
    means: &[
        "Threads met each other inside of system calls: at the lock of one socket, one epoll, one file, one \
         address space. Spinning counts as run time, so a server can look full and do little.",
        "It is the way in which the program uses the kernel, so it stays in net.",
    ],
    evidence: &[
        "Contention for the kernel's locks as a share of the serving threads' time, and how much of it was \
         spinning. Seen with `--trace` only.",
        "The function where most of it was, and how many different locks that were.",
        "Three explanations that can look alike, each supported or refuted by one figure: locks of sockets, \
         soft interrupts on busy CPUs, wake-ups across CPUs.",
    ],
    looks_the_same: &[
        "`server-cpu-bound`: without a trace spinning is run time. Look at kernel time: `perf top -p PID` \
         with native_queued_spin_lock_slowpath on top is this cause.",
        "`lock-contended`: the lock is the program's own (futex).",
        "`softirq-saturated`: soft interrupts take the time, nobody waits for a lock.",
    ],
    to_do: &[
        "Give each thread what it uses: its own listening socket (SO_REUSEPORT), its own epoll, its own \
         file descriptors.",
        "Avoid what takes the lock of the whole address space in each request: mmap, munmap, large \
         allocations, madvise.",
        "Keep interrupts off the program's CPUs: `tare tune --apply --irqs-off 0-3`.",
    ],
    to_confirm: &[
        "There is no intervention: a lock of the kernel cannot be given or taken. Run again with one \
         thread. The contention is gone.",
        "By hand, as root: `perf lock contention -a -b -- sleep 5` names locks and callers.",
    ],
    source: &[
        "Tracepoints lock:contention_begin and contention_end. Linux: Documentation/locking, perf-lock(1). \
         S. Boyd-Wickizer and others, An Analysis of Linux Scalability to Many Cores, OSDI 2010.",
    ],
};
