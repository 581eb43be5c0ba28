//! The generator's side: whether it could have sent more.

use crate::accounting::Closed;
use crate::accounting::Thread;
use crate::accounting::ratio;
use tare_model::observation::Role;

/// Above this share the generator is taken to be at its end.
pub(crate) const SATURATED: f64 = 0.9;

/// How much of its life the generator's serving threads ran, waited to run, or would have run but for the hypervisor and
/// interrupts, 0..=1; `None` when unseen.
pub(crate) fn ready_share(window: &Closed) -> Option<f64> {
    let serving = || window.threads_of(Role::Load).filter(|thread| thread.serves());
    let wall_s: f64 = serving().map(|thread| thread.wall_s).sum();
    let ready = |thread: &Thread| {
        thread.run_s + thread.queue_s.unwrap_or(0.0) + thread.taken.steal_s + thread.taken.irq_s
    };
    let ready_s: f64 = serving().map(ready).sum();
    (wall_s > 0.0).then(|| ratio(ready_s, wall_s).min(1.0))
}

/// How much of their time its serving threads were ready and waited for a CPU, 0..=1; `None` when unseen.
pub(crate) fn waits_share(window: &Closed) -> Option<f64> {
    share_waited(window, |thread| thread.queue_s.unwrap_or(0.0))
}

/// The same behind programs that are neither side's: not what they wait behind each other, or for a quota.
pub(crate) fn kept_off_share(window: &Closed) -> Option<f64> {
    share_waited(window, |thread| thread.wait.behind_s.other)
}

fn share_waited(window: &Closed, waited_s: impl Fn(&Thread) -> f64) -> Option<f64> {
    let seen = || window.threads_of(Role::Load).filter(|thread| thread.serves() && thread.queue_s.is_some());
    let wall_s: f64 = seen().map(|thread| thread.wall_s).sum();
    (wall_s > 0.0).then(|| ratio(seen().map(waited_s).sum(), wall_s).min(1.0))
}

/// How full the CPUs are that the generator may use: its own and everybody's time there. `None` when they were
/// not read. Counts only where the generator itself does most of the filling.
pub(crate) fn cpu_share(window: &Closed) -> Option<f64> {
    let load = window.load.as_ref()?;
    let (mut wall_s, mut idle_s, mut load_s) = (0.0, 0.0, 0.0);
    for cpu in &load.usable {
        let accounting = window.cpus.get(cpu)?;
        wall_s += accounting.times.wall_s;
        idle_s += accounting.times.idle_s?;
        load_s += accounting.ran_s.load;
    }
    (wall_s > 0.0 && load_s > 0.5 * (wall_s - idle_s)).then(|| 1.0 - (idle_s / wall_s).min(1.0))
}

/// The fuller of the two: a thread that never sleeps is at its end, and so are many that share a full CPU.
pub(crate) fn fullness(window: &Closed) -> Option<f64> {
    let sides = [ready_share(window), cpu_share(window)];
    sides.into_iter().flatten().max_by(f64::total_cmp)
}
