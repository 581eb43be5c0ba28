//! Whether threads that sleep in futexes wait for a lock.

use crate::accounting::Closed;
use crate::accounting::ratio;
use crate::accounting::{Asleep, Thread};
use crate::bottlenecks::signs::bounds::LOSS_SHARE_MIN;
use crate::bottlenecks::signs::free::free_cpus;
use crate::capacity::generator;
use crate::capacity::levels::Accounting;
use crate::capacity::summary::program_wait;
use tare_model::identity::Runtime;
use tare_model::observation::Role;
use tare_model::outcome::TareCause;

/// Where less than this share of the time somebody could have a lock, it is not a lock that threads wait for.
const HOLDERS_MIN: f64 = 0.5;
/// And less than this part of the time in which somebody is known to wait for it: then who has it is idle, as a worker is that has the
/// lock of an accept queue.
const HOLDERS_PART_MIN: f64 = 0.9;

/// A request finds a monitor taken so often, at least.
const CONTENDED_MIN: f64 = 0.5;
/// So many threads do something on average: one has the lock nearly all the time, and some is done outside of it.
const ACTIVE_MIN: f64 = 0.6;
const ACTIVE_MAX: f64 = 1.3;
/// Of the time in which threads are idle as far as is seen, they are parked for so much: who waits for a socket or a timer has no monitor to
/// wait for.
const PARKED_MIN: f64 = 0.75;
/// A thread, or a generator, that is busy for more of the time is full.
const FULL_MIN: f64 = 0.9;

/// Whether threads asleep in a futex are known to wait for a lock: not where a runtime puts them there that have no work, nor
/// where most of the time nobody is awake who could have the lock.
pub(crate) fn may_be_a_lock(accounting: &Accounting) -> bool {
    let has_holder = |(about, waiting): (f64, f64)| about >= HOLDERS_MIN.max(HOLDERS_PART_MIN * waiting);
    !parks_threads(accounting)
        && have_requests(accounting)
        && holders(&accounting.asked.pool).is_none_or(has_holder)
}

/// Whether there are as many requests as threads asleep in locks: more of these wait for work, as workers do for the lock of an accept queue.
fn have_requests(accounting: &Accounting) -> bool {
    let pool = &accounting.asked.pool;
    let working = pool.threads_of(Role::Sut).filter(|thread| thread.serves());
    let asleep = ratio(working.map(|thread| thread.asleep(Asleep::Lock)).sum(), pool.span.wall_s);
    pool.answered.in_flight().is_none_or(|in_flight| asleep <= in_flight.max(1.0))
}

/// Whether the program's runtime puts threads to sleep that it has no work for.
pub(crate) fn parks_threads(accounting: &Accounting) -> bool {
    let programs = accounting.record.identity.iter().flat_map(|identity| &identity.programs);
    programs.filter(|program| program.role == Role::Sut).any(|program| program.runtime == Some(Runtime::Go))
}

/// The share of the CPU entitlement asleep in futexes that may be no locks, where lock and parking could not be distinguished:
/// idle, or for reasons that the program alone knows.
pub(crate) fn maybe_parked(accounting: &Accounting) -> f64 {
    if may_be_a_lock(accounting) { 0.0 } else { program_wait(accounting, Asleep::Lock) }
}

/// Whether the program's runtime put threads to sleep for a share that is a bottleneck.
pub(crate) fn parks(accounting: &Accounting) -> bool {
    parks_threads(accounting) && parked(accounting) >= LOSS_SHARE_MIN
}

/// The share of the CPU entitlement in which threads were parked, known to be no lock or not.
pub(crate) fn parked(accounting: &Accounting) -> f64 {
    let working = || accounting.asked.pool.threads_of(Role::Sut).filter(|thread| thread.serves());
    let parked_s: f64 = working().map(|thread| thread.asleep(Asleep::Parked)).sum();
    let idle = |thread: &Thread| Asleep::NO_WORK.into_iter().map(|why| thread.asleep(why)).sum::<f64>();
    let idle_s: f64 = working().map(idle).sum();
    maybe_parked(accounting) + accounting.lost(TareCause::NoWork) * ratio(parked_s, idle_s)
}

