//! The pooled accounting in the form of the outcome: shares of windows for reading, seconds for checking.

use crate::accounting::Closed;
use crate::accounting::Cpu;
use crate::accounting::{Asleep, Thread};
use crate::accounting::{Entitlement, ratio};
use crate::bottlenecks::hypotheses;
use crate::capacity::downstream::{self, Called};
use crate::capacity::levels::{Accounting, losses_cpus};
use crate::capacity::summary::filled_by_others;
use crate::outcome::execution;
use std::collections::BTreeMap;
use tare_model::downstream::DownstreamAccounting;
use tare_model::observation::Role;
use tare_model::outcome::{
    CpuAccounting, ModeShare, RoleAccounting, ServingAccounting, ThreadRow, TimeAccounting, WaitSplit,
};
use tare_model::schedule::SwitchAccounting;
use tare_model::trial::Trial;

/// The accounting of the asked level.
pub(crate) fn accounting(accounting: &Accounting) -> TimeAccounting {
    let pool = &accounting.asked.pool;
    let (residual_ratio, residuals) = pool.residuals();
    TimeAccounting {
        residual_ratio,
        residuals,
        regime: accounting.record.machine.regime.clone(),
        sut: role(accounting, Role::Sut, pool.sut.as_ref()),
        load: role(accounting, Role::Load, pool.load.as_ref()).filter(|_| accounting.http.is_some()),
        tare: role(accounting, Role::Tare, None),
        threads: rows(accounting),
        cpus: cpus(accounting),
        switches: switches(pool),
        downstream: downstream(pool),
    }
}

/// The programs that the SUT calls.
fn downstream(pool: &Closed) -> Vec<DownstreamAccounting> {
    let row = |called: Called| DownstreamAccounting {
        name: called.program.name.clone(),
        at: called.program.at.iter().cloned().collect(),
        pids: called.program.pids.iter().copied().collect(),
        caller: called.program.caller.and_then(|caller| u32::try_from(caller).ok()),
        busy_cpus: called.busy_cpus,
        busy_on_sut_cpus: called.busy_on_sut_cpus,
        connections: (called.program.samples > 0.0).then(|| called.program.open / called.program.samples),
        waited: called.waited.map(|[least, _]| least),
        waited_at_most: called.waited.map(|[_, most]| most),
        wait_s_per_request: called.wait_s_per_request,
        queued: (called.program.waiting > 0.0).then(|| called.program.queued / called.program.waiting),
        calls_per_request: called.calls_per_request,
        limit: called.limit,
        fullness: called.fullness,
    };
    downstream::all(pool).into_iter().map(row).collect()
}

fn switches(pool: &Closed) -> Option<SwitchAccounting> {
    let sut = pool.sut.as_ref()?;
    Some(SwitchAccounting {
        hypotheses: hypotheses::of(pool),
        ..pool.switches.accounting(pool.span.wall_s, sut.serving_s)
    })
}

/// Threads that did not run and are not listed, in the window with most of them.
fn idle_threads(accounting: &Accounting, role: Role) -> u64 {
    let of_trial = |trial: &Trial| {
        trial.observation.idle.iter().filter(|idle| idle.role == role).map(|idle| idle.threads).sum()
    };
    accounting.measured_trials().map(|(_, trial)| of_trial(trial)).max().unwrap_or(0)
}

fn role(accounting: &Accounting, role: Role, entitlement: Option<&Entitlement>) -> Option<RoleAccounting> {
    let pool = &accounting.asked.pool;
    let threads: Vec<&Thread> = pool.threads_of(role).collect();
    if threads.is_empty() {
        return None;
    }
    let sum = |of: &dyn Fn(&Thread) -> f64| threads.iter().map(|thread| of(thread)).sum::<f64>();
    Some(RoleAccounting {
        wall_s: sum(&|thread| thread.wall_s),
        run_s: sum(&|thread| thread.run_s),
        wait_s: WaitSplit {
            throttled: sum(&|thread| thread.wait.throttled_s),
            preempted: sum(&|thread| thread.wait.behind_s.sum() - thread.wait.behind_s.of(role)),
            self_contention: sum(&|thread| thread.wait.behind_s.of(role)),
            scheduler: sum(&|thread| thread.wait.scheduler_s),
        },
        blocked_s: blocked(&threads),
        idle_threads: idle_threads(accounting, role),
        serving: serving(&threads),
        busy_cpus: ratio(sum(&|thread| thread.run_s), pool.span.wall_s),
        sut_wakeups_hz: pool
            .switches
            .wake_ups
            .by_sut
            .filter(|_| role == Role::Sut)
            .map(|count| ratio(count, pool.span.wall_s)),
        entitled_cpus: entitlement.map_or(0.0, Entitlement::cpus),
        losses_cpus: entitlement.map(losses_cpus).unwrap_or_default(),
        execution: (role != Role::Tare && pool.rate_hz().is_some()).then(|| execution::of(pool, role)),
    })
}

