//! `cpu-contended`: somebody else ran on the program's CPU while it was ready to.

use crate::bottlenecks::bottleneck::{Bottleneck, Confirm, Page, Scope};
use crate::bottlenecks::draft::{Draft, number, percent};
use crate::bottlenecks::input::Input;
use crate::bottlenecks::rank::{Claim, Rank};
use crate::bottlenecks::signs::bounds::{LOSS_SHARE_MIN, NOTICE_SHARE};
use crate::bottlenecks::signs::packets;
use crate::bottlenecks::signs::sides::{Side, taken_by_others};
use crate::bottlenecks::signs::together::kept_off;
use crate::capacity::levels::Accounting;
use crate::capacity::summary::neighbours;
use tare_model::outcome::{Cause, GrossIs, TareCause};

/// Of what was lost, neighbours that are named must have run for so much.
const SEEN_SHARE_MIN: f64 = 0.5;
/// Programs that the sentence names at most.
const NAMED_MAX: usize = 3;

pub(crate) static BOTTLENECK: Bottleneck = Bottleneck {
    cause: Cause::CpuContended,
    title: "Other programs on its CPUs are the bottleneck",
    scope: Scope::Any,
    needs: &[Input::Sut, Input::Waits],
    gross_is: GrossIs::Capacity,
    holds,
    applies,
    describe,
    confirm: Confirm::By("weight"),
    injections: &["neighbour", "program-neighbour"],
    page: &PAGE,
};

/// Where the one in front is the kernel's own thread for packets, it is `softirq-saturated`, or the packets are the server's own.
fn holds(accounting: &Accounting) -> Option<Claim> {
    let together = || (kept_off(accounting) == Some(Side::Server)).then(|| Claim::at(Rank::FullerSide));
    let claim = taken_by_others(accounting, TareCause::Preempted).or_else(together);
    claim.filter(|_| !packets::are_in_front(accounting) && !may_be_its_own(accounting))
}

/// Whether what ran in front of it may be processes of its own: nobody is named, and CPU time that nobody claims is much beside its own.
fn may_be_its_own(accounting: &Accounting) -> bool {
    named(accounting).is_none() && accounting.asked.pool.unclaimed_share().is_some()
}

/// Who took what was lost, busiest first. Those who were seen to run for a small part only of it did not take it.
fn named(accounting: &Accounting) -> Option<Vec<(String, f64)>> {
    let neighbours = neighbours(&accounting.asked.pool);
    let seen_cpus: f64 = neighbours.iter().map(|(_, busy)| busy).sum();
    (!neighbours.is_empty() && seen_cpus >= SEEN_SHARE_MIN * lost_cpus(accounting)).then_some(neighbours)
}

fn lost_cpus(accounting: &Accounting) -> f64 {
    accounting.sut().map_or(0.0, |sut| accounting.lost(TareCause::Preempted) * sut.cpus())
}

/// The subject of the sentence: one that took half of it or more, else the busiest of them.
fn who(accounting: &Accounting) -> String {
    let Some(named) = named(accounting) else {
        return "A program that no sample of the processes shows".to_owned();
    };
    match named.as_slice() {
        [(name, busy), ..] if *busy >= SEEN_SHARE_MIN * lost_cpus(accounting) => {
            format!("{name}, which took {} of a CPU there,", percent(*busy))
        }
        all => {
            let of = |(name, busy): &(String, f64)| format!("{name} {} of a CPU", percent(*busy));
            let shown: Vec<String> = all.iter().take(NAMED_MAX).map(of).collect();
            let more = match all.len().saturating_sub(NAMED_MAX) {
                0 => String::new(),
                more => format!(", and {more} more"),
            };
            format!("Other programs there ({}{more}) together", shown.join(", "))
        }
    }
}

fn applies(accounting: &Accounting) -> bool {
    accounting.lost(TareCause::Preempted) >= NOTICE_SHARE
}

fn describe(accounting: &Accounting) -> Draft {
    let share = accounting.lost(TareCause::Preempted);
    let who = who(accounting);
    let mut evidence = vec![number("ready while others ran, share of the CPU entitlement", share, "share")];
    evidence.extend(
        neighbours(&accounting.asked.pool)
            .into_iter()
            .take(5)
            .map(|(name, busy)| number(format!("{name} on the same CPUs"), busy, "CPUs")),
    );
    Draft {
        summary: format!("{who} kept the program off its CPU {} of the time it could have used.", percent(share)),
        effect_ln: accounting.effect(TareCause::Preempted),
        confidence: accounting.support_loss(TareCause::Preempted, LOSS_SHARE_MIN),
        evidence,
        remedy: "stop the neighbour or move it to other CPUs (taskset -p), or give the program CPUs of its own (--sut-cpus)".to_owned(),
        confirm: "with the neighbour stopped the wait is gone and throughput rises".to_owned(),
    }
}

static PAGE: Page = Page {
    brief: "Other programs ran on the program's CPUs while it was ready to run.",
    means: &[
        "Threads of the program were ready and waited, because threads of another program had the CPU. The \
         program's own work costs what it costs; the time was taken from outside, so it is in the tare and \
         not in net.",
    ],
    evidence: &[
        "Ready while others ran: share of the entitlement.",
        "Who ran there: other processes on the same CPUs, with the CPU time that each used. A name is given \
         only if the named processes ran for at least half of what was lost.",
        "Without such a name the time was taken by tasks that lived too briefly to be seen, or by the \
         kernel's own threads. Where CPU time that nobody claims is much, this is not named: it may be the program's own.",
    ],
    looks_the_same: &[
        "`oversubscribed`: the program's own threads are in front of each other. No other program is needed \
         for it.",
        "`placement-conflict`: the one who ran there is the load generator.",
        "`steal`: the hypervisor ran another guest. Nothing in this machine's process list shows it.",
        "`softirq-saturated`: the one who ran there is ksoftirqd, with other programs' packets.",
        "`cpu-quota-throttled`: threads are ready and nobody runs.",
    ],
    to_do: &[
        "Stop the neighbour, or move it: `taskset -acp 4-7 PID`.",
        "Give the program CPUs of its own: `tare run --sut-cpus 0-3 URL`, a cpuset, or `isolcpus=` for a \
         machine that only measures.",
        "If the neighbour must stay, give the program a larger `cpu.weight`.",
    ],
    to_confirm: &[
        "`tare run --confirm URL` puts the server now and then into a group with 50 times the weight, so \
         that it has its CPUs nearly to itself. The rate must follow with an elasticity of 0.5 or more.",
        "By hand: `pidstat -u 1` or `top` (press 1) shows the neighbour; `perf sched record -- sleep 5` and \
         `perf sched timehist` show who ran while it waited.",
    ],
    source: &[
        "Wait time in schedstat, and the run time of all tasks on each CPU in the same interval. Linux: \
         Documentation/scheduler/sched-stats.rst.",
    ],
};