/// The share of the CPUs that the program could use at once in which threads with work were kept from it by a lock of its own: as many
/// threads slept in one, and so many CPUs were free. Where CPUs were not read, by the CPU entitlement.
pub(crate) fn kept_share(accounting: &Accounting) -> f64 {
    let (Some(sut), Some(free)) = (accounting.sut(), free_cpus(accounting)) else {
        return program_wait(accounting, Asleep::Lock);
    };
    let pool = &accounting.asked.pool;
    let working = pool.threads_of(Role::Sut).filter(|thread| thread.serves());
    let asleep_s: f64 = working.map(|thread| thread.asleep(Asleep::Lock)).sum();
    let could_use = sut.serving().min(sut.usable.len() as f64);
    ratio(ratio(asleep_s, pool.span.wall_s).min(free), could_use)
}

/// Serving threads that are neither waiting for a lock nor idle, on average: one of them may have the lock; and the share of the time
/// in which one waits at least. `None` for a single one, which waits for somebody who does not serve.
fn holders(pool: &Closed) -> Option<(f64, f64)> {
    let idle = [Asleep::Lock, Asleep::Event, Asleep::Parked];
    let about_s =
        |thread: &Thread| thread.wall_s - idle.into_iter().map(|why| thread.asleep(why)).sum::<f64>();
    let serving: Vec<&Thread> = pool.threads_of(Role::Sut).filter(|thread| thread.serves()).collect();
    let of = |seconds: &dyn Fn(&Thread) -> f64| {
        ratio(serving.iter().map(|thread| seconds(thread)).sum(), pool.span.wall_s)
    };
    // If so many wait on average, one of all waits for at least that part of the time.
    let waiting = of(&|thread| thread.asleep(Asleep::Lock)) / serving.len() as f64;
    (serving.len() > 1).then(|| (of(&about_s), waiting))
}

/// Monitors of a Java virtual machine (`synchronized`) that requests pass one by one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Monitors {
    /// How often a request found one taken.
    pub per_request: f64,
    pub in_flight: f64,
    /// Serving threads that ran, were ready to, or slept for a known reason, on average.
    pub active: f64,
}

impl Monitors {
    /// Share of the requests in flight that waited.
    pub fn waiting(self) -> f64 {
        1.0 - ratio(self.active, self.in_flight)
    }
}

/// `None` where the machine does not count them, where a request seldom found one taken, where most threads sleep for something else than
/// parked threads do, where nobody does something who could have one, or more than one at once does, and where one thread or the generator
/// is full: a lock that is short beside the rest is contended as well.
pub(crate) fn monitors(accounting: &Accounting) -> Option<Monitors> {
    let pool = &accounting.asked.pool;
    let requests = pool.answered.requests.filter(|requests| *requests > 0.0)?;
    let per_request = ratio(pool.around.contended_monitors?, requests);
    let in_flight = pool.answered.in_flight()?;
    let serving: Vec<&Thread> = pool.threads_of(Role::Sut).filter(|thread| thread.serves()).collect();
    let asleep = |why: Asleep| serving.iter().map(|thread| thread.asleep(why)).sum::<f64>();
    let known_s: f64 = Asleep::PROGRAM.into_iter().map(asleep).sum();
    let ready_s = serving.iter().map(|thread| Some(thread.run_s + thread.queue_s?)).sum::<Option<f64>>()?;
    let active = ratio(ready_s + known_s, pool.span.wall_s);
    let idle_s: f64 = Asleep::NO_WORK.into_iter().map(asleep).sum();
    let are_parked = asleep(Asleep::Parked) >= PARKED_MIN * idle_s;
    let one_is_full = serving.iter().any(|thread| thread.run_s > FULL_MIN * thread.wall_s);
    let generator_is_full = generator::fullness(pool).is_some_and(|full| full > FULL_MIN);
    let is_serial = (ACTIVE_MIN..=ACTIVE_MAX).contains(&active) && in_flight >= 2.0 * active.max(1.0);
    let holds = per_request >= CONTENDED_MIN && is_serial && are_parked;
    (holds && !one_is_full && !generator_is_full).then_some(Monitors { per_request, in_flight, active })
}
