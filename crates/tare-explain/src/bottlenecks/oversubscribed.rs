//! `oversubscribed`: more threads of one side than CPUs for them, so that they wait for each other's turn.

use super::{Draft, Input, NOTICE_SHARE, Rule, Scope, number, percent};
use crate::accounting::attribute::allotment::{Allotment, ratio};
use crate::accounting::close::window::Window;
use crate::capacity::books::Books;
use crate::capacity::summary::names_of;
use tare_model::observation::Role;
use tare_model::outcome::{Cause, TareCause};

pub(super) static RULE: Rule =
    Rule { cause: Cause::Oversubscribed, scope: Scope::Any, needs: &[Input::Waits], applies, describe };

/// One side's crowding.
struct Crowd {
    role: Role,
    threads: f64,
    cpus: f64,
    /// Share of its threads' time that they waited behind each other.
    waiting: f64,
    involuntary_hz: Option<f64>,
    voluntary_hz: Option<f64>,
}

fn crowd(window: &Window, role: Role, allotment: &Allotment) -> Option<Crowd> {
    let threads = || window.threads_of(role).filter(|thread| thread.serves());
    let wall_s: f64 = threads().map(|thread| thread.wall_s).sum();
    let waited_s: f64 = threads().map(|thread| thread.wait.behind_s.of(role)).sum();
    let rate = |sum: Option<f64>| sum.filter(|_| window.wall_s > 0.0).map(|count| count / window.wall_s);
    (!allotment.usable.is_empty() && wall_s > 0.0).then(|| Crowd {
        role,
        threads: allotment.serving(),
        cpus: allotment.usable.len() as f64,
        waiting: ratio(waited_s, wall_s),
        involuntary_hz: rate(window.sum_of(role, |thread| thread.involuntary)),
        voluntary_hz: rate(window.sum_of(role, |thread| thread.voluntary)),
    })
}

impl Crowd {
    fn is_crowded(&self) -> bool {
        self.waiting >= NOTICE_SHARE && self.threads > self.cpus + 0.5
    }
}

/// The server's crowd if it is one, else the generator's, else whichever is there.
fn worst(books: &Books) -> Option<Crowd> {
    let sut = books.sut().and_then(|sut| crowd(&books.asked.pool, Role::Sut, sut));
    let load = books.load().and_then(|load| crowd(&books.asked.pool, Role::Load, load));
    match (sut, load) {
        (Some(sut), _) if sut.is_crowded() || books.lost(TareCause::Own) >= NOTICE_SHARE => Some(sut),
        (_, Some(load)) if load.is_crowded() => Some(load),
        (sut, load) => sut.or(load),
    }
}

fn applies(books: &Books) -> bool {
    books.lost(TareCause::Own) >= NOTICE_SHARE || worst(books).is_some_and(|crowd| crowd.is_crowded())
}

/// How long a thread waits for its turn among n runnable ones on a CPU: (n − 1) slices, each the scheduler's
/// base slice rounded up to whole ticks.
fn turn_s(books: &Books, threads_per_cpu: f64) -> Option<f64> {
    let tick_hz = f64::from(*books.record.machine.tick_hz.value()?);
    let slice_s = *books.record.machine.base_slice_ns.value()? as f64 / 1e9;
    let slices = (threads_per_cpu - 1.0).max(0.0);
    (tick_hz > 0.0).then(|| slices * (slice_s * tick_hz).ceil() / tick_hz)
}

fn describe(books: &Books) -> Draft {
    let Some(crowd) = worst(books) else {
        return Draft {
            summary: "No side's threads could be counted against its CPUs.".to_owned(),
            ..Draft::default()
        };
    };
    let side = if crowd.role == Role::Load { "generator" } else { "program" };
    let per_cpu = ratio(crowd.threads, crowd.cpus);
    let turn = turn_s(books, per_cpu);
    let waits = turn.map_or(String::new(), |turn_s| {
        format!(
            "; among {per_cpu:.1} runnable threads on a CPU a turn comes after about {:.0} ms",
            1e3 * turn_s
        )
    });
    let mut evidence = vec![
        number(format!("threads of the {side}"), crowd.threads, "count"),
        number(format!("CPUs they may use ({side})"), crowd.cpus, "count"),
        number(
            format!("waiting behind each other, share of the {side}'s threads' time"),
            crowd.waiting,
            "share",
        ),
    ];
    evidence.extend(
        crowd.involuntary_hz.map(|hz| number(format!("involuntary switches of the {side}"), hz, "1/s")),
    );
    evidence
        .extend(crowd.voluntary_hz.map(|hz| number(format!("voluntary switches of the {side}"), hz, "1/s")));
    evidence.extend(turn.map(|turn_s| number("wait for a turn by slice arithmetic", turn_s, "s")));
    let role = crowd.role;
    let waiting = move |window: &Window| {
        let allotment = if role == Role::Load { window.load.as_ref() } else { window.sut.as_ref() };
        crowd_share(window, role, allotment?)
    };
    Draft {
        summary: format!(
            "The {side} ({}) has {:.0} threads at work on {:.0} CPU{}: they wait behind each other {} of their time{waits}.",
            names_of(&books.asked.pool, crowd.role),
            crowd.threads,
            crowd.cpus,
            if crowd.cpus > 1.0 { "s" } else { "" },
            percent(crowd.waiting)
        ),
        effect_ln: if role == Role::Sut { books.effect(TareCause::Own) } else { 0.0 },
        confidence: books.support(waiting, NOTICE_SHARE),
        evidence,
        remedy: format!("use as many {side} threads as it has CPUs, or give it more CPUs"),
        confirm: "with one thread for each CPU the involuntary switches and the 99th percentile fall"
            .to_owned(),
    }
}

fn crowd_share(window: &Window, role: Role, allotment: &Allotment) -> Option<f64> {
    crowd(window, role, allotment).map(|crowd| crowd.waiting)
}
