//! What holds throughput where it is: exactly one cause, chosen from the accounting in the order in which one cause
//! hides another.
//!
//! 1. Errors, or what is known to have made them: an error page is not the workload. 2. An open loop that got its rate
//!    is held by that rate.
//! 3. What others took from the server, if it is the largest loss and more than noise: a server that is held back
//!    is not full, however busy it is with the rest. 4. The server itself: all its CPUs, or one of its threads.
//! 5. The program's own waits. 6. A server that starves: its generator if that has nothing left, else what held the
//!    requests up between them, else too few requests at once, if more of them are known or likely to bring more.
//!    Otherwise it is unknown.

use crate::accounting::Asleep;
use crate::accounting::Closed;
use crate::accounting::{Loss, ratio};
use crate::bottlenecks::{
    delayed_ack, gc_pauses, memory_pressure, network_ceiling, ports_exhausted, softirq_saturated,
};
use crate::capacity::generator;
use crate::capacity::levels::Accounting;
use crate::capacity::summary::neighbours;
use tare_model::observation::Role;
use tare_model::outcome::{Cause, GrossIs, TareCause};

/// More errors than this share of all attempts, and the figure is not a figure of the workload.
pub(crate) const ERROR_SHARE_MAX: f64 = 0.001;
/// A loss below this share of the CPU entitlement does not limit.
pub const LOSS_SHARE_MIN: f64 = 0.12;
/// Busier than this share of its CPU entitlement, a server may be the bottleneck.
const BUSY_MIN: f64 = 0.85;
/// Of two that are both nearly full, the bottleneck is the one that waits less for the other; closer than what the accounting
/// themselves may be open they are equally full, and the server is what is measured.
const EQUALLY_FULL: f64 = crate::accounting::OPEN;
/// The share of its schedule that an open loop must reach.
const SCHEDULE_SHARE_MIN: f64 = 0.99;
/// Where less than this share of the time somebody could have a lock, it is not a lock that threads wait for.
const HOLDERS_MIN: f64 = 0.5;
/// More connections must bring this factor before they are said to bring more.
const MORE_RATE: f64 = 1.1;

/// The bottleneck and what it makes of the gross figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bottleneck {
    pub cause: Cause,
    pub gross_is: GrossIs,
}

/// Decides.
pub(crate) fn decide(accounting: &Accounting) -> Bottleneck {
    let cause = if accounting.http.is_some() { http(accounting) } else { command(accounting) };
    let gross_is = match cause {
        Cause::OfferedLoad => GrossIs::Offered,
        // The server could do more than it was given here: the figure is a floor.
        Cause::LoadGeneratorBound
        | Cause::TooLittleConcurrency
        | Cause::ListenOverflow
        | Cause::PortsExhausted => GrossIs::LowerBound,
        Cause::Unknown if accounting.http.is_some() => GrossIs::LowerBound,
        _ => GrossIs::Capacity,
    };
    Bottleneck { cause, gross_is }
}

fn http(accounting: &Accounting) -> Cause {
    let pool = &accounting.asked.pool;
    if fails(accounting) {
        return behind_errors(accounting);
    }
    if pool.span.trials == 0 || pool.answered.requests == Some(0.0) {
        return Cause::Unknown;
    }
    if reached_schedule(pool) {
        return Cause::OfferedLoad;
    }
    let Some(sut) = accounting.sut() else { return from_the_generator_alone(accounting) };
    if let Some(cause) = taken_by_others(accounting) {
        return cause;
    }
    // Before the server itself: it is at work, or charged, while it takes memory back and in what others were sent.
    if let Some(cause) = taken_in_kernel(accounting) {
        return cause;
    }
    let busy = sut.busy() / sut.cpus();
    let no_work = sut.tare_share(TareCause::NoWork);
    let generator = generator::fullness(pool).unwrap_or(0.0);
    let server = 1.0 - no_work;
    if busy >= BUSY_MIN && server >= generator - EQUALLY_FULL {
        return if gc_pauses::holds(accounting) { Cause::GcPauses } else { Cause::ServerCpuBound };
    }
    if let Some(cause) = waits_itself(accounting) {
        return cause;
    }
    if generator >= generator::SATURATED {
        return Cause::LoadGeneratorBound;
    }
    if one_thread_is_full(pool) {
        return Cause::OneThreadBound;
    }
    if let Some(cause) = lost_between(accounting) {
        return cause;
    }
    // Asleep in futexes that are no locks: idle, or for reasons that the program alone knows.
    let parked = if may_be_a_lock(accounting) { 0.0 } else { sut.share(Loss::Program(Asleep::Lock)) };
    if parked >= LOSS_SHARE_MIN
        && parks_threads(accounting)
        && more_connections_bring_more(accounting) != Some(true)
    {
        return Cause::Unknown;
    }
    let server = server - parked;
    starved_with_a_generator_that_could(accounting, server, generator)
}

