//! How many of the program's threads can run at once, against the CPUs that it may use.

use crate::accounting::{Entitlement, Limit, LimitedBy};
use crate::bottlenecks::rank::{Claim, Rank};
use crate::bottlenecks::signs::concurrency::more_connections_bring_more;
use crate::bottlenecks::signs::sides::{Side, fuller_side, server_is_full};
use crate::capacity::levels::Accounting;
use tare_model::observation::Role;

/// A limit so far below the CPUs leaves one of them unused.
const BELOW_CPUS: f64 = 0.5;
/// And so far below a quota a part of that.
const BELOW_QUOTA: f64 = 0.2;
/// A program that ends is bound by its limit where it uses at least this share of it.
const FULL: f64 = 0.85;

/// The program's limit, where it lies below the CPUs that it may use and below its quota.
pub(crate) fn below_cpus(accounting: &Accounting) -> Option<Limit> {
    let sut = accounting.sut()?;
    let quota = accounting.asked.pool.throttling.quota.as_ref().map_or(f64::INFINITY, |quota| quota.cpus);
    let usable = sut.usable.len() as f64;
    let cpus = usable.min(quota);
    // A program that uses more than half of the CPUs beyond its limit is not held by it.
    let holds = |limit: &Limit| sut.busy() <= (limit.threads + cpus) / 2.0;
    let is_below =
        |limit: &Limit| limit.threads + BELOW_CPUS <= usable && limit.threads + BELOW_QUOTA <= quota;
    sut.limit.filter(|limit| is_below(limit) && holds(limit))
}

/// A number of threads is one that can be said where it is that near to a whole one: others were there for a part of the time.
const NEAR_WHOLE: f64 = 0.15;

/// How many threads of a program that ends work at once, where it keeps them busy and may use more CPUs than that.
pub(crate) fn works_by_itself(accounting: &Accounting) -> Option<Limit> {
    accounting.sut().filter(|sut| accounting.command.is_some() && fills(sut))?;
    below_cpus(accounting).filter(|limit| {
        let is_whole = (limit.threads - limit.threads.round()).abs() <= NEAR_WHOLE;
        is_whole && matches!(limit.by, LimitedBy::Threads | LimitedBy::Seen)
    })
}

/// Whether a program uses what its limit allows.
fn fills(sut: &Entitlement) -> bool {
    sut.busy() >= FULL * sut.cpus()
}

/// Threads of the SUT that work.
pub(crate) fn working_threads(accounting: &Accounting) -> usize {
    accounting.asked.pool.threads_of(Role::Sut).filter(|thread| thread.is_one() && thread.serves()).count()
}

/// The claim of a limit that the program fills.
pub(crate) fn filled(accounting: &Accounting) -> Option<Claim> {
    let limit = below_cpus(accounting)?;
    if accounting.command.is_some() {
        let sut = accounting.sut()?;
        // A program of few threads that are all full is held by its work; and of one that ends nobody knows whether there was work for more
        // threads than were seen at once: a benchmark of one thread that its runtime moves from thread to thread is healthy.
        let by_itself = matches!(limit.by, LimitedBy::Threads | LimitedBy::Seen);
        return (!by_itself && fills(sut)).then(|| Claim::at(Rank::LimitFull));
    }
    // More requests bring no more where something of its own holds them.
    if limit.by == LimitedBy::Seen && more_connections_bring_more(accounting) == Some(true) {
        return None;
    }
    if server_is_full(accounting) {
        return Some(Claim::at(Rank::LimitFull));
    }
    (fuller_side(accounting) == Some(Side::Server)).then(|| Claim::at(Rank::FullerSide))
}
