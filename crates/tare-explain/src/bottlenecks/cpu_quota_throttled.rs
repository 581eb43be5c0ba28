//! `cpu-quota-throttled`: a CPU quota held the program back although it had work.

use super::{Draft, Input, NOTICE_SHARE, Rule, Scope, number, percent};
use crate::bottlenecks::decide::LOSS_SHARE_MIN;
use crate::capacity::levels::Accounting;
use tare_model::observation::Role;
use tare_model::outcome::{Cause, TareCause};

pub(super) static RULE: Rule = Rule {
    cause: Cause::CpuQuotaThrottled,
    scope: Scope::Any,
    needs: &[Input::Sut, Input::Waits, Input::Groups],
    applies,
    describe,
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
        confirm: "with half as much quota again (or two thirds of it) throughput follows, with an elasticity above 0.5 (--confirm)".to_owned(),
    }
}