/// Whether so much failed that the figure is not a figure of the workload.
pub(crate) fn fails(accounting: &Accounting) -> bool {
    accounting.http.is_some() && accounting.asked.pool.answered.error_share() > ERROR_SHARE_MAX
}

/// What failed, where it is told by more than the failures.
fn behind_errors(accounting: &Accounting) -> Cause {
    if ports_exhausted::holds(&accounting.asked.pool) {
        Cause::PortsExhausted
    } else if network_ceiling::fails(accounting) {
        Cause::NetworkCeiling
    } else {
        Cause::Errors
    }
}

/// Whether an open loop got answers to what it was to send; one a trial may be on its way at the edge.
pub(crate) fn reached_schedule(pool: &Closed) -> bool {
    let (Some(scheduled), Some(requests)) = (pool.answered.scheduled, pool.answered.requests) else {
        return false;
    };
    scheduled > 0.0 && requests + f64::from(pool.span.trials) >= SCHEDULE_SHARE_MIN * scheduled
}

/// Whether an open loop got fewer answers than it was to send: its latencies then are those of a load that nobody asked
/// for, and the requests that were not sent are in none of them.
pub(crate) fn missed_schedule(pool: &Closed) -> bool {
    pool.answered.scheduled.is_some_and(|scheduled| scheduled > 0.0) && !reached_schedule(pool)
}

fn from_the_generator_alone(accounting: &Accounting) -> Cause {
    match generator::fullness(&accounting.asked.pool) {
        Some(fullness) if fullness >= generator::SATURATED => Cause::LoadGeneratorBound,
        _ => lost_between(accounting).unwrap_or(Cause::Unknown),
    }
}

/// The largest loss, if others took it and it is more than noise.
fn taken_by_others(accounting: &Accounting) -> Option<Cause> {
    let sut = accounting.sut()?;
    let named = [
        (TareCause::Throttled, Cause::CpuQuotaThrottled),
        (TareCause::Preempted, Cause::CpuContended),
        (TareCause::Placement, Cause::PlacementConflict),
        (TareCause::Own, Cause::Oversubscribed),
        (TareCause::Steal, Cause::Steal),
    ];
    let (largest, cause) =
        named.into_iter().max_by(|a, b| sut.tare_share(a.0).total_cmp(&sut.tare_share(b.0)))?;
    let share = sut.tare_share(largest);
    let limits = share >= LOSS_SHARE_MIN && share >= sut.tare_share(TareCause::NoWork);
    // The kernel's own thread that handles packets where they are too many to be handled in passing.
    let by_packets = || {
        let neighbours = neighbours(&accounting.asked.pool);
        neighbours.first().is_some_and(|(name, _)| name.starts_with("ksoftirqd/"))
    };
    let oversubscribed = cause == Cause::CpuContended && by_packets() && softirq_saturated::holds(accounting);
    limits.then_some(if oversubscribed { Cause::SoftirqSaturated } else { cause })
}

/// The program's own waits, where they take more than the lack of load does.
fn waits_itself(accounting: &Accounting) -> Option<Cause> {
    let sut = accounting.sut()?;
    let named = [
        (Asleep::Lock, Cause::LockContended),
        (Asleep::Disk, Cause::BlockedOnDisk),
        (Asleep::Downstream, Cause::BlockedOnDownstream),
        (Asleep::Fault, Cause::Unknown),
        (Asleep::Timer, Cause::Unknown),
    ];
    let share = |why| sut.share(Loss::Program(why));
    let named = named.into_iter().filter(|(why, _)| *why != Asleep::Lock || may_be_a_lock(accounting));
    let (largest, cause) = named.max_by(|a, b| share(a.0).total_cmp(&share(b.0)))?;
    (share(largest) >= LOSS_SHARE_MIN && share(largest) >= sut.tare_share(TareCause::NoWork)).then_some(cause)
}

fn taken_in_kernel(accounting: &Accounting) -> Option<Cause> {
    first_that_holds(
        accounting,
        &[
            (memory_pressure::holds, Cause::MemoryPressure),
            (softirq_saturated::holds, Cause::SoftirqSaturated),
        ],
    )
}

/// What held requests up on their way, where neither end is full.
fn lost_between(accounting: &Accounting) -> Option<Cause> {
    // A held back acknowledgement is on its way for long, too.
    first_that_holds(
        accounting,
        &[(delayed_ack::holds, Cause::DelayedAck), (network_ceiling::holds, Cause::NetworkCeiling)],
    )
}

/// Whether a cause is what holds the rate.
type Holds = fn(&Accounting) -> bool;

fn first_that_holds(accounting: &Accounting, named: &[(Holds, Cause)]) -> Option<Cause> {
    named.iter().find(|(holds, _)| holds(accounting)).map(|(_, cause)| *cause)
}

/// Whether threads asleep in a futex can be told to wait for a lock: not where a runtime puts them there that have no work, nor
/// where most of the time nobody is about who could have the lock.
pub(crate) fn may_be_a_lock(accounting: &Accounting) -> bool {
    !parks_threads(accounting) && holders(&accounting.asked.pool).is_none_or(|about| about >= HOLDERS_MIN)
}

