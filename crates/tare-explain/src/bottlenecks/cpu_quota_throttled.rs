//! `cpu-quota-throttled`: a CPU quota held the program back although it had work.

use crate::bottlenecks::bottleneck::{Bottleneck, Confirm, Page, Scope};
use crate::bottlenecks::draft::{Draft, number, percent};
use crate::bottlenecks::input::Input;
use crate::bottlenecks::signs::bounds::{LOSS_SHARE_MIN, NOTICE_SHARE};
use crate::bottlenecks::signs::sides::taken_by_others;
use crate::capacity::levels::Accounting;
use tare_model::observation::Role;
use tare_model::outcome::{Cause, GrossIs, TareCause};

pub(crate) static BOTTLENECK: Bottleneck = Bottleneck {
    cause: Cause::CpuQuotaThrottled,
    title: "A CPU quota is the bottleneck",
    scope: Scope::Any,
    needs: &[Input::Sut, Input::Waits, Input::Groups],
    gross_is: GrossIs::Capacity,
    holds: |accounting| taken_by_others(accounting, TareCause::Throttled),
    applies,
    describe,
    confirm: Confirm::By("quota"),
    injections: &["quota", "parent-quota", "oversubscribed-quota", "program-quota"],
    page: &PAGE,
};

fn applies(accounting: &Accounting) -> bool {
    accounting.lost(TareCause::Throttled) >= NOTICE_SHARE
}

fn describe(accounting: &Accounting) -> Draft {
    let pool = &accounting.asked.pool;
    let share = accounting.lost(TareCause::Throttled);
    let threads = pool.threads_of(Role::Sut).filter(|thread| thread.wait.throttled_s > 0.0).count();
    let mut evidence = vec![number("held back by a quota, share of the CPU entitlement", share, "share")];
    if let Some(held_s) = pool.throttling.throttled_s.filter(|_| pool.span.wall_s > 0.0) {
        evidence.push(number("run queues held back", held_s / pool.span.wall_s, "s per s"));
    }
    let mut named = String::new();
    if let Some(quota) = &pool.throttling.quota {
        named = format!(
            " ({} allows {:.2} CPUs in each {:.0} ms)",
            quota.group,
            quota.cpus,
            1e3 * quota.period_s
        );
        evidence.push(number(format!("quota of {}", quota.group), quota.cpus, "CPUs"));
        if let Some((throttled, periods)) =
            quota.throttled_periods.zip(quota.periods).filter(|(_, all)| *all > 0.0)
        {
            evidence.push(number("periods in which the quota ran out", throttled / periods, "share"));
        }
    }
    let bound = if threads > 1 {
        " With several threads in a run queue each one's part is an upper bound."
    } else {
        ""
    };
    Draft {
        summary: format!("A CPU quota{named} held the program back {} of the time it could have used.{bound}", percent(share)),
        effect_ln: accounting.effect(TareCause::Throttled),
        confidence: accounting.support_loss(TareCause::Throttled, LOSS_SHARE_MIN),
        evidence,
        remedy: "raise or remove the quota of the group or of the ancestor that carries it (cpu.max, cpu.cfs_quota_us)".to_owned(),
        confirm: "with 1.5 times the quota (or two thirds of it) throughput follows, with an elasticity above 0.5 (--confirm)".to_owned(),
    }
}

static PAGE: Page = Page {
    brief: "A CPU quota stopped the program although it had work (throttling).",
    means: &[
        "A control group of the program, or one above it, may use so much CPU time in each period (mostly \
         100 ms). When it is used up, all threads of the group stop until the next period begins.",
        "Average CPU use can look low: 8 threads use a quota of 2 CPUs up in 25 ms and then stop for 75 ms. \
         Tail latency grows by up to a period.",
    ],
    evidence: &[
        "Share of the entitlement in which threads were ready and throttled.",
        "The tightest quota on the way to the root: its group, CPUs and period, and the share of periods in \
         which it ran out.",
        "Throttled time is counted for each CPU run queue. With several threads in one run queue each \
         thread's share is an upper bound.",
    ],
    looks_the_same: &[
        "`cpu-contended`: threads are ready and wait too, but because others run. `throttled_usec` stands \
         still then.",
        "`server-cpu-bound` with a quota that never runs out: a quota above what is used costs nothing.",
        "`oversubscribed`: many threads under a quota also wait behind each other. Throttling is named when \
         it takes more.",
    ],
    to_do: &[
        "Raise or remove the quota: `cpu.max` (cgroup v2), `cpu.cfs_quota_us` (v1), `resources.limits.cpu` \
         (Kubernetes), `--cpus` (Docker), `CPUQuota=` (systemd).",
        "Use no more threads than the quota has CPUs. GOMAXPROCS and the JVM's active processor count do \
         not always know the quota: `tare run --fit-runtime --sut CMD URL` sets them.",
        "Look at groups above as well: a quota of the parent shows only in the parent's `cpu.max`.",
    ],
    to_confirm: &[
        "`tare run --confirm URL` gives 1.5 times the quota (or two thirds of it) in pairs of short \
         trials. The rate must follow with an elasticity of 0.5 or more.",
        "By hand: `cat /sys/fs/cgroup/GROUP/cpu.stat` twice: `nr_throttled` and `throttled_usec` grow under \
         load.",
    ],
    source: &["`cpu.stat`, `cpu.stat.local` and `cpu.max` of every group up to the root. Linux: \
         Documentation/admin-guide/cgroup-v2.rst, Documentation/scheduler/sched-bwc.rst."],
};
