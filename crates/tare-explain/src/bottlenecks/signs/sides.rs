//! How full server and generator are, and what the server loses.

use crate::accounting::Asleep;
use crate::accounting::Closed;
use crate::accounting::ratio;
use crate::accounting::{Entitlement, Loss};
use crate::bottlenecks::rank::{Claim, Rank};
use crate::bottlenecks::signs::bounds::LOSS_SHARE_MIN;
use crate::bottlenecks::signs::concurrency::spins;
use crate::bottlenecks::signs::locks::maybe_parked;
use crate::capacity::generator;
use crate::capacity::levels::Accounting;
use crate::capacity::summary::program_wait;
use tare_model::observation::Role;
use tare_model::outcome::TareCause;

/// Busier than this share of its CPU entitlement, a server may be the bottleneck.
const BUSY_MIN: f64 = 0.85;
/// A thread that runs for so much of its life has nothing left.
const THREAD_FULL: f64 = 0.9;
/// Beside such a thread fewer that wait are its helpers; more are workers.
const HELPERS_MAX: f64 = 1.5;
/// A side that is fuller than this is nearly full.
const NEARLY_FULL: f64 = 0.8;
/// Of two that are both nearly full, the bottleneck is the one that waits less for the other; closer than what the accounting
/// itself may be open they are equally full, and the server is what is measured.
const EQUALLY_FULL: f64 = crate::accounting::OPEN;

/// One of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Server,
    Generator,
}

/// The server's CPU entitlement; `None` for a program that ends, and where it cannot be seen.
pub(crate) fn server<'b>(accounting: &'b Accounting) -> Option<&'b Entitlement> {
    accounting.http.and_then(|_| accounting.sut())
}

/// The claim of what took CPU time from the program: more than noise, and of a server more than the lack of load.
pub(crate) fn taken_by_others(accounting: &Accounting, loss: TareCause) -> Option<Claim> {
    let share = accounting.lost(loss);
    let most = accounting.http.is_none() || share >= accounting.lost(TareCause::NoWork);
    (share >= LOSS_SHARE_MIN && most).then(|| Claim::at(Rank::TakenByOthers).of_share(share))
}

/// The claim of a wait of the server's own: more than noise, and more than the lack of load.
pub(crate) fn waits_itself(accounting: &Accounting, why: Asleep) -> Option<Claim> {
    server(accounting)?;
    let share = program_wait(accounting, why);
    let most = share >= LOSS_SHARE_MIN && share >= accounting.lost(TareCause::NoWork);
    // Requests queue in front of the full thread that does most of the work, whatever another of its threads sleeps for.
    let claims = most && !(waiting(accounting, why) < HELPERS_MAX && one_thread_carries(accounting));
    claims.then(|| Claim::at(Rank::OwnWaits).of_share(share))
}

/// Whether the server has nothing left, and the generator no less. One that does far more with more connections spins for them.
pub(crate) fn server_is_full(accounting: &Accounting) -> bool {
    if spins(accounting) {
        return false;
    }
    let Some(sut) = server(accounting) else { return false };
    let waits_less = at_work(sut) >= generator_share(accounting) - EQUALLY_FULL;
    system_share(sut) >= BUSY_MIN && waits_less
}

/// Whether the generator has nothing left.
pub(crate) fn generator_is_full(accounting: &Accounting) -> bool {
    generator_share(accounting) >= generator::SATURATED
}

/// The fuller one, where it is nearly full.
pub(crate) fn fuller_side(accounting: &Accounting) -> Option<Side> {
    let server = at_work(server(accounting)?) - maybe_parked(accounting);
    let generator = generator_share(accounting);
    match server.max(generator) {
        fuller if fuller < NEARLY_FULL => None,
        _ if generator > server => Some(Side::Generator),
        _ => Some(Side::Server),
    }
}

/// Of the server's CPU entitlement, what it and the programs that it calls used.
pub(crate) fn system_share(sut: &Entitlement) -> f64 {
    sut.busy() / sut.cpus() + sut.share(Loss::Downstream)
}

fn at_work(sut: &Entitlement) -> f64 {
    1.0 - sut.tare_share(TareCause::NoWork)
}

fn generator_share(accounting: &Accounting) -> f64 {
    generator::fullness(&accounting.asked.pool).unwrap_or(0.0)
}

/// Whether one of several serving threads is full while the others together have more than half of their time
/// left.
pub(crate) fn one_thread_is_full(accounting: &Accounting) -> bool {
    let shares = by_fullness(&accounting.asked.pool);
    let Some((fullest, others)) = shares.split_last() else { return false };
    let mean = tare_stats::mean(others);
    *fullest >= THREAD_FULL && mean.is_some_and(|mean| mean < 0.5) && !spins(accounting)
}

/// How many serving threads slept so, on average.
fn waiting(accounting: &Accounting, why: Asleep) -> f64 {
    let pool = &accounting.asked.pool;
    let serving = pool.threads_of(Role::Sut).filter(|thread| thread.serves());
    ratio(serving.map(|thread| thread.asleep(why)).sum(), pool.span.wall_s)
}

/// Whether a full thread runs more than all other serving threads together.
fn one_thread_carries(accounting: &Accounting) -> bool {
    let shares = by_fullness(&accounting.asked.pool);
    let Some((fullest, others)) = shares.split_last() else { return false };
    *fullest >= THREAD_FULL && *fullest > others.iter().sum::<f64>() && !spins(accounting)
}

/// Of each serving thread, the share of its life that it ran, ascending.
fn by_fullness(pool: &Closed) -> Vec<f64> {
    let serving = pool.threads_of(Role::Sut).filter(|thread| thread.is_one() && thread.serves());
    let mut shares: Vec<f64> =
        serving.filter(|thread| thread.wall_s > 0.0).map(|thread| thread.run_s / thread.wall_s).collect();
    shares.sort_by(f64::total_cmp);
    shares
}