/// Whether the program's runtime puts threads to sleep that it has no work for.
pub(crate) fn parks_threads(accounting: &Accounting) -> bool {
    let programs = accounting.record.identity.iter().flat_map(|identity| &identity.programs);
    programs.filter(|program| program.role == Role::Sut).any(|program| program.runtime.is_some())
}

/// Serving threads that are neither waiting for a lock nor idle, on average: one of them may have the lock. `None` for a single
/// one, which waits for somebody who does not serve.
fn holders(pool: &Closed) -> Option<f64> {
    let idle = [Asleep::Lock, Asleep::Event];
    let about_s = |thread: &crate::accounting::Thread| {
        thread.wall_s - idle.into_iter().map(|why| thread.asleep(why)).sum::<f64>()
    };
    let about: Vec<f64> = pool.threads_of(Role::Sut).filter(|thread| thread.serves()).map(about_s).collect();
    (about.len() > 1).then(|| ratio(about.iter().sum(), pool.span.wall_s))
}

/// Whether one of several serving threads is full while the others together have more than half of their time
/// left.
pub(crate) fn one_thread_is_full(pool: &Closed) -> bool {
    let mut shares: Vec<f64> = pool
        .threads_of(Role::Sut)
        .filter(|thread| thread.is_one() && thread.serves() && thread.wall_s > 0.0)
        .map(|thread| thread.run_s / thread.wall_s)
        .collect();
    shares.sort_by(f64::total_cmp);
    let Some((fullest, others)) = shares.split_last() else { return false };
    let mean = tare_stats::mean(others);
    *fullest >= 0.9 && mean.is_some_and(|mean| mean < 0.5)
}

/// Whether a saturating level with more connections reached clearly more; `None` where there is no such level.
pub(crate) fn more_connections_bring_more(accounting: &Accounting) -> Option<bool> {
    let connections =
        |level: &tare_model::plan::Level| level.connections.saturating_mul(level.pipeline.max(1));
    let (asked, saturating) = (accounting.asked_level?, accounting.saturating_level?);
    let more = connections(saturating) > connections(asked);
    let rates =
        accounting.asked.pool.rate_hz().zip(accounting.saturating.as_ref()?.pool.rate_interleaved_hz());
    rates.filter(|_| more).map(|(asked, saturating)| saturating >= MORE_RATE * asked)
}

fn starved_with_a_generator_that_could(accounting: &Accounting, server: f64, generator: f64) -> Cause {
    if accounting.asked.pool.around.listen_overflows.unwrap_or(0.0) >= 1.0
        && accounting.asked.pool.answered.errors.contains_key(&tare_model::trial::ErrorKind::Connect)
    {
        return Cause::ListenOverflow;
    }
    // An open loop that falls behind with room on both sides lacks requests in flight too.
    let few = match more_connections_bring_more(accounting) {
        Some(more) => more,
        None => few_in_flight(accounting),
    };
    if few {
        return Cause::TooLittleConcurrency;
    }
    // Neither has quite nothing left and more connections bring no more: the fuller one it is, if it is nearly so.
    match server.max(generator) {
        fuller if fuller < 0.8 => Cause::Unknown,
        _ if generator > server => Cause::LoadGeneratorBound,
        _ => Cause::ServerCpuBound,
    }
}

/// Without a level to compare with: at most four requests in flight for each serving thread on either side
/// cannot keep both at work.
pub(crate) fn few_in_flight(accounting: &Accounting) -> bool {
    let threads = accounting.sut().map_or(1.0, |sut| sut.serving())
        + accounting.load().map_or(1.0, |load| load.serving());
    let in_flight =
        accounting.asked_level.map(|level| f64::from(level.connections) * f64::from(level.pipeline.max(1)));
    in_flight.is_some_and(|in_flight| in_flight <= 4.0 * threads.max(2.0))
}

/// Failed runs do not decide here: they are in a record only where they were asked for.
fn command(accounting: &Accounting) -> Cause {
    let named = [
        (TareCause::Throttled, Cause::CpuQuotaThrottled),
        (TareCause::Preempted, Cause::CpuContended),
        (TareCause::Steal, Cause::Steal),
        (TareCause::Own, Cause::Oversubscribed),
    ];
    let largest = named.into_iter().max_by(|a, b| accounting.lost(a.0).total_cmp(&accounting.lost(b.0)));
    if let Some((_, cause)) = largest.filter(|(loss, _)| accounting.lost(*loss) >= LOSS_SHARE_MIN) {
        return cause;
    }
    match accounting.ready_cpus() {
        None => Cause::Unknown,
        Some(ready) if ready >= crate::capacity::command::CPU_BOUND => Cause::ProgramCpuBound,
        Some(_) => Cause::ProgramIdle,
    }
}