/// The threads of each role that has accounting of its own, busiest first.
fn rows(accounting: &Accounting) -> Vec<ThreadRow> {
    let pool = &accounting.asked.pool;
    let roles = [Role::Sut, Role::Downstream, Role::Load, Role::Tare];
    let roles = roles.into_iter().filter(|role| *role != Role::Load || accounting.http.is_some());
    let of_role = |role: Role| {
        // Of programs that are called, many processes may do nothing.
        let threads = pool.threads_of(role).filter(|thread| role != Role::Downstream || thread.serves());
        let mut rows: Vec<ThreadRow> = threads.map(|thread| row(thread, role, pool.span.wall_s)).collect();
        rows.sort_by(|a, b| b.run.total_cmp(&a.run).then(a.tid.cmp(&b.tid)));
        rows
    };
    roles.flat_map(of_role).collect()
}

/// Those that do the work, alone: a master process that waits for its workers all day says nothing of them.
fn serving(threads: &[&Thread]) -> ServingAccounting {
    let serving: Vec<&Thread> = threads.iter().copied().filter(|thread| thread.serves()).collect();
    ServingAccounting {
        threads: serving.len(),
        wall_s: serving.iter().map(|thread| thread.wall_s).sum(),
        blocked_s: blocked(&serving),
    }
}

/// Sleep by reason: all reasons where sleep was sampled, `unsplit` for threads that were not.
fn blocked(threads: &[&Thread]) -> BTreeMap<String, f64> {
    let sum = |why: Asleep| -> f64 { threads.iter().map(|thread| thread.asleep(why)).sum() };
    let has = |why: Asleep| threads.iter().any(|thread| thread.asleep_s.contains_key(&why));
    let mut blocked = BTreeMap::new();
    if Asleep::SAMPLED.into_iter().any(has) {
        blocked.extend(Asleep::SAMPLED.into_iter().map(|why| (why.name().to_owned(), sum(why))));
    }
    if has(Asleep::Unsplit) {
        blocked.insert(Asleep::Unsplit.name().to_owned(), sum(Asleep::Unsplit));
    }
    blocked
}

fn row(thread: &Thread, role: Role, window_s: f64) -> ThreadRow {
    // Of a thread's own life; many that came and went have none together.
    let of_s = if thread.is_one() { thread.wall_s } else { window_s };
    let share = |seconds: f64| ratio(seconds, of_s);
    ThreadRow {
        role,
        pid: thread.id.pid,
        tid: thread.id.tid,
        name: thread.id.name.clone(),
        lived: ratio(of_s, window_s).min(1.0),
        user: share(thread.modes.user_s),
        system: share(thread.modes.system_s),
        run: share(thread.run_s),
        wait: share(thread.queue_s.unwrap_or(0.0)),
        voluntary_hz: share(thread.switched.voluntary.unwrap_or(0.0)),
        involuntary_hz: share(thread.switched.involuntary.unwrap_or(0.0)),
        cpus: thread.cpu_run_s.keys().copied().collect(),
    }
}

/// Every CPU that the SUT or the generator used or was given, or could not use for others.
fn cpus(accounting: &Accounting) -> Vec<CpuAccounting> {
    let plan = &accounting.record.plan;
    let filled: Vec<u32> = filled_by_others(&accounting.asked.pool).iter().map(|filled| filled.cpu).collect();
    let shown = |cpu: &u32, accounting: &Cpu| {
        let used = accounting.ran_s.sut + accounting.ran_s.load > 0.001 * accounting.times.wall_s;
        used || plan.sut_cpus.contains(cpu) || plan.load_cpus.contains(cpu) || filled.contains(cpu)
    };
    let all = accounting.asked.pool.cpus.iter().filter(|(_, accounting)| accounting.times.wall_s > 0.0);
    all.filter(|(cpu, accounting)| shown(cpu, accounting))
        .map(|(cpu, accounting)| cpu_accounting(*cpu, accounting))
        .collect()
}

fn cpu_accounting(cpu: u32, accounting: &Cpu) -> CpuAccounting {
    let share = |seconds: f64| ratio(seconds, accounting.times.wall_s);
    CpuAccounting {
        cpu,
        sut: share(accounting.ran_s.sut),
        downstream: share(accounting.ran_s.downstream),
        load: share(accounting.ran_s.load),
        tare: share(accounting.ran_s.tare),
        others: share(accounting.ran_s.other),
        throttled: share(accounting.throttled_s),
        steal: share(accounting.times.steal_s),
        irq: share(accounting.times.irq_s()),
        irq_error: Some(accounting.times.idle_exits_error_s + accounting.times.idle_unseen.lacking_s)
            .filter(|error_s| *error_s > 0.0)
            .map(share),
        idle: share(accounting.free_s().unwrap_or(0.0)),
        share: ModeShare {
            user: share(accounting.times.modes.user_s),
            system: share(accounting.times.modes.system_s),
            softirq: share(accounting.times.modes.softirq_s),
        },
    }
}
