//! Whether server and generator fill the same CPUs together, though neither is full by itself.

use crate::accounting::{Closed, ratio};
use crate::bottlenecks::signs::free::used_share;
use crate::bottlenecks::signs::sides::server;
use crate::capacity::levels::Accounting;
use crate::capacity::summary::shared_cpus;
use tare_model::observation::Role;

/// Of the CPUs that the server may use, used by somebody: with less there is room for both.
pub(crate) const FULL_MIN: f64 = 0.8;
/// Of the generator's time, ready and behind others on its CPU: with less it has what it needs.
const WAITS_MIN: f64 = 0.1;

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
        let found = Together { used: used_share(pool)?, generator_waits: generator_waits(pool)? };
        let is_full = found.used >= FULL_MIN && found.generator_waits >= WAITS_MIN;
        (is_full && !shared_cpus(pool).is_empty()).then_some(found)
    }
}

/// Over its threads that serve.
fn generator_waits(window: &Closed) -> Option<f64> {
    let senders = || window.threads_of(Role::Load).filter(|thread| thread.serves());
    let waited_s: f64 = senders().filter_map(|thread| thread.queue_s).sum();
    let wall_s: f64 = senders().map(|thread| thread.wall_s).sum();
    (wall_s > 0.0).then(|| ratio(waited_s, wall_s))
}
