//! `oversubscribed`: more threads of one side than CPUs for them, so that they wait for each other's turn.

use super::{Draft, Input, NOTICE_SHARE, Rule, Scope, number, percent};
use crate::accounting::Closed;
use crate::accounting::{Entitlement, ratio};
use crate::capacity::levels::Accounting;
use crate::capacity::summary::names_of;
use tare_model::observation::Role;
use tare_model::outcome::{Cause, TareCause};

pub(super) static RULE: Rule =
    Rule { cause: Cause::Oversubscribed, scope: Scope::Any, needs: &[Input::Waits], applies, describe };

/// One side's crowding.
struct Oversubscription {
    role: Role,
    threads: f64,
    cpus: f64,
    /// Share of its threads' time that they waited behind each other.
    waiting: f64,
    involuntary_hz: Option<f64>,
    voluntary_hz: Option<f64>,
}

fn oversubscription(window: &Closed, role: Role, entitlement: &Entitlement) -> Option<Oversubscription> {
    let threads = || window.threads_of(role).filter(|thread| thread.serves());
    let wall_s: f64 = threads().map(|thread| thread.wall_s).sum();
    let waited_s: f64 = threads().map(|thread| thread.wait.behind_s.of(role)).sum();
    let rate =
        |sum: Option<f64>| sum.filter(|_| window.span.wall_s > 0.0).map(|count| count / window.span.wall_s);
    (!entitlement.usable.is_empty() && wall_s > 0.0).then(|| Oversubscription {
        role,
        threads: entitlement.serving(),
        cpus: entitlement.usable.len() as f64,
        waiting: ratio(waited_s, wall_s),
        involuntary_hz: rate(window.sum_of(role, |thread| thread.switched.involuntary)),
        voluntary_hz: rate(window.sum_of(role, |thread| thread.switched.voluntary)),
    })
}

impl Oversubscription {
    fn is_oversubscribed(&self) -> bool {
        self.waiting >= NOTICE_SHARE && self.threads > self.cpus + 0.5
    }
}

/// The server's crowd if it is one, else the generator's, else whichever is there.
fn worst(accounting: &Accounting) -> Option<Oversubscription> {
    let sut = accounting.sut().and_then(|sut| oversubscription(&accounting.asked.pool, Role::Sut, sut));
    let load = accounting.load().and_then(|load| oversubscription(&accounting.asked.pool, Role::Load, load));
    match (sut, load) {
        (Some(sut), _) if sut.is_oversubscribed() || accounting.lost(TareCause::Own) >= NOTICE_SHARE => {
            Some(sut)
        }
        (_, Some(load)) if load.is_oversubscribed() => Some(load),
        (sut, load) => sut.or(load),
    }
}

fn applies(accounting: &Accounting) -> bool {
    accounting.lost(TareCause::Own) >= NOTICE_SHARE
        || worst(accounting).is_some_and(|oversubscription| oversubscription.is_oversubscribed())
}

/// How long a thread waits for its turn among n runnable ones on a CPU: (n − 1) slices, each the scheduler's
/// base slice rounded up to whole ticks.
fn turn_s(accounting: &Accounting, threads_per_cpu: f64) -> Option<f64> {
    let tick_hz = f64::from(*accounting.record.machine.tick_hz.value()?);
    let slice_s = *accounting.record.machine.base_slice_ns.value()? as f64 / 1e9;
    let slices = (threads_per_cpu - 1.0).max(0.0);
    (tick_hz > 0.0).then(|| slices * (slice_s * tick_hz).ceil() / tick_hz)
}

fn describe(accounting: &Accounting) -> Draft {
    let Some(oversubscription) = worst(accounting) else {
        return Draft {
            summary: "No side's threads could be counted against its CPUs.".to_owned(),
            ..Draft::default()
        };
    };
    let side = if oversubscription.role == Role::Load { "generator" } else { "program" };
    let per_cpu = ratio(oversubscription.threads, oversubscription.cpus);
    let turn = turn_s(accounting, per_cpu);
    let waits = turn.map_or(String::new(), |turn_s| {
        format!(
            "; among {per_cpu:.1} runnable threads on a CPU a turn comes after about {:.0} ms",
            1e3 * turn_s
        )
    });
    let mut evidence = vec![
        number(format!("threads of the {side}"), oversubscription.threads, "count"),
        number(format!("CPUs they may use ({side})"), oversubscription.cpus, "count"),
        number(
            format!("waiting behind each other, share of the {side}'s threads' time"),
            oversubscription.waiting,
            "share",
        ),
    ];
    evidence.extend(
        oversubscription
            .involuntary_hz
            .map(|hz| number(format!("involuntary switches of the {side}"), hz, "1/s")),
    );
    evidence.extend(
        oversubscription
            .voluntary_hz
            .map(|hz| number(format!("voluntary switches of the {side}"), hz, "1/s")),
    );
    evidence.extend(turn.map(|turn_s| number("wait for a turn by slice arithmetic", turn_s, "s")));
    let role = oversubscription.role;
    let waiting = move |window: &Closed| {
        let entitlement = if role == Role::Load { window.load.as_ref() } else { window.sut.as_ref() };
        oversubscription_share(window, role, entitlement?)
    };
    Draft {
        summary: format!(
            "The {side} ({}) has {:.0} threads at work on {:.0} CPU{}: they wait behind each other {} of their time{waits}.",
            names_of(&accounting.asked.pool, oversubscription.role),
            oversubscription.threads,
            oversubscription.cpus,
            if oversubscription.cpus > 1.0 { "s" } else { "" },
            percent(oversubscription.waiting)
        ),
        effect_ln: if role == Role::Sut { accounting.effect(TareCause::Own) } else { 0.0 },
        confidence: accounting.support(waiting, NOTICE_SHARE),
        evidence,
        remedy: format!("use as many {side} threads as it has CPUs, or give it more CPUs"),
        confirm: "with one thread for each CPU the involuntary switches and the 99th percentile fall"
            .to_owned(),
    }
}

fn oversubscription_share(window: &Closed, role: Role, entitlement: &Entitlement) -> Option<f64> {
    oversubscription(window, role, entitlement).map(|oversubscription| oversubscription.waiting)
}
