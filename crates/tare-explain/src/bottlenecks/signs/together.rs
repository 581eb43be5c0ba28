//! Neither server nor generator is full by itself: whether they fill the same CPUs together, or others fill the CPUs of both.

use crate::bottlenecks::signs::bounds::LOSS_SHARE_MIN;
use crate::bottlenecks::signs::free::used_share;
use crate::bottlenecks::signs::sides::{Side, server};
use crate::capacity::generator;
use crate::capacity::levels::Accounting;
use crate::capacity::summary::shared_cpus;
use tare_model::outcome::TareCause;

/// Of the CPUs that the server may use, used by somebody: with less there is room for both.
pub(crate) const FULL_MIN: f64 = 0.8;
/// Of the generator's time, ready and behind others on its CPU: with less it has what it needs.
const WAITS_MIN: f64 = 0.1;
/// Of the time, ready and behind others on both sides together: a closed loop that waits so much for its CPUs waits for them.
const KEPT_OFF_MIN: f64 = 0.5;

/// Shares of the time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Together {
    /// Of the server's CPUs, used.
    pub used: f64,
    /// Of the generator's threads, ready and waiting for a CPU.
    pub generator_waits: f64,
}

impl Together {
    /// `None` where they have no CPU in common, or room is left on the server's.
    pub fn of(accounting: &Accounting) -> Option<Together> {
        server(accounting)?;
        let pool = &accounting.asked.pool;
        let found = Together { used: used_share(pool)?, generator_waits: generator::waits_share(pool)? };
        let is_full = found.used >= FULL_MIN && found.generator_waits >= WAITS_MIN;
        (is_full && !shared_cpus(pool).is_empty()).then_some(found)
    }
}

/// Whether others keep both sides off their CPUs, each while the other side may run: who of the two waits longer.
pub(crate) fn kept_off(accounting: &Accounting) -> Option<Side> {
    server(accounting)?;
    let pool = &accounting.asked.pool;
    let (server, generator) = (accounting.lost(TareCause::Preempted), generator::kept_off_share(pool)?);
    let both = server.min(generator) >= LOSS_SHARE_MIN && server + generator >= KEPT_OFF_MIN;
    let longer = if server >= generator { Side::Server } else { Side::Generator };
    (both && shared_cpus(pool).is_empty()).then_some(longer)
}
