//! Three explanations for a server that is slower than its CPUs though it shares nothing: the lock of a socket, soft
//! interrupts on CPUs that are busy already, and wake-ups across CPUs. Each stands or falls with one figure.

use crate::accounting::Closed;
use crate::accounting::ratio;
use tare_model::observation::Role;
use tare_model::outcome::{Hypothesis, Judged, Standing};
use tare_model::schedule::UNSEEN_WAKE_SHARE_MAX;
use tare_model::{Missing, Reading};

/// Half of the contention that is worth a finding, and a tenth of it.
const LOCK_SUPPORTED: f64 = 0.015;
const LOCK_REFUTED: f64 = 0.003;
const SOFTIRQ_SUPPORTED: f64 = 0.15;
const SOFTIRQ_REFUTED: f64 = 0.03;
/// For each request (without requests: for each millisecond).
const WAKEUPS_SUPPORTED: f64 = 0.3;
const WAKEUPS_REFUTED: f64 = 0.05;
/// A CPU is the SUT's where it ran for this share of it.
const USED_SHARE: f64 = 0.01;

/// How each stands.
pub(crate) fn of(window: &Closed) -> Vec<Judged> {
    [socket_lock(window), softirq(window), wakeups(window)].into()
}

/// In a word.
pub(crate) fn word(standing: Standing) -> &'static str {
    match standing {
        Standing::Supported => "supported",
        Standing::Refuted => "refuted",
        Standing::NotVisibleHere => "not visible here",
    }
}

fn judged(
    hypothesis: Hypothesis,
    of: &str,
    unit: &str,
    figure: Result<f64, Missing>,
    ends: [f64; 2],
) -> Judged {
    let [refuted_below, supported_from] = ends;
    let standing = match figure {
        Ok(figure) if figure >= supported_from => Standing::Supported,
        Ok(figure) if figure < refuted_below => Standing::Refuted,
        _ => Standing::NotVisibleHere,
    };
    let figure: Reading<f64> = figure.into();
    Judged { hypothesis, standing, of: of.into(), unit: unit.into(), figure, supported_from, refuted_below }
}

fn socket_lock(window: &Closed) -> Judged {
    judged(
        Hypothesis::SocketLock,
        "contention for sockets' locks, of the serving threads' time",
        "share",
        at_sockets(window),
        [LOCK_REFUTED, LOCK_SUPPORTED],
    )
}

fn at_sockets(window: &Closed) -> Result<f64, Missing> {
    window.switches.sees_locks()?;
    let serving_s = window.sut.as_ref().map_or(0.0, |sut| sut.serving_s);
    let share = ratio(window.switches.contended_s(|at, _, _| is_socket(at)), serving_s);
    // What was lost is missing in the sum: it can be no smaller.
    match window.switches.events_lost() {
        lost if lost > 0 && share < LOCK_SUPPORTED => Err(Missing::new(format!("{lost} events were lost"))),
        _ => Ok(share),
    }
}

/// Functions that take the lock of one socket.
pub(crate) fn is_socket(function: &str) -> bool {
    ["lock_sock", "release_sock", "sk_", "sock_", "tcp_", "udp_", "unix_", "inet_"]
        .iter()
        .any(|start| function.trim_start_matches('_').starts_with(start))
}

/// Their share of the busy time of the CPUs that the program ran on.
fn softirq(window: &Closed) -> Judged {
    let used = || window.cpus.values().filter(|cpu| cpu.ran_s.sut > USED_SHARE * cpu.times.wall_s);
    let busy_s: f64 =
        used().map(|cpu| cpu.times.modes.user_s + cpu.times.modes.system_s + cpu.times.modes.softirq_s).sum();
    let share = || used().map(|cpu| cpu.times.modes.softirq_s).sum::<f64>() / busy_s;
    let figure =
        if busy_s > 0.0 { Ok(share()) } else { Err(Missing::new("the modes of its CPUs were not read")) };
    judged(
        Hypothesis::SoftirqOnBusyCpus,
        "soft interrupts, of the busy time of its CPUs",
        "share",
        figure,
        [SOFTIRQ_REFUTED, SOFTIRQ_SUPPORTED],
    )
}

fn wakeups(window: &Closed) -> Judged {
    judged(
        Hypothesis::CrossCpuWakeups,
        "wake-ups across CPUs, of it and of the generator, a request (or ms)",
        "count",
        crossings(window),
        [WAKEUPS_REFUTED, WAKEUPS_SUPPORTED],
    )
}

/// Of the program's threads, as traced; of the generator's, each sleep of it on a CPU that the program does not use, which
/// the program ends.
fn crossings(window: &Closed) -> Result<f64, Missing> {
    let own = window.switches.cross_cpu().ok_or_else(|| window.switches.why_not_traced())?;
    let is_used =
        |cpu: &u32| window.cpus.get(cpu).is_some_and(|cpu| cpu.ran_s.sut > USED_SHARE * cpu.times.wall_s);
    let load = window.sum_of(Role::Load, |thread| {
        let apart: f64 =
            thread.cpu_run_s.keys().filter(|cpu| !is_used(cpu)).map(|cpu| thread.share_on(*cpu)).sum();
        Some(thread.switched.voluntary? * apart)
    });
    let all = own + load.unwrap_or(0.0);
    let a_ms = || (window.span.wall_s > 0.0).then(|| all / window.span.wall_s / 1e3);
    let crossings =
        window.per_request(all).or_else(a_ms).ok_or_else(|| Missing::new("the window has no length"))?;
    match window.switches.unseen_wake_share() {
        Some(unseen) if unseen > UNSEEN_WAKE_SHARE_MAX && crossings < WAKEUPS_SUPPORTED => Err(Missing::new(
            format!("the kernel reported no wake-up for {:.0} % of the sleeps that ended", 100.0 * unseen),
        )),
        _ => Ok(crossings),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_sockets_are_distinguished_from_others() {
        assert!(is_socket("lock_sock_nested") && is_socket("__lock_sock") && is_socket("tcp_v4_rcv"));
        assert!(!is_socket("ep_poll") && !is_socket("futex_wake"));
    }
}
